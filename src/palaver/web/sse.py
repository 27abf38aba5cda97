"""Server-sent events: their encoding, and a response that sends them until the client disconnects.

Always true: a stream ends when its client loses access, without another event; a stream without events gets
heartbeats, so that proxies keep the connection open. A client that stops reading is disconnected (`HttpProtocol`), so
that none holds memory forever.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from starlette.types import Receive, Scope, Send

HEARTBEAT_SECONDS: Final = 15.0
_HEARTBEAT_COMMENT = b": heartbeat\n\n"


def encode_event(name: str, data: str, cursor: str | None = None) -> bytes:
    """Encode one event. `data` is JSON without line breaks; `cursor` is the position after this event."""
    id_line = "" if cursor is None else f"id: {cursor}\n"
    return f"{id_line}event: {name}\ndata: {data}\n\n".encode()


def encode_stream_start(cursor: str, *, retry_ms: int = 1000) -> bytes:
    """Encode the start of a stream: how soon to reconnect after a lost connection, and from which position."""
    return f"retry: {retry_ms}\nid: {cursor}\n\n".encode()


class EventStream(Response):
    """Sends a generator's chunks until it ends, the client disconnects, or `wait_until_signed_out` returns.

    In that last case the client gets `signed_out_chunk` before the stream ends.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        wait_until_signed_out: Callable[[], Coroutine[Any, Any, None]],
        *,
        signed_out_chunk: bytes = b"",
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks
        self._wait_until_signed_out = wait_until_signed_out
        self._signed_out_chunk = signed_out_chunk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with contextlib.aclosing(self._chunks):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            sending = asyncio.create_task(self._send_chunks(send))
            signed_out = asyncio.create_task(self._wait_until_signed_out())
            tasks = [sending, signed_out, asyncio.create_task(_wait_for_disconnect(receive))]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                last_chunk = self._signed_out_chunk if signed_out.done() and not sending.done() else b""
            finally:
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
        failures = [each for each in results if isinstance(each, Exception)]
        if failures:
            raise failures[0]
        with contextlib.suppress(TimeoutError):  # a client that does not read gets no end of the stream
            async with asyncio.timeout(1):
                await send({"type": "http.response.body", "body": last_chunk, "more_body": False})

    async def _send_chunks(self, send: Send) -> None:
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
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            if next_chunk is not None:
                next_chunk.cancel()
                await asyncio.gather(next_chunk, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
