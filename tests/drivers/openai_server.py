"""A server on loopback with OpenAI's streaming chat API that can misbehave in many ways.

A test adds one reply for each request that it expects; the server records every request. It runs on a thread of its
own, so that tests can also call it with blocking code.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from email import policy
from email.parser import BytesParser
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    Reply = Callable[["Exchange"], Awaitable[None]]

KEY = "sk-very-secret-0123456789"


class Exchange:
    """One request and the methods to reply to it."""

    def __init__(self, writer: asyncio.StreamWriter, model: str) -> None:
        self.writer = writer
        self.model = model

    async def send_head(self, status: int, content_type: str, headers: dict[str, str] | None = None) -> None:
        lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await self.writer.drain()

    async def start_stream(self) -> None:
        await self.send_head(200, "text/event-stream", {"transfer-encoding": "chunked"})

    async def send_raw(self, data: str) -> None:
        body = data.encode()
        self.writer.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
        await self.writer.drain()

    async def send_delta(self, delta: dict[str, Any], finish: str | None = None) -> None:
        await self.send_chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    async def send_chunk(self, data: dict[str, Any]) -> None:
        chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": self.model, **data}
        await self.send_raw(f"data: {json.dumps(chunk)}\n\n")

    async def send_usage(self, usage: dict[str, Any]) -> None:
        await self.send_chunk({"choices": [], "usage": usage})

    async def send_done(self) -> None:
        await self.send_raw("data: [DONE]\n\n")
        await self.end_stream()

    async def end_stream(self) -> None:
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def send_json(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(data).encode()
        await self.send_head(status, "application/json", {"content-length": str(len(body)), **(headers or {})})
        self.writer.write(body)
        await self.writer.drain()


# ---- replies -------------------------------------------------------------------------------------------------


def reply_with_text(
    *words: str, reasoning: Sequence[str] = (), usage: tuple[int, int] | None = (10, 5), finish: str = "stop"
) -> Reply:
    async def reply(to: Exchange) -> None:
        await to.start_stream()
        await to.send_delta({"role": "assistant"})
        for word in reasoning:
            await to.send_delta({"reasoning_content": word})
        for word in words:
            await to.send_delta({"content": word})
        await to.send_delta({}, finish)
        if usage is not None:
            await to.send_usage(make_usage(*usage))
        await to.send_done()

    return reply


def reply_with_calls(*tool_calls: tuple[str, str, str], text: str = "", reasoning: str = "") -> Reply:
    """Reply with tool calls (id, name, arguments); the arguments come in two pieces."""

    async def reply(to: Exchange) -> None:
        await to.start_stream()
        if reasoning:
            await to.send_delta({"reasoning_content": reasoning})
        if text:
            await to.send_delta({"content": text})
        for index, (call_id, name, arguments) in enumerate(tool_calls):
            half = len(arguments) // 2
            call = {"index": index, "id": call_id, "type": "function"}
            await to.send_delta({"tool_calls": [call | {"function": {"name": name, "arguments": arguments[:half]}}]})
            await to.send_delta({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]})
        await to.send_delta({}, "tool_calls")
        await to.send_usage(make_usage(20, 8))
        await to.send_done()

    return reply


def reply_with_error(
    status: int, message: str = "no", *, code: str | None = None, kind: str = "error", **headers: str
) -> Reply:
    async def reply(to: Exchange) -> None:
        http_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        await to.send_json(status, {"error": {"message": message, "code": code, "type": kind}}, http_headers)

    return reply


def reply_never() -> Reply:
    """Accept the request and never reply."""

    async def reply(to: Exchange) -> None:
        await asyncio.Event().wait()

    return reply


def reply_with_reset() -> Reply:
    """Reset the connection without a reply."""

    async def reply(to: Exchange) -> None:
        _abort_connection(to)

    return reply


def reply_with_cut_line(*words: str) -> Reply:
    """Reset the connection in the middle of the answer."""

    async def reply(to: Exchange) -> None:
        await to.start_stream()
        await to.send_delta({"role": "assistant"})
        for word in words:
            await to.send_delta({"content": word})
        await asyncio.sleep(0.05)  # lets the client read what was sent before the reset
        _abort_connection(to)

    return reply


def reply_with_early_end(*words: str) -> Reply:
    """End the stream properly, but before the answer is complete."""

    async def reply(to: Exchange) -> None:
        await to.start_stream()
        await to.send_delta({"role": "assistant"})
        for word in words:
            await to.send_delta({"content": word})
        await to.end_stream()

    return reply


def reply_with_garbage(data: str = "data: {this is not json\n\n") -> Reply:
    async def reply(to: Exchange) -> None:
        await to.start_stream()
        await to.send_raw(data)
        await to.end_stream()

    return reply


def reply_then_stall(*words: str) -> Reply:
    """Send some text, then nothing more."""

    async def reply(to: Exchange) -> None:
        await to.start_stream()
        for word in words:
            await to.send_delta({"content": word})
        await asyncio.Event().wait()

    return reply


def reply_slowly(words: Iterable[str], pause: float) -> Reply:
    async def reply(to: Exchange) -> None:
        await to.start_stream()
        for word in words:
            await to.send_delta({"content": word})
            await asyncio.sleep(pause)
        await to.send_delta({}, "stop")
        await to.send_done()

    return reply


def make_usage(prompt: int, completion: int, *, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def _abort_connection(to: Exchange) -> None:
    connection: socket.socket = to.writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    to.writer.transport.abort()


# ---- the audio API -------------------------------------------------------------------------------------------


def reply_with_transcript(text: str, usage: dict[str, Any] | None = None) -> Reply:
    async def reply(to: Exchange) -> None:
        await to.send_json(200, {"text": text} | ({} if usage is None else {"usage": usage}))

    return reply


def reply_with_audio(data: bytes, media_type: str = "audio/mpeg") -> Reply:
    async def reply(to: Exchange) -> None:
        await to.send_head(200, media_type, {"content-length": str(len(data))})
        to.writer.write(data)
        await to.writer.drain()

    return reply


def parse_form(content_type: str, body: bytes) -> dict[str, Any]:
    """Parse a form: a text field by its value, a file as its name, type and bytes."""
    message = BytesParser(policy=policy.HTTP).parsebytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + body)
    fields: dict[str, Any] = {}
    for part in message.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        if part.get_filename() is None:
            fields[name] = content.decode()
        else:
            fields[name] = {"name": part.get_filename(), "type": part.get_content_type(), "data": content}
    return fields


def check_audio_request(path: str, fields: dict[str, Any]) -> None:
    """Check a request as OpenAI documents it: the required fields are there, and no others than the known ones."""
    if path == "/v1/audio/transcriptions":
        assert {"file", "model"} <= fields.keys() <= {"file", "model", "language", "response_format", "prompt"}, fields
        assert fields["file"]["name"].rpartition(".")[2] in {"flac", "mp3", "mp4", "m4a", "ogg", "wav", "webm"}
        assert fields["file"]["data"]
    else:
        assert path == "/v1/audio/speech"
        assert fields.keys() == {"model", "input", "voice", "response_format"}, fields
        assert 0 < len(fields["input"]) <= 4096


# ---- the server ----------------------------------------------------------------------------------------------


class OpenAIServer:
    """Replies to each request with the next of the replies that a test has added."""

    def __init__(self, *, models: Sequence[str] = ("test-model",)) -> None:
        self.models = list(models)
        self.list_count = 0  # how often the models were listed
        self.requests: list[dict[str, Any]] = []  # the bodies of chat requests, in order
        self.bodies: list[bytes] = []
        self.keys: list[str] = []
        self.client_left = threading.Event()  # a client closed its connection before the reply was complete
        self._replies: list[Reply] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run_loop, daemon=True)
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def add_replies(self, *replies: Reply) -> None:
        self._replies += replies

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._handle_connection, "127.0.0.1", 0))
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._handle_request(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.client_left.set()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _handle_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        request, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if request.startswith("GET /v1/models "):
            self.list_count += 1
            data = {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
            await Exchange(writer, "").send_json(200, data)
            return
        is_form = headers.get("content-type", "").startswith("multipart/")
        form: dict[str, Any] = parse_form(headers["content-type"], body) if is_form else json.loads(body)
        if "/audio/" in request:
            check_audio_request(request.split()[1], form)
        self.requests.append(form)
        self.bodies.append(body)
        self.keys.append(headers.get("authorization", ""))
        reply = self._replies.pop(0) if self._replies else reply_with_error(500, "there are no more replies")
        await self._reply_until_client_leaves(reply(Exchange(writer, form.get("model", ""))), reader)

    async def _reply_until_client_leaves(self, reply: Awaitable[None], reader: asyncio.StreamReader) -> None:
        """Send the reply, and stop when the client closes the connection."""
        replying = asyncio.ensure_future(reply)
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({replying, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if replying.done():
                replying.result()
            else:
                self.client_left.set()
        finally:
            replying.cancel()
            leaving.cancel()
            await asyncio.gather(replying, leaving, return_exceptions=True)
