"""Sample data for the screenshots: conversations on several platforms, projects, tool calls, code, a month of usage."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from palaver import SessionSource, SessionStore
from palaver.accounts.accounts import Accounts
from palaver.core.engines.base import Write
from palaver.sessions.usage import TurnUsage
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.people.model import Person

OWNER = "Mira"
FRIENDS = ("Jonas", "Amina")
PROJECTS = {"Travel": "#3b7dc4", "Home server": "#1f6f64", "Reading": "#8a5cc2"}

BACKUP_ANSWER = """\
The copying is quick. The hour goes into **comparing every file by its content**: since the 9th, the job runs with
`--checksum`, so it reads all 412 GB on both sides every night.

| night | copied | compared | took |
|---|--:|--:|--:|
| 8 Nov | 1.9 GB | – | 4 min |
| 14 Nov | 1.7 GB | 412 GB | 61 min |

Compare by size and time every night, and by content once a week:

```bash
rsync -a --delete /srv/ backup:/srv/             # every night
rsync -a --delete --checksum /srv/ backup:/srv/  # on Sundays
```"""

BACKUP_LOG = """\
2026-11-14 02:00:01 rsync -a --delete --checksum /srv/ backup:/srv/
2026-11-14 03:01:17 sent 1.74G bytes  received 21.3M bytes  total size is 412.08G"""

LISBON_ANSWER = """\
Seven days at a relaxed pace:

| day | morning | afternoon |
|---|---|---|
| Mon | Alfama, before the crowds | Tile museum |
| Tue | Belém by tram 15 | Along the river |
| Wed | Train to Sintra | Pena, then the gardens |
| Thu | Mercado de Campo de Ourique | *nothing* |

I left the rest open. Trains to Sintra leave Rossio every twenty minutes."""

INVOICE_ANSWER = """\
This matches `2026-00412` but not phone numbers:

```python
import re

INVOICE = re.compile(r"\\b(?P<year>20\\d{2})-(?P<number>\\d{4,6})\\b")
```
"""


def _build_tool_call(name: str, result: str, **arguments: str) -> list[dict[str, Any]]:
    call = {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "tool_name": name, "content": result, "duration_ms": 420},
    ]


@dataclass(frozen=True)
class Conversation:
    """A sample conversation. In `messages`, the person and the agent alternate."""

    ago: timedelta
    title: str | None
    messages: Sequence[str | list[dict[str, Any]]]
    platform: str = "web"
    project: str | None = None
    pinned: bool = False
    room: str | None = None  # name of the group chat; None: a private chat


def _hours(count: float) -> timedelta:
    return timedelta(hours=count)


CONVERSATIONS = (
    Conversation(
        _hours(0.3),
        "Why are the backups slow?",
        [
            "The nightly backup has taken an hour since last week, instead of five minutes. Can you find out why?",
            [
                {
                    "role": "assistant",
                    "content": "Let me check the log of the last few nights first.",
                    "reasoning": "Something changed about a week ago. The job's log will show which command it ran.",
                },
                *_build_tool_call("read_file", BACKUP_LOG, path="/var/log/backup.log", last="14 days"),
                {"role": "assistant", "content": BACKUP_ANSWER, "duration_ms": 6_800},
            ],
        ],
        platform="local",
        project="Home server",
    ),
    Conversation(
        _hours(1.2),
        "Friday evening",
        ["What did I want to bring on Friday?", "Bread and the small speaker. Amina brings the soup."],
        platform="telegram",
    ),
    Conversation(
        _hours(3),
        "A week in Lisbon",
        ["Plan seven days in Lisbon, slowly.", LISBON_ANSWER],
        project="Travel",
        pinned=True,
    ),
    Conversation(
        _hours(5),
        "Book club, chapter nine",
        ["Who has finished chapter nine?", "Jonas and Amina have; Mira said she is at page 140."],
        platform="discord",
        project="Reading",
        room="book-club",
    ),
    Conversation(
        _hours(26), "A pattern for invoice numbers", ["Find invoice numbers like 2026-00412 in a text.", INVOICE_ANSWER]
    ),
    Conversation(
        _hours(29), "Night trains to Vienna", ["Is there a night train?", "Yes, at 20:38."], "telegram", "Travel"
    ),
    Conversation(_hours(50), "Letter to the landlord", ["The heating has been off since Monday.", "Dear Ms Okafor, …"]),
    Conversation(_hours(76), "Names for a sourdough", ["It needs a name.", "Clint Yeastwood is taken, I am told."]),
    Conversation(
        _hours(100), "Mending the gate sensor", ["It says open, always.", "Clean it."], "local", "Home server"
    ),
    Conversation(
        _hours(180), "What to read after Piranesi", ["Something as quiet.", "The Buried Giant."], project="Reading"
    ),
    Conversation(
        _hours(300), "Ferry or bridge?", ["To Sweden with bicycles.", "The ferry, from Helsingør."], project="Travel"
    ),
    Conversation(
        _hours(340), "Fractions, for a nine-year-old", ["How do I explain halves of halves?", "With a pizza."]
    ),
)

# (model, price, share of the turns)
MODELS = (("claude-sonnet-4-5", 0.0115, 6), ("gpt-5-mini", 0.0016, 5), ("qwen3:8b", None, 2))


def fill_store(url: str, now: datetime) -> str:
    """Write all sample conversations into a new store and return the session id of the newest one."""
    clock = FakeClock(now - timedelta(days=40))
    with SessionStore.open(url, clock=clock) as store:
        owner = store.get_owner()
        asyncio.run(_add_people(store, owner))
        _add_identities(store, owner)
        view = store.seen_by(owner.principal)
        projects = {name: view.projects.create(name, color).id for name, color in PROJECTS.items()}
        session_ids = [
            _write_conversation(store, clock, conversation, owner, projects, now)
            for conversation in reversed(CONVERSATIONS)
        ]
        _record_usage(store, clock, session_ids, now)
        return session_ids[-1]


async def _add_people(store: SessionStore, owner: Person) -> None:
    accounts = Accounts(store)
    await accounts.create_owner_link()  # gives the owner an account on the web
    people = accounts.open_people(owner.principal)
    await people.update(owner.id, name=OWNER)
    for name in FRIENDS:
        await people.add(name)


def _add_identities(store: SessionStore, owner: Person) -> None:
    """Add the owner's accounts on other platforms, as pairing would."""
    for platform in ("telegram", "discord"):
        store.engine.run(
            Write(
                lambda tx, platform=platform: tx.execute(
                    "INSERT INTO identity (platform, account, person_id, created_at) VALUES ($1, $2, $3, $4)",
                    platform,
                    "4711",
                    owner.id,
                    0,
                )
            )
        )


def _write_conversation(
    store: SessionStore,
    clock: FakeClock,
    conversation: Conversation,
    owner: Person,
    projects: dict[str, str],
    now: datetime,
) -> str:
    clock.set(now - conversation.ago)
    source = _build_source(conversation, owner)
    session_id = store.get_or_create_session(source, force_new=True).session_id
    for index, message in enumerate(conversation.messages):
        clock.set(now - conversation.ago + timedelta(seconds=40 * index))
        if index % 2 == 0:
            store.record_user_message(source, message)  # type: ignore[arg-type]
        else:
            store.append_to_transcript(session_id, message)
    if conversation.title is not None:
        store.rename_session(session_id, conversation.title)
    if conversation.project is not None:
        store.move_to_project(session_id, projects[conversation.project])
    if conversation.pinned:
        store.pin(session_id)
    return session_id


def _build_source(conversation: Conversation, owner: Person) -> SessionSource:
    if conversation.platform == "local":
        return SessionSource.local_cli()
    if conversation.platform == "web":
        return SessionSource("web", f"{conversation.title}", user_id=owner.id, user_name=OWNER)
    chat = {"chat_name": conversation.room, "chat_type": "group"} if conversation.room else {}
    return SessionSource(conversation.platform, conversation.room or "4711", user_id="4711", user_name=OWNER, **chat)


def _record_usage(store: SessionStore, clock: FakeClock, sessions: Sequence[str], now: datetime) -> None:
    """Record the usage of 30 days, with more turns on workdays than on weekends."""
    rng = random.Random(11)  # noqa: S311  (the same usage on every run)
    numbers = itertools.count()
    for day in range(30):
        moment = now - timedelta(days=day, minutes=30)
        weekend = moment.weekday() >= 5
        for model, price, share in MODELS:
            for _ in range(rng.randint(0, share * (1 if weekend else 3))):
                clock.set(moment)
                input_tokens = rng.randint(900, 14_000)
                output_tokens = rng.randint(120, 1_600)
                store.update_session(
                    rng.choice(sessions),
                    TurnUsage(
                        turn_id=f"seeded-{next(numbers)}",
                        model=model,
                        provider="seeded",
                        input_tokens=input_tokens,
                        output_tokens=output_tokens,
                        cache_read_tokens=input_tokens // 2,
                        cost=None if price is None else round(price * (input_tokens / 4000 + output_tokens / 800), 6),
                        last_prompt_tokens=input_tokens // 5,  # the demo agent has a small context window
                    ),
                )
