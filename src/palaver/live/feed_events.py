"""The items that a follower of a conversation receives, in order, and how an answer is assembled from them.

Each event of the log comes exactly once, in the order of its number. The answer that the agent is producing comes
beside them as pieces of a draft, without a number, because it is not in the log yet. When the turn ends, its messages
come as events, followed by the end of the turn. So the feed brings every answer twice. When another process takes over
the turn, the draft starts over. The delivery of an answer is reported whenever its state changes.

Always true: each piece of an answer is new for the reader once, whether the draft or the log brings it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from palaver.core.dataclass import dataclass
from palaver.sessions.draft import Draft, Piece, PieceKind, build_turn_messages

if TYPE_CHECKING:
    from palaver.agent.base import Notice
    from palaver.core.ids import TurnId
    from palaver.sessions.delivery import DeliveryStatus
    from palaver.sessions.events import Event
    from palaver.sessions.message import Message
    from palaver.sessions.turn import Turn


@dataclass(frozen=True, slots=True)
class EventAppended:
    event: Event


@dataclass(frozen=True, slots=True)
class TurnChanged:
    turn: Turn


@dataclass(frozen=True, slots=True)
class DraftGrew:
    """The agent produced more of its answer."""

    turn_id: TurnId
    pieces: Sequence[Piece]
    replaces_draft: bool = False  # these are all the pieces: drop the draft received so far


@dataclass(frozen=True, slots=True)
class NoticeSent:
    """The agent reports something about the run; it is not stored."""

    turn_id: TurnId
    text: str
    code: str = ""  # with which a page writes the text in the reader's language; see `NoticeCode`
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeliveryChanged:
    delivery: DeliveryStatus


FeedItem = EventAppended | TurnChanged | DraftGrew | NoticeSent | DeliveryChanged


class AnswerAssembly:
    """Assembles one answer from its draft and its messages."""

    __slots__ = ("_call_ids", "_result_ids", "_unconfirmed_chars", "draft", "turn_id")

    def __init__(self, turn_id: TurnId | None = None) -> None:
        self.turn_id = turn_id  # None for an answer that so far has no draft
        self._clear()

    def _clear(self) -> None:
        self.draft = Draft()  # the draft so far, for readers that join later
        self._unconfirmed_chars = {PieceKind.TEXT: 0, PieceKind.REASONING: 0}  # in the draft, but not yet in the log
        self._call_ids: set[str] = set()
        self._result_ids: set[str] = set()

    def grow_draft(self, item: DraftGrew) -> bool:
        """Add the pieces of an item, which are all new for the reader.

        Return whether the answer starts over: the reader drops what it received from the draft before.
        """
        starts_over = False
        if item.replaces_draft:
            starts_over = any(self._unconfirmed_chars.values()) or bool(self._call_ids)
            self._clear()
        for piece in item.pieces:
            self._count(piece)
        self.draft.extend(item.pieces)
        return starts_over

    def _count(self, piece: Piece) -> None:
        match piece.kind:
            case PieceKind.TEXT | PieceKind.REASONING:
                self._unconfirmed_chars[piece.kind] += len(piece.text)
            case PieceKind.CALL:
                self._call_ids.add(piece.call_id)
            case PieceKind.RESULT:
                self._result_ids.add(piece.call_id)

    def confirm_message(self, message: Message) -> list[Piece]:
        """Return the pieces of a message of the log that the draft has not brought."""
        parts = [self._confirm_piece(piece) for piece in split_message(message)]
        return [part for part in parts if part is not None]

    def _confirm_piece(self, piece: Piece) -> Piece | None:
        match piece.kind:
            case PieceKind.CALL:
                return None if piece.call_id in self._call_ids else piece
            case PieceKind.RESULT:
                return None if piece.call_id in self._result_ids else piece
        confirmed_chars = min(self._unconfirmed_chars[piece.kind], len(piece.text))
        self._unconfirmed_chars[piece.kind] -= confirmed_chars
        return Piece(piece.kind, piece.text[confirmed_chars:]) if confirmed_chars < len(piece.text) else None


class AnswerTextStream:
    """Streams the text of one answer to a reader that cannot drop what it received.

    When the answer starts over, the stream pauses until the new draft has repeated what was sent. If the new answer is
    a different one, it follows as a whole at the end of the turn.
    """

    __slots__ = ("_assembly", "_first_seq", "_messages", "_sent_text", "text")

    def __init__(self, first_seq: int) -> None:
        self.text = ""  # the complete text, once the turn has ended
        self._first_seq = first_seq  # of the messages that the turn answers
        self._assembly = AnswerAssembly()
        self._messages: list[Message] = []
        self._sent_text = ""

    def grow_draft(self, item: DraftGrew) -> str:
        """Return the text to send now; it may be empty."""
        self._assembly.grow_draft(item)
        messages = build_turn_messages(self._assembly.draft.pieces)
        text = _join_texts(message["content"] for message in messages if message["role"] == "assistant")
        return self._send_rest(text) if text.startswith(self._sent_text) else ""

    def add_message(self, message: Message) -> None:
        """Keep a message of the log until the turn ends, if it may be part of this answer."""
        if message.role == "assistant" and message.extra.get("answers", 0) >= self._first_seq:
            self._messages.append(message)

    def end(self, turn: Turn) -> str:
        """Set the complete text from the log, and return the part that has not been sent.

        Only now the number of the last message that the turn answers is known: messages may have been merged into it.
        """
        answers = [message for message in self._messages if message.extra.get("answers", 0) <= turn.input_seq]
        self.text = _join_texts(message.text for message in answers)
        if self.text.startswith(self._sent_text):
            return self._send_rest(self.text)
        return f"\n\n{self.text}"  # another answer: another process ran the turn again

    def _send_rest(self, text: str) -> str:
        rest = text[len(self._sent_text) :]
        self._sent_text = text
        return rest


def _join_texts(texts: Iterable[Any]) -> str:
    return "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())


def split_message(message: Message) -> Iterator[Piece]:
    reasoning = message.extra.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        yield Piece(PieceKind.REASONING, reasoning)
    if message.role == "tool":
        duration_ms = message.extra.get("duration_ms")
        yield Piece(
            PieceKind.RESULT,
            message.text,
            call_id=str(message.extra.get("tool_call_id") or ""),
            name=str(message.extra.get("tool_name") or ""),
            failed=bool(message.extra.get("is_error")),
            duration_ms=duration_ms if isinstance(duration_ms, int) else None,
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


@dataclass(slots=True)
class LiveRun:
    """A turn that runs in this process, as followers read it from memory."""

    turn_no: int
    turn_id: TurnId
    session_no: int
    attempt: int
    draft: Draft = field(default_factory=Draft)
    notices: list[Notice] = field(default_factory=list)
