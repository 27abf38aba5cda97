"""Runs the child: starts it, exchanges lines with it, and ends it. A crash in it affects only this account.

Always true: `close` leaves no process behind. A line that is none, or is too long, ends the process: nothing that it
has not acknowledged is lost, because the child keeps what it received.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import signal
import sys
import uuid
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import ConnectionLost, LimitReached, SendRejected
from palaver.core.texts import unpack_text
from palaver.platforms.common.send_mark import call_mark
from palaver.platforms.whatsapp_web.manifest import MAX_FILE_BYTES
from palaver.platforms.whatsapp_web.protocol import (
    ATTEMPTS_FOLDER,
    FILES_FOLDER,
    MAX_LINE_BYTES,
    ErrorKind,
    RequestError,
    State,
    decode_line,
    encode_line,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from palaver.delivery.adapter import OutgoingFile

CHILD_COMMAND: Final = (sys.executable, "-P", "-m", "palaver.platforms.whatsapp_web.child")
CLOSE_SECONDS: Final = 6.0  # the child finishes what it is sending
KILL_SECONDS: Final = 2.0
MAX_QUEUED_LINES: Final = 500  # the child sends far fewer without being answered
MAX_ERROR_OUTPUT_BYTES: Final = 16 * 1024
CHUNK_BYTES: Final = 256 * 1024
DOWNLOAD_SECONDS: Final = 120.0
MAX_DOWNLOAD_ATTEMPTS: Final = 3  # that end with a crash of the child
END_SECONDS: Final = 30.0  # in which a connection whose child has ended is taken down
# What the child may know of our environment: no keys of providers, no tokens of other platforms.
PASSED_VARIABLES: Final = re.compile(
    r"PATH|HOME|USER|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|SSL_CERT_\w+|(?:https?|no|all)_proxy|LD_LIBRARY_PATH|PYTHON\w*"
    r"|VIRTUAL_ENV|COVERAGE\w*|SystemRoot|TEMP|TMP",
    re.IGNORECASE,
)
# Lines by which Go says why it ends. Others may contain anything.
_CRASH_REASON: Final = re.compile(
    rb"^(?:fatal error: [a-z .:'-]{3,80}|panic: runtime error: [a-z -]{3,60})", re.MULTILINE
)


class ChildEnded(ConnectionLost):
    """The process of the WhatsApp library has ended."""


class ChildProcess:
    """A running child. `receive` returns its events and states in order; `request` asks it to do something."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(MAX_QUEUED_LINES + 1)
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last_request = 0
        self._error_output = b""
        self._end_reason: str | None = None
        self._is_closing = False
        self._has_ended = False  # nothing more comes from it
        self._tasks = [
            asyncio.create_task(self._read_lines(), name="palaver-whatsapp-web-lines"),
            asyncio.create_task(self._read_errors(), name="palaver-whatsapp-web-errors"),
        ]

    @classmethod
    async def start(cls, command: Sequence[str]) -> ChildProcess:
        """Start a child. Raises ConnectionLost if it can't be started."""
        environment = {name: value for name, value in os.environ.items() if PASSED_VARIABLES.fullmatch(name)}
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=MAX_LINE_BYTES,
                env=environment,
                start_new_session=True,  # Ctrl+C in the terminal is for Palaver, which ends the child in order
            )
        except OSError as error:
            raise ConnectionLost.say(
                "whatsapp_web.process_not_started",
                "The process for WhatsApp can't be started: {error}.",
                error=error.strerror,
            ) from error
        return cls(process)

    @property
    def is_running(self) -> bool:
        """Whether it can be asked. A child whose pipes are broken has ended, also if its exit is not noticed yet."""
        stdin = self._process.stdin
        is_broken = self._has_ended or stdin is None or stdin.is_closing()
        return self._end_reason is None and not self._is_closing and not is_broken

    # ---- lines -----------------------------------------------------------------------------------------------

    async def receive(self) -> dict[str, Any]:
        """Return the next event or state. Raises ChildEnded."""
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)
            raise ChildEnded(self._end_reason or "The process for WhatsApp was ended.")
        return line

    async def request(self, name: str, /, *, seconds: float, **fields: Any) -> dict[str, Any]:
        """Ask the child to do something, and wait for the outcome.

        Raises RequestError. If the child has ended, or does not answer, that is one of the kind UNCERTAIN once it was
        asked, and NOT_SENT before.
        """
        if self.is_running:
            await call_mark()
        if not self.is_running:
            raise RequestError(ErrorKind.NOT_SENT, self._end_reason or "WhatsApp is not connected.")
        line = encode_line({"id": self._last_request + 1, "do": name, **fields})
        if len(line) > MAX_LINE_BYTES:
            raise RequestError(ErrorKind.REFUSED, "The message is too long for WhatsApp.")
        self._last_request = number = self._last_request + 1
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        try:
            await self._write(line)
            async with asyncio.timeout(seconds):
                return await reply
        except TimeoutError:
            text = f"WhatsApp did not answer within {seconds:.0f} seconds."
            raise RequestError(ErrorKind.UNCERTAIN, text) from None
        finally:
            self._replies.pop(number, None)

    async def acknowledge(self, number: int) -> None:
        """Tell the child that an event is stored. If the child has ended, the next one sends the event again."""
        if self.is_running:
            await self._write(encode_line({"ack": number}))

    async def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101  (it is a pipe)
        with contextlib.suppress(ConnectionError):  # it has ended: `_read_lines` notices
            self._process.stdin.write(line)
            await self._process.stdin.drain()

    async def _read_lines(self) -> None:
        assert self._process.stdout is not None  # noqa: S101  (it is a pipe)
        reason = None
        try:
            while line := await self._process.stdout.readline():
                self._handle(decode_line(line))
        except (ValueError, KeyError, TypeError, asyncio.QueueFull):
            reason = "The process for WhatsApp has sent something that can't be read. It is started again."
            self._kill()
        except asyncio.CancelledError:
            reason = "The process for WhatsApp was ended."
            raise
        finally:
            self._has_ended = True
            await self._report_end(reason)

    def _handle(self, fields: dict[str, Any]) -> None:
        """Raises ValueError, KeyError or TypeError for what is neither an event nor a state nor a reply."""
        if "re" not in fields:
            if self._lines.qsize() >= MAX_QUEUED_LINES:
                raise asyncio.QueueFull
            if "seq" not in fields:
                State(fields["state"])
            elif not isinstance(fields["seq"], int) or not isinstance(fields["event"], dict):
                raise TypeError
            self._lines.put_nowait(fields)
            return
        reply = self._replies.get(fields["re"])
        if reply is None or reply.done():
            return  # the caller has given up
        if "ok" in fields:
            reply.set_result(dict(fields["ok"]))
        else:
            error = fields["error"]
            reply.set_exception(RequestError(ErrorKind(error["kind"]), unpack_text(error["text"])))

    async def _report_end(self, reason: str | None) -> None:
        if reason is None:
            code = await self._process.wait()
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait({self._tasks[1]}, timeout=1)
            reason = describe_exit(code, self._error_output)
        self._end_reason = reason
        self._lines.put_nowait(None)
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(RequestError(ErrorKind.UNCERTAIN, reason))

    async def _read_errors(self) -> None:
        """Keep the end of what the child prints, to find out why it crashed; people never see it."""
        assert self._process.stderr is not None  # noqa: S101  (it is a pipe)
        while chunk := await self._process.stderr.read(4096):
            self._error_output = (self._error_output + chunk)[-MAX_ERROR_OUTPUT_BYTES:]

    # ---- end -------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """End the child: in order, or else by force. If that is canceled, by force, and still to the end."""
        self._is_closing = True
        ending = asyncio.create_task(self._end(), name="palaver-whatsapp-web-end")
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            self._kill()
            await asyncio.wait({ending}, timeout=KILL_SECONDS)
            raise

    async def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not await self._wait(CLOSE_SECONDS):
            self._kill()
            await self._wait(KILL_SECONDS)
        await asyncio.wait(self._tasks, timeout=KILL_SECONDS)
        for task in self._tasks:
            task.cancel()

    async def _wait(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        return self._process.returncode is not None

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()


def describe_exit(code: int, error_output: bytes) -> str:
    found = _CRASH_REASON.search(error_output)
    if found:
        reason = found[0].decode()
    elif code < 0:
        reason = signal.Signals(-code).name if -code in {each.value for each in signal.Signals} else f"signal {-code}"
    elif code:
        reason = f"exit code {code}"
    else:
        return "The process for WhatsApp has ended. It is started again."
    return f"The WhatsApp library has crashed ({reason}). It is started again."


class FileExchange:
    """Passes files between Palaver and the child, in the account's folder: a line could not hold them.

    Every file there is deleted as soon as it was read, and the rest at the next start.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FILES_FOLDER
        self._attempts_folder = folder / ATTEMPTS_FOLDER
        self._suspects = asyncio.Lock()  # held by a file during whose download the child has crashed before

    @asynccontextmanager
    async def lend(self, file: OutgoingFile) -> AsyncIterator[str]:
        """Give the child a file to send; yield its name there."""
        path = self._folder / f"out-{uuid.uuid4().hex}"
        try:
            await self._write(path, file)
            yield path.name
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _write(self, path: Path, file: OutgoingFile) -> None:
        size = 0
        with await asyncio.to_thread(path.open, "xb") as target:
            async for chunk in file.read():
                size += len(chunk)
                if size > MAX_FILE_BYTES:
                    raise SendRejected.say("whatsapp_web.file_too_large", "The file is too large for WhatsApp.")
                await asyncio.to_thread(target.write, chunk)

    async def download(self, child: ChildProcess, media: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """Let the child download a file that a person has sent, and yield it."""
        if media["size"] and media["size"] > MAX_FILE_BYTES:
            raise LimitReached(f"Files of up to {MAX_FILE_BYTES // 1024 // 1024} MB can be received from WhatsApp.")
        path = self._folder / f"in-{uuid.uuid4().hex}"
        try:
            await self._attempt(child, media, path.name)
            with await asyncio.to_thread(path.open, "rb") as source:
                while chunk := await asyncio.to_thread(source.read, CHUNK_BYTES):
                    yield chunk
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _attempt(self, child: ChildProcess, media: Mapping[str, Any], name: str) -> None:
        """Download a file, unless the child has crashed each time: then nothing else could be received any more.

        Files that were being downloaded at a crash are tried again one after the other, to find the one that causes it.
        """
        marker = self._attempts_folder / hashlib.sha256(media["reference"].encode()).hexdigest()[:32]
        crashes = await asyncio.to_thread(lambda: marker.stat().st_size if marker.exists() else 0)
        if crashes >= MAX_DOWNLOAD_ATTEMPTS:
            await asyncio.to_thread(marker.unlink, missing_ok=True)
            raise LimitReached("The WhatsApp library crashed each time it downloaded this file.")
        async with self._suspects if crashes else nullcontext():
            await asyncio.to_thread(_add_attempt, marker)
            try:
                await self._request(child, media, name)
            finally:
                if child.is_running:
                    await asyncio.to_thread(marker.unlink, missing_ok=True)

    @staticmethod
    async def _request(child: ChildProcess, media: Mapping[str, Any], name: str) -> None:
        try:
            await child.request(
                "download", seconds=DOWNLOAD_SECONDS, reference=media["reference"], file=name, max_bytes=MAX_FILE_BYTES
            )
        except RequestError as error:
            if not child.is_running:
                # The message must not be stored without its file: it comes again with the next child.
                await asyncio.sleep(END_SECONDS)
            if error.kind is ErrorKind.TOO_LARGE:
                raise LimitReached(error.text) from None
            raise ConnectionLost(error.text) from None


def _add_attempt(marker: Path) -> None:
    marker.parent.mkdir(mode=0o700, exist_ok=True)
    with marker.open("ab") as file:
        file.write(b".")
