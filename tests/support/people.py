"""People who write from several platforms, without workers: what they are told is read from the outbox."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from palaver import SessionSource
from palaver.agent.profiles import CurrentSettings
from palaver.config.agent_rules import TurnRules
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.inbox import Inbox
from palaver.people import account_table as accounts, table as people
from palaver.people.model import Role
from palaver.sessions.conversations import build_person_source
from palaver.sessions.inbound import Inbound
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionStore
    from palaver.core.engines.base import Row, Transaction
    from palaver.people.model import Person
    from palaver.sessions.inbound import Receipt
    from palaver.testing import FakeClock

T = TypeVar("T")

CODE = re.compile(r"[A-Z2-9]{4}-[A-Z2-9]{4}")
PLATFORMS = ("telegram", "matrix", "discord")


def chat(user: str, platform: str = "telegram", **fields: Any) -> SessionSource:
    """Return the direct messages of an account, whose chat has another id than its user."""
    return SessionSource(platform, f"chat-{user}", user_id=user, user_name=user.title(), **fields)


def group(user: str, name: str = "club", platform: str = "telegram") -> SessionSource:
    return SessionSource(platform, name, chat_name=name, chat_type="group", user_id=user, user_name=user.title())


def find_code(text: str | None) -> str:
    match = CODE.search(text or "")
    assert match is not None, text
    return match[0]


@dataclass
class Town:
    """A store, an inbox, and an owner at the terminal and on the page."""

    store: SessionStore
    clock: FakeClock
    rules: TurnRules = field(default_factory=TurnRules)
    message_ids: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        settings = CurrentSettings(ScriptedAgent(), self.rules)
        self.inbox = Inbox(self.store, settings, list_connected_platforms=lambda: PLATFORMS)  # type: ignore[arg-type,return-value]

    async def send(self, source: SessionSource, text: str, **fields: Any) -> Receipt:
        fields.setdefault("message_id", f"m{next(self.message_ids)}")
        receipt = await self.inbox.accept(Inbound(source=source, content=text, **fields))
        self.clock.advance(seconds=1)
        return receipt

    async def ask(self, source: SessionSource, text: str, **fields: Any) -> str:
        """Send a text and return the gateway's own reply."""
        return (await self.send(source, text, **fields)).reply or ""

    async def add_person(self, source: SessionSource, role: Role = Role.MEMBER) -> Person:
        """Let the account of a source belong to a person with this role."""

        def run(tx: Transaction) -> Person:
            row = people.find_or_add_by_source(tx, source, to_micros(self.clock.now()))
            assert row is not None
            people.set_role(tx, row.person.id, role)
            found = people.find_by_id(tx, row.person.id)
            assert found is not None
            return found.person

        return await self.write(run)

    async def add_account(self, name: str, role: Role = Role.MEMBER) -> Person:
        """Add a person who signs in on the page."""

        def run(tx: Transaction) -> Person:
            now = to_micros(self.clock.now())
            person = people.add_person(tx, name, role, now).person
            accounts.open_account(tx, person, now)
            return person

        return await self.write(run)

    def page(self, person: Person) -> SessionSource:
        return build_person_source(person)

    async def find_person(self, source: SessionSource) -> Person | None:
        row = await self.read(lambda tx: people.find_by_source(tx, source))
        return row.person if row else None

    async def get_told(self, source: SessionSource) -> list[str]:
        """Return everything that was sent to a chat."""
        rows = await self.rows("SELECT content FROM delivery WHERE platform = $1 ORDER BY no", str(source.platform))
        addresses = await self.rows(
            "SELECT address FROM delivery WHERE platform = $1 ORDER BY no", str(source.platform)
        )
        return [
            content
            for (content,), (address,) in zip(rows, addresses, strict=True)
            if address.split(":")[2] == source.chat_id
        ]

    async def rows(self, sql: str, *params: Any) -> list[Row]:
        return await self.read(lambda tx: tx.fetch_all(sql, *params))

    async def read(self, run: Callable[[Transaction], T]) -> T:
        return await self.store.engine.arun(Read(run))

    async def write(self, run: Callable[[Transaction], T]) -> T:
        return await self.store.engine.arun(Write(run))
