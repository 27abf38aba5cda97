"""Rendering the chat for a terminal: blocks as colored text, and the status line.

Always true: text from people, tools and models is cleaned here; the only escape sequences that reach the terminal
are our own colors.
"""

from __future__ import annotations

import io
import json
import os
import re
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from palaver.cli.chat.answer_blocks import AnswerBlocks, Block
from palaver.cli.chat.feed_presenter import AnswerOutput, DisplayItem, Note, PersonMessage
from palaver.cli.output import clean_line, clean_text, format_count, format_duration, get_display_width, truncate_text
from palaver.sessions.draft import Piece, PieceKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.sessions.model import Session


MAX_RESULT_LINES = 4  # of a tool result
INDENT_COLUMNS = 2
MIN_TITLE_COLUMNS = 8  # what the title keeps in the status line of a narrow terminal
_COLOR_CODE = re.compile("\x1b\\[[0-9;]*m")
_TRAILING_SPACES = re.compile("(?<! )[ ]++((?:\x1b\\[[0-9;]*m)*+)$")


DisplayBlock = Block | Text


class _Heading(Heading):
    """A left-aligned heading."""

    LEVEL_ALIGN = dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "left")


class _Code(CodeBlock):
    """Code on the terminal's own background, so that it fits dark and light themes."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(
            str(self.text).rstrip(), self.lexer_name, theme="ansi_dark", word_wrap=True, background_color="default"
        )
        yield Padding(code, (0, INDENT_COLUMNS))


class _Markdown(Markdown):
    elements = Markdown.elements | {"heading_open": _Heading, "fence": _Code, "code_block": _Code}


class Renderer:
    """Renders blocks for a terminal of a given width."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)

    def render(self, blocks: Sequence[DisplayBlock], width: int) -> str:
        """Render blocks with an empty line between them; the last line ends with a line break."""
        return "\n".join(f"{self._render_block(block, width)}\n" for block in blocks)

    def _render_block(self, block: DisplayBlock, width: int) -> str:
        file = io.StringIO()
        Console(
            file=file,
            force_terminal=True,
            width=max(width, 10),
            highlight=False,
            legacy_windows=False,
            _environ=self._environ,
        ).print(_make_renderable(block))
        return _trim_blank_space(file.getvalue())


def _trim_blank_space(text: str) -> str:
    """Remove empty lines around the text and the spaces with which rich fills its lines."""
    lines = [_TRAILING_SPACES.sub(r"\1", line) for line in text.split("\n")]
    filled = [index for index, line in enumerate(lines) if _COLOR_CODE.sub("", line).strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]) if filled else ""


def format_own_message(text: str) -> Text:
    lines = clean_text(text).split("\n")
    message = Text("› ", style="bold cyan")
    message.append("\n  ".join(lines), style="bold")
    return message


def _make_renderable(block: DisplayBlock) -> RenderableType:
    match block:
        case Text():
            return block
        case Piece(PieceKind.TEXT, text):
            return _Markdown(clean_text(text), hyperlinks=False)
        case Piece(PieceKind.REASONING, text):
            return Padding(Text(clean_text(text).strip(), style="dim italic"), (0, 0, 0, INDENT_COLUMNS))
        case Piece():
            return _render_tool(block)
        case PersonMessage(author, text):
            message = Text(f"{clean_line(author)}: ", style="bold magenta")
            return message.append(clean_text(text), style="not bold default")
        case Note(text, is_error):
            return (
                Text(f"✗ {clean_text(text)}", style="red") if is_error else Text(f"· {clean_text(text)}", style="dim")
            )


def _render_tool(block: Piece) -> RenderableType:
    is_running = block.kind is PieceKind.CALL
    mark, style = ("…", "yellow") if is_running else ("✗", "red") if block.failed else ("✓", "green")
    head = Text(f"{mark} ", style=style)
    head.append(clean_line(block.name), style="bold")
    for detail in (format_duration(block.duration_ms), format_arguments(block.arguments)):
        head.append(f"  {detail}" if detail else "", style="dim")
    head.no_wrap, head.overflow = True, "ellipsis"
    if not block.text:
        return head
    lines = clean_text(block.text).strip().split("\n")
    visible = lines[:MAX_RESULT_LINES] if len(lines) > MAX_RESULT_LINES + 1 else lines
    body = Text("\n".join(visible), style="dim", no_wrap=True, overflow="ellipsis")
    if len(visible) < len(lines):
        body.append(f"\n… {format_count(len(lines) - len(visible), 'more line')}")
    return Group(head, Padding(body, (0, 0, 0, INDENT_COLUMNS)))


def format_arguments(text: str) -> str:
    """Format the JSON arguments of a tool call on one line: `query: cat, limit: 3`."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return clean_line(text)
    if not isinstance(data, dict):
        return clean_line(text)
    return ", ".join(
        f"{clean_line(str(name))}: {clean_line(value if isinstance(value, str) else json.dumps(value))}"
        for name, value in data.items()
    )


# ---- status line -------------------------------------------------------------------------------------------


def format_status_line(session: Session | None, model: str, *, is_running: bool, queued_count: int, width: int) -> str:
    title = "new conversation" if session is None else clean_line(session.shown_title or "untitled")
    state = "responding (Ctrl-C to stop)" if is_running else "idle"
    model = f" {clean_line(model)}"
    facts = [*(format_usage(session) if session else ()), f"{state}, {queued_count} queued" if queued_count else state]
    title_width = max(width - get_display_width(" · ".join([model, "", *facts])), MIN_TITLE_COLUMNS)
    return truncate_text(" · ".join([model, truncate_text(title, title_width), *facts]), width)


def format_usage(session: Session) -> list[str]:
    usage = session.usage
    if not usage.total_tokens:
        return ["0 tokens"]
    if usage.cost is None:
        return [f"{usage.total_tokens:,} tokens", "cost unknown"]
    unpriced = f" + {format_count(usage.unpriced_turns, 'turn')} unpriced" if usage.unpriced_turns else ""
    return [f"{usage.total_tokens:,} tokens", f"${usage.cost:.4f}{unpriced}"]


# One answer on a terminal: finished blocks are printed once, the tail is redrawn in place as it grows.


class LiveRenderer(AnswerOutput):
    """Shows a growing answer as Markdown; with `quiet` only its text."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._renderer = Renderer(os.environ)
        self._blocks = AnswerBlocks()
        self._console = Console(highlight=False)
        self._live: Live | None = None
        self._has_printed = False

    def show(self, item: DisplayItem) -> None:
        self._print_blocks(self._blocks.add(item))
        self._redraw_tail()

    def end(self) -> None:
        """Print what is left and stop redrawing."""
        self._print_blocks(self._blocks.end())
        if self._live is not None:
            self._live.update(Text(""), refresh=True)
            self._live.stop()
            self._live = None
        self._has_printed = False

    def _print_blocks(self, blocks: Sequence[DisplayBlock]) -> None:
        for block in blocks:
            if self._quiet and not (isinstance(block, Piece) and block.kind is PieceKind.TEXT):
                continue
            if self._has_printed:
                self._console.print()
            self._has_printed = True
            text = self._renderer.render([block], self._console.width).rstrip("\n")
            self._console.print(Text.from_ansi(text), soft_wrap=True)

    def _redraw_tail(self) -> None:
        tail = [block for block in self._blocks.tail if not self._quiet or block.kind is PieceKind.TEXT]
        if self._live is None:
            # Drawn here only: a thread of its own that draws while a block is printed leaves lines behind.
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        lines = self._renderer.render(tail, self._console.width).rstrip("\n").split("\n") if tail else []
        gap = [""] if self._has_printed and lines else []
        self._live.update(Text.from_ansi("\n".join(gap + lines[-max(3, self._console.height - 3) :])), refresh=True)
