"""The talk line by line: on a terminal that can show nothing else, and from a pipe.

Always true: no escape sequence is written.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import click

from palaver.cli.chat.chat_session import waiting
from palaver.cli.chat.feed_listener import DELETED, Ear, Gone, Moved, Trouble
from palaver.cli.chat.feed_presenter import AnswerEnds, Hearing, Note, Said
from palaver.cli.output import clean, lasted, line
from palaver.domain.draft import Piece, PieceKind
from palaver.domain.errors import PalaverError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from palaver.cli.chat.chat_session import Talk
    from palaver.cli.chat.feed_presenter import Heard
    from palaver.domain.feed_events import FeedItem

TWICE = 2.0  # seconds within which a second Ctrl-C leaves
_CHUNK = 65536


class Typed:
    """The lines of standard input as they come. Reading waits in a thread of its own, which nobody has to wait for."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="palaver-typed", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (typed := await self._lines.get()) is not None:
            if typed.strip():
                yield typed

    def close(self) -> None:
        """No more lines."""
        self._lines.put_nowait(None)

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        rest = ""
        while sys.stdin is not None and (data := os.read(sys.stdin.fileno(), _CHUNK)):
            *whole, rest = (rest + decoder.decode(data)).split("\n")
            self._give(whole)
        self._give([rest + decoder.decode(b"", final=True), None])

    def _give(self, lines: Sequence[str | None]) -> None:
        for typed in lines:
            try:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, typed)
            except RuntimeError:  # the talk is over
                return


class Lines:
    """A terminal that knows lines only."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._ear = Ear(talk)
        self._hearing = self._new_hearing()
        self._inside = False  # a line that is not ended
        self._pressed = 0.0
        self._typed: Typed | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def run(self, greeting: Sequence[str], first: Sequence[str] = ()) -> None:
        """Talk until the person leaves, or nothing more comes."""
        for each in greeting:
            self._say(each)
        self._ear.turn()
        hearing = asyncio.create_task(self._hear())
        self._typed = Typed()
        try:
            for text in first:
                await self._send(text)
            async for text in self._typed:
                await self._send(text)
        finally:
            self._ear.close()
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            self._end_line()

    def leave(self) -> None:
        """End the talk, from outside."""
        if self._typed is not None:
            self._typed.close()

    def warn(self, text: str) -> None:
        """Say something that concerns no conversation."""
        self._say(f"! {text}")

    @property
    def answering(self) -> bool:
        """Whether an answer is being given or waited for."""
        return self._hearing.running or self._hearing.waiting > 0

    def interrupt(self) -> None:
        """Ctrl-C: stops what runs; pressed again soon, or when nothing runs, leaves."""
        now = time.monotonic()
        again, self._pressed = now - self._pressed < TWICE, now
        if again or not self._hearing.running:
            self.leave()
        else:
            self._stopping = asyncio.create_task(self._send("/stop"))

    # -- speaking and hearing ------------------------------------------------------------------------------

    async def _send(self, text: str) -> None:
        try:
            receipt = await self._talk.say(text)
        except PalaverError as error:
            self._say(f"! {error}")
            return
        self._ear.turn(None if receipt.seq is None else receipt.seq - 1)
        for each in (receipt.reply, waiting(receipt)):
            if each:
                self._say(each)

    async def _hear(self) -> None:
        while True:
            item = await self._ear.next()
            match item:
                case Moved():
                    self._end_line()
                    self._hearing = self._new_hearing()
                case Gone(session_id):
                    if await self._talk.leave(session_id):
                        self._ear.turn()
                        self._say(DELETED)
                case Trouble(text):
                    self._say(f"! {text}")
                case _:
                    self._take(item)

    def _take(self, item: FeedItem) -> None:
        for heard in self._hearing.hear(item):
            self._show(heard)

    def _new_hearing(self) -> Hearing:
        return Hearing(self._talk.owner.id, is_own=self._talk.is_own)

    # -- showing -------------------------------------------------------------------------------------------

    def _show(self, heard: Heard) -> None:
        match heard:
            case Piece(PieceKind.TEXT, text):
                shown = clean(text)
                click.echo(shown, nl=False)
                sys.stdout.flush()
                self._inside = not shown.endswith("\n") if shown else self._inside
            case Piece(PieceKind.CALL, name=name, arguments=arguments):
                self._say(f"[{line(name)} {line(arguments)}]")
            case Piece(PieceKind.RESULT, text, failed=failed, duration_ms=took):
                how = f"{'failed' if failed else 'done'} {lasted(took)}".rstrip()
                self._say(f"[{how}: {line(text)[:200]}]")
            case Said(who, text):
                self._say(f"{line(who)}: {text}")
            case Note(text, trouble):
                self._say(f"! {text}" if trouble else f"({text})")
            case AnswerEnds():
                self._end_line()

    def _say(self, text: str) -> None:
        self._end_line()
        click.echo(clean(text))

    def _end_line(self) -> None:
        if self._inside:
            click.echo()
        self._inside = False
