"""Server-sent events: how they are written, and a response that writes them for as long as somebody listens.

Always true: a listener that takes nothing for a while is let go, so none holds memory for ever; one that is silent is
reminded of us, so that proxies keep the line open.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

HEARTBEAT: Final = 15.0  # seconds of silence
STALLED: Final = 30.0  # seconds for a listener to take what was sent
_STILL_HERE = b": still here\n\n"


def frame(name: str, data: str, cursor: str | None = None) -> bytes:
    """One event. `data` is JSON, which has no line breaks of its own; `cursor` is where to go on after it."""
    where = "" if cursor is None else f"id: {cursor}\n"
    return f"{where}event: {name}\ndata: {data}\n\n".encode()


def beginning(cursor: str, *, retry: int = 1000) -> bytes:
    """What a stream begins with: how soon to come back after a cut, in milliseconds, and from where."""
    return f"retry: {retry}\nid: {cursor}\n\n".encode()


class EventStream(Response):
    """Writes what a generator gives, and ends when it ends, when nobody listens, or when they may not any more."""

    media_type = "text/event-stream"

    def __init__(
        self, chunks: AsyncGenerator[bytes, None], *, still_allowed: Callable[[], Awaitable[bool]] | None = None
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks
        self._still_allowed = still_allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Speak, while listening for the end of the line."""
        async with contextlib.aclosing(self._chunks):
            tasks = [asyncio.create_task(each) for each in (self._speak(send), _gone(receive), self._until_refused())]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
        failures = [each for each in ended if isinstance(each, Exception) and not isinstance(each, TimeoutError)]
        if failures:
            raise failures[0]
        if not isinstance(ended[0], TimeoutError):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _speak(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        coming: asyncio.Task[Any] | None = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(self._chunks, None))
                done, _ = await asyncio.wait([coming], timeout=HEARTBEAT)
                chunk = coming.result() if done else _STILL_HERE
                if chunk is None:
                    return
                if done:
                    coming = None
                async with asyncio.timeout(STALLED):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def _until_refused(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            if self._still_allowed is not None and not await self._still_allowed():
                return


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
