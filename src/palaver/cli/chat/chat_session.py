"""The terminal's side of a chat: which conversation it is in, and sending messages to it.

All messages go through the inbox, so that messages and commands mean the same here as everywhere else.

Always true: a message goes to the conversation on the screen, even if another terminal has moved the lane to
another one.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from palaver.agent.profiles import find_default_model
from palaver.cli.chat import ChatOptions, StartMode
from palaver.cli.chat.attached_files import AttachedFiles
from palaver.cli.errors import MessageRejected
from palaver.cli.output import clean_text, format_relative_time
from palaver.commands.reply_text import MAX_EXCERPT_CHARS, escape_markdown, format_last_exchange
from palaver.core.errors import NotFound
from palaver.core.source import SessionSource
from palaver.sessions import policy
from palaver.sessions.inbound import Inbound, Outcome, Receipt
from palaver.turns.commands.conversation import resume_session, start_session
from palaver.turns.commands.settings import DEFAULT, choose_personality, choose_profile, choose_workspace

if TYPE_CHECKING:
    from palaver.commands.command import CommandAction, CommandCall
    from palaver.core.ids import SessionId, TurnId
    from palaver.gateway.gateway import Gateway
    from palaver.people.model import Person
    from palaver.sessions.events import Event
    from palaver.sessions.model import Session
    from palaver.sessions.turn import BusyPolicy, Turn
    from palaver.sessions.view import AsyncSessionView

CONTINUE_WITHIN = timedelta(hours=12)  # a new chat continues a conversation that was active within this time
_CHOICES: dict[str, CommandAction[Any]] = {
    "profile": choose_profile,
    "personality": choose_personality,
    "workspace": choose_workspace,
}
MAX_SESSIONS_SEARCHED = 100  # when looking for the last conversation of this terminal


class ChatSession:
    def __init__(self, gateway: Gateway, owner: Person) -> None:
        self.gateway = gateway
        self.owner = owner
        self.session_id: SessionId | None = None  # None: the next message starts a conversation
        self.own_seqs: set[int] = set()  # numbers of the messages sent from here, in this conversation
        self.send_lock = asyncio.Lock()  # held from sending a message until its receipt has arrived
        self._last_command_span: tuple[datetime, datetime] | None = None  # when the last command from here ran
        self.files = AttachedFiles(gateway.files, owner.principal)
        self._source = SessionSource.local_cli()
        self._skips_reset = False  # the next message ignores the reset policy

    @property
    def view(self) -> AsyncSessionView:
        return self.gateway.store.aio.seen_by(self.owner.principal)

    async def load_session(self) -> tuple[Session | None, str]:
        """Load the current state of the conversation, and the model that answers its next message."""
        default_model = self.gateway.agent.model
        if self.session_id is None:
            return None, default_model
        summary = await self.view.summaries.get(self.session_id)
        model = summary.chosen_model or find_default_model(self.gateway.profile, summary.profile, default_model)
        return summary.session, model

    async def find_turn(self, turn_id: TurnId) -> Turn | None:
        try:
            return await self.view.get_turn(turn_id)
        except NotFound:
            return None

    def is_own_event(self, event: Event) -> bool:
        """Return whether the event came from a message or command sent from here."""
        if event.message is not None and event.seq in self.own_seqs:
            return True
        span = self._last_command_span
        return span is not None and span[0] <= event.at <= span[1]

    def now(self) -> datetime:
        return self.gateway.store.clock.now()

    # -- choosing a conversation ---------------------------------------------------------------------------

    async def choose_session(self, start: StartMode, resume: str = "") -> str:
        """Choose the conversation to start in, and return a notice about it in Markdown (possibly empty)."""
        if start is StartMode.NEW:
            return await self._run_command(start_session.call())
        if start is StartMode.NAMED:
            return await self._run_command(resume_session.call(target=resume))
        current = await self._get_current_session()
        if start is StartMode.LAST:
            return await self._continue_last(current)
        if current is None or await self._is_reset_due(current):
            return ""
        if current.active_at is None or self.now() - current.active_at < CONTINUE_WITHIN:
            return await self._continue_session(current)
        return await self._run_command(start_session.call())

    async def apply_choices(self, options: ChatOptions) -> list[str]:
        """Set the profile, personality and workspace that the command line names; return a notice about each."""
        calls = [
            action.call(**{name: None if value == DEFAULT else value})
            for name, action in _CHOICES.items()
            if (value := getattr(options, name)) is not None
        ]
        if calls and self.session_id is None:  # otherwise the lane's old conversation would be changed
            await self._run_command(start_session.call())
        return [await self._run_command(call) for call in calls]

    async def _continue_last(self, current: Session | None) -> str:
        if current is None or current.active_at is None:
            recent = await self.view.list(limit=MAX_SESSIONS_SEARCHED)
            from_terminal = [session for session in recent if session.key == self._lane_key]
            if not from_terminal:
                return ""
            return await self._run_command(resume_session.call(target=from_terminal[0].id))
        self._skips_reset = True
        return await self._continue_session(current)

    async def _continue_session(self, session: Session) -> str:
        self.session_id = session.id
        if session.active_at is None:
            return ""
        name = escape_markdown(clean_text(session.shown_title or session.preview), MAX_EXCERPT_CHARS)
        age = format_relative_time(session.active_at, self.now())
        exchange = format_last_exchange((await self.view.transcripts.load_page(session.id)).events)
        return f"Continuing “{name}” ({age}). Type /new to start a new conversation.{exchange}"

    @property
    def _lane_key(self) -> str:
        return self.gateway.store.config.build_session_key(self._source, person=self.owner.id)

    async def _get_current_session(self) -> Session | None:
        """Return the session that this terminal's lane is on, unless it has ended."""
        entry = await self.gateway.store.aio.find_entry(self._lane_key)
        return entry.session if entry is not None and entry.session.ended_at is None else None

    async def _is_reset_due(self, session: Session) -> bool:
        profile = (await self.view.summaries.get(session.id)).profile
        reset_policy = self.gateway.store.config.get_reset_policy(self._source, profile)
        last_activity = session.last_human_at or session.created_at
        return policy.find_reset_reason(reset_policy, last_activity=last_activity, now=self.now()) is not None

    async def _run_command(self, call: CommandCall) -> str:
        receipt = await self._submit(call=call)
        if receipt.outcome is Outcome.REJECTED:
            raise MessageRejected(receipt.reply or "")
        return receipt.reply or ""

    # -- sending -------------------------------------------------------------------------------------------

    async def send(self, text: str, *, busy: BusyPolicy | None = None) -> Receipt:
        """Send a message or command and return its receipt; this may switch to another conversation.

        A message takes the attached files with it.
        """
        reply = await self.files.run_command(text)
        if reply is not None:
            return Receipt(outcome=Outcome.COMMAND, session_id=self.session_id, reply=reply)
        return await self._submit(text, busy=busy)

    async def _submit(
        self, text: str = "", *, busy: BusyPolicy | None = None, call: CommandCall | None = None
    ) -> Receipt:
        async with self.send_lock:
            started_at = self.now()
            inbound = Inbound(
                source=self._source,
                content=text,
                attachment_ids=self.files.ids if call is None else (),
                busy_policy=busy,
                session_id=await self._get_explicit_session_id(),
            )
            inbox = self.gateway.inbox
            receipt = await (inbox.accept(inbound) if call is None else inbox.run_command(inbound, call))
            if receipt.session_id is not None and receipt.session_id != self.session_id:
                self.session_id = receipt.session_id
                self.own_seqs.clear()
            if receipt.is_stored:
                self.own_seqs.add(receipt.seq or 0)
                self._skips_reset = False
                self.files.clear()
            if receipt.outcome is Outcome.COMMAND:
                self._last_command_span = (started_at, self.now())
            return receipt

    async def leave_session(self, session_id: SessionId | None) -> bool:
        """Leave the session if the chat is still in it: a message sent meanwhile may have started another one."""
        async with self.send_lock:
            if self.session_id != session_id:
                return False
            self.session_id = None
            self.own_seqs.clear()
            return True

    async def _get_explicit_session_id(self) -> SessionId | None:
        """Return the session to address explicitly, or None if the lane and its reset policy decide."""
        if self.session_id is None or self._skips_reset:
            return self.session_id
        current = await self._get_current_session()
        return None if current is not None and current.id == self.session_id else self.session_id


def describe_busy_outcome(receipt: Receipt) -> str:
    """Describe what happens to a message sent while the agent is busy; empty if the agent is not busy."""
    notices = {
        Outcome.QUEUED: f"Queued ({receipt.turns_ahead} ahead)",
        Outcome.MERGED: "Added to your previous message",
        Outcome.STEERED: "Will be sent to the agent at its next step",
        Outcome.INTERRUPTING: "Stopping the current answer",
    }
    return notices.get(receipt.outcome, "")
