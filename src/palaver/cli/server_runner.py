"""Running the server for `palaver serve`: store, gateway and web together, signals, and what the terminal prints."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import webbrowser
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from palaver import __version__
from palaver.app import make_gateway, make_web_state, open_store
from palaver.cli.malloc import return_freed_memory
from palaver.cli.output import clean_line
from palaver.cli.running_servers import announce_server, find_running_server
from palaver.domain.errors import ConfigError
from palaver.logs import configure_logging
from palaver.services.accounts.accounts import Accounts
from palaver.services.cleanup import Cleanup
from palaver.web.app import create_app
from palaver.web.connections import raise_open_file_limit
from palaver.web.server import open_socket, run_server

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Iterator

    from palaver.config import Settings
    from palaver.services.gateway import Gateway
    from palaver.web.state import WebState

SHUTDOWN_GRACE_SECONDS = 20.0  # how long running turns may go on after the server was told to stop

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options of `palaver serve`; None means that the settings decide."""

    host: str | None
    port: int | None
    open_browser: bool | None  # None: only at a terminal with a screen
    print_link: bool  # print a sign-in link although the owner has a password or a passkey


def serve_until_stopped(settings: Settings, options: ServeOptions) -> int:
    """Serve until SIGINT or SIGTERM and return the exit code."""
    if options.print_link and (url := find_running_server(settings.home, options.port)) is not None:
        return asyncio.run(_print_link_to_running_server(settings, url))
    return_freed_memory()
    configure_logging()
    raise_open_file_limit()
    with open_store(settings) as store:
        return asyncio.run(_serve(make_gateway(store, settings, os.environ), settings, options))


async def _serve(gateway: Gateway, settings: Settings, options: ServeOptions) -> int:
    host = settings.web.host if options.host is None else options.host
    port = settings.web.port if options.port is None else options.port
    web = make_web_state(gateway, settings.web)
    if not await web.accounts.can_listen_on(host):
        raise ConfigError(
            f"Other machines can reach {host}, but no owner has a password or a passkey yet."
            " Set a password with `palaver people password`, then start the server again.",
            host=host,
        )
    try:
        await asyncio.to_thread(web.attachments.check_folder)
    except ConfigError as error:  # conversations work without it
        log.warning("attachments_unavailable", extra={"error": str(error)})
    server_socket = open_socket(host, port)
    stop_requested = asyncio.Event()
    with _stop_on_signals(stop_requested), contextlib.closing(server_socket):
        async with gateway.run(SHUTDOWN_GRACE_SECONDS):
            await web.live.start()
            async with run_server(
                create_app(web),
                server_socket,
                before_stop=web.live.stop,
                trusted_proxies=web.trusted_proxies,
            ) as bound_port:
                url = _build_page_url(settings, host, bound_port, server_socket)
                with announce_server(settings.home, bound_port, url):
                    await _print_welcome(web, url, options)
                    log.info("server_ready", extra={"address": url, "version": __version__})
                    _set_garbage_collector()
                    async with _clean_up_regularly(web):
                        await stop_requested.wait()
                log.info("server_stopping")
    log.info("server_stopped")
    return 0


@contextlib.asynccontextmanager
async def _clean_up_regularly(web: WebState) -> AsyncIterator[None]:
    """Delete what is no longer needed now and then, as long as the server runs."""
    cleanup = asyncio.create_task(Cleanup(web.gateway.store, web.attachments).run(), name="palaver-cleanup")
    try:
        yield
    finally:
        cleanup.cancel()
        await asyncio.gather(cleanup, return_exceptions=True)


def _build_page_url(settings: Settings, host: str, port: int, server_socket: socket.socket) -> str:
    """Return the configured public URL, or else the URL that a browser on this machine uses."""
    if settings.web.public_url:
        return settings.web.public_url.rstrip("/")
    bound_host = server_socket.getsockname()[0]
    is_local = bound_host in {"127.0.0.1", "::1", "0.0.0.0", "::"}  # noqa: S104  (compared, not bound)
    url_host = "localhost" if is_local else host  # a name, because passkeys belong to names
    return f"http://[{url_host}]:{port}" if ":" in url_host else f"http://{url_host}:{port}"


async def _print_welcome(web: WebState, url: str, options: ServeOptions) -> None:
    """Print the address, and a sign-in link while the owner has no password or passkey."""
    click.echo(f"Palaver {__version__} is running at {url}")
    click.echo(clean_line(web.gateway.agent.description))
    for platform in web.gateway.unconnected_platforms:
        click.echo(f"{platform.label} is set up but not connected: messages there are neither received nor sent.")
    if options.print_link or not await web.accounts.can_owner_sign_in():
        url = await _print_link(web.accounts, url)
    sys.stdout.flush()
    if options.open_browser if options.open_browser is not None else _should_open_browser():
        await asyncio.to_thread(webbrowser.open, url)


async def _print_link(accounts: Accounts, url: str) -> str:
    """Print a new sign-in link for the owner, and return it."""
    link = f"{url}/sign-in#{await accounts.create_owner_link()}"
    click.echo(f"Sign in with this link. It works once, within 15 minutes:\n\n  {link}\n")
    return link


async def _print_link_to_running_server(settings: Settings, url: str) -> int:
    """Print a sign-in link to a server that runs in another process on the same database."""
    with open_store(settings) as store:
        click.echo(f"Palaver is already running at {url}")
        await _print_link(Accounts(store), url)
    return 0


def _set_garbage_collector() -> None:
    """Leave out everything that the start has created: it stays.

    A full collection waits until the garbage is a quarter of all objects. Without the many that stay, it comes sooner,
    and less memory is needed.
    """
    gc.collect()
    gc.freeze()


def _should_open_browser() -> bool:
    """Return whether a person sits at this terminal and has a screen."""
    return sys.stdout.isatty() and (sys.platform == "darwin" or bool(os.environ.get("DISPLAY")))


@contextlib.contextmanager
def _stop_on_signals(stop_requested: asyncio.Event) -> Iterator[None]:
    """Set the event on SIGINT or SIGTERM; a second signal ends the process at once."""
    loop = asyncio.get_running_loop()

    def request_stop() -> None:
        stop_requested.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, request_stop)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
