"""The chat on a full terminal: messages scroll away above; below them are the input and the status line.

One prompt_toolkit application runs as long as the chat, so that the person can type at any time. Finished blocks
are printed once above it; only the tail of a growing answer is redrawn.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application, get_app, in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
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

from palaver.cli.chat.answer_blocks import AnswerBlocks
from palaver.cli.chat.attached_files import COMMANDS
from palaver.cli.chat.chat_session import ChatSession, describe_busy_outcome
from palaver.cli.chat.feed_presenter import FeedView, Note
from palaver.cli.chat.renderer import DisplayBlock, Renderer, format_own_message, format_status_line
from palaver.cli.output import clean_line, format_relative_time
from palaver.core.errors import PalaverError, SessionNotFound, StoreError
from palaver.core.tasks import cancel_tasks
from palaver.inbox.registry import REGISTRY
from palaver.live.feed_events import EventAppended, FeedItem, TurnChanged
from palaver.sessions.draft import Piece, PieceKind
from palaver.sessions.inbound import Outcome, Receipt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence
    from pathlib import Path

    from prompt_toolkit.buffer import Buffer

    from palaver.sessions.model import Session


MAX_SESSIONS_OFFERED = 100
MENU_LINES = 8  # kept free below the input while the completion menu is open
MAX_INPUT_LINES = 12
RESERVED_LINES = 6  # what a growing answer leaves free for the input and the status line
_STYLE = Style.from_dict({"status": "reverse", "prompt": "bold ansicyan", "completion-menu": "noreverse"})
_COMMAND_START = re.compile(r"/[\w-]*")
_ATTACH = re.compile(r"/attach\s+(?P<path>.*)", re.IGNORECASE)
_RESUME = re.compile(r"/resume\s+(?P<title>.*)", re.IGNORECASE)


class ChatCompleter(Completer):
    """Completes a command at the beginning of a message."""

    def __init__(self, chat: ChatSession) -> None:
        self._chat = chat
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if match := _ATTACH.fullmatch(text):
            yield from self._paths.get_completions(Document(match["path"]), complete_event)
        if not _COMMAND_START.fullmatch(text):
            return
        for name, usage, summary in (*REGISTRY.list_completions(), *COMMANDS):
            if name.startswith(text.lower()):
                yield Completion(name, -len(text), display=f"{name} {usage}".rstrip(), display_meta=summary)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        for completion in self.get_completions(document, complete_event):
            yield completion
        match = _RESUME.fullmatch(document.text_before_cursor)
        if match is None:
            return
        text = match["title"]
        try:
            recent = await self._chat.view.list(limit=MAX_SESSIONS_OFFERED)
        except StoreError:  # no completions, but the message can still be sent
            return
        now = self._chat.now()
        for session in recent:
            title = clean_line(session.shown_title or "")
            if title and text.casefold() in title.casefold() and session.id != self._chat.session_id:
                yield Completion(title, -len(text), display_meta=format_relative_time(session.active_at, now))


class InputHistory(FileHistory):
    """The input history of the chat: what was sent, and what was typed but not sent.

    It is a file in the home folder that only its owner can read. If the file can't be used, the history lasts until
    the chat ends.
    """

    def __init__(self, file: Path) -> None:
        self.is_persistent = True  # everything so far is in the file
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)
            file.chmod(0o600)
        super().__init__(str(file))

    def load_history_strings(self) -> Iterable[str]:
        """Return the inputs in the file, the newest first; none if it can't be read."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError:
            self.is_persistent = False

    def save_draft(self, buffer: Buffer) -> str:
        """Add what was typed but not sent, so that the up arrow brings it back; return it (possibly empty).

        While the person looks at earlier inputs, the buffer has two texts: the earlier input, which they may have
        changed, and the draft behind it.
        """
        shown = buffer.text
        buffer.history_forward(count=sys.maxsize)
        draft = buffer.text
        known = self.get_strings()
        unsent = [text for text in (shown if shown not in known else "", draft) if text.strip()]
        for text in dict.fromkeys(unsent):
            if known[-1:] != [text]:
                self.append_string(text)
        return unsent[-1] if unsent else ""


class Screen(FeedView):
    def __init__(self, chat: ChatSession, home: Path) -> None:
        super().__init__(chat)
        self._loop = asyncio.get_running_loop()
        self._renderer = Renderer(os.environ)
        self._blocks = AnswerBlocks()
        self._session: Session | None = None  # as the status line shows it
        self._model = chat.gateway.agent.model  # that answers the next message
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()  # messages to send
        self._tail_cache: tuple[object, str] = (None, "")
        self._unsent = ""  # the draft that the last Ctrl-C cleared
        self._window_title = ""
        self._history = InputHistory(home / "history")
        self._search = SearchToolbar()
        self._input = TextArea(
            multiline=True,
            wrap_lines=True,
            completer=ChatCompleter(chat),
            complete_while_typing=True,
            history=self._history,
            accept_handler=self._queue_input,
            get_line_prefix=lambda number, wrapped: [("class:prompt", "  " if number or wrapped else "› ")],
            search_field=self._search,
            height=self._get_input_height,
            dont_extend_height=True,
        )
        self._app: Application[None] = Application(
            input=create_raw_input(),
            layout=self._build_layout(),
            key_bindings=self._build_key_bindings(),
            style=_STYLE,
            erase_when_done=True,
            min_redraw_interval=0.04,
        )

    # -- running -------------------------------------------------------------------------------------------

    async def run(self, greeting: Sequence[str], first_messages: Sequence[str] = ()) -> None:
        self._listener.follow_session()
        for text in first_messages:
            self._outgoing.put_nowait(text)
        tasks = [asyncio.create_task(self._show_feed()), asyncio.create_task(self._send_queued())]
        for task in tasks:
            task.add_done_callback(self._exit_on_error)
        try:
            await self._refresh_status()
            notices = [Piece(PieceKind.TEXT, text) for text in greeting[1:]]
            self._write(self._renderer.render([Note(greeting[0]), *notices], self._width))
            with patch_stdout(raw=True), suppress(EOFError):  # the terminal was closed
                await self._app.run_async(set_exception_handler=False)
        finally:
            unsent = self._history.save_draft(self._input.buffer) or self._unsent
            if not tasks[1].done():
                await self._outgoing.join()  # messages that were typed are stored before the chat ends
            self._listener.close()
            await cancel_tasks(tasks)
            self._set_window_title("")
            remaining: list[DisplayBlock] = [*self._blocks.end(), *self._describe_unsent(unsent)]
            if remaining:
                self._write(self._renderer.render(remaining, self._width))

    def _describe_unsent(self, unsent: str) -> list[DisplayBlock]:
        if not unsent:
            return []
        if self._history.is_persistent:
            return [Note("Your unsent message is saved. Press the up arrow in the next chat to get it back.")]
        return [Note(f"Your message was not sent, and it could not be saved:\n\n{unsent}")]

    def stop(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def show_warning(self, text: str) -> None:
        """Show a warning that belongs to no conversation; callable from any thread."""
        self._loop.call_soon_threadsafe(lambda: self._show_soon(Note(text, is_error=True)))

    def _show_soon(self, note: Note) -> None:
        self._app.create_background_task(self._show_blocks([note]))

    def _exit_on_error(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and self._app.is_running:
            self._app.exit(exception=error)

    # -- sending -------------------------------------------------------------------------------------------

    def _queue_input(self, buffer: Buffer) -> bool:
        self._unsent = ""
        if buffer.text.strip():
            self._outgoing.put_nowait(buffer.text.rstrip())
        return False

    async def _send_queued(self) -> None:
        while True:
            text = await self._outgoing.get()
            try:
                await self._show_blocks([format_own_message(text)])
                await self._show_blocks(self._present_receipt(await self._chat.send(text)))
            except PalaverError as error:
                is_lost = isinstance(error, StoreError)
                advice = " Your message was not sent. Press the up arrow to get it back." if is_lost else ""
                await self._show_blocks([Note(f"{error}{advice}", is_error=True)])
            finally:
                self._outgoing.task_done()

    def _present_receipt(self, receipt: Receipt) -> list[DisplayBlock]:
        """Follow the session that the message went to, and return the gateway's own reply."""
        self._listener.follow_session(None if receipt.seq is None else receipt.seq - 1)
        blocks: list[DisplayBlock] = []
        if receipt.reply:
            is_rejected = receipt.outcome is Outcome.REJECTED
            blocks.append(Note(receipt.reply, is_error=True) if is_rejected else Piece(PieceKind.TEXT, receipt.reply))
        if busy_notice := describe_busy_outcome(receipt):
            blocks.append(Note(busy_notice))
        return blocks

    # -- following -----------------------------------------------------------------------------------------

    async def _switch_session(self) -> None:
        await self._show_blocks(self._blocks.end())
        await super()._switch_session()
        await self._refresh_status()

    async def _show_notice(self, text: str, *, is_error: bool) -> None:
        await self._show_blocks([Note(text, is_error)])

    async def _show_item(self, item: FeedItem) -> None:
        await self._show_blocks([block for each in self._presenter.present(item) for block in self._blocks.add(each)])
        self._is_stopping = self._is_stopping and self._presenter.is_running
        if isinstance(item, TurnChanged) or (isinstance(item, EventAppended) and item.event.message is None):
            await self._refresh_status()

    async def _refresh_status(self) -> None:
        """Load the session again and redraw the status line and the title of the window."""
        with suppress(SessionNotFound, StoreError):  # the listener reports both
            self._session, self._model = await self._chat.load_session()
        title = clean_line(self._session.shown_title or "") if self._session else ""
        self._set_window_title(f"{title} · Palaver" if title else "Palaver")
        self._app.invalidate()

    def _set_window_title(self, title: str) -> None:
        if title != self._window_title:
            self._window_title = title
            self._app.output.set_title(title)
            self._app.output.flush()

    # -- showing -------------------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return self._app.output.get_size().columns

    async def _show_blocks(self, blocks: Sequence[DisplayBlock]) -> None:
        if not blocks:
            self._app.invalidate()
            return
        text = self._renderer.render(blocks, self._width)
        async with in_terminal():
            self._write(text)

    def _write(self, text: str) -> None:
        self._app.output.write_raw(f"{text}\n")
        self._app.output.flush()

    def _render_tail(self) -> ANSI:
        tail = self._blocks.tail
        width = self._width
        if self._tail_cache[0] != (tail, width):
            lines = self._renderer.render(tail, width).rstrip("\n").split("\n")
            max_lines = max(3, self._app.output.get_size().rows - RESERVED_LINES)
            self._tail_cache = ((tail, width), "\n".join(lines[-max_lines:]))
        return ANSI(self._tail_cache[1])

    def _render_status(self) -> str:
        return format_status_line(
            self._session,
            self._model,
            is_running=self._presenter.is_running,
            queued_count=self._presenter.queued_count,
            width=self._width,
        ).ljust(self._width)

    def _build_layout(self) -> Layout:
        has_tail = Condition(lambda: bool(self._blocks.tail))
        tail = Window(FormattedTextControl(self._render_tail), dont_extend_height=True, wrap_lines=False)
        gap = Window(height=1)
        status_line = Window(FormattedTextControl(self._render_status), height=1, style="class:status")
        body = HSplit([ConditionalContainer(HSplit([tail, gap]), has_tail), self._input, self._search, status_line])
        menu = Float(CompletionsMenu(max_height=MENU_LINES, scroll_offset=1), xcursor=True, ycursor=True)
        return Layout(FloatContainer(body, [menu]), focused_element=self._input)

    def _get_input_height(self) -> Dimension:
        min_lines = MENU_LINES + 1 if self._input.buffer.complete_state is not None else 1
        return Dimension(min=min_lines, max=max(MAX_INPUT_LINES, min_lines))

    # -- keys ----------------------------------------------------------------------------------------------

    def _build_key_bindings(self) -> KeyBindings:
        keys = KeyBindings()
        has_focus = Condition(lambda: get_app().layout.has_focus(self._input))
        is_empty = Condition(lambda: not self._input.text)
        keys.add("enter", filter=has_focus)(lambda event: self._input.buffer.validate_and_handle())
        for newline in (("c-j",), ("escape", "enter"), ("escape", "c-j")):
            keys.add(*newline, filter=has_focus)(lambda event: self._input.buffer.insert_text("\n"))
        keys.add("c-c")(self._on_interrupt)
        keys.add("<sigint>")(self._on_interrupt)
        keys.add("c-d", filter=has_focus & is_empty)(lambda event: event.app.exit())
        return keys

    def _on_interrupt(self, event: KeyPressEvent) -> None:
        """Handle Ctrl-C: stop the running answer or clear the input; quit on a second press. A draft is never lost."""
        if self._is_double_press():
            event.app.exit()
        elif self._presenter.is_running:
            self._is_stopping = True
            self._outgoing.put_nowait("/stop")
        elif self._input.text:
            self._unsent = self._history.save_draft(self._input.buffer)
            self._input.buffer.reset()
            if self._unsent:
                self._show_soon(Note("Input cleared. Press the up arrow to get it back, or Ctrl-C again to quit."))
        else:
            self._show_soon(Note("Press Ctrl-C again or Ctrl-D to quit"))


def create_raw_input() -> Input:
    """Create an input that stays in raw mode.

    prompt_toolkit switches to cooked mode while it prints above the prompt. The terminal would then echo an Enter
    that is pressed at that moment, and it would arrive as a line break in the input.
    """
    raw_input = create_input()
    raw_input.cooked_mode = nullcontext  # type: ignore[method-assign]
    return raw_input
