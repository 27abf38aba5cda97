"""One answer on a terminal: finished blocks are printed once, the tail is redrawn in place as it grows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from palaver.cli.chat.answer_blocks import AnswerBlocks, Block, TextBlock
from palaver.cli.chat.feed_presenter import AnswerEnd, Note, PersonMessage
from palaver.cli.chat.renderer import Renderer
from palaver.sessions.draft import Piece

if TYPE_CHECKING:
    from palaver.cli.chat.feed_presenter import DisplayItem


class LiveRenderer:
    """Shows a growing answer as Markdown; with `quiet` only its text."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._renderer = Renderer(os.environ)
        self._blocks = AnswerBlocks()
        self._console = Console(highlight=False)
        self._live: Live | None = None
        self._has_printed = False

    def show(self, item: DisplayItem) -> None:
        """Show the next item of the answer."""
        match item:
            case Piece():
                self._print_blocks(self._blocks.add(item))
            case AnswerEnd():
                self._print_blocks(self._blocks.end())
            case Note() | PersonMessage() if not self._quiet:
                self._print_blocks([item])
        self._redraw_tail()

    def end(self) -> None:
        """Print what is left and stop redrawing."""
        self._print_blocks(self._blocks.end())
        if self._live is not None:
            self._live.update(Text(""), refresh=True)
            self._live.stop()
            self._live = None
        self._has_printed = False

    def _print_blocks(self, blocks: list[Block] | list[Note | PersonMessage]) -> None:
        for block in blocks:
            if self._quiet and not isinstance(block, TextBlock):
                continue
            if self._has_printed:
                self._console.print()
            self._has_printed = True
            text = self._renderer.render([block], self._console.width).rstrip("\n")
            self._console.print(Text.from_ansi(text), soft_wrap=True)

    def _redraw_tail(self) -> None:
        tail = [block for block in self._blocks.tail if not self._quiet or isinstance(block, TextBlock)]
        if self._live is None:
            # Drawn here only: a thread of its own that draws while a block is printed leaves lines behind.
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        lines = self._renderer.render(tail, self._console.width).rstrip("\n").split("\n") if tail else []
        gap = [""] if self._has_printed and lines else []
        self._live.update(Text.from_ansi("\n".join(gap + lines[-max(3, self._console.height - 3) :])), refresh=True)
