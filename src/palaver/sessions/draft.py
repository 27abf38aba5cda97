"""A draft: the part of an answer that the agent has produced so far in a turn.

A draft is a list of pieces that only grows: text is added to the last piece, or a new piece begins. A reader
keeps its `Position` and asks for the pieces since then; a slow reader never blocks the writer, and two readers
that have read to the end have read the same.
"""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from palaver.core.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class PieceKind(StrEnum):
    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"  # a tool call
    RESULT = "result"  # the result of a tool call


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a draft: text or reasoning, which may still grow, or a complete tool call or result."""

    kind: PieceKind
    text: str = ""  # text or reasoning; for a result, what the tool returned
    call_id: str = ""
    name: str = ""  # of the tool
    arguments: str = ""  # JSON
    failed: bool = False  # the result is an error
    started_at: str = ""  # of a call, in ISO 8601 and UTC
    duration_ms: int | None = None  # of a result: how long the tool took

    def to_dict(self) -> dict[str, Any]:
        """Return the piece as JSON-ready data, without empty fields."""
        data: dict[str, Any] = {"kind": self.kind.value}
        data |= {key: value for key, empty in _EMPTY_VALUES.items() if (value := getattr(self, key)) != empty}
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(PieceKind(data["kind"]), **{key: data[key] for key in _EMPTY_VALUES if key in data})


_EMPTY_VALUES = {each.name: each.default for each in fields(Piece) if each.name != "kind"}


class Position(NamedTuple):
    """The position of a reader: the number of complete pieces, and of characters in the next one."""

    pieces: int = 0
    characters: int = 0


START_POSITION = Position()


class Draft:
    __slots__ = ("_pieces", "_tail")

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._tail: list[str] = []  # text that belongs to the last piece but is not joined to it yet

    def add(self, piece: Piece) -> None:
        """Append a piece; text and reasoning continue the last piece if that is of the same kind."""
        if piece.kind in _GROWING_KINDS:
            if not piece.text:
                return
            if self._pieces and self._pieces[-1].kind is piece.kind:
                self._tail.append(piece.text)
                return
        self._join_tail()
        self._pieces.append(piece)

    def add_text(self, kind: PieceKind, text: str) -> None:
        """Append text or reasoning: a word of an answer, which mostly continues the last piece."""
        if text and self._pieces and self._pieces[-1].kind is kind:
            self._tail.append(text)
        else:
            self.add(Piece(kind, text))

    def extend(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self.add(piece)

    @property
    def pieces(self) -> Sequence[Piece]:
        self._join_tail()
        return self._pieces

    @property
    def position(self) -> Position:
        """The position of a reader that has read everything."""
        pieces = self.pieces
        if not pieces:
            return START_POSITION
        last = pieces[-1]
        if last.kind in _GROWING_KINDS:
            return Position(len(pieces) - 1, len(last.text))
        return Position(len(pieces), 0)

    def get_pieces_since(self, position: Position) -> list[Piece]:
        """Return what was added after a position; the first piece may be the rest of a longer one."""
        new = list(self.pieces[position.pieces :])
        if new and position.characters:
            first = new[0]
            rest = first.text[position.characters :]
            new = [Piece(first.kind, rest), *new[1:]] if rest else new[1:]
        return new

    @property
    def text(self) -> str:
        """The text of the answer, without reasoning and tool calls."""
        return "".join(piece.text for piece in self.pieces if piece.kind is PieceKind.TEXT)

    def _join_tail(self) -> None:
        if self._tail:
            last = self._pieces[-1]
            self._pieces[-1] = Piece(last.kind, last.text + "".join(self._tail))
            self._tail.clear()


_GROWING_KINDS = frozenset({PieceKind.TEXT, PieceKind.REASONING})


def build_turn_messages(
    pieces: Sequence[Piece], reasoning_at: Mapping[int, Mapping[str, Any]] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """Convert the pieces of a turn to messages in the format of chat models: text with its tool calls, then results.

    `reasoning_at` has what a provider wants back with the message that ends before the piece with this number.

    Reasoning becomes part of the message that follows it. A call without a result is kept as it is:
    `agent/history.py` repairs that when it builds the model's view of the log.
    """
    messages: list[dict[str, Any]] = []
    answer: dict[str, Any] = {}  # the assistant message that is being put together

    def finish_answer(end: int) -> None:
        if answer:
            if end in reasoning_at:
                answer["provider_reasoning"] = reasoning_at[end]
            messages.append({"role": "assistant", "content": answer.pop("content", None), **answer})
            answer.clear()

    for index, piece in enumerate(pieces):
        if piece.kind is PieceKind.RESULT:
            finish_answer(index)
            result = {"role": "tool", "tool_call_id": piece.call_id, "tool_name": piece.name, "content": piece.text}
            duration = {} if piece.duration_ms is None else {"duration_ms": piece.duration_ms}
            messages.append(result | duration | ({"is_error": True} if piece.failed else {}))
        elif piece.kind is PieceKind.CALL:
            call = {
                "id": piece.call_id,
                "type": "function",
                "function": {"name": piece.name, "arguments": piece.arguments},
            }
            answer.setdefault("tool_calls", []).append(call)
        else:
            if "tool_calls" in answer:  # the agent continues before the result: that is a new message
                finish_answer(index)
            key = "content" if piece.kind is PieceKind.TEXT else "reasoning"
            answer[key] = answer.get(key, "") + piece.text
    finish_answer(len(pieces))
    return messages
