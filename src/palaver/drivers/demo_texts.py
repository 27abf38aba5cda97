"""The longer texts of the demo agent, in English and German."""

from __future__ import annotations

HELP = """\
I'm Palaver's **demo agent**. My answers are scripted; there is no AI model behind them. Try:

- `show me markdown` – what answers can look like
- `think about the sea` – reasoning, then an answer
- `remember that my cat is called Ada`, then `what do you remember`
- `search for cat` – in your earlier conversations
- `remind me every day at 7 to water the plants` or `remind me in 30m to stretch`, then `list my jobs`

Commands work with every agent: `/help` lists them all, `/new` starts a new conversation, `/sessions` lists earlier
ones, `/undo` removes the last exchange, `/retry` asks again, `/usage` shows tokens and cost."""

MARKDOWN = """\
## What Markdown looks like

Some **bold**, some *italic*, some `code`, and a [link](https://example.org).

1. first
2. second
   - with a point below

> A quotation, for good measure.

```python
def greet(name: str) -> str:
    return f"Hello, {name}!"
```

| dish | price |
|------|------:|
| soup | 4.50  |
| bread | 1.20 |"""

HELP_GERMAN = """\
Ich bin der **Demo-Agent** von Palaver. Meine Antworten sind vorgegeben, dahinter steckt kein KI-Modell. Probiere:

- `zeig mir Markdown` – wie Antworten aussehen können
- `denk über das Meer nach` – erst überlegen, dann antworten
- `merk dir, dass meine Katze Ada heißt`, danach `was weißt du noch`
- `suche nach Katze` – in deinen früheren Chats
- `erinnere mich jeden Tag um 7: Blumen gießen` oder `erinnere mich in 30m: Pause machen`, danach `zeig meine Jobs`

Befehle gehen mit jedem Agenten: `/help` zeigt alle, `/new` beginnt einen neuen Chat, `/sessions` listet frühere auf,
`/undo` nimmt den letzten Austausch zurück, `/retry` fragt noch einmal, `/usage` zeigt Token und Kosten."""

MARKDOWN_GERMAN = """\
## So sieht Markdown aus

Etwas **fett**, etwas *kursiv*, etwas `Code` und ein [Link](https://example.org).

1. erstens
2. zweitens
   - mit einem Punkt darunter

> Und ein Zitat.

```python
def greet(name: str) -> str:
    return f"Hallo, {name}!"
```

| Gericht | Preis |
|---------|------:|
| Suppe | 4,50  |
| Brot | 1,20 |"""
