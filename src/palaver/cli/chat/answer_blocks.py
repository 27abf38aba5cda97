"""A growing answer as blocks: those that are finished, which are shown for good, and the tail that still changes.

Pure. Words are cut where Markdown begins another block, so that a finished one looks the same whatever follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from palaver.domain.draft import Piece, PieceKind

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


@dataclass(frozen=True, slots=True)
class Prose:
    """Markdown that the agent says."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """What the model thinks on its way."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool, what it was given, and what it answered."""

    name: str
    arguments: str
    result: str | None = None  # None: it has not answered
    failed: bool = False
    duration_ms: int | None = None


Block = Prose | Thought | ToolUse


class Growing:
    """Takes the pieces of an answer and gives its blocks."""

    def __init__(self) -> None:
        self._kind: PieceKind | None = None  # of the words that grow
        self._text = ""
        self._looked_at = 0  # so much of them was looked through for finished blocks
        self._calls: dict[str, Piece] = {}  # tools that have not answered

    def add(self, piece: Piece) -> list[Block]:
        """Take a piece; the blocks that it finishes."""
        match piece.kind:
            case PieceKind.CALL:
                done = self._close_words()
                self._calls[piece.call_id] = piece
                return done
            case PieceKind.RESULT:
                call = self._calls.pop(piece.call_id, piece)
                used = ToolUse(call.name, call.arguments, piece.text, piece.failed, piece.duration_ms)
                return [*self._close_words(), used]
            case _:
                done = self._close_words() if piece.kind is not self._kind else []
                self._kind = piece.kind
                self._text += piece.text
                return done + self._finished()

    def end(self) -> list[Block]:
        """Nothing more comes; everything that is left."""
        done = [*self._close_words(), *(ToolUse(call.name, call.arguments) for call in self._calls.values())]
        self._calls.clear()
        return done

    @property
    def tail(self) -> list[Block]:
        """What may still change."""
        return [*self._words(self._text), *(ToolUse(call.name, call.arguments) for call in self._calls.values())]

    def _words(self, text: str) -> list[Block]:
        if not text.strip():
            return []
        return [Thought(text) if self._kind is PieceKind.REASONING else Prose(text)]

    def _close_words(self) -> list[Block]:
        done = self._words(self._text)
        self._kind, self._text, self._looked_at = None, "", 0
        return done

    def _finished(self) -> list[Block]:
        whole_lines = self._text.rfind("\n") + 1
        if self._kind is not PieceKind.TEXT or whole_lines <= self._looked_at:
            return []
        end = settled(self._text[:whole_lines])
        done, self._text = self._words(self._text[:end]), self._text[end:]
        self._looked_at = whole_lines - end
        return done


def settled(text: str) -> int:
    """How many characters of this Markdown belong to blocks that nothing that follows can change."""
    blocks = [token.map for token in _parser().parse(text) if token.level == 0 and token.map]
    if len(blocks) < 2:
        return 0
    before = text.split("\n")[: blocks[-1][0]]
    return sum(len(line) + 1 for line in before)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt().enable("table")
