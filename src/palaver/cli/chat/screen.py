"""The talk at a terminal: what was said scrolls away above, and below it are the line to type in and the status.

One application lives as long as the talk, so that the person can type at any time. Finished blocks are written above
it for good; only the tail of a growing answer is drawn anew.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application, get_app, in_terminal
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    ConditionalContainer,
    Dimension,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar, TextArea

from palaver.cli.chat.answer_blocks import Growing, Prose
from palaver.cli.chat.chat_session import waiting
from palaver.cli.chat.completer import ChatCompleter
from palaver.cli.chat.feed_listener import DELETED, Ear, Gone, Moved, Trouble
from palaver.cli.chat.feed_presenter import AnswerEnds, Hearing, Note
from palaver.cli.chat.renderer import Painter, own, status
from palaver.domain.draft import Piece
from palaver.domain.errors import NoSuchSession, PalaverError, StoreError
from palaver.domain.events import EventKind
from palaver.domain.feed_events import Happened, TurnChanged
from palaver.domain.inbound import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.history import History
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyPressEvent

    from palaver.cli.chat.chat_session import Talk
    from palaver.cli.chat.renderer import Shown
    from palaver.domain.feed_events import FeedItem
    from palaver.domain.inbound import Receipt
    from palaver.domain.session import Session

TWICE = 2.0  # seconds within which a second Ctrl-C leaves
MENU = 8  # lines kept free below the input while completions are offered
MOST_LINES = 12  # of the input that are shown at once
AROUND = 6  # lines that a growing answer leaves free for the input and the status
_STYLE = Style.from_dict(
    {
        "status": "reverse",
        "prompt": "bold ansicyan",
        "completion-menu": "noreverse",
    }
)


class Screen:
    """A terminal that somebody sits at."""

    def __init__(self, talk: Talk, home: Path) -> None:
        self._talk = talk
        self._loop = asyncio.get_running_loop()
        self._ear = Ear(talk)
        self._painter = Painter(os.environ)
        self._hearing = self._new_hearing()
        self._growing = Growing()
        self._session: Session | None = None
        self._chosen: str | None = None  # the model, where it was chosen while we looked
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._pressed = 0.0  # when Ctrl-C was last pressed
        self._stopping = False  # the answer was told to stop
        self._drawn: tuple[object, str] = (None, "")
        self._search = SearchToolbar()
        self._input = TextArea(
            multiline=True,
            wrap_lines=True,
            completer=ChatCompleter(talk),
            complete_while_typing=True,
            history=_history(home / "history"),
            accept_handler=self._accept,
            get_line_prefix=lambda number, wrapped: [("class:prompt", "  " if number or wrapped else "› ")],
            search_field=self._search,
            height=self._input_height,
            dont_extend_height=True,
        )
        self._app: Application[None] = Application(
            input=keyboard(),
            layout=self._layout(),
            key_bindings=self._keys(),
            style=_STYLE,
            erase_when_done=True,
            min_redraw_interval=0.04,
        )

    # -- the whole of it -----------------------------------------------------------------------------------

    async def run(self, greeting: Sequence[str], first: Sequence[str] = ()) -> None:
        """Talk until the person leaves."""
        self._ear.turn()
        for text in first:
            self._typed.put_nowait(text)
        tasks = [asyncio.create_task(self._hear()), asyncio.create_task(self._send())]
        for task in tasks:
            task.add_done_callback(self._over)
        try:
            self._write(self._painter.paint([Note(greeting[0]), *map(Prose, greeting[1:])], self._width))
            with patch_stdout(raw=True), suppress(EOFError):  # the terminal was closed
                await self._app.run_async(set_exception_handler=False)
        finally:
            if not tasks[1].done():
                await self._typed.join()  # what was sent is taken in before we leave
            self._ear.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            left = self._growing.end()
            if left:
                self._write(self._painter.paint(left, self._width))

    def leave(self) -> None:
        """End the talk, from outside."""
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def warn(self, text: str) -> None:
        """Say something that concerns no conversation, from any thread."""
        self._loop.call_soon_threadsafe(lambda: self._soon(Note(text, trouble=True)))

    def _soon(self, note: Note) -> None:
        self._app.create_background_task(self._show([note]))

    @property
    def answering(self) -> bool:
        """Whether an answer is being given or waited for."""
        return (self._hearing.running and not self._stopping) or self._hearing.waiting > 0

    def _over(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and self._app.is_running:
            self._app.exit(exception=error)

    # -- speaking ------------------------------------------------------------------------------------------

    def _accept(self, buffer: Buffer) -> bool:
        if buffer.text.strip():
            self._typed.put_nowait(buffer.text.rstrip())
        return False

    async def _send(self) -> None:
        while True:
            text = await self._typed.get()
            try:
                await self._show([own(text)])
                await self._show(self._answered(await self._talk.say(text)))
            except StoreError as error:
                await self._show([Note(f"{error} This was not taken; the up arrow brings it back.", trouble=True)])
            except PalaverError as error:
                await self._show([Note(str(error), trouble=True)])
            finally:
                self._typed.task_done()

    def _answered(self, receipt: Receipt) -> list[Shown]:
        """What the gateway itself says to what was said, and listen where that leads."""
        self._ear.turn(None if receipt.seq is None else receipt.seq - 1)
        said: list[Shown] = []
        if receipt.reply:
            said.append(
                Note(receipt.reply, trouble=True) if receipt.outcome is Outcome.REFUSED else Prose(receipt.reply)
            )
        waits = waiting(receipt)
        if waits:
            said.append(Note(waits))
        return said

    # -- hearing -------------------------------------------------------------------------------------------

    async def _hear(self) -> None:
        while True:
            item = await self._ear.next()
            match item:
                case Moved():
                    await self._moved()
                case Gone(session_id):
                    if await self._talk.leave(session_id):
                        self._ear.turn()
                        await self._show([Note(DELETED)])
                case Trouble(text):
                    await self._show([Note(text, trouble=True)])
                case _:
                    await self._heard(item)

    def _new_hearing(self) -> Hearing:
        return Hearing(self._talk.owner.id, is_own=self._talk.is_own)

    async def _moved(self) -> None:
        await self._show(self._growing.end())
        self._hearing = self._new_hearing()
        self._chosen = None
        await self._look()

    async def _heard(self, item: FeedItem) -> None:
        finished: list[Shown] = []
        for heard in self._hearing.hear(item):
            match heard:
                case Piece():
                    finished += self._growing.add(heard)
                case AnswerEnds():
                    finished += self._growing.end()
                case _:
                    finished.append(heard)
        await self._show(finished)
        if (
            isinstance(item, Happened)
            and item.event.kind is EventKind.CHANGED
            and item.event.facts.get("setting") == "model"
        ):
            self._chosen = item.event.facts.get("value") or self._talk.gateway.agent.model
        self._stopping = self._stopping and self._hearing.running
        if isinstance(item, TurnChanged) or (isinstance(item, Happened) and item.event.message is None):
            await self._look()

    async def _look(self) -> None:
        """Bring the status up to date."""
        with suppress(NoSuchSession, StoreError):  # the ear is told of it too
            self._session = await self._talk.session()
        self._app.invalidate()

    # -- showing -------------------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return self._app.output.get_size().columns

    async def _show(self, blocks: Sequence[Shown]) -> None:
        """Write blocks for good, above the input."""
        if not blocks:
            self._app.invalidate()
            return
        text = self._painter.paint(blocks, self._width)
        async with in_terminal():
            self._write(text)

    def _write(self, text: str) -> None:
        self._app.output.write_raw(f"{text}\n")
        self._app.output.flush()

    def _tail(self) -> ANSI:
        tail = self._growing.tail
        width = self._width
        if self._drawn[0] != (tail, width):
            lines = self._painter.paint(tail, width).rstrip("\n").split("\n")
            room = max(3, self._app.output.get_size().rows - AROUND)
            self._drawn = ((tail, width), "\n".join(lines[-room:]))
        return ANSI(self._drawn[1])

    def _status(self) -> str:
        session = self._session
        model = self._chosen or (session.model if session and session.model else self._talk.gateway.agent.model)
        return status(
            session, model, running=self._hearing.running, waiting=self._hearing.waiting, width=self._width
        ).ljust(self._width)

    def _layout(self) -> Layout:
        growing = Condition(lambda: bool(self._growing.tail))
        tail = Window(FormattedTextControl(self._tail), dont_extend_height=True, wrap_lines=False)
        space = Window(height=1)
        bottom = Window(FormattedTextControl(self._status), height=1, style="class:status")
        body = HSplit(
            [
                ConditionalContainer(HSplit([tail, space]), growing),
                self._input,
                self._search,
                bottom,
            ]
        )
        menu = Float(CompletionsMenu(max_height=MENU, scroll_offset=1), xcursor=True, ycursor=True)
        return Layout(FloatContainer(body, [menu]), focused_element=self._input)

    def _input_height(self) -> Dimension:
        least = MENU + 1 if self._input.buffer.complete_state is not None else 1
        return Dimension(min=least, max=max(MOST_LINES, least))

    # -- keys ----------------------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        typing = Condition(lambda: get_app().layout.has_focus(self._input))
        empty = Condition(lambda: not self._input.text)
        keys.add("enter", filter=typing)(lambda event: self._input.buffer.validate_and_handle())
        for newline in (("c-j",), ("escape", "enter"), ("escape", "c-j")):
            keys.add(*newline, filter=typing)(lambda event: self._input.buffer.insert_text("\n"))
        keys.add("c-c")(self._interrupt)
        keys.add("<sigint>")(self._interrupt)
        keys.add("c-d", filter=typing & empty)(lambda event: event.app.exit())
        return keys

    def _interrupt(self, event: KeyPressEvent) -> None:
        """Ctrl-C: stops what runs, clears the line, and pressed again soon, leaves."""
        now = time.monotonic()
        again, self._pressed = now - self._pressed < TWICE, now
        if again:
            event.app.exit()
        elif self._hearing.running:
            self._stopping = True
            self._typed.put_nowait("/stop")
        elif self._input.text:
            self._input.buffer.reset()
        else:
            self._soon(Note("Ctrl-C again or Ctrl-D leaves"))


def keyboard() -> Input:
    """Keys, raw at all times: were they cooked while something is written above, an Enter at that moment would be shown
    as it is typed and arrive as the beginning of a line.
    """
    keys = create_input()
    keys.cooked_mode = nullcontext  # type: ignore[method-assign]
    return keys


class _File(FileHistory):
    """What was typed before, in a file. When it cannot be written, it is remembered until the talk ends."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def _history(file: Path) -> History:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.chmod(0o600)
        with file.open("rb"):
            return _File(str(file))
    except OSError:
        return InMemoryHistory()
