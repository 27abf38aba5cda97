"""How the talk looks on a terminal: blocks as text with colours, and the line that tells how things stand.

Always true: what people, tools and models wrote is cleaned on its way through here; nothing but our own colours
reaches the terminal as an escape sequence.
"""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from palaver.cli.chat.answer_blocks import Prose, Thought, ToolUse
from palaver.cli.chat.feed_presenter import Note, Said
from palaver.cli.output import cells, clean, fit, lasted, line, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import ConsoleOptions, RenderableType, RenderResult

    from palaver.domain.session import Session

RESULT_LINES = 4  # of what a tool answered
INDENT = 2
LEAST_TITLE = 8  # columns of the status that a title keeps on a narrow terminal
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_FILLING = re.compile("[ ]+((?:\x1b\\[[0-9;]*m)*)$")


Shown = Prose | Thought | ToolUse | Said | Note | Text


class _Heading(Heading):
    """A heading that stands where the text does."""

    LEVEL_ALIGN = dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "left")


class _Code(CodeBlock):
    """Code on the background of the terminal, so that it suits dark and light."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(
            str(self.text).rstrip(), self.lexer_name, theme="ansi_dark", word_wrap=True, background_color="default"
        )
        yield Padding(code, (0, INDENT))


class _Markdown(Markdown):
    """Markdown as answers show it."""

    elements = Markdown.elements | {"heading_open": _Heading, "fence": _Code, "code_block": _Code}


class Painter:
    """Paints for a terminal of a given width."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)

    def paint(self, blocks: Sequence[Shown], width: int) -> str:
        """Blocks one below the other, an empty line between them, each line ended."""
        return "\n".join(f"{self._painted(block, width)}\n" for block in blocks)

    def _painted(self, block: Shown, width: int) -> str:
        file = io.StringIO()
        Console(
            file=file,
            force_terminal=True,
            width=max(width, 10),
            highlight=False,
            legacy_windows=False,
            _environ=self._environ,
        ).print(_shape(block))
        return _trimmed(file.getvalue())


def _trimmed(painted: str) -> str:
    """Without the empty lines around it, and without the blanks that fill its lines."""
    lines = [_FILLING.sub(r"\1", each) for each in painted.split("\n")]
    full = [number for number, each in enumerate(lines) if _COLOUR.sub("", each).strip()]
    return "\n".join(lines[full[0] : full[-1] + 1]) if full else ""


def own(text: str) -> Text:
    """What the person at this terminal has just said."""
    lines = clean(text).split("\n")
    shown = Text("› ", style="bold cyan")
    shown.append("\n  ".join(lines), style="bold")
    return shown


def _shape(block: Shown) -> RenderableType:
    match block:
        case Text():
            return block
        case Prose(text):
            return _Markdown(clean(text), hyperlinks=False)
        case Thought(text):
            return Padding(Text(clean(text).strip(), style="dim italic"), (0, 0, 0, INDENT))
        case ToolUse():
            return _tool(block)
        case Said(who, text):
            shown = Text(f"{line(who)}: ", style="bold magenta")
            return shown.append(clean(text), style="not bold default")
        case Note(text, trouble):
            return Text(f"✗ {clean(text)}", style="red") if trouble else Text(f"· {clean(text)}", style="dim")


def _tool(use: ToolUse) -> RenderableType:
    mark, style = ("…", "yellow") if use.result is None else ("✗", "red") if use.failed else ("✓", "green")
    head = Text(f"{mark} ", style=style)
    head.append(line(use.name), style="bold")
    for more in (lasted(use.duration_ms), arguments(use.arguments)):
        head.append(f"  {more}" if more else "", style="dim")
    head.no_wrap, head.overflow = True, "ellipsis"
    if not use.result:
        return head
    lines = clean(use.result).strip().split("\n")
    told = lines[:RESULT_LINES] if len(lines) > RESULT_LINES + 1 else lines
    body = Text("\n".join(told), style="dim", no_wrap=True, overflow="ellipsis")
    if len(told) < len(lines):
        body.append(f"\n… {plural(len(lines) - len(told), 'more line')}")
    return Group(head, Padding(body, (0, 0, 0, INDENT)))


def arguments(given: str) -> str:
    """The arguments of a tool on one line: `query: cat, limit: 3`."""
    try:
        data: Any = json.loads(given)
    except ValueError:
        return line(given)
    if not isinstance(data, dict):
        return line(given)
    return ", ".join(
        f"{line(str(name))}: {line(value if isinstance(value, str) else json.dumps(value))}"
        for name, value in data.items()
    )


# ---- how things stand --------------------------------------------------------------------------------------


def status(session: Session | None, model: str, *, running: bool, waiting: int, width: int) -> str:
    """One line: who answers, in which conversation, what it has cost, and what goes on."""
    name = "new conversation" if session is None else line(session.title) if session.title else "untitled"
    state = "answering, Ctrl-C stops" if running else "idle"
    after = [*(spent(session) if session else ()), f"{state}, {waiting} waiting" if waiting else state]
    room = width - cells(" · ".join([f" {line(model)}", "", *after]))
    return fit(" · ".join([f" {line(model)}", fit(name, max(room, LEAST_TITLE)), *after]), width)


def spent(session: Session) -> list[str]:
    """What a conversation has used; a cost that nobody knows is said to be unknown."""
    used = session.usage
    if not used.total_tokens:
        return ["0 tokens"]
    if used.cost is None:
        return [f"{used.total_tokens:,} tokens", "cost unknown"]
    more = f" + {plural(used.unpriced_turns, 'turn')} unpriced" if used.unpriced_turns else ""
    return [f"{used.total_tokens:,} tokens", f"${used.cost:.4f}{more}"]
