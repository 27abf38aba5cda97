"""Running the server for `palaver serve`: store, gateway and web together, signals, and what the terminal prints."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from palaver import __version__
from palaver.accounts.accounts import Accounts
from palaver.app import (
    choose_agent_for,
    close_store_at_end,
    list_accounts,
    load_stored_settings,
    make_backup_scheduler,
    make_gateway,
    make_live_settings,
    make_web_state,
    open_store,
    use_accounts,
)
from palaver.cli.output import clean_line
from palaver.cli.running_servers import RunningServer, announce_server, describe_port_user, find_running_server
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Upgrade
from palaver.core.errors import ConfigError, PortInUse
from palaver.core.invocation import format_command
from palaver.core.logs import configure_logging
from palaver.core.tasks import cancel_tasks
from palaver.delivery.model import format_account
from palaver.operation.cleanup import Cleanup
from palaver.people.model import is_loopback
from palaver.settings.live_settings import LiveSettings, log_problems
from palaver.web.app import create_app
from palaver.web.http_protocol import raise_open_file_limit
from palaver.web.server import run_server
from palaver.web.sockets import DEFAULT_PORT, open_socket, open_socket_on_free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from palaver.config import Settings
    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.gateway.gateway import Gateway
    from palaver.sessions.store import SessionStore
    from palaver.settings.reader import LoadedSettings
    from palaver.web.state import WebState


_TRIM_THRESHOLD: Final = -1  # parameters of mallopt
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
MAX_ARENAS: Final = 2
LARGE_BLOCK_BYTES: Final = 256 * 1024  # blocks of this size are returned to the system as soon as they are freed
_GARBAGE_THRESHOLDS: Final = (700, 10)  # as Python 3.11 has them
_ANY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104  (compared, not bound)
_TEST_NETWORK_ADDRESS = "192.0.2.1"  # of a network for documentation, which no machine is in
SHUTDOWN_GRACE_SECONDS = 20.0  # how long running turns may go on after the server was told to stop
# A request takes the interpreter lock several times. Each time that a thread makes an export or reads an import, the
# event loop waits for this interval, which is 5 ms by default.
THREAD_SWITCH_SECONDS = 0.0005

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options of `palaver serve`; None means that the settings decide."""

    host: str | None
    port: int | None
    open_browser: bool | None  # None: only at a terminal with a screen
    print_link: bool  # print a sign-in link although the owner has a password or a passkey


def serve_until_stopped(base: Settings, options: ServeOptions) -> int:
    """Serve until SIGINT or SIGTERM and return the exit code.

    A second server on the same home folder starts only if its port was chosen.
    """
    with open_store(base, upgrade=Upgrade.TAKE_OVER) as store:
        loaded = load_stored_settings(store, base)
        settings = loaded.settings
        is_port_chosen = options.port is not None or settings.web.port is not None
        if options.print_link or not is_port_chosen:
            running = find_running_server(settings.home, options.port)
            if running is not None:
                return asyncio.run(_show_running_server(store, options, running))
        return_freed_memory()
        sys.setswitchinterval(THREAD_SWITCH_SECONDS)
        configure_logging()
        raise_open_file_limit()
        log_problems(loaded)
        accounts = list_accounts(loaded)
        use_accounts(store, settings, accounts)
        agent = choose_agent_for(loaded, base)
        gateway = make_gateway(store, settings, os.environ, accounts, is_server=True, agent=agent)
        live_settings = make_live_settings(gateway, base, loaded)
        return asyncio.run(_serve(gateway, accounts, live_settings, options))


async def _serve(
    gateway: Gateway, accounts: Sequence[ConfiguredAccount], live_settings: LiveSettings, options: ServeOptions
) -> int:
    settings = live_settings.current.settings
    host = settings.web.host if options.host is None else options.host
    port = settings.web.port if options.port is None else options.port
    web = make_web_state(gateway, settings.web, live_settings)
    if not await web.accounts.can_listen_on(host):
        raise ConfigError(
            f"Other machines can reach {host}, but no owner has a password or a passkey yet."
            f" Set a password with `{format_command('people password')}`, then start the server again.",
            host=host,
        )
    try:
        await asyncio.to_thread(web.attachments.check_folder)
    except ConfigError as error:  # conversations work without it
        log.warning("attachments_unavailable", extra={"error": str(error)})
    server_socket = open_server_socket(settings, host, port)
    server = build_server_urls(settings, host, server_socket)
    web = replace(web, network_url=server.network_url)
    stop_requested = asyncio.Event()
    with _stop_on_signals(stop_requested), contextlib.closing(server_socket):
        async with (
            close_store_at_end(gateway.store),
            gateway.run(SHUTDOWN_GRACE_SECONDS),
            live_settings.follow(gateway.feed),
        ):
            await web.live.start()
            await web.imports.start()
            async with run_server(
                create_app(web),
                server_socket,
                before_stop=web.close_streams,
                trusted_proxies=web.trusted_proxies,
            ) as bound_port:
                with announce_server(settings.home, bound_port, server):
                    if port is None and (reason := explain_other_port(bound_port)) is not None:
                        click.echo(reason)
                    await _print_welcome(web, accounts, server, options)
                    log.info("server_ready", extra={"address": server.url, "version": __version__})
                    _start_garbage_collector()
                    async with _clean_up_regularly(web), _back_up_regularly(web, settings):
                        await stop_requested.wait()
                log.info("server_stopping")
    log.info("server_stopped")
    return 0


@contextlib.asynccontextmanager
async def _clean_up_regularly(web: WebState) -> AsyncIterator[None]:
    cleanup = Cleanup(web.gateway.store, web.attachments, lambda: web.gateway.rules, web.gateway.outputs)
    task = asyncio.create_task(cleanup.run(), name="palaver-cleanup")
    try:
        yield
    finally:
        await cancel_tasks([task])


@contextlib.asynccontextmanager
async def _back_up_regularly(web: WebState, settings: Settings) -> AsyncIterator[None]:
    rules, backups = settings.backup, _start_backups(web, settings)

    def restart(loaded: LoadedSettings) -> None:
        nonlocal rules, backups
        if loaded.settings.backup != rules:
            rules = loaded.settings.backup
            if backups is not None:
                backups.cancel()
            backups = _start_backups(web, loaded.settings)

    web.settings.add_listener(restart)
    try:
        yield
    finally:
        await cancel_tasks([backups] if backups is not None else [])


def _start_backups(web: WebState, settings: Settings) -> asyncio.Task[None] | None:
    scheduler = make_backup_scheduler(web.gateway.store, settings)
    return None if scheduler is None else asyncio.create_task(scheduler.run(), name="palaver-backups")


async def _print_welcome(
    web: WebState, accounts: Sequence[ConfiguredAccount], server: RunningServer, options: ServeOptions
) -> None:
    """Print the address, what is connected, and a sign-in link while the owner has no password or passkey."""
    click.echo(f"Palaver {__version__} is running at {server.url}")
    if server.network_url is not None:
        click.echo(f"Other machines in your network reach it at {server.network_url}")
    click.echo(clean_line(web.gateway.agent.description))
    connecting = [format_account(*account.key) for account in accounts if account.problem is None]
    if connecting:
        click.echo(f"Connecting to {', '.join(connecting)}; see `{format_command('platforms')}`")
    for account in accounts:
        if account.problem is not None:
            click.echo(f"{format_account(*account.key)} can't be connected. {clean_line(account.problem)}")
    await _open_page(web.accounts, server.url, options)


async def _show_running_server(store: SessionStore, options: ServeOptions, server: RunningServer) -> int:
    """Lead the person to a server that runs in another process on the same database."""
    click.echo(f"Palaver is already running at {server.url}")
    if not options.print_link:
        click.echo("To start a second server on the same data, choose a port with --port.")
    await _open_page(Accounts(store), server.url, options)
    return 0


async def _open_page(accounts: Accounts, url: str, options: ServeOptions) -> None:
    """Print a sign-in link for the owner if they need or want one, and open the page if a person sits here."""
    if options.print_link or not await accounts.can_owner_sign_in():
        url = f"{url}/sign-in#{await accounts.create_owner_link()}"
        click.echo(f"Sign in with this link. It works once, within 15 minutes:\n\n  {url}\n")
    sys.stdout.flush()
    if options.open_browser if options.open_browser is not None else _should_open_browser():
        import webbrowser

        await asyncio.to_thread(webbrowser.open, url)


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


# ---- memory ------------------------------------------------------------------------------------------------


def return_freed_memory() -> None:
    """Let freed memory go back to the system, where the C library is glibc.

    By default every thread gets a part of the heap of its own, and the parts keep what they once needed: a server whose
    threads take turns with large requests grows for hours. Two parts are enough, because Python runs one thread at a
    time. Must be called before threads start.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for parameter, value in (
            (_ARENA_MAX, MAX_ARENAS),
            (_MMAP_THRESHOLD, LARGE_BLOCK_BYTES),
            (_TRIM_THRESHOLD, LARGE_BLOCK_BYTES),
        ):
            mallopt(parameter, value)


def _start_garbage_collector() -> None:
    """Collect garbage more often from now on, and leave out everything that the start has created: it stays.

    A full collection waits until the garbage is a quarter of all objects. Without the many that stay, it comes sooner,
    and less memory is needed. Half a megabyte of garbage stays with them; to find it would delay the first requests.
    """
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


# ---- the address that the server listens on -----------------------------------------------------------------


def open_server_socket(settings: Settings, host: str, port: int | None) -> socket.socket:
    """Open the socket on this port; without one, on the default port or the next that is free.

    Raises `PortInUse` with the program that uses the port.
    """
    if port is None:
        return open_socket_on_free_port(host)
    try:
        return open_socket(host, port)
    except PortInUse:
        raise PortInUse(_explain_used_port(settings, port), host=host, port=port) from None


def _explain_used_port(settings: Settings, port: int) -> str:
    running = find_running_server(settings.home, port)
    if running is not None:
        link_command = format_command(f"serve --link --port {port}")
        return (
            f"Palaver is already running at {running.url}. For a sign-in link to it, run `{link_command}`."
            " To start a second server on the same data, choose another port with --port."
        )
    user = describe_port_user(port)
    return (
        f"Port {port} is already in use by {user or 'another program'}. Stop that program, or choose another port"
        " with --port or the setting web.port; --port 0 picks a free one."
    )


def explain_other_port(port: int) -> str | None:
    """Say why a server without a configured port uses this one; None if it is the default port."""
    if port == DEFAULT_PORT:
        return None
    user = describe_port_user(DEFAULT_PORT)
    return f"Port {DEFAULT_PORT} is already in use by {user or 'another program'}, so Palaver uses port {port}."


def build_server_urls(settings: Settings, host: str, server_socket: socket.socket) -> RunningServer:
    """Return the URLs of a server: the configured one, or else those that its socket answers to."""
    if settings.web.public_url:
        return RunningServer(url=settings.web.public_url.rstrip("/"), network_url=None)
    bound_host, port = server_socket.getsockname()[:2]
    if is_loopback(bound_host):
        return RunningServer(url=_format_url("localhost", port), network_url=None)  # passkeys belong to names
    if bound_host not in _ANY_ADDRESS:
        return RunningServer(url=_format_url(host, port), network_url=_format_url(bound_host, port))
    address = find_network_address()
    return RunningServer(
        url=_format_url("localhost", port), network_url=None if address is None else _format_url(address, port)
    )


def find_network_address() -> str | None:
    """Return the address under which other machines in the network reach this one; None if it is in no network."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((_TEST_NETWORK_ADDRESS, 9))  # sends nothing: the system only chooses the address to send from
            address: str = probe.getsockname()[0]
    except OSError:
        return None
    return None if is_loopback(address) or address in _ANY_ADDRESS else address


def _format_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
