"""One answer on a terminal: finished blocks painted for good, the tail redrawn in place as it grows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from palaver.cli.chat.answer_blocks import Growing, Prose
from palaver.cli.chat.feed_presenter import AnswerEnds, Note, Said
from palaver.cli.chat.renderer import Painter
from palaver.domain.draft import Piece

if TYPE_CHECKING:
    from palaver.cli.chat.answer_blocks import Block
    from palaver.cli.chat.feed_presenter import Heard


class Painted:
    """Markdown as it comes, for a person who looks on; what is quiet shows words alone."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._painter = Painter(os.environ)
        self._growing = Growing()
        self._console = Console(highlight=False)
        self._live: Live | None = None
        self._begun = False

    def show(self, heard: Heard) -> None:
        """More of an answer."""
        match heard:
            case Piece():
                self._put(self._growing.add(heard))
            case AnswerEnds():
                self._put(self._growing.end())
            case Note() | Said() if not self._quiet:
                self._put([heard])
        self._draw()

    def end(self) -> None:
        """That was all."""
        self._put(self._growing.end())
        if self._live is not None:
            self._live.update(Text(""), refresh=True)
            self._live.stop()
            self._live = None
        self._begun = False

    def _put(self, blocks: list[Block] | list[Note | Said]) -> None:
        for block in blocks:
            if self._quiet and not isinstance(block, Prose):
                continue
            if self._begun:
                self._console.print()
            self._begun = True
            painted = self._painter.paint([block], self._console.width).rstrip("\n")
            self._console.print(Text.from_ansi(painted), soft_wrap=True)

    def _draw(self) -> None:
        tail = [block for block in self._growing.tail if not self._quiet or isinstance(block, Prose)]
        if self._live is None:
            self._live = Live(console=self._console, transient=True, refresh_per_second=20)
            self._live.start()
        lines = self._painter.paint(tail, self._console.width).rstrip("\n").split("\n") if tail else []
        above = [""] if self._begun and lines else []
        self._live.update(Text.from_ansi("\n".join(above + lines[-max(3, self._console.height - 3) :])))
