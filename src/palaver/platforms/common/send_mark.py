"""Marks a message as sending when a connection to the platform is there, before the request is written to it.

HTTP clients look up, connect and encrypt inside of one call, so the mark is passed to them by the context of the task:
`mark_before_request` sets it, and the hooks of the clients call it. Imports no HTTP client.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from aiohttp import ClientRequest, ClientResponse
    from aiohttp.connector import Connection

    Mark = Callable[[], Awaitable[None]]

_mark: ContextVar[Mark | None] = ContextVar("palaver_send_mark", default=None)


@contextmanager
def mark_before_request(mark: Mark | None) -> Iterator[None]:
    """Mark a message before the next request of this task is written. Without a mark, nothing changes."""
    token = _mark.set(mark)
    try:
        yield
    finally:
        _mark.reset(token)


async def call_mark() -> None:
    """Mark the message that the request of this task sends, if it sends one. When it raises, nothing may be written."""
    if (mark := _mark.get()) is not None:
        await mark()


async def trace_httpx_request(request: Any) -> None:
    """Mark before the headers of a request are written: a `request` hook of httpx and httpx2."""
    if _mark.get() is not None:
        request.extensions["trace"] = _call_mark_before_headers


async def _call_mark_before_headers(event: str, _details: object) -> None:
    if event.endswith(".send_request_headers.started"):
        await call_mark()


def make_aiohttp_request_class() -> type[ClientRequest]:
    """Return the `request_class` of an aiohttp session that marks before a request is written to its connection."""
    from aiohttp import ClientRequest

    class MarkedRequest(ClientRequest):
        async def send(self, conn: Connection) -> ClientResponse:
            await call_mark()
            return await super().send(conn)

    return MarkedRequest
