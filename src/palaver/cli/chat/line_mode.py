"""The chat line by line, on a terminal that cannot show more; and reading lines from stdin.

Always true: it writes no escape sequences.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import threading
from typing import TYPE_CHECKING

import click

from palaver.cli.chat.chat_session import ChatSession, describe_busy_outcome
from palaver.cli.chat.feed_presenter import AnswerEnd, FeedView, Note, PersonMessage
from palaver.cli.output import clean_line, clean_text, format_duration
from palaver.core.errors import PalaverError
from palaver.core.tasks import cancel_tasks
from palaver.sessions.draft import Piece, PieceKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from palaver.live.feed_events import FeedItem


_CHUNK_BYTES = 65536


class StdinLines:
    """Yields the lines of stdin as they arrive, without the empty ones.

    A daemon thread reads them, so that the process can exit while the thread is still waiting for input.
    """

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="palaver-stdin", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            if line.strip():
                yield line

    def close(self) -> None:
        self._lines.put_nowait(None)

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        rest = ""
        while sys.stdin is not None and (data := os.read(sys.stdin.fileno(), _CHUNK_BYTES)):
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            self._hand_over(lines)
        self._hand_over([rest + decoder.decode(b"", final=True), None])

    def _hand_over(self, lines: Sequence[str | None]) -> None:
        for line in lines:
            try:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            except RuntimeError:  # the event loop is closed: the chat is over
                return


class LineMode(FeedView):
    def __init__(self, chat: ChatSession) -> None:
        super().__init__(chat)
        self._is_line_open = False  # text was written without a line break after it
        self._input: StdinLines | None = None
        self._stop_task: asyncio.Task[None] | None = None

    async def run(self, greeting: Sequence[str], first_messages: Sequence[str] = ()) -> None:
        for line in greeting:
            self._print_line(line)
        self._listener.follow_session()
        feed_task = asyncio.create_task(self._show_feed())
        self._input = StdinLines()
        try:
            for text in first_messages:
                await self._send(text)
            async for text in self._input:
                await self._send(text)
        finally:
            self._listener.close()
            await cancel_tasks([feed_task])
            self._end_line()

    def stop(self) -> None:
        if self._input is not None:
            self._input.close()

    def show_warning(self, text: str) -> None:
        self._print_line(f"! {text}")

    def interrupt(self) -> None:
        """Handle Ctrl-C: stop the running answer; quit on a second press, or if no answer is running."""
        if self._is_double_press() or not self._presenter.is_running:
            self.stop()
        else:
            self._stop_task = asyncio.create_task(self._send("/stop"))

    # -- sending and following -----------------------------------------------------------------------------

    async def _send(self, text: str) -> None:
        try:
            receipt = await self._chat.send(text)
        except PalaverError as error:
            self._print_line(f"! {error}")
            return
        self._listener.follow_session(None if receipt.seq is None else receipt.seq - 1)
        for line in (receipt.reply, describe_busy_outcome(receipt)):
            if line:
                self._print_line(line)

    # -- showing -------------------------------------------------------------------------------------------

    async def _switch_session(self) -> None:
        self._end_line()
        await super()._switch_session()

    async def _show_notice(self, text: str, *, is_error: bool) -> None:
        self._print_line(f"! {text}" if is_error else text)

    async def _show_item(self, item: FeedItem) -> None:
        for display_item in self._presenter.present(item):
            match display_item:
                case Piece(PieceKind.TEXT, text):
                    self._print_text(clean_text(text))
                case Piece(PieceKind.CALL, name=name, arguments=arguments):
                    self._print_line(f"[{clean_line(name)} {clean_line(arguments)}]")
                case Piece(PieceKind.RESULT, text, failed=failed, duration_ms=duration_ms):
                    outcome = f"{'failed' if failed else 'done'} {format_duration(duration_ms)}".rstrip()
                    self._print_line(f"[{outcome}: {clean_line(text)[:200]}]")
                case PersonMessage(author, text):
                    self._print_line(f"{clean_line(author)}: {text}")
                case Note(text, is_error):
                    self._print_line(f"! {text}" if is_error else f"({text})")
                case AnswerEnd():
                    self._end_line()

    def _print_text(self, text: str) -> None:
        click.echo(text, nl=False)
        sys.stdout.flush()
        if text:
            self._is_line_open = not text.endswith("\n")

    def _print_line(self, text: str) -> None:
        self._end_line()
        click.echo(clean_text(text))

    def _end_line(self) -> None:
        if self._is_line_open:
            click.echo()
        self._is_line_open = False
