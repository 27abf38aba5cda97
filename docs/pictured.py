"""Believable conversations for the pictures: several platforms, projects, a tool, code, a table, a month of usage."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from palaver import SessionSource, SessionStore
from palaver.domain.usage import TurnUsage
from palaver.services.accounts.accounts import Accounts
from palaver.storage.engines.base import Write
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.person import Person

OWNER = "Mira"
FRIENDS = ("Jonas", "Amina")
PROJECTS = {"Travel": "#3b7dc4", "Home server": "#1f6f64", "Reading": "#8a5cc2"}

_BACKUPS = """\
The backup itself is quick. What takes an hour is **checking every file by its content**: since the 9th, `--checksum` is
in the job, so all 412 GB are read on both sides each night.

| night | copied | compared | took |
|---|--:|--:|--:|
| 8 Nov | 1.9 GB | – | 4 min |
| 14 Nov | 1.7 GB | 412 GB | 61 min |

Compare by size and time every night, and by content once a week:

```bash
rsync -a --delete /srv/ backup:/srv/             # every night
rsync -a --delete --checksum /srv/ backup:/srv/  # on Sundays
```"""

_LOG = """\
2026-11-14 02:00:01 rsync -a --delete --checksum /srv/ backup:/srv/
2026-11-14 03:01:17 sent 1.74G bytes  received 21.3M bytes  total size is 412.08G"""

_LISBON = """\
Seven days, at a pace that leaves room for sitting down:

| day | morning | afternoon |
|---|---|---|
| Mon | Alfama, before the crowds | Tile museum |
| Tue | Belém by tram 15 | Along the river |
| Wed | Train to Sintra | Pena, then the gardens |
| Thu | Mercado de Campo de Ourique | *nothing* |

The rest is better decided there. Trains to Sintra go every twenty minutes from Rossio."""

_INVOICE = """\
This takes `2026-00412` and leaves phone numbers alone:

```python
import re

INVOICE = re.compile(r"\\b(?P<year>20\\d{2})-(?P<number>\\d{4,6})\\b")
```
"""


def _call(name: str, result: str, **arguments: str) -> list[dict[str, Any]]:
    call = {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "tool_name": name, "content": result, "duration_ms": 420},
    ]


@dataclass(frozen=True)
class Talk:
    """A conversation: when it was, where, and what was said in turn."""

    ago: timedelta
    title: str | None
    lines: Sequence[str | list[dict[str, Any]]]
    platform: str = "web"
    project: str | None = None
    pinned: bool = False
    room: str | None = None  # where several people speak


def _hours(count: float) -> timedelta:
    return timedelta(hours=count)


TALKS = (
    Talk(
        _hours(0.3),
        "Why are the backups slow?",
        [
            "The nightly backup takes an hour since last week. It used to take five minutes. Can you find out why?",
            [
                {
                    "role": "assistant",
                    "content": "I look at the log of the last nights first.",
                    "reasoning": "Something changed about a week ago. The log of the job will tell what it ran.",
                },
                *_call("read_file", _LOG, path="/var/log/backup.log", last="14 days"),
                {"role": "assistant", "content": _BACKUPS, "duration_ms": 6_800},
            ],
        ],
        platform="local",
        project="Home server",
    ),
    Talk(
        _hours(1.2),
        "Friday evening",
        ["What did I want to bring on Friday?", "Bread and the small speaker. Amina brings the soup."],
        platform="telegram",
    ),
    Talk(_hours(3), "A week in Lisbon", ["Plan seven days in Lisbon, slowly.", _LISBON], project="Travel", pinned=True),
    Talk(
        _hours(5),
        "Book club, chapter nine",
        ["Who has finished chapter nine?", "Jonas and Amina have; Mira said she is at page 140."],
        platform="discord",
        project="Reading",
        room="book-club",
    ),
    Talk(_hours(26), "A pattern for invoice numbers", ["Find invoice numbers like 2026-00412 in a text.", _INVOICE]),
    Talk(_hours(29), "Night trains to Vienna", ["Is there a night train?", "Yes, at 20:38."], "telegram", "Travel"),
    Talk(_hours(50), "Letter to the landlord", ["The heating is cold since Monday.", "Dear Ms Okafor, …"]),
    Talk(_hours(76), "Names for a sourdough", ["It needs a name.", "Clint Yeastwood is taken, I am told."]),
    Talk(_hours(100), "Mending the gate sensor", ["It says open, always.", "Clean it."], "local", "Home server"),
    Talk(_hours(180), "What to read after Piranesi", ["Something as quiet.", "The Buried Giant."], project="Reading"),
    Talk(_hours(300), "Ferry or bridge?", ["To Sweden with bicycles.", "The ferry, from Helsingør."], project="Travel"),
    Talk(_hours(340), "Fractions, for a nine-year-old", ["How do I explain halves of halves?", "With a pizza."]),
)  # fmt: skip

MODELS = (("claude-sonnet-4-5", 0.0115, 6), ("gpt-5-mini", 0.0016, 5), ("qwen3:8b", None, 2))


def fill(url: str, now: datetime) -> str:
    """Tell it all into a store; the id of the conversation to look at."""
    clock = FakeClock(now - timedelta(days=40))
    with SessionStore.open(url, clock=clock) as store:
        owner = store.owner()
        asyncio.run(_let_in(store, owner))
        _know_on_platforms(store, owner)
        view = store.seen_by(owner.principal)
        projects = {name: view.create_project(name, colour).id for name, colour in PROJECTS.items()}
        told = [_tell(store, clock, talk, owner, projects, now) for talk in reversed(TALKS)]
        _use(store, clock, told, now)
        return told[-1]


async def _let_in(store: SessionStore, owner: Person) -> None:
    accounts = Accounts(store)
    await accounts.owner_link()  # from now on the owner has an account on the web
    people = accounts.people_seen_by(owner.principal)
    await people.change(owner.id, name=OWNER)
    for name in FRIENDS:
        await people.add(name)


def _know_on_platforms(store: SessionStore, owner: Person) -> None:
    """The owner's accounts elsewhere, as if they had been paired."""
    for platform in ("telegram", "discord"):
        store.engine.run(
            Write(
                lambda tx, platform=platform: tx.run(
                    "INSERT INTO identity (platform, account, person_id, created_at) VALUES ($1, $2, $3, $4)",
                    platform,
                    "4711",
                    owner.id,
                    0,
                )
            )
        )


def _tell(
    store: SessionStore, clock: FakeClock, talk: Talk, owner: Person, projects: dict[str, str], now: datetime
) -> str:
    clock.set(now - talk.ago)
    source = _source(talk, owner)
    session = store.get_or_create_session(source, force_new=True).session_id
    for number, said in enumerate(talk.lines):
        clock.set(now - talk.ago + timedelta(seconds=40 * number))
        if number % 2 == 0:
            store.record_user_message(source, said)  # type: ignore[arg-type]
        else:
            store.append_to_transcript(session, said)
    if talk.title is not None:
        store.rename_session(session, talk.title)
    if talk.project is not None:
        store.move_to_project(session, projects[talk.project])
    if talk.pinned:
        store.pin(session)
    return session


def _source(talk: Talk, owner: Person) -> SessionSource:
    if talk.platform == "local":
        return SessionSource.local_cli()
    if talk.platform == "web":
        return SessionSource("web", f"{talk.title}", user_id=owner.id, user_name=OWNER)
    chat = {"chat_name": talk.room, "chat_type": "group"} if talk.room else {}
    return SessionSource(talk.platform, talk.room or "4711", user_id="4711", user_name=OWNER, **chat)


def _use(store: SessionStore, clock: FakeClock, sessions: Sequence[str], now: datetime) -> None:
    """A month in which people talked more on some days than on others."""
    chance = random.Random(11)  # noqa: S311  (the same month every time)
    numbers = itertools.count()
    for day in range(30):
        moment = now - timedelta(days=day, minutes=30)
        weekend = moment.weekday() >= 5
        for model, price, share in MODELS:
            for _ in range(chance.randint(0, share * (1 if weekend else 3))):
                clock.set(moment)
                read = chance.randint(900, 14_000)
                said = chance.randint(120, 1_600)
                store.update_session(
                    chance.choice(sessions),
                    TurnUsage(
                        turn_id=f"seeded-{next(numbers)}",
                        model=model,
                        provider="seeded",
                        input_tokens=read,
                        output_tokens=said,
                        cache_read_tokens=read // 2,
                        cost=None if price is None else round(price * (read / 4000 + said / 800), 6),
                        last_prompt_tokens=read // 5,  # the demo agent takes few
                    ),
                )
