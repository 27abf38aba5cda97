"""People who give commands, on each engine: each runs in one transaction, and an error takes all of it back."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from palaver import GatewayConfig, Principal, Role
from palaver.domain.errors import InvalidInput, PalaverError, StoreError
from palaver.domain.inbound import Inbound
from palaver.domain.profile import TurnRules
from palaver.services import commands
from palaver.services.commands.base import CommandContext
from palaver.services.view import ViewWithin
from palaver.storage import events, lanes, leases, people, sessions, turns
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import OpenStore
    from palaver import SessionSource, SessionStore
    from palaver.domain.events import Event, EventKind
    from palaver.domain.session import Recorded, Session
    from palaver.domain.turn import Turn
    from palaver.services.commands.base import Reply
    from palaver.storage.engines.base import Row, Transaction
    from palaver.testing import FakeClock

T = TypeVar("T")

TABLES = ("session", "event", "route", "route_change", "turn", "delivery", "audience_member")


class TwoModels:
    """An agent as far as commands know it."""

    model = "small"
    description = "an agent with two models"

    def models(self) -> Sequence[str]:
        return ("small", "large")

    def check_model(self, name: str) -> None:
        if name not in self.models():
            raise InvalidInput(f"there is no model {name!r}; choose small or large")

    def tool_servers(self) -> Sequence[str]:
        return ("files",)


@dataclass
class Chat:
    """Somebody speaks and gives commands; somebody else answers."""

    store: SessionStore
    clock: FakeClock
    rules: TurnRules = field(default_factory=TurnRules)

    def say(self, source: SessionSource, *texts: str) -> Recorded:
        """What a person says and, alternating, what is answered."""
        for question, answer in zip_longest(texts[::2], texts[1::2]):
            said = self.store.record_user_message(source, question)
            self.clock.advance(seconds=10)
            if answer is not None:
                self.store.append_to_transcript(said.session_id, answer)
                self.clock.advance(seconds=10)
        return said

    def __call__(
        self, source: SessionSource, text: str, *, role: Role = Role.MEMBER, shown: str | None = None
    ) -> Reply:
        """Give a command, as the door for messages does it."""
        parsed = commands.parse(text)
        assert parsed is not None, text
        try:
            return self.write(lambda tx: commands.run(parsed, self._asked(tx, source, role, shown)))
        finally:
            self.clock.advance(seconds=10)

    def refused(self, source: SessionSource, text: str, **how: Any) -> str:
        """Give a command that cannot be carried out; what is said about it. Nothing at all has happened."""
        self.store.search("anything")  # so that nothing is left to be put into the index meanwhile
        before = self.everything()
        with pytest.raises(PalaverError) as error:
            self(source, text, **how)
        assert not isinstance(error.value, StoreError)
        assert self.everything() == before
        return str(error.value)

    def _asked(self, tx: Transaction, source: SessionSource, role: Role, shown: str | None) -> CommandContext:
        now = self.clock.now()
        resident = people.find_or_add(tx, source, to_micros(now))
        assert resident is not None
        principal = Principal(resident.person.id, role)
        arrival = lanes.Arrival(source=source, config=self.config, now=now, busy_since=lambda _session_id: None)
        key = lanes.key_of(tx, arrival)
        among = None
        if self.config.is_shared(source):
            lane = tx.one("SELECT audience_no FROM route WHERE key = $1", key)
            among = lane[0] if lane else 0
        inbound = Inbound(source=source, content="/", message_id="m1")
        return CommandContext(
            tx=tx,
            now=now,
            arguments="",
            source=source,
            principal=principal,
            view=ViewWithin(tx, self.clock, principal, among=among),
            key=key,
            found=sessions.seen(tx, shown, principal.person_id) if shown else lanes.current(tx, key),
            config=self.config,
            rules=self.rules,
            agent=TwoModels(),
            address=str(inbound.answer_to) if inbound.answer_to else None,
            reply_to=inbound.message_id,
        )

    @property
    def config(self) -> GatewayConfig:
        return self.store.config

    def write(self, run: Callable[[Transaction], T]) -> T:
        return self.store.engine.run(Write(run))

    def read(self, run: Callable[[Transaction], T]) -> T:
        return self.store.engine.run(Read(run))

    def everything(self) -> dict[str, list[Row]]:
        """Every row of every table that a command could change."""

        def rows(tx: Transaction) -> dict[str, list[Row]]:
            return {table: sorted(tx.all(f"SELECT * FROM {table}"), key=repr) for table in TABLES}

        return self.read(rows)

    # -- what is there -------------------------------------------------------------------------------------

    def here(self, source: SessionSource) -> Session:
        """The conversation that the lane is on."""
        entry = self.store.get_entry(self.config.session_key(source))
        assert entry is not None
        return entry.session

    def texts(self, session_id: str) -> list[str]:
        return [message["content"] for message in self.store.load_transcript(session_id)]

    def log(self, session_id: str) -> list[Event]:
        return list(self.store.events(session_id))

    def number(self, session_id: str) -> int:
        return int(self.read(lambda tx: sessions.get(tx, session_id).no))

    # -- turns ---------------------------------------------------------------------------------------------

    def wait(self, session_id: str, *, seq: int = 0, person: str | None = None) -> None:
        """A turn waits in a conversation."""
        no, last = self.number(session_id), self.log(session_id)[-1].seq
        wanted = turns.TurnRequest(session_no=no, input_seq=seq or last)
        self.write(lambda tx: turns.enqueue(tx, wanted, to_micros(self.clock.now())))

    def work(self) -> None:
        """A worker takes what waits."""
        now = to_micros(self.clock.now())
        claimer = leases.Claimer(owner="w", until=now + 60_000_000, most=8, concurrency=8, per_person=8)
        self.write(lambda tx: leases.claim(tx, claimer, now))

    def open_turns(self, session_id: str) -> list[Turn]:
        no = self.number(session_id)
        return [turn for _, turn in self.read(lambda tx: turns.open_turns(tx, no))]

    def note(self, session_id: str, kind: EventKind, **facts: str) -> None:
        """Something happens in a conversation."""
        no, now = self.number(session_id), to_micros(self.clock.now())
        self.write(lambda tx: events.note(tx, no, kind, now, None, **facts))


@pytest.fixture
def chat(store: SessionStore, clock: FakeClock) -> Chat:
    return Chat(store, clock)


@pytest.fixture
def open_chat(open_store: OpenStore, clock: FakeClock) -> Callable[[GatewayConfig], Chat]:
    """The same under other settings."""
    return lambda config: Chat(open_store(config), clock)
