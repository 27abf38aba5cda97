"""A chat in which people run commands."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from palaver import GatewayConfig, Role
from palaver.agent.profiles import CurrentSettings
from palaver.commands.command import CommandCall, CommandReply
from palaver.commands.runner import CommandRejected, CommandRunner, find_session
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.config.budget_rules import TokenPrice
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput, PalaverError, StoreError
from palaver.core.ids import SessionId
from palaver.inbox.registry import REGISTRY, parse_command
from palaver.people import table as people
from palaver.sessions import log_table as events, table as sessions, turn_leases, turns_table as turns
from palaver.sessions.inbound import Inbound
from support.store_content import dump_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import OpenStore
    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Person
    from palaver.sessions.events import Event, EventKind
    from palaver.sessions.inbound import Receipt
    from palaver.sessions.model import RecordedMessage, Session
    from palaver.sessions.turn import Turn
    from palaver.testing import FakeClock

T = TypeVar("T")

TABLES = ("session", "event", "lane", "lane_move", "turn", "delivery", "audience_member", "job", "job_run")


class TwoModels:
    """What commands know about an agent with two models."""

    model = "small"
    description = "an agent with two models"

    def list_models(self) -> Sequence[str]:
        return ("small", "large")

    def check_model(self, name: str) -> None:
        if name not in self.list_models():
            raise InvalidInput(f"there is no model {name!r}; choose small or large")

    async def get_price(self, name: str) -> TokenPrice | None:
        return TokenPrice(input_usd=Decimal(1), output_usd=Decimal(4)) if name == "small" else None

    def list_tool_servers(self) -> Sequence[str]:
        return ("files",)


@dataclass
class Chat:
    """Runs commands as the inbox does: those that read in a read transaction, the others in a write transaction."""

    store: SessionStore
    clock: FakeClock
    rules: TurnRules = field(default_factory=TurnRules)
    profile: AgentProfile = field(default_factory=AgentProfile)

    def add_messages(self, source: SessionSource, *texts: str) -> RecordedMessage:
        """Store messages of a person and, alternating, of the agent."""
        for question, answer in zip_longest(texts[::2], texts[1::2]):
            recorded = self.store.record_user_message(source, question)
            self.clock.advance(seconds=10)
            if answer is not None:
                self.store.append_to_transcript(recorded.session_id, answer)
                self.clock.advance(seconds=10)
        return recorded

    def run(
        self, source: SessionSource, text: str, *, role: Role = Role.MEMBER, session_id: str | None = None
    ) -> CommandReply:
        call = parse_command(text)
        assert isinstance(call, CommandCall), text
        return self.run_call(source, call, role=role, session_id=session_id)

    def run_call(
        self, source: SessionSource, call: CommandCall, *, role: Role = Role.MEMBER, session_id: str | None = None
    ) -> CommandReply:
        person = replace(self.register(source), role=role)
        inbound = Inbound(
            source=source, content="", message_id="m1", session_id=None if session_id is None else SessionId(session_id)
        )
        if call.action.searches:
            self.store.search("anything")  # updates the index
        runner, now = (
            CommandRunner(REGISTRY, self.store, CurrentSettings(TwoModels(), self.rules, self.profile)),
            self.clock.now(),
        )
        if call.action.uses_prices:
            asyncio.run(runner.load_prices())

        def run(tx: Transaction) -> Receipt:
            return runner.run(tx, inbound, call, person, find_session(tx, inbound, person), now)

        try:
            receipt = self.read(run) if call.action.reads else self.write(run)
        except CommandRejected as rejected:
            raise rejected.error from None
        finally:
            self.clock.advance(seconds=10)
        return CommandReply(
            text=receipt.reply or "", session_id=receipt.session_id, turn_id=receipt.turn_id, data=receipt.facts or {}
        )

    def expect_error(self, source: SessionSource, text: str, **options: Any) -> str:
        """Run a command that can't be carried out; returns its message and checks that nothing has changed."""
        self.register(source)
        self.store.search("anything")  # so that indexing changes nothing meanwhile
        before = self.dump_tables()
        with pytest.raises(PalaverError) as error:
            self.run(source, text, **options)
        assert not isinstance(error.value, StoreError)
        assert self.dump_tables() == before
        return str(error.value)

    def register(self, source: SessionSource) -> Person:
        """Return the person behind a source; a new one is stored first, as the inbox does it."""
        row = self.write(lambda tx: people.find_or_add_by_source(tx, source, to_micros(self.clock.now())))
        assert row is not None
        return row.person

    @property
    def config(self) -> GatewayConfig:
        return self.store.config

    def write(self, run: Callable[[Transaction], T]) -> T:
        return self.store.engine.run(Write(run))

    def read(self, run: Callable[[Transaction], T]) -> T:
        return self.store.engine.run(Read(run))

    def dump_tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every table that a command could change."""
        return dump_tables(self.store, *TABLES)

    # -- sessions ------------------------------------------------------------------------------------------

    def get_session(self, source: SessionSource) -> Session:
        """Return the session that the lane is on."""
        entry = self.store.find_entry(self.config.build_session_key(source))
        assert entry is not None
        return entry.session

    def load_texts(self, session_id: str) -> list[str]:
        return [message["content"] for message in self.store.load_transcript(session_id)]

    def load_events(self, session_id: str) -> list[Event]:
        return list(self.store.load_events(session_id))

    def get_session_no(self, session_id: str) -> int:
        return int(self.read(lambda tx: sessions.get(tx, session_id).no))

    def append_event(self, session_id: str, kind: EventKind, **facts: str) -> None:
        no, now = self.get_session_no(session_id), to_micros(self.clock.now())
        self.write(lambda tx: events.append_event(tx, no, kind, now, None, **facts))

    # -- turns ---------------------------------------------------------------------------------------------

    def queue_turn(self, session_id: str, *, seq: int = 0) -> None:
        no, last = self.get_session_no(session_id), self.load_events(session_id)[-1].seq
        request = turns.TurnRequest(session_no=no, input_seq=seq or last)
        self.write(lambda tx: turns.enqueue(tx, request, to_micros(self.clock.now())))

    def claim_turns(self) -> None:
        """Let a worker claim the next turn of every session."""
        now = to_micros(self.clock.now())
        claim = turn_leases.ClaimRequest(
            owner="w", lease_until=now + 60_000_000, max_turns=8, max_running=8, max_running_per_person=8
        )
        self.write(lambda tx: turn_leases.claim_turns(tx, claim, now))

    def list_open_turns(self, session_id: str) -> list[Turn]:
        no = self.get_session_no(session_id)
        return [turn for _, turn in self.read(lambda tx: turns.list_open(tx, no))]


@pytest.fixture
def chat(store: SessionStore, clock: FakeClock) -> Chat:
    return Chat(store, clock)


@pytest.fixture
def open_chat(open_store: OpenStore, clock: FakeClock) -> Callable[[GatewayConfig], Chat]:
    """Opens a chat with another configuration."""
    return lambda config: Chat(open_store(config), clock)
