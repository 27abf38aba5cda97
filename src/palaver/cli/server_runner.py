"""Running a server: the store, the gateway and the web around each other, signals, and what the terminal is told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import webbrowser
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from palaver import __version__
from palaver.app import make_gateway, make_web, open_store
from palaver.cli.output import line
from palaver.domain.errors import ConfigError
from palaver.logs import configure_logs
from palaver.web.app import create_app
from palaver.web.server import listen, serving

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Iterator

    from palaver.config import Settings
    from palaver.services.gateway import Gateway
    from palaver.web.state import WebState

PATIENCE = 20.0  # seconds that answers under way are given when we stop

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line asks for; None is what the settings say."""

    host: str | None
    port: int | None
    opens: bool | None  # the page, in a browser
    link: bool  # that signs the owner in, also when they have another way


def run(settings: Settings, wanted: Wanted) -> int:
    """Serve until a signal comes; the exit code."""
    configure_logs()
    with open_store(settings) as store:
        return asyncio.run(_run(make_gateway(store, settings, os.environ), settings, wanted))


async def _run(gateway: Gateway, settings: Settings, wanted: Wanted) -> int:
    host = settings.web.host if wanted.host is None else wanted.host
    port = settings.web.port if wanted.port is None else wanted.port
    web = make_web(gateway, settings)
    if not await web.accounts.may_bind(host):
        raise ConfigError(
            f"{host} can be reached from other machines, and nobody who owns this gateway has a password or a passkey."
            " `palaver people password` sets one; then it may listen there.",
            host=host,
        )
    listening = listen(host, port)
    ended = asyncio.Event()
    with _signals(ended), contextlib.closing(listening):
        async with gateway.running(PATIENCE):
            await web.live.start()
            async with serving(create_app(web), listening, before_stop=web.live.stop) as bound:
                address = _address(settings, host, bound, listening)
                await _greet(web, address, wanted)
                log.info("serve.ready", extra={"address": address, "version": __version__})
                async with _upkeep(web):
                    await ended.wait()
                log.info("serve.stopping")
    log.info("serve.stopped")
    return 0


@contextlib.asynccontextmanager
async def _upkeep(web: WebState) -> AsyncIterator[None]:
    """What is done now and then as long as a server runs."""
    tidying = asyncio.create_task(web.files.keep_tidy(), name="palaver-tidy")
    try:
        yield
    finally:
        tidying.cancel()
        await asyncio.gather(tidying, return_exceptions=True)


def _address(settings: Settings, host: str, port: int, listening: socket.socket) -> str:
    """How a browser on this machine reaches the page, or how people do from outside when that is known."""
    if settings.web.public_url:
        return settings.web.public_url.rstrip("/")
    is_here = listening.getsockname()[0] in {"127.0.0.1", "::1", "0.0.0.0", "::"}  # noqa: S104  (compared, not bound)
    shown = "localhost" if is_here else host  # a name, because passkeys belong to names
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


async def _greet(web: WebState, address: str, wanted: Wanted) -> None:
    """Say where it is, and how the owner gets in as long as they have no way of their own."""
    click.echo(f"Palaver {__version__} is at {address}")
    click.echo(line(web.gateway.agent.description))
    opened = address
    if wanted.link or not await web.accounts.owner_is_set_up():
        opened = f"{address}/sign-in#{await web.accounts.owner_link()}"
        click.echo(f"Sign in with this link; it works once, for 15 minutes:\n\n  {opened}\n")
    sys.stdout.flush()
    if wanted.opens if wanted.opens is not None else _has_browser():
        await asyncio.to_thread(webbrowser.open, opened)


def _has_browser() -> bool:
    """Whether somebody sits here who would see it."""
    return sys.stdout.isatty() and (sys.platform == "darwin" or bool(os.environ.get("DISPLAY")))


@contextlib.contextmanager
def _signals(ended: asyncio.Event) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the server; a second one ends the process at once."""
    loop = asyncio.get_running_loop()

    def asked() -> None:
        ended.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
