"""The HTTP server: uvicorn inside our own event loop.

We open the socket ourselves, so that an unavailable address gives a clear error before anything else starts, and port
0 picks a free port. The server ignores signals; the code that runs the process handles them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import TYPE_CHECKING

import uvicorn

from palaver.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from fastapi import FastAPI

SOCKET_BACKLOG = 2048  # connections that may wait to be accepted
SHUTDOWN_GRACE_SECONDS = 5  # how long open requests may take to finish when the server stops


def open_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 means any free port."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(SOCKET_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigError(_explain_socket_error(host, port, error), host=host, port=port) from None
    listener.setblocking(False)
    return listener


def _explain_socket_error(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is already in use. Choose another with --port, or --port 0 for any free port."
    if error.errno == errno.EACCES:
        return f"You don't have permission to use port {port}. Choose a port above 1023 with --port."
    return f"Cannot listen on {host} port {port}: {error.strerror or error}. --host must be an address of this machine."


class _EmbeddedServer(uvicorn.Server):
    """A uvicorn server that ignores signals."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


@contextlib.asynccontextmanager
async def run_server(
    app: FastAPI, listener: socket.socket, *, before_stop: Callable[[], Awaitable[None]] | None = None
) -> AsyncIterator[int]:
    """Serve inside the block and yield the port. `before_stop` closes streams that would keep connections open."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # the guard decides which proxies to trust
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
        timeout_keep_alive=30,
        ws="none",
    )
    server = _EmbeddedServer(config)
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
        server.should_exit = True
        await task
