"""The owner's side of the talk: which conversation it is in, and what is said there.

Everything said goes through the inbox, so that a message and a command mean here what they mean everywhere.

Always true: what is typed goes to the conversation that is shown, also when another terminal has moved the lane on.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.cli.chat import Start
from palaver.cli.errors import MessageRefused
from palaver.cli.output import ago, clean
from palaver.domain import policy
from palaver.domain.errors import NotFound
from palaver.domain.inbound import Inbound, Outcome
from palaver.domain.source import SessionSource
from palaver.services.commands.reply_text import SHORT, words

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.events import Event
    from palaver.domain.ids import SessionId, TurnId
    from palaver.domain.inbound import Receipt
    from palaver.domain.person import Person
    from palaver.domain.session import Session
    from palaver.domain.turn import BusyPolicy, Turn
    from palaver.services.gateway import Gateway
    from palaver.services.view import AsyncSessionView

GOES_ON = timedelta(hours=12)  # a conversation that was spoken in within this time is gone on with
LOOKED_THROUGH = 100  # conversations, for the last one of this terminal


class Talk:
    """A terminal that speaks through a gateway."""

    def __init__(self, gateway: Gateway, owner: Person) -> None:
        self.gateway = gateway
        self.owner = owner
        self.session_id: SessionId | None = None  # None: what is said next begins a conversation
        self.own: set[int] = set()  # numbers of the messages that were said here, in this conversation
        self.speaking = asyncio.Lock()  # held until it is known what became of a message
        self._commanded: tuple[datetime, datetime] | None = None  # when the last command given here was carried out
        self._source = SessionSource.local_cli()
        self._stays = False  # the reset policy has been overruled for the next message

    @property
    def view(self) -> AsyncSessionView:
        """What the owner sees of their own."""
        return self.gateway.store.aio.seen_by(self.owner.principal)

    async def session(self) -> Session | None:
        """The conversation as it stands now."""
        return None if self.session_id is None else await self.view.get(self.session_id)

    async def turn(self, turn_id: TurnId) -> Turn | None:
        """A turn as it stands now."""
        try:
            return await self.view.turn(turn_id)
        except NotFound:
            return None

    def is_own(self, event: Event) -> bool:
        """Whether something was said or done right here."""
        if event.message is not None and event.seq in self.own:
            return True
        return self._commanded is not None and self._commanded[0] <= event.at <= self._commanded[1]

    def now(self) -> datetime:
        """The present moment by the clock of the store."""
        return self.gateway.store.clock.now()

    # -- beginning -----------------------------------------------------------------------------------------

    async def begin(self, start: Start, resume: str = "") -> str:
        """Find the conversation to be in; which it is, in Markdown, where there is something to tell."""
        if start is Start.NEW:
            return await self._command("/new")
        if start is Start.RESUMED:
            return await self._command(f"/resume {resume}")
        current = await self._current()
        if start is Start.LAST:
            return await self._last(current)
        if current is None or self._is_due(current):
            return ""
        if current.active_at is None or self.now() - current.active_at < GOES_ON:
            return self._on_with(current)
        return await self._command("/new")

    async def _last(self, current: Session | None) -> str:
        if current is None or current.active_at is None:
            recent = await self.view.list(limit=LOOKED_THROUGH)
            here = [session for session in recent if session.key == self._key]
            return await self._command(f"/resume {here[0].id}") if here else ""
        self._stays = True
        return self._on_with(current)

    def _on_with(self, session: Session) -> str:
        self.session_id = session.id
        if session.active_at is None:
            return ""
        name = words(clean(session.title or session.preview), SHORT)
        return f"continuing «{name}», {ago(session.active_at, self.now())}; /new begins afresh"

    @property
    def _key(self) -> str:
        return self.gateway.store.config.session_key(self._source, person=self.owner.id)

    async def _current(self) -> Session | None:
        """The session that this terminal's lane is on, if it goes on."""
        entry = await self.gateway.store.aio.get_entry(self._key)
        return entry.session if entry is not None and entry.session.ended_at is None else None

    def _is_due(self, session: Session) -> bool:
        """Whether the reset policy will begin another conversation with the next message."""
        rule = self.gateway.store.config.reset_policy_for(self._source)
        return policy.due(rule, last_activity=session.last_human_at or session.created_at, now=self.now()) is not None

    async def _command(self, text: str) -> str:
        receipt = await self.say(text)
        if receipt.outcome is Outcome.REFUSED:
            raise MessageRefused(receipt.reply or "")
        return receipt.reply or ""

    # -- speaking ------------------------------------------------------------------------------------------

    async def say(self, text: str, *, busy: BusyPolicy | None = None) -> Receipt:
        """Say something; what became of it. The conversation may be another one afterwards."""
        async with self.speaking:
            began = self.now()
            inbound = Inbound(source=self._source, content=text, busy=busy, session_id=await self._shown())
            receipt = await self.gateway.inbox.accept(inbound)
            if receipt.session_id is not None and receipt.session_id != self.session_id:
                self.session_id = receipt.session_id
                self.own.clear()
            if receipt.stored:
                self.own.add(receipt.seq or 0)
                self._stays = False
            if receipt.outcome is Outcome.COMMAND:
                self._commanded = (began, self.now())
            return receipt

    async def leave(self, session_id: SessionId) -> bool:
        """Be in no conversation, if it still is this one: what was being said meanwhile may have begun another."""
        async with self.speaking:
            if self.session_id != session_id:
                return False
            self.session_id = None
            self.own.clear()
            return True

    async def _shown(self) -> SessionId | None:
        """The conversation to speak in by name; None where the lane and its reset policy decide."""
        if self.session_id is None or self._stays:
            return self.session_id
        current = await self._current()
        return None if current is not None and current.id == self.session_id else self.session_id


def waiting(receipt: Receipt) -> str:
    """What happens to a message that came while the agent was busy; empty when it was not."""
    match receipt.outcome:
        case Outcome.QUEUED:
            return f"waiting behind {receipt.ahead}"
        case Outcome.COLLECTED:
            return "taken together with the message before it"
        case Outcome.STEERED:
            return "given to the agent while it works"
        case Outcome.INTERRUPTING:
            return "the answer is stopped for this one"
        case _:
            return ""
