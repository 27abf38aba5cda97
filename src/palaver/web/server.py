"""The HTTP server: uvicorn inside our own event loop.

We open the socket ourselves (`sockets.py`), and accept the connections ourselves: the number of connections is limited
(`Connections`), and a process that can open no more files pauses, where asyncio would try and log the same error
thousands of times a second. The server ignores signals; the code that runs the process handles them. A server without
requests never wakes up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING, Final

import uvicorn

from palaver.people.model import group_ip_address
from palaver.web.guard import TrustedProxies
from palaver.web.http_protocol import ConnectionLimits, Connections, HttpProtocol, Timeouts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from fastapi import FastAPI

SHUTDOWN_GRACE_SECONDS = 5  # how long open requests may take to finish when the server stops
_SHUTDOWN_POLL_SECONDS = 0.01
ACCEPTS_PER_ROUND = 64  # connections accepted before other work gets its turn
ACCEPT_RETRY_SECONDS = 0.5  # pause when the process can open no more files
_GIVE_UP_SECONDS = 0.05  # pause when it closes a connection for that reason
_TOO_MANY_CONNECTIONS: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 27\r\n"
    b"Retry-After: 5\r\nConnection: close\r\n\r\nToo many open connections.\n"
)

log = logging.getLogger(__name__)


class _EmbeddedServer(uvicorn.Server):
    """A uvicorn server that ignores signals and accepts its connections itself."""

    def __init__(self, config: uvicorn.Config, connections: Connections, proxies: TrustedProxies, timeouts: Timeouts):
        super().__init__(config)
        self.servers = []  # asyncio's, of which there is none
        self._connections = connections
        self._proxies = proxies
        self._timeouts = timeouts
        self._listeners: list[socket.socket] = []
        self._stop_requested = asyncio.Event()
        self._connecting: set[asyncio.Task[object]] = set()

    def request_stop(self) -> None:
        self.should_exit = True
        self._stop_requested.set()

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.lifespan.state["connections"] = self._connections  # for the routes: `request.state.connections`
        self._listeners = sockets or []
        for listener in self._listeners:
            self._start_accepting(listener)
        self.started = True

    async def main_loop(self) -> None:
        await self._stop_requested.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let open requests finish for a while; uvicorn's own would wait even if there are none."""
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110  (they are plain sets)
                    await asyncio.sleep(_SHUTDOWN_POLL_SECONDS)
        except TimeoutError:
            log.warning("requests_canceled", extra={"requests": len(self.server_state.tasks)})
            for task in list(self.server_state.tasks):
                task.cancel()
        await self.lifespan.shutdown()

    def _start_accepting(self, listener: socket.socket) -> None:
        if not self.should_exit:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_ROUND):
            try:
                connection, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # the process or the system has no more files or memory
                self._pause_accepting(listener, error)
                return
            connection.setblocking(False)
            self._admit(connection, str(address[0]))

    def _pause_accepting(self, listener: socket.socket, error: OSError) -> None:
        log.warning("accept_failed", extra={"error": str(error), "connections": len(self._connections)})
        has_closed_one = self._connections.give_up_longest_waiting()
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        has_new_one = bool(self._connecting)  # in a moment it can be closed for the next
        delay = _GIVE_UP_SECONDS if has_closed_one or has_new_one else ACCEPT_RETRY_SECONDS
        loop.call_later(delay, self._start_accepting, listener)

    def _admit(self, connection: socket.socket, address: str) -> None:
        group = group_ip_address(address)
        if not self._connections.make_room(group, is_proxy=self._proxies.is_trusted(address)):
            log.warning("connection_refused", extra={"address": group, "connections": len(self._connections)})
            with contextlib.suppress(OSError), contextlib.closing(connection):
                connection.send(_TOO_MANY_CONNECTIONS)
            return

        create_protocol = partial(
            HttpProtocol,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            connections=self._connections,
            address=group,
            timeouts=self._timeouts,
        )
        task = asyncio.create_task(_connect(connection, create_protocol))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)


async def _connect(connection: socket.socket, create_protocol: Callable[[], HttpProtocol]) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(create_protocol, connection)
    except OSError as error:  # the client is gone already
        log.debug("connection_failed", extra={"error": str(error)})
        connection.close()


@contextlib.asynccontextmanager
async def run_server(
    app: FastAPI,
    listener: socket.socket,
    *,
    before_stop: Callable[[], Awaitable[None]] | None = None,
    trusted_proxies: Sequence[str] = (),
    limits: ConnectionLimits | None = None,
    timeouts: Timeouts | None = None,
) -> AsyncIterator[int]:
    """Serve inside the block and yield the port. `before_stop` closes streams that would keep connections open.

    Without `limits`, they are derived from the number of files that the process may open.
    """
    timeouts = timeouts or Timeouts()
    config = uvicorn.Config(
        app,
        http=HttpProtocol,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # the guard decides which proxies to trust
        server_header=False,
        date_header=False,  # `HttpProtocol` sets it
        lifespan="off",
        timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
        timeout_keep_alive=timeouts.keep_alive_seconds,
        ws="none",
    )
    connections = Connections(limits or ConnectionLimits.from_open_files())
    server = _EmbeddedServer(config, connections, TrustedProxies.from_settings(trusted_proxies), timeouts)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="palaver-web")
    try:
        while not server.started:
            if task.done():
                task.result()
            await asyncio.sleep(0.005)
        yield listener.getsockname()[1]
    finally:
        if before_stop is not None:
            await before_stop()
        server.request_stop()
        await task
