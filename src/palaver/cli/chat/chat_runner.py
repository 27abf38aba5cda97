"""Running `palaver chat`: the store and the gateway, signals, warnings, and the exit code.

The terminal is a gateway of its own while it is open: it answers every turn that is queued in the store, for all
people. The next Palaver process continues what is unfinished when the terminal closes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import click

from palaver import __version__
from palaver.app import choose_agent_for, close_store_at_end, load_stored_settings, make_gateway, make_live_settings
from palaver.cli.chat import ChatMode, ChatOptions
from palaver.cli.chat.chat_session import ChatSession
from palaver.cli.errors import AnswerStopped
from palaver.cli.options import open_store
from palaver.cli.output import clean_line, print_hint, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from palaver.cli.chat.line_mode import LineMode
    from palaver.cli.chat.one_shot import Answer, OneShot
    from palaver.cli.chat.screen import Screen
    from palaver.config import Settings
    from palaver.gateway.gateway import Gateway
    from palaver.settings.live_settings import LiveSettings

T = TypeVar("T")

SHUTDOWN_GRACE_SECONDS = 2.0  # how long running turns may go on after the person has left
MESSAGE_SAVED_TEXT = "Palaver was told to stop. Your message is saved and will be answered when Palaver runs again."


def run_chat(settings: Settings, options: ChatOptions, first_messages: Sequence[str]) -> int:
    with open_store(settings) as store:
        loaded = load_stored_settings(store, settings)
        agent = choose_agent_for(loaded, settings)
        gateway = make_gateway(store, loaded.settings, os.environ, agent=agent)
        live_settings = make_live_settings(gateway, settings, loaded)
        return asyncio.run(_run_with_gateway(gateway, live_settings, options, first_messages))


async def _run_with_gateway(
    gateway: Gateway, live_settings: LiveSettings, options: ChatOptions, first_messages: Sequence[str]
) -> int:
    settings = live_settings.current.settings
    with _redirect_warnings(lambda text: click.echo(f"warning: {text}", err=True)):
        async with (
            close_store_at_end(gateway.store),
            gateway.run(SHUTDOWN_GRACE_SECONDS),
            live_settings.follow(gateway.feed),
        ):
            if options.is_temporary:
                return await _run_temporary(gateway, options)
            chat = ChatSession(gateway, await gateway.store.aio.get_owner())
            notice = await chat.choose_session(options.start, options.resume)
            for path in options.files:
                await chat.files.add(path)
            notice = "\n\n".join(filter(None, [notice, *await chat.apply_choices(options), chat.files.describe()]))
            match options.mode:
                case ChatMode.ONE_SHOT:
                    return await _run_one_shot(chat, options)
                case ChatMode.PIPE:
                    return await _run_pipe(chat, options)
                case _:
                    return await _run_interactive(chat, settings, options, notice, first_messages)


# ---- interactive -------------------------------------------------------------------------------------------


async def _run_interactive(
    chat: ChatSession, settings: Settings, options: ChatOptions, notice: str, first_messages: Sequence[str]
) -> int:
    interactive: Screen | LineMode
    if options.mode is ChatMode.SCREEN:
        from palaver.cli.chat.screen import Screen

        interactive = Screen(chat, settings.home)
        signals = {}
    else:
        from palaver.cli.chat.line_mode import LineMode

        interactive = line_mode = LineMode(chat)
        signals = {signal.SIGINT: line_mode.interrupt}
    signals |= {signal.SIGTERM: interactive.stop, signal.SIGHUP: interactive.stop}
    agent = clean_line(chat.gateway.agent.description)
    greeting = [f"Palaver {__version__} · {agent} · /help for commands, Ctrl-D to quit", *([notice] if notice else [])]
    with _handle_signals(signals), _redirect_warnings(interactive.show_warning):
        await interactive.run(greeting, first_messages)
    if interactive.is_answering:
        print_hint("An answer was still running. It continues when Palaver runs again.")
    return 0


# ---- temporary -----------------------------------------------------------------------------------------------


async def _run_temporary(gateway: Gateway, options: ChatOptions) -> int:
    from palaver.cli.chat import temporary
    from palaver.cli.chat.line_mode import StdinLines
    from palaver.cli.chat.one_shot import ask_lines, choose_output

    output = choose_output(options)
    chat = temporary.TemporaryTerminalChat(gateway, await gateway.store.aio.get_owner(), options, output)
    main_task = asyncio.current_task()
    assert main_task is not None  # noqa: S101  (this is a coroutine)

    def interrupt() -> None:
        if options.mode in {ChatMode.SCREEN, ChatMode.LINES} and chat.is_answering:
            chat.stop()
        else:
            main_task.cancel()

    try:
        with _handle_signals(
            {signal.SIGINT: interrupt, signal.SIGTERM: main_task.cancel, signal.SIGHUP: main_task.cancel}
        ):
            if options.mode is ChatMode.ONE_SHOT:
                return _finish_one_shot(await chat.ask(options.message or ""), options)
            if not options.quiet:
                print_hint(temporary.BANNER)
            is_screen = options.mode is ChatMode.SCREEN
            code = await ask_lines(chat.ask, temporary.read_prompt_lines() if is_screen else aiter(StdinLines()))
            return code if options.mode is ChatMode.PIPE else 0  # a person at a terminal was told
    except asyncio.CancelledError:
        main_task.uncancel()
        raise click.Abort from None
    finally:
        output.end()


# ---- for scripts -------------------------------------------------------------------------------------------


async def _run_one_shot(chat: ChatSession, options: ChatOptions) -> int:
    from palaver.cli.chat.one_shot import OneShot, choose_output

    one_shot = OneShot(chat, choose_output(options))
    answer = await _SignalHandling(one_shot).run(one_shot.ask(options.message or ""))
    if options.as_json and answer.session_id is not None:
        answer.usage = (await chat.view.get(answer.session_id)).usage.to_dict()
    return _finish_one_shot(answer, options)


def _finish_one_shot(answer: Answer, options: ChatOptions) -> int:
    if options.as_json:
        print_json(asdict(answer))
    answer.raise_for_state()
    return 0


async def _run_pipe(chat: ChatSession, options: ChatOptions) -> int:
    from palaver.cli.chat.line_mode import StdinLines
    from palaver.cli.chat.one_shot import OneShot, ask_lines, choose_output

    one_shot = OneShot(chat, choose_output(options))
    signal_handling = _SignalHandling(one_shot)
    asking = ask_lines(one_shot.ask, aiter(StdinLines()), is_over=lambda: signal_handling.interrupted)
    return await signal_handling.run(asking)


class _SignalHandling:
    """Reacts to Ctrl-C, SIGTERM and SIGHUP while a script waits for an answer."""

    def __init__(self, one_shot: OneShot) -> None:
        self.interrupted = False  # by Ctrl-C
        self._is_terminated = False  # by SIGTERM or SIGHUP
        self._one_shot = one_shot
        self._stop_task: asyncio.Task[None] | None = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine; Ctrl-C stops the running answer and raises `click.Abort` (exit code 130)."""
        task = asyncio.create_task(work)

        def interrupt() -> None:
            if self.interrupted or self._one_shot.running_turn_id is None:
                task.cancel()
            else:
                self._stop_task = asyncio.create_task(self._one_shot.stop_answer())
            self.interrupted = True

        def terminate() -> None:
            self._is_terminated = True
            task.cancel()

        with _handle_signals({signal.SIGINT: interrupt, signal.SIGTERM: terminate, signal.SIGHUP: terminate}):
            try:
                result = await task
            except asyncio.CancelledError:
                if self.interrupted:
                    raise click.Abort from None
                if self._is_terminated:
                    raise AnswerStopped(MESSAGE_SAVED_TEXT) from None
                raise
            finally:
                self._one_shot.close()
        if self.interrupted:
            raise click.Abort
        return result


# ---- signals and warnings ----------------------------------------------------------------------------------


@contextmanager
def _handle_signals(handlers: Mapping[signal.Signals, Callable[[], object]]) -> Iterator[None]:
    """Handle signals inside the block; a signal that this process was started to ignore stays ignored."""
    loop = asyncio.get_running_loop()
    handled = [number for number in handlers if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handled:
        loop.add_signal_handler(number, handlers[number])
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


class _WarningHandler(logging.Handler):
    """Passes warnings on as one line of text each."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == "turn_failed":  # the chat shows it with the conversation
            return
        self._show(clean_line(_format_log_record(record)))


_STANDARD_LOG_FIELDS = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}


def _format_log_record(record: logging.LogRecord) -> str:
    """Format an event with its fields: `delivery_uncertain, platform="slack"` becomes a line for a person."""
    fields = {name: value for name, value in record.__dict__.items() if name not in _STANDARD_LOG_FIELDS}
    details = ", ".join(f"{name}: {value}" for name, value in fields.items())
    message = record.getMessage()
    if " " not in message:
        message = message.replace("_", " ").replace(".", " ")
    return f"{message} ({details})" if details else message


@contextmanager
def _redirect_warnings(show: Callable[[str], None]) -> Iterator[None]:
    """Inside the block, pass warnings to `show` and drop all other log records."""
    root = logging.getLogger()
    before = root.handlers
    root.handlers = [_WarningHandler(show)]
    try:
        yield
    finally:
        root.handlers = before
