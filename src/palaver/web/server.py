"""Serving: one uvicorn inside our own event loop, started when it listens and stopped when we say so.

The socket is ours, so that an address that cannot be had is told plainly before anything else begins, and port 0 gives
a free one. Signals are the business of whoever runs the process.
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

WAITING = 2048  # connections that wait to be taken
PATIENCE = 5  # seconds that requests under way are given when we stop


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any free one."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        taken = socket.socket(family, kind, protocol)
        try:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(address)
            taken.listen(WAITING)
        except OSError:
            taken.close()
            raise
    except OSError as error:
        raise ConfigError(_why(host, port, error), host=host, port=port) from None
    taken.setblocking(False)
    return taken


def _why(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use already; choose another with --port, or --port 0 for any free one"
    if error.errno == errno.EACCES:
        return f"port {port} may only be used by the system; choose one above 1023 with --port"
    return f"cannot listen on {host} port {port}: {error.strerror or error}; --host names an address of this machine"


class _Served(uvicorn.Server):
    """A server that leaves signals alone."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        """Nothing is captured."""
        yield


@contextlib.asynccontextmanager
async def serving(
    app: FastAPI, listening: socket.socket, *, before_stop: Callable[[], Awaitable[None]] | None = None
) -> AsyncIterator[int]:
    """Serve inside the block; its port. `before_stop` ends what would keep connections open."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # whom to believe is decided by the guard
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=PATIENCE,
        timeout_keep_alive=30,
        ws="none",
    )
    server = _Served(config)
    task = asyncio.create_task(server.serve(sockets=[listening]), name="palaver-web")
    try:
        while not server.started:
            if task.done():
                task.result()
            await asyncio.sleep(0.005)
        yield listening.getsockname()[1]
    finally:
        if before_stop is not None:
            await before_stop()
        server.should_exit = True
        await task
