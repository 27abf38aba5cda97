"""What is heard in a conversation, told once: from the items of the feed to what there is to show.

Pure: no terminal, no clock. An answer comes twice, first as it grows and then as messages of the log; what was told
of it while it grew is not told again, and what was not is told then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from palaver.domain.draft import Piece, PieceKind
from palaver.domain.events import EventKind
from palaver.domain.feed_events import DeliveryChanged, Drafted, Happened, Noticed, TurnChanged
from palaver.domain.turn import TurnState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from palaver.domain.events import Event
    from palaver.domain.feed_events import FeedItem
    from palaver.domain.ids import PersonId, TurnId
    from palaver.domain.message import Message
    from palaver.domain.turn import Turn


@dataclass(frozen=True, slots=True)
class Said:
    """Somebody said something, elsewhere."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know; `trouble` when it went wrong."""

    text: str
    trouble: bool = False


@dataclass(frozen=True, slots=True)
class AnswerEnds:
    """Nothing more comes of the answer that was growing."""


Heard = Piece | Said | Note | AnswerEnds

AGAIN = "the answer begins again: Palaver was stopped while it was being given"
STOPPED = "stopped"


@dataclass(slots=True)
class _Told:
    """How much of a growing answer has been told."""

    turn_id: TurnId | None = None
    text: int = 0  # characters that the log has not confirmed yet
    reasoning: int = 0
    calls: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)

    def add(self, piece: Piece) -> None:
        match piece.kind:
            case PieceKind.TEXT:
                self.text += len(piece.text)
            case PieceKind.REASONING:
                self.reasoning += len(piece.text)
            case PieceKind.CALL:
                self.calls.add(piece.call_id)
            case PieceKind.RESULT:
                self.results.add(piece.call_id)

    def rest(self, piece: Piece) -> Piece | None:
        """What was not told of a piece that is in the log now."""
        match piece.kind:
            case PieceKind.TEXT:
                told = min(self.text, len(piece.text))
                self.text -= told
            case PieceKind.REASONING:
                told = min(self.reasoning, len(piece.text))
                self.reasoning -= told
            case PieceKind.CALL:
                return None if piece.call_id in self.calls else piece
            case PieceKind.RESULT:
                return None if piece.call_id in self.results else piece
        return Piece(piece.kind, piece.text[told:]) if told < len(piece.text) else None

    @property
    def any(self) -> bool:
        return bool(self.text or self.reasoning or self.calls)


class Hearing:
    """Follows one conversation."""

    def __init__(
        self,
        mine: PersonId | None,
        *,
        is_own: Callable[[Event], bool] = lambda _event: False,
        turn_id: TurnId | None = None,
    ) -> None:
        self._mine = mine
        self._is_own = is_own  # it was said or done right here, so it is known already
        self._only = turn_id  # hear nothing but the answer of this turn
        self._answers: set[int] = set()  # the messages that this turn answers
        self._told = _Told()
        self._open: dict[TurnId, Turn] = {}

    @property
    def running(self) -> bool:
        """Whether an answer is being given that concerns us."""
        return any(turn.state is TurnState.RUNNING for turn in self._open.values() if self._concerns(turn.id))

    @property
    def waiting(self) -> int:
        """How many messages wait for their answer."""
        return sum(turn.state is TurnState.QUEUED for turn in self._open.values())

    def hear(self, item: FeedItem) -> list[Heard]:
        """What there is to show of this item."""
        match item:
            case TurnChanged(turn):
                return self._turn(turn)
            case Drafted(turn_id, pieces, afresh):
                return self._drafted(turn_id, pieces, afresh=afresh) if self._concerns(turn_id) else []
            case Noticed(turn_id, text):
                return [Note(text)] if self._concerns(turn_id) else []
            case Happened(event):
                return list(self._happened(event))
            case DeliveryChanged():  # what is sent elsewhere is no business of a terminal
                return []

    # -- growing answers -----------------------------------------------------------------------------------

    def _concerns(self, turn_id: TurnId) -> bool:
        return self._only in {None, turn_id}

    def _turn(self, turn: Turn) -> list[Heard]:
        if turn.id == self._only:
            self._answers.add(turn.input_seq)
        if not turn.state.ended:
            self._open[turn.id] = turn
            return []
        self._open.pop(turn.id, None)
        if self._told.turn_id not in {None, turn.id}:
            return []  # one that waited was dropped; another answer goes on
        self._told = _Told()
        return [AnswerEnds()] if self._concerns(turn.id) else []

    def _drafted(self, turn_id: TurnId, pieces: Sequence[Piece], *, afresh: bool) -> list[Heard]:
        heard: list[Heard] = []
        if afresh or turn_id != self._told.turn_id:
            if self._told.turn_id == turn_id and self._told.any:
                heard = [AnswerEnds(), Note(AGAIN)]
            self._told = _Told(turn_id)
        for piece in pieces:
            self._told.add(piece)
            heard.append(piece)
        return heard

    # -- the log -------------------------------------------------------------------------------------------

    def _happened(self, event: Event) -> Iterator[Heard]:
        message = event.message
        if message is None:
            yield from self._noted(event)
        elif event.hidden:
            return
        elif message.role == "user":
            if self._only is None and not self._is_own(event):
                yield Said(self._speaker(event, message), message.text)
        elif self._only is None or self._is_mine(message):
            for piece in pieces_of(message):
                rest = self._told.rest(piece)
                if rest is not None:
                    yield rest
            if self._told.turn_id is None and self._only is None and message.role == "assistant" and _is_last(message):
                yield AnswerEnds()  # it did not grow before our eyes

    def _is_mine(self, message: Message) -> bool:
        runs = self._open.get(self._only) if self._only is not None else None
        return message.extra.get("answers") in self._answers or (
            runs is not None and runs.state is TurnState.RUNNING and self._told.turn_id == self._only
        )

    def _speaker(self, event: Event, message: Message) -> str:
        if message.author is not None and message.author.name:
            return message.author.name
        return "you, elsewhere" if event.person_id in {None, self._mine} else "somebody"

    def _noted(self, event: Event) -> Iterator[Heard]:
        facts = event.facts
        if event.kind in {EventKind.FAILED, EventKind.INTERRUPTED}:
            if self._only is None:
                yield AnswerEnds()
                yield _unfinished(event.kind, str(facts.get("reason") or ""))
        elif self._only is None and not self._is_own(event):
            told = _ELSEWHERE.get(event.kind)
            if told is not None:
                yield Note(told.format(title=facts.get("title") or "untitled"))


def _is_last(message: Message) -> bool:
    return not message.extra.get("tool_calls")


def _unfinished(kind: EventKind, reason: str) -> Note:
    if kind is EventKind.FAILED:
        return Note(f"no answer: {reason or 'the agent failed'}", trouble=True)
    return Note(STOPPED if reason in {"", STOPPED} else f"interrupted: {reason}")


_ELSEWHERE = {
    EventKind.RENAMED: "this conversation is called «{title}» now",
    EventKind.UNDONE: "the last of it was undone, elsewhere",
    EventKind.REDONE: "what was undone is back, elsewhere",
    EventKind.COMPACTED: "the beginning of this conversation is put before the agent as a summary now",
    EventKind.EXPANDED: "the agent sees the whole conversation again",
    EventKind.RESENT: "an answer was sent again to where this conversation takes place",
}


def pieces_of(message: Message) -> Iterator[Piece]:
    """A message of an answer as the pieces it grew from."""
    reasoning = message.extra.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        yield Piece(PieceKind.REASONING, reasoning)
    if message.role == "tool":
        took = message.extra.get("duration_ms")
        yield Piece(
            PieceKind.RESULT,
            message.text,
            call_id=str(message.extra.get("tool_call_id") or ""),
            name=str(message.extra.get("tool_name") or ""),
            failed=bool(message.extra.get("is_error")),
            duration_ms=took if isinstance(took, int) else None,
        )
    elif message.text:
        yield Piece(PieceKind.TEXT, message.text)
    for call in message.extra.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield Piece(
                PieceKind.CALL,
                call_id=str(call.get("id") or ""),
                name=str(function.get("name") or ""),
                arguments=str(function.get("arguments") or ""),
            )
