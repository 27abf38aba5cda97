"""A growing answer: what the agent has said and done so far in a turn.

A draft is a list of pieces that only ever grows: text is added to the last piece, or another piece begins. A
reader keeps a `Position` in it and asks for what came `since`; however slow it is, it never holds up whoever
writes, and two readers who have read to the end have read the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class PieceKind(StrEnum):
    """What a piece of a draft is."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"  # of a tool
    RESULT = "result"  # of a call


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece: words that may still grow, or a tool call or its result, which come whole."""

    kind: PieceKind
    text: str = ""  # words; of a result, what the tool answered
    call_id: str = ""
    name: str = ""  # of the tool
    arguments: str = ""  # JSON
    failed: bool = False  # a result that is an error
    began_at: str = ""  # of a call, in ISO 8601 and UTC
    duration_ms: int | None = None  # of a result: how long the tool took

    def to_dict(self) -> dict[str, Any]:
        """The piece as JSON-ready data, without what is empty."""
        data: dict[str, Any] = {"kind": self.kind.value}
        data |= {key: value for key, empty in _FIELDS.items() if (value := getattr(self, key)) != empty}
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The piece that `to_dict` wrote."""
        return cls(PieceKind(data["kind"]), **{key: data[key] for key in _FIELDS if key in data})


_FIELDS = {
    "text": "",
    "call_id": "",
    "name": "",
    "arguments": "",
    "failed": False,
    "began_at": "",
    "duration_ms": None,
}  # and what each is when it is empty


class Position(NamedTuple):
    """How far a reader has come: whole pieces, and characters of the one after them."""

    pieces: int = 0
    characters: int = 0


START = Position()


class Draft:
    """The pieces so far."""

    __slots__ = ("_pieces", "_tail")

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._tail: list[str] = []  # of the last piece, not yet joined

    def add(self, piece: Piece) -> None:
        """Say or do more; words go on in the last piece if it is of their kind."""
        if piece.kind in _WORDS:
            if not piece.text:
                return
            if self._pieces and self._pieces[-1].kind is piece.kind:
                self._tail.append(piece.text)
                return
        self._settle()
        self._pieces.append(piece)

    def extend(self, pieces: Iterable[Piece]) -> None:
        """Add several."""
        for piece in pieces:
            self.add(piece)

    @property
    def pieces(self) -> Sequence[Piece]:
        """Everything so far."""
        self._settle()
        return self._pieces

    @property
    def position(self) -> Position:
        """Where a reader is who has read everything."""
        pieces = self.pieces
        if not pieces:
            return START
        last = pieces[-1]
        if last.kind in _WORDS:
            return Position(len(pieces) - 1, len(last.text))
        return Position(len(pieces), 0)

    def since(self, position: Position) -> list[Piece]:
        """What came after a position; the first piece may be the rest of one."""
        found = list(self.pieces[position.pieces :])
        if found and position.characters:
            first = found[0]
            rest = first.text[position.characters :]
            found = [Piece(first.kind, rest), *found[1:]] if rest else found[1:]
        return found

    @property
    def text(self) -> str:
        """What was said aloud, without reasoning and tools."""
        return "".join(piece.text for piece in self.pieces if piece.kind is PieceKind.TEXT)

    def _settle(self) -> None:
        if self._tail:
            last = self._pieces[-1]
            self._pieces[-1] = Piece(last.kind, last.text + "".join(self._tail))
            self._tail.clear()


_WORDS = frozenset({PieceKind.TEXT, PieceKind.REASONING})


def messages_of(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """The pieces of a turn as messages in the shape chat models use: calls with what led to them, then results.

    Reasoning belongs to the message that follows it. A call without a result stays one: whoever reads the log
    for a model repairs that in the view (`agent/history.py`).
    """
    found: list[dict[str, Any]] = []
    said: dict[str, Any] = {}

    def close() -> None:
        if said:
            found.append({"role": "assistant", "content": said.pop("content", None), **said})
            said.clear()

    for piece in pieces:
        if piece.kind is PieceKind.RESULT:
            close()
            result = {"role": "tool", "tool_call_id": piece.call_id, "tool_name": piece.name, "content": piece.text}
            took = {} if piece.duration_ms is None else {"duration_ms": piece.duration_ms}
            found.append(result | took | ({"is_error": True} if piece.failed else {}))
        elif piece.kind is PieceKind.CALL:
            call = {
                "id": piece.call_id,
                "type": "function",
                "function": {"name": piece.name, "arguments": piece.arguments},
            }
            said.setdefault("tool_calls", []).append(call)
        else:
            if "tool_calls" in said:  # it speaks again before the result: a message of its own
                close()
            key = "content" if piece.kind is PieceKind.TEXT else "reasoning"
            said[key] = said.get(key, "") + piece.text
    close()
    return found
