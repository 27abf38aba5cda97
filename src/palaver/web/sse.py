"""Server-sent events: their encoding, and a response that sends them until the client disconnects.

Always true: a client that stops reading is disconnected after a while, so that none holds memory forever; a stream
without events gets heartbeats, so that proxies keep the connection open.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

HEARTBEAT_SECONDS: Final = 15.0
SEND_TIMEOUT_SECONDS: Final = 30.0  # a client that takes longer to read one chunk is disconnected
_HEARTBEAT_COMMENT = b": heartbeat\n\n"


def encode_event(name: str, data: str, cursor: str | None = None) -> bytes:
    """Encode one event. `data` is JSON without line breaks; `cursor` is the position after this event."""
    id_line = "" if cursor is None else f"id: {cursor}\n"
    return f"{id_line}event: {name}\ndata: {data}\n\n".encode()


def encode_stream_start(cursor: str, *, retry_ms: int = 1000) -> bytes:
    """Encode the start of a stream: how soon to reconnect after a lost connection, and from which position."""
    return f"retry: {retry_ms}\nid: {cursor}\n\n".encode()


class EventStream(Response):
    """Sends a generator's chunks until it ends, the client disconnects, or the client's sign-in is no longer valid."""

    media_type = "text/event-stream"

    def __init__(
        self, chunks: AsyncGenerator[bytes, None], *, is_still_allowed: Callable[[], Awaitable[bool]] | None = None
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks
        self._is_still_allowed = is_still_allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with contextlib.aclosing(self._chunks):
            tasks = [
                asyncio.create_task(each)
                for each in (self._send_chunks(send), _wait_for_disconnect(receive), self._wait_until_signed_out())
            ]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
        failures = [each for each in results if isinstance(each, Exception) and not isinstance(each, TimeoutError)]
        if failures:
            raise failures[0]
        if not isinstance(results[0], TimeoutError):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_chunks(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        next_chunk: asyncio.Task[Any] | None = None
        try:
            while True:
                next_chunk = next_chunk or asyncio.ensure_future(anext(self._chunks, None))
                done, _ = await asyncio.wait([next_chunk], timeout=HEARTBEAT_SECONDS)
                chunk = next_chunk.result() if done else _HEARTBEAT_COMMENT
                if chunk is None:
                    return
                if done:
                    next_chunk = None
                async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            if next_chunk is not None:
                next_chunk.cancel()
                await asyncio.gather(next_chunk, return_exceptions=True)

    async def _wait_until_signed_out(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if self._is_still_allowed is not None and not await self._is_still_allowed():
                return


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
