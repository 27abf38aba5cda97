"""Running a talk: the store and the gateway around it, signals, warnings, and how it ends.

The terminal is a gateway of its own while it is open: it answers what waits in the store, whoever asked, and what it
has not finished when it leaves is left for whoever comes next.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from palaver import __version__
from palaver.app import make_gateway, open_store
from palaver.cli.chat import Way
from palaver.cli.chat.chat_session import Talk
from palaver.cli.errors import AnswerStopped, exit_code_for, say_error
from palaver.cli.output import hint, line, on_terminal
from palaver.domain.errors import PalaverError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from palaver.cli.chat import Wanted
    from palaver.cli.chat.one_shot import Once, Out
    from palaver.config import Settings
    from palaver.services.gateway import Gateway

T = TypeVar("T")

PATIENCE = 2.0  # seconds that answers under way are given when we leave
KEPT = "Palaver was told to end; the message is kept, and answered when Palaver runs next"


class Sitting(Protocol):
    """A talk with a person."""

    @property
    def answering(self) -> bool:
        """Whether an answer is being given or waited for."""
        ...

    async def run(self, greeting: Sequence[str], first: Sequence[str] = ()) -> None:
        """Talk until the person leaves."""
        ...

    def leave(self) -> None:
        """End the talk, from outside."""
        ...

    def warn(self, text: str) -> None:
        """Say something that concerns no conversation, from any thread."""
        ...


def run(settings: Settings, wanted: Wanted, first: Sequence[str]) -> int:
    """Talk; the exit code."""
    with open_store(settings) as store:
        return asyncio.run(_run(make_gateway(store, settings, os.environ), settings, wanted, first))


async def _run(gateway: Gateway, settings: Settings, wanted: Wanted, first: Sequence[str]) -> int:
    with _warnings_to(lambda text: click.echo(f"warning: {text}", err=True)):
        async with gateway.running(PATIENCE):
            talk = Talk(gateway, await gateway.store.aio.owner())
            began = await talk.begin(wanted.start, wanted.resume)
            match wanted.way:
                case Way.ONCE:
                    return await _once(talk, wanted)
                case Way.PIPE:
                    return await _pipe(talk, wanted)
                case _:
                    return await _sit(talk, settings, wanted, began, first)


# ---- with a person -----------------------------------------------------------------------------------------


async def _sit(talk: Talk, settings: Settings, wanted: Wanted, began: str, first: Sequence[str]) -> int:
    sitting: Sitting
    if wanted.way is Way.SCREEN:
        from palaver.cli.chat.screen import Screen

        sitting = Screen(talk, settings.home)
        signals = {signal.SIGTERM: sitting.leave, signal.SIGHUP: sitting.leave}
    else:
        from palaver.cli.chat.line_mode import Lines

        sitting = lines = Lines(talk)
        signals = {signal.SIGTERM: lines.leave, signal.SIGHUP: lines.leave, signal.SIGINT: lines.interrupt}
    greeting = [f"Palaver {__version__} · {line(talk.gateway.agent.description)} · /help lists commands, Ctrl-D leaves"]
    if began:
        greeting.append(began)
    with _handling(signals), _warnings_to(sitting.warn):
        await sitting.run(greeting, first)
    if sitting.answering:
        hint("an answer was under way; what is not finished goes on when Palaver runs next")
    return 0


# ---- for scripts -------------------------------------------------------------------------------------------


async def _once(talk: Talk, wanted: Wanted) -> int:
    from palaver.cli.chat.one_shot import Once, say_answer_json

    once = Once(talk, _out(wanted))
    answer = await _Interrupts(once).run(once.ask(wanted.message or ""))
    if wanted.as_json:
        await say_answer_json(answer, talk)
    answer.check()
    return 0


async def _pipe(talk: Talk, wanted: Wanted) -> int:
    from palaver.cli.chat.one_shot import Once

    once = Once(talk, _out(wanted))
    interrupts = _Interrupts(once)
    return await interrupts.run(_each_line(once, interrupts))


async def _each_line(once: Once, interrupts: _Interrupts) -> int:
    from palaver.cli.chat.line_mode import Typed

    code = 0
    async for text in Typed():
        try:
            (await once.ask(text)).check()
        except StoreError:
            raise
        except PalaverError as error:
            say_error(error)
            code = exit_code_for(error)
        if interrupts.pressed:
            break
    return code


class _Interrupts:
    """Ctrl-C, and the wish of the system that we end, while a script waits for an answer."""

    def __init__(self, once: Once) -> None:
        self.pressed = False  # Ctrl-C
        self._told = False  # to end
        self._once = once
        self._work: asyncio.Task[Any] | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do this; Ctrl-C stops the answer that is being given and ends as everywhere, with 130."""
        self._work = asyncio.create_task(work)
        with _handling({signal.SIGINT: self._press, signal.SIGTERM: self._end, signal.SIGHUP: self._end}):
            try:
                result: T = await self._work
            except asyncio.CancelledError:
                if self.pressed:
                    raise click.Abort from None
                if self._told:
                    raise AnswerStopped(KEPT) from None
                raise
            finally:
                self._once.close()
        if self.pressed:
            raise click.Abort
        return result

    def _press(self) -> None:
        if self.pressed or self._once.running is None:
            self._leave()
        else:
            self._stopping = asyncio.create_task(self._once.stop())
        self.pressed = True

    def _end(self) -> None:
        self._told = True
        self._leave()

    def _leave(self) -> None:
        if self._work is not None:
            self._work.cancel()


def _out(wanted: Wanted) -> Out:
    from palaver.cli.chat.one_shot import Nowhere, Plain

    if wanted.as_json:
        return Nowhere()
    if wanted.way is Way.ONCE and on_terminal() and os.environ.get("TERM", "dumb") not in {"", "dumb"}:
        from palaver.cli.chat.live_renderer import Painted

        return Painted(quiet=wanted.quiet)
    return Plain(quiet=wanted.quiet)


# ---- around it ---------------------------------------------------------------------------------------------


@contextmanager
def _handling(signals: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """React to signals inside the block; one that we were started to ignore stays ignored."""
    loop = asyncio.get_running_loop()
    heeded = [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]
    for each in heeded:
        loop.add_signal_handler(each, signals[each])
    try:
        yield
    finally:
        for each in heeded:
            loop.remove_signal_handler(each)


class _Warnings(logging.Handler):
    """Hands warnings to whoever shows them."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Say it on one line."""
        self._say(line(record.getMessage()))


@contextmanager
def _warnings_to(say: Callable[[str], None]) -> Iterator[None]:
    """Inside the block warnings are said this way, and nothing less is."""
    root = logging.getLogger()
    before = root.handlers
    root.handlers = [_Warnings(say)]
    try:
        yield
    finally:
        root.handlers = before
