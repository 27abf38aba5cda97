"""Turning the items of a conversation's feed into what a terminal shows, each thing once.

Pure: no terminal, no clock. `AnswerAssembly` decides what is new of an answer, which the feed brings twice: as a
growing draft and as messages of the log.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from palaver.core.dataclass import dataclass
from palaver.core.errors import SessionNotFound, StoreError
from palaver.jobs.model import format_cost_per_day
from palaver.live.feed_events import (
    AnswerAssembly,
    DeliveryChanged,
    DraftGrew,
    EventAppended,
    FeedItem,
    NoticeSent,
    TurnChanged,
)
from palaver.sessions.draft import Piece
from palaver.sessions.events import Event, EventKind
from palaver.sessions.quoted_messages import describe_sender
from palaver.sessions.sent_message import find_sent_by
from palaver.sessions.turn import InterruptReason, Turn, TurnState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from palaver.cli.chat.chat_session import ChatSession
    from palaver.core.ids import PersonId, SessionId, TurnId
    from palaver.sessions.message import Message

ANSWER_RESTARTED_TEXT = "Palaver was restarted. The answer starts over."
SESSION_DELETED_TEXT = "This conversation was deleted. Your next message starts a new one."
RETRY_SECONDS = 1.0  # after the store could not be reached
DOUBLE_PRESS_SECONDS = 2.0  # a second Ctrl-C within this time quits


@dataclass(frozen=True, slots=True)
class PersonMessage:
    """A message that a person, a job, or the agent in another conversation sent from somewhere else."""

    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """The growing answer is complete or was given up."""


DisplayItem = Piece | PersonMessage | Note | AnswerEnd


class AnswerOutput:
    """Shows an answer while it grows; this one shows nothing."""

    def show(self, item: DisplayItem) -> None:
        """Show the next item of the answer."""

    def end(self) -> None:
        """End the answer; the next item belongs to another one."""


class FeedPresenter:
    """Presents the feed of one conversation, or only the answer of one turn."""

    def __init__(
        self,
        viewer_id: PersonId | None,
        *,
        is_own_event: Callable[[Event], bool] = lambda _event: False,
        turn_id: TurnId | None = None,
    ) -> None:
        self._viewer_id = viewer_id
        self._is_own_event = is_own_event  # an event that was caused from here is already on the screen
        self._only_turn_id = turn_id  # present only the answer of this turn
        self._answered_seqs: set[int] = set()  # the messages that this turn answers
        self._answer = AnswerAssembly()
        self._open_turns: dict[TurnId, Turn] = {}

    @property
    def is_running(self) -> bool:
        """Return whether an answer that this presenter follows is running."""
        return any(turn.state is TurnState.RUNNING for turn in self._open_turns.values() if self._is_followed(turn.id))

    @property
    def queued_count(self) -> int:
        return sum(turn.state is TurnState.QUEUED for turn in self._open_turns.values())

    def present(self, item: FeedItem) -> list[DisplayItem]:
        match item:
            case TurnChanged(turn):
                return self._present_turn(turn)
            case DraftGrew(turn_id):
                return self._present_draft(item) if self._is_followed(turn_id) else []
            case NoticeSent(turn_id, text):
                return [Note(text)] if self._is_followed(turn_id) else []
            case EventAppended(event):
                return list(self._present_event(event))
            case DeliveryChanged():  # a terminal does not show deliveries to other places
                return []

    # -- growing answers -----------------------------------------------------------------------------------

    def _is_followed(self, turn_id: TurnId) -> bool:
        return self._only_turn_id in {None, turn_id}

    def _present_turn(self, turn: Turn) -> list[DisplayItem]:
        if turn.id == self._only_turn_id:
            self._answered_seqs.add(turn.input_seq)
        if not turn.state.has_ended:
            self._open_turns[turn.id] = turn
            return []
        self._open_turns.pop(turn.id, None)
        if self._answer.turn_id not in {None, turn.id}:
            return []  # a queued turn was dropped; the running answer goes on
        self._answer = AnswerAssembly()
        return [AnswerEnd()] if self._is_followed(turn.id) else []

    def _present_draft(self, item: DraftGrew) -> list[DisplayItem]:
        if item.turn_id != self._answer.turn_id:
            self._answer = AnswerAssembly(item.turn_id)
        starts_over = self._answer.grow_draft(item)
        restart: list[DisplayItem] = [AnswerEnd(), Note(ANSWER_RESTARTED_TEXT)] if starts_over else []
        return [*restart, *item.pieces]

    # -- the log -------------------------------------------------------------------------------------------

    def _present_event(self, event: Event) -> Iterator[DisplayItem]:
        message = event.message
        if event.hidden:
            return
        if message is None:
            yield from self._present_notice(event)
        elif message.role == "user":
            if self._only_turn_id is None and not self._is_own_event(event):
                yield PersonMessage(self._get_author_name(event, message), message.text)
        elif (sent_by := find_sent_by(message.extra)) is not None:
            if self._only_turn_id is None:
                yield PersonMessage(describe_sender(sent_by), message.text)
        elif self._only_turn_id is None or self._is_followed_answer(message):
            yield from self._answer.confirm_message(message)
            if (
                self._answer.turn_id is None
                and self._only_turn_id is None
                and message.role == "assistant"
                and not message.extra.get("tool_calls")
            ):
                yield AnswerEnd()  # no draft of this answer was shown, so no turn will end it

    def _is_followed_answer(self, message: Message) -> bool:
        turn = self._open_turns.get(self._only_turn_id) if self._only_turn_id is not None else None
        return message.extra.get("answers") in self._answered_seqs or (
            turn is not None and turn.state is TurnState.RUNNING and self._answer.turn_id == self._only_turn_id
        )

    def _get_author_name(self, event: Event, message: Message) -> str:
        if message.author is not None and message.author.name:
            return message.author.name
        return "You (elsewhere)" if event.person_id in {None, self._viewer_id} else "Someone"

    def _present_notice(self, event: Event) -> Iterator[DisplayItem]:
        facts = event.facts
        if event.kind in {EventKind.TURN_FAILED, EventKind.TURN_INTERRUPTED}:
            if self._only_turn_id is None:
                yield AnswerEnd()
                yield self._make_unfinished_note(event)
                if detail := _format_provider_message(facts):
                    yield Note(detail)
        elif event.kind is EventKind.JOB_PROPOSED:
            yield Note(_format_proposal(facts))  # also during the only answer: it waits for the person
        elif self._only_turn_id is None and not self._is_own_event(event):
            text = _NOTICE_TEXTS.get(event.kind)
            if text is not None and not facts.get("automatic"):
                yield Note(text.format(title=facts.get("title") or "untitled", name=facts.get("name") or ""))

    def _make_unfinished_note(self, event: Event) -> Note:
        reason, minutes = str(event.facts.get("reason") or ""), event.facts.get("minutes")
        if event.kind is EventKind.TURN_FAILED:
            return Note(reason or "The agent could not answer.", is_error=True)
        if reason in {"", InterruptReason.STOPPED}:
            return Note("Stopped" if event.person_id in {None, self._viewer_id} else "Stopped by someone else")
        explained = InterruptReason(reason).explain(minutes) if reason in set(InterruptReason) else reason
        return Note(f"Interrupted: {explained}")


def _format_provider_message(facts: Mapping[str, Any]) -> str:
    if not facts.get("detail"):
        return ""
    status = f" (HTTP {facts['status']})" if facts.get("status") else ""
    return f"{facts.get('model') or 'The model'}{status}: {facts['detail']}"


def _format_proposal(facts: Mapping[str, Any]) -> str:
    name = facts.get("name") or ""
    what = "Change the job" if facts.get("is_change") else "Create the job"
    slots = map(datetime.fromisoformat, facts.get("next_slots") or ())
    times = [f"{slot:%a %b} {slot.day}, {slot:%H:%M}" for slot in slots]
    cost = facts.get("cost_per_day")
    lines = [
        f"{what} “{name}”? It runs {facts.get('words')}.",
        f"Next: {', '.join(times) or 'never'}. Tools: {', '.join(facts.get('toolsets') or ()) or 'none'}."
        f" Estimated cost: {format_cost_per_day(None if cost is None else Decimal(cost))}.",
        f"Sends to: {', '.join(_list_places(facts)) or 'no chat'}.",
        f"Task: {facts.get('prompt')}",
        f"Type /jobs confirm {name} or /jobs reject {name}.",
    ]
    return "\n".join(lines)


def _list_places(facts: Mapping[str, Any]) -> list[str]:
    targets = facts.get("targets") or ()
    places = facts.get("target_words") or targets
    is_here = not facts.get("is_change")
    return [
        "this conversation" if target == "origin" and is_here else place
        for target, place in zip(targets, places, strict=False)
    ]


_NOTICE_TEXTS = {
    EventKind.JOB_CONFIRMED: "The job “{name}” was confirmed",
    EventKind.JOB_REJECTED: "The job “{name}” was rejected",
    EventKind.RENAMED: "Renamed to “{title}”",
    EventKind.UNDONE: "The last messages were undone elsewhere",
    EventKind.REDONE: "The undone messages were restored elsewhere",
    EventKind.VERSION_STARTED: "A message was edited or asked again elsewhere; /versions lists its versions",
    EventKind.VERSION_CHOSEN: "Another version of a message was chosen elsewhere",
    EventKind.COMPACTED: "The agent now sees a summary of older messages. You still see all of them.",
    EventKind.COMPACTION_UNDONE: "The agent sees the whole conversation again",
    EventKind.ANSWER_RESENT: "An answer was sent again to the chat that this conversation comes from",
    EventKind.MESSAGE_EDITED: "A message was edited in the chat that this conversation comes from",
    EventKind.MESSAGE_DELETED: "A message was deleted in the chat that this conversation comes from",
    EventKind.ERASED: "Messages of a person who was erased are gone",
    EventKind.UNREADABLE: "An entry of this conversation can't be read",
}


# ---- following the feed of the conversation that the chat is in ----------------------------------------------


# None: all following items belong to another session. An error: the session was deleted, or the store can't be reached.
ListenerItem = FeedItem | SessionNotFound | StoreError | None


class FeedListener:
    """Follows one session at a time and drops items of sessions that the chat has left."""

    def __init__(self, chat: ChatSession) -> None:
        self._chat = chat
        self._items: asyncio.Queue[tuple[SessionId | None, ListenerItem]] = asyncio.Queue()
        self._session_id: SessionId | None = None
        self._task: asyncio.Task[None] | None = None

    async def next_item(self) -> tuple[SessionId | None, ListenerItem]:
        """Return the next item, an event only when it is known whether it was sent from here, and its session."""
        while True:
            session_id, item = await self._items.get()
            if isinstance(item, EventAppended):
                async with self._chat.send_lock:
                    pass
            if session_id == self._session_id:
                return session_id, item

    def follow_session(self, after: int | None = None) -> None:
        """Follow the session that the chat is in now: from a number in its log, or from now on."""
        session_id = self._chat.session_id
        if session_id == self._session_id:
            return
        self.close()
        self._session_id = session_id
        self._items.put_nowait((session_id, None))
        if session_id is not None:
            self._task = asyncio.create_task(self._listen(session_id, after), name="palaver-chat-feed")

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _listen(self, session_id: SessionId, after: int | None) -> None:
        chat = self._chat
        while True:
            try:
                async for item in chat.gateway.feed.follow(chat.owner.principal, session_id, after=after):
                    if isinstance(item, EventAppended):
                        after = item.event.seq
                    self._items.put_nowait((session_id, item))
            except SessionNotFound as error:
                self._items.put_nowait((session_id, error))
                return
            except StoreError as error:
                self._items.put_nowait((session_id, error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return  # the gateway stops


class FeedView(ABC):
    """A chat that shows the feed of the conversation that it is in."""

    def __init__(self, chat: ChatSession) -> None:
        self._chat = chat
        self._listener = FeedListener(chat)
        self._presenter = self._make_presenter()
        self._is_stopping = False  # /stop was sent for the running answer
        self._last_interrupt_at = 0.0

    @property
    def is_answering(self) -> bool:
        """Return whether an answer is running or queued."""
        return (self._presenter.is_running and not self._is_stopping) or self._presenter.queued_count > 0

    @abstractmethod
    async def _show_item(self, item: FeedItem) -> None: ...

    @abstractmethod
    async def _show_notice(self, text: str, *, is_error: bool) -> None: ...

    async def _switch_session(self) -> None:
        self._presenter = self._make_presenter()

    async def _show_feed(self) -> None:
        while True:
            session_id, item = await self._listener.next_item()
            match item:
                case None:
                    await self._switch_session()
                case SessionNotFound():
                    if await self._chat.leave_session(session_id):
                        self._listener.follow_session()
                        await self._show_notice(SESSION_DELETED_TEXT, is_error=False)
                case StoreError():
                    await self._show_notice(str(item), is_error=True)
                case _:
                    await self._show_item(item)

    def _make_presenter(self) -> FeedPresenter:
        return FeedPresenter(self._chat.owner.id, is_own_event=self._chat.is_own_event)

    def _is_double_press(self) -> bool:
        """Note a Ctrl-C; return whether it quits the chat because the last one was a moment ago."""
        now = time.monotonic()
        is_double, self._last_interrupt_at = now - self._last_interrupt_at < DOUBLE_PRESS_SECONDS, now
        return is_double
