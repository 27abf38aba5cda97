"""The text of a growing message: the end of the answer so far, and what the agent is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.commands.reply_text import escape_markdown
from palaver.sessions.draft import PieceKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.delivery.adapter import Adapter
    from palaver.sessions.draft import Piece

MAX_PREVIEW_CHARS = 3000  # of the answer so far; the end is shown
MAX_TOOL_NAME_CHARS = 40
SHARE_OF_MESSAGE = 0.7  # the text takes this much of a message at most: markup comes on top


def build_preview_text(pieces: Sequence[Piece], max_chars: int) -> str:
    """Return what people see of an unfinished answer; empty if there is nothing to see yet."""
    texts: list[str] = []
    used_tool = ""
    is_new_message = True
    for piece in pieces:
        if piece.kind is PieceKind.TEXT:
            if is_new_message:
                texts.append("")
            texts[-1] += piece.text
            is_new_message, used_tool = False, ""
        elif piece.kind is PieceKind.CALL:
            is_new_message, used_tool = True, piece.name
    text = _cut_start("\n\n".join(text.strip() for text in texts if text.strip()), max_chars)
    step = f"*Using {escape_markdown(used_tool, MAX_TOOL_NAME_CHARS)}…*" if used_tool else ""
    return "\n\n".join(each for each in (text, step) if each)


def _cut_start(text: str, max_chars: int) -> str:
    """Keep the end of a text that is too long, from the start of a line if there is one in the first half."""
    if len(text) <= max_chars:
        return text
    end = text[len(text) - max_chars :]
    line_start = end.find("\n", 0, max_chars // 2) + 1
    return f"…\n\n{end[line_start:].lstrip()}"


def render_preview(adapter: Adapter, pieces: Sequence[Piece]) -> str:
    """Return the one message in which the platform shows the end of an unfinished answer; empty if there is nothing."""
    max_length = adapter.capabilities.max_length
    max_chars = MAX_PREVIEW_CHARS if max_length is None else min(MAX_PREVIEW_CHARS, int(max_length * SHARE_OF_MESSAGE))
    text = build_preview_text(pieces, max_chars)
    bodies = adapter.render(text) if text else []
    return bodies[-1] if bodies else ""
