"""A growing answer as blocks: finished blocks, which are printed once, and the tail, which still changes.

Pure. Text is split where Markdown starts another block, so that a finished block looks the same whatever follows."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from palaver.cli.chat.feed_presenter import AnswerEnd, DisplayItem, Note, PersonMessage
from palaver.sessions.draft import Piece, PieceKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt


Block = Piece | PersonMessage | Note


class AnswerBlocks:
    """Collects the pieces of an answer: text becomes pieces that are a block each, a call and its result one piece."""

    def __init__(self) -> None:
        self._kind = PieceKind.TEXT  # of the growing text
        self._text = ""
        self._scanned_chars = 0  # how much of the text was already searched for finished blocks
        self._open_calls: dict[str, Piece] = {}  # calls without a result

    def add(self, item: DisplayItem) -> Sequence[Block]:
        """Add the next item and return the blocks that it finishes, and what is no part of the answer as it is."""
        match item:
            case PersonMessage() | Note():
                return [item]
            case AnswerEnd():
                return self.end()
            case Piece(PieceKind.CALL):
                finished = self._close_text()
                self._open_calls[item.call_id] = item
                return finished
            case Piece(PieceKind.RESULT):
                call = self._open_calls.pop(item.call_id, item)
                return [*self._close_text(), replace(item, name=call.name, arguments=call.arguments)]
            case Piece(kind):
                finished = self._close_text() if kind is not self._kind else []
                self._kind = kind
                self._text += item.text
                return finished + self._split_finished_blocks()

    def end(self) -> list[Piece]:
        remaining = self.tail
        self._close_text()
        self._open_calls.clear()
        return remaining

    @property
    def tail(self) -> list[Piece]:
        """Return the blocks that may still change."""
        return [*self._make_text_block(self._text), *self._open_calls.values()]

    def _make_text_block(self, text: str) -> list[Piece]:
        return [Piece(self._kind, text)] if text.strip() else []

    def _close_text(self) -> list[Piece]:
        finished = self._make_text_block(self._text)
        self._text, self._scanned_chars = "", 0
        return finished

    def _split_finished_blocks(self) -> list[Piece]:
        full_lines_end = self._text.rfind("\n") + 1
        if self._kind is not PieceKind.TEXT or full_lines_end <= self._scanned_chars:
            return []
        end = count_finished_chars(self._text[:full_lines_end])
        finished, self._text = self._make_text_block(self._text[:end]), self._text[end:]
        self._scanned_chars = full_lines_end - end
        return finished


def count_finished_chars(text: str) -> int:
    """Count the characters of this Markdown that belong to blocks that later text cannot change."""
    blocks = [token.map for token in _get_parser().parse(text) if token.level == 0 and token.map]
    if len(blocks) < 2:
        return 0
    finished_lines = text.split("\n")[: blocks[-1][0]]
    return sum(len(line) + 1 for line in finished_lines)


@cache
def _get_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt().enable("table")
