"""A server on loopback that speaks OpenAI's streaming chat protocol, and misbehaves when it is told to.

A test scripts one reply for each request it expects; every request is recorded. It runs on a thread of its own, so
that blocking callers can be tested as well.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    Reply = Callable[["Exchange"], Awaitable[None]]

KEY = "sk-very-secret-0123456789"


class Exchange:
    """One request and the way to answer it."""

    def __init__(self, writer: asyncio.StreamWriter, model: str) -> None:
        self.writer = writer
        self.model = model

    async def head(self, status: int, content_type: str, headers: dict[str, str] | None = None) -> None:
        lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await self.writer.drain()

    async def stream(self) -> None:
        await self.head(200, "text/event-stream", {"transfer-encoding": "chunked"})

    async def raw(self, data: str) -> None:
        body = data.encode()
        self.writer.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
        await self.writer.drain()

    async def delta(self, delta: dict[str, Any], finish: str | None = None) -> None:
        await self.chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    async def chunk(self, data: dict[str, Any]) -> None:
        whole = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": self.model, **data}
        await self.raw(f"data: {json.dumps(whole)}\n\n")

    async def usage(self, usage: dict[str, Any]) -> None:
        await self.chunk({"choices": [], "usage": usage})

    async def done(self) -> None:
        await self.raw("data: [DONE]\n\n")
        await self.end()

    async def end(self) -> None:
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def json(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(data).encode()
        await self.head(status, "application/json", {"content-length": str(len(body)), **(headers or {})})
        self.writer.write(body)
        await self.writer.drain()


# ---- replies -------------------------------------------------------------------------------------------------


def says(
    *words: str, reasoning: Sequence[str] = (), usage: tuple[int, int] | None = (10, 5), finish: str = "stop"
) -> Reply:
    async def reply(to: Exchange) -> None:
        await to.stream()
        await to.delta({"role": "assistant"})
        for word in reasoning:
            await to.delta({"reasoning_content": word})
        for word in words:
            await to.delta({"content": word})
        await to.delta({}, finish)
        if usage is not None:
            await to.usage(counted(*usage))
        await to.done()

    return reply


def calls(*wanted: tuple[str, str, str], text: str = "", reasoning: str = "") -> Reply:
    """Calls of tools (id, name, arguments), the arguments in two pieces."""

    async def reply(to: Exchange) -> None:
        await to.stream()
        if reasoning:
            await to.delta({"reasoning_content": reasoning})
        if text:
            await to.delta({"content": text})
        for index, (call_id, name, arguments) in enumerate(wanted):
            half = len(arguments) // 2
            begin = {"index": index, "id": call_id, "type": "function"}
            await to.delta({"tool_calls": [begin | {"function": {"name": name, "arguments": arguments[:half]}}]})
            await to.delta({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]})
        await to.delta({}, "tool_calls")
        await to.usage(counted(20, 8))
        await to.done()

    return reply


def fails(status: int, message: str = "no", *, code: str | None = None, kind: str = "error", **headers: str) -> Reply:
    async def reply(to: Exchange) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await to.json(status, {"error": {"message": message, "code": code, "type": kind}}, named)

    return reply


def never() -> Reply:
    """Take the request and never answer."""

    async def reply(to: Exchange) -> None:
        await asyncio.Event().wait()

    return reply


def reset() -> Reply:
    """Cut the line without a word."""

    async def reply(to: Exchange) -> None:
        _break(to)

    return reply


def cut(*words: str) -> Reply:
    """Cut the line in the middle of the answer."""

    async def reply(to: Exchange) -> None:
        await to.stream()
        await to.delta({"role": "assistant"})
        for word in words:
            await to.delta({"content": word})
        await asyncio.sleep(0.05)  # what was sent is read before the line breaks
        _break(to)

    return reply


def ends_early(*words: str) -> Reply:
    """End the stream in an orderly way, but before the answer has come to its end."""

    async def reply(to: Exchange) -> None:
        await to.stream()
        await to.delta({"role": "assistant"})
        for word in words:
            await to.delta({"content": word})
        await to.end()

    return reply


def garbage(data: str = "data: {this is not json\n\n") -> Reply:
    async def reply(to: Exchange) -> None:
        await to.stream()
        await to.raw(data)
        await to.end()

    return reply


def stalls(*words: str) -> Reply:
    """Say something, then nothing more, for ever."""

    async def reply(to: Exchange) -> None:
        await to.stream()
        for word in words:
            await to.delta({"content": word})
        await asyncio.Event().wait()

    return reply


def trickles(words: Iterable[str], pause: float) -> Reply:
    async def reply(to: Exchange) -> None:
        await to.stream()
        for word in words:
            await to.delta({"content": word})
            await asyncio.sleep(pause)
        await to.delta({}, "stop")
        await to.done()

    return reply


def counted(prompt: int, completion: int, *, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def _break(to: Exchange) -> None:
    connection: socket.socket = to.writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    to.writer.transport.abort()


# ---- the server ----------------------------------------------------------------------------------------------


class OpenAIServer:
    """Answers each request with the next reply of its script."""

    def __init__(self, *, models: Sequence[str] = ("test-model",)) -> None:
        self.models = list(models)
        self.requests: list[dict[str, Any]] = []  # the bodies of chat requests, in order
        self.bodies: list[bytes] = []
        self.keys: list[str] = []
        self.gone = threading.Event()  # a client has left before its answer was complete
        self._script: list[Reply] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def script(self, *replies: Reply) -> None:
        self._script += replies

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        request, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if request.startswith("GET /v1/models "):
            data = {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
            await Exchange(writer, "").json(200, data)
            return
        asked = json.loads(body)
        self.requests.append(asked)
        self.bodies.append(body)
        self.keys.append(headers.get("authorization", ""))
        reply = self._script.pop(0) if self._script else fails(500, "the script has ended")
        await self._watched(reply(Exchange(writer, asked.get("model", ""))), reader)

    async def _watched(self, reply: Awaitable[None], reader: asyncio.StreamReader) -> None:
        """Reply, and stop when the client leaves."""
        replying = asyncio.ensure_future(reply)
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({replying, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if replying.done():
                replying.result()
            else:
                self.gone.set()
        finally:
            replying.cancel()
            leaving.cancel()
            await asyncio.gather(replying, leaving, return_exceptions=True)
