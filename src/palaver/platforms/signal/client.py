"""Runs signal-cli: starts it, passes requests to it, and stops it.

It prints what it receives into a file of the spool. Requests and answers are JSON lines on a socket in a folder that
only we may enter. signal-cli receives only while that socket is connected: so when this process dies, it stops
receiving by itself, and a message that it has just received is still printed. Whatever else ends signal-cli, such as a
signal, may lose that message. A guard, which is a small shell script, ends it some seconds after this process has died.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import signal
import tempfile
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    DeliveryError,
    PlatformError,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.texts import say
from palaver.platforms.common.send_mark import call_mark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

log = logging.getLogger(__name__)

USER_ERROR: Final = -1
UNTRUSTED_KEY_ERROR: Final = -4
RATE_LIMIT_ERROR: Final = -5
INVALID_REQUEST_CODES: Final = frozenset({-32600, -32601, -32602, -32700})

RATE_LIMIT_SECONDS: Final = 300.0  # if Signal does not say how long
MAX_RATE_LIMIT_SECONDS: Final = 86_400.0
CAPTCHA_RETRY_SECONDS: Final = 3600.0  # Signal says a day, but not when the captcha is solved

INSTALL_STEP: Final = say(
    "signal.install_step",
    "Download the file that ends in `Linux-native.tar.gz` from"
    " https://github.com/AsamK/signal-cli/releases, unpack it and set `program` to the path of"
    " the file `signal-cli`. It needs no Java. On macOS: `brew install signal-cli`.",
)
LINK_AGAIN: Final = say(
    "signal.link_again",
    "Signal no longer accepts this device: it was removed from the linked devices on the phone,"
    " or was not connected for 30 days. To link it again, choose Connect now on the page, or run"
    " `palaver platforms link signal`, and scan the new code with the phone.",
)
REGISTER_AGAIN: Final = say(
    "signal.register_again",
    "Signal no longer accepts this number: it was registered on another device, or was deleted."
    " Register it again with `signal-cli register` and `signal-cli verify`, and the same"
    " `--config` as the first time.",
)
_UNAUTHORIZED: Final = re.compile(
    r"^User .* is not registered|AuthorizationFailed|Authorization failed|\[40[13]\]|StatusCode: 40[13]|Deregistered",
    re.IGNORECASE | re.MULTILINE,
)
_SETUP_PROBLEMS: Final = (
    (
        re.compile(r"JAVA_HOME|no 'java' command|java: not found", re.IGNORECASE),
        say("signal.java_missing", "signal-cli needs Java, which is not installed. {fix}", fix=INSTALL_STEP),
    ),
    (
        re.compile(r"DeprecatedVersion|\[499\]|StatusCode: 499"),
        say("signal.version_refused", "Signal no longer accepts this version of signal-cli. {fix}", fix=INSTALL_STEP),
    ),
    (
        re.compile(r"UnsupportedClassVersionError|class file version"),
        say("signal.java_too_old", "The Java on this machine is too old for this signal-cli. {fix}", fix=INSTALL_STEP),
    ),
)
_UNKNOWN_CHAT: Final = re.compile(
    r"group not found|not a (?:group member|member in group)|is not registered|Invalid group id", re.IGNORECASE
)
_UNRESOLVED: Final = re.compile(r"UnknownHost|UnresolvedAddress|NoRouteToHost|ConnectException|Name or service")
_PRIVATE: Final = re.compile(r"\+[0-9]{5,}|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[A-Za-z0-9+/]{40,}=*")

REQUEST_SECONDS: Final = 60.0
VERSION_SECONDS: Final = 45.0
END_SECONDS: Final = 3.0  # for each of: stop receiving, end after SIGTERM
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
SOCKET_NAME: Final = "socket"
# It reads a line when all went well, and the end of its input when the process that started it has died. It ends a
# process only if the path of our socket is among its arguments: another one may have its number meanwhile.
GUARD_SCRIPT: Final = """read line && exit
sleep 10
{ cat "/proc/$0/cmdline" 2>/dev/null || ps -o args= -p "$0"; } | grep -aqF "$1" && kill -TERM "$0"
rm -f "$1/socket"
rmdir "$1"
"""
MAX_ERROR_LINES: Final = 40
# signal-cli needs nothing else of our environment, which has the keys of other services.
_VARIABLES: Final = frozenset({"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "NO_PROXY", "no_proxy"})
_VARIABLE_PREFIXES: Final = ("JAVA", "JDK", "SIGNAL_CLI", "LC_", "XDG_", "http", "HTTP")


class RpcError(Exception):
    """signal-cli has answered a request with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.code = int(error.get("code", 0))
        self.message = str(error.get("message") or "")
        response = (error.get("data") or {}).get("response") or {}
        self.results: Sequence[Mapping[str, Any]] = response.get("results") or ()
        super().__init__(f"signal-cli answered with error {self.code}")  # its text may name people


class RequestNotSent(ConnectionLost):
    """signal-cli has certainly not received the request."""


def hide_people(text: str) -> str:
    """Return a line of signal-cli without phone numbers, ids and keys."""
    return _PRIVATE.sub("…", text)


def is_unauthorized(text: str) -> bool:
    """Return whether signal-cli says that Signal refuses our account."""
    return bool(_UNAUTHORIZED.search(text))


def make_delivery_error(error: RpcError, command: str) -> DeliveryError:
    """Return what an answer to `send` and the like means for the message; `command` starts signal-cli in a shell."""
    kinds = {str(each.get("type")) for each in error.results}
    if error.code == RATE_LIMIT_ERROR or kinds == {"RATE_LIMIT_FAILURE"}:
        return _make_rate_limit_error(error.results, command)
    if error.code == UNTRUSTED_KEY_ERROR or kinds == {"IDENTITY_FAILURE"}:
        return SendRejected.say(
            "signal.safety_number_changed",
            "The safety number of this person has changed, so Signal holds the message back. Compare the"
            " safety number with them. Then stop Palaver, run `{command} trust --verified-safety-number"
            " NUMBER PERSON`, start Palaver and send it again.",
            command=command,
        )
    if kinds == {"UNREGISTERED_FAILURE"} or _UNKNOWN_CHAT.search(error.message):
        return TargetUnreachable.say(
            "signal.person_gone", "This person is no longer on Signal, or the account is no longer in this group."
        )
    if kinds == {"INVALID_PRE_KEY_FAILURE"}:
        return SendRejected.say(
            "signal.bad_keys", "The keys of this person's device are not valid. Ask them to open Signal once."
        )
    if "NETWORK_FAILURE" in kinds:
        return SendUncertain.say(
            "signal.connection_broke", "The connection to Signal broke while the message was being sent."
        )
    return _make_other_error(error)


def _make_other_error(error: RpcError) -> DeliveryError:
    if _UNRESOLVED.search(error.message):
        return SendRetryable.say("signal.unreachable", "Signal can't be reached right now.")
    if is_unauthorized(error.message):
        return SendRetryable.say("signal.device_refused", "Signal refuses this device right now.")
    if error.code == USER_ERROR or error.code in INVALID_REQUEST_CODES:
        reason = hide_people(error.message)
        return SendRejected.say("signal.message_refused", "signal-cli refuses the message: {reason}", reason=reason)
    return SendUncertain.say(
        "signal.failed_while_sending",
        "signal-cli failed while the message was being sent (error {code}).",
        code=str(error.code),
    )


def _make_rate_limit_error(results: Sequence[Mapping[str, Any]], command: str) -> SendRetryable:
    token = next((each["token"] for each in results if each.get("token")), None)
    if token is None:
        seconds = max((float(each.get("retryAfterSeconds") or 0) for each in results), default=0.0)
        wait = min(seconds or RATE_LIMIT_SECONDS, MAX_RATE_LIMIT_SECONDS)
        text = say("signal.rate_limited", "Signal asks to send more slowly.")
        return SendRetryable(text, retry_after=wait, whole_account=True)
    return SendRetryable(
        say(
            "signal.captcha",
            "Signal asks for proof that a person uses this account. Open"
            " https://signalcaptchas.org/challenge/generate.html, solve the captcha and copy the address of"
            " the link `Open Signal`. Then stop Palaver, run `{command} submitRateLimitChallenge --challenge"
            " {token} --captcha 'ADDRESS'` and start Palaver. The message is then sent within an hour.",
            command=command,
            token=token,
        ),
        retry_after=CAPTCHA_RETRY_SECONDS,
    )


def make_exit_error(output: str, code: int | None, *, is_primary: bool = False) -> PlatformError:
    """Return why signal-cli has ended, from what it has written last."""
    if is_unauthorized(output):
        return AccountRefused(REGISTER_AGAIN if is_primary else LINK_AGAIN)
    if refused := find_setup_error(output):
        return refused
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")
    if not last:
        return ConnectionLost.say("signal.ended", "signal-cli has ended (exit code {code}).", code=str(code))
    return ConnectionLost.say(
        "signal.ended_because",
        "signal-cli has ended (exit code {code}): {reason}",
        code=str(code),
        reason=hide_people(last)[:200],
    )


def find_setup_error(output: str) -> AccountRefused | None:
    """Return what is wrong with the installation of signal-cli; None if nothing is."""
    return next((AccountRefused(problem) for sign, problem in _SETUP_PROBLEMS if sign.search(output)), None)


def find_program(program: str) -> str:
    """Return the path of signal-cli. Raises AccountRefused with what to install."""
    found = shutil.which(Path(program).expanduser())
    if found is None:
        raise AccountRefused.say(
            "signal.not_installed",
            "signal-cli is not installed: there is no program {program}. {fix}",
            program=repr(program),
            fix=INSTALL_STEP,
        )
    return found


def build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what signal-cli gets of our environment."""
    return {name: value for name, value in environ.items() if name in _VARIABLES or name.startswith(_VARIABLE_PREFIXES)}


async def start_program(arguments: Sequence[str], **streams: Any) -> asyncio.subprocess.Process:
    """Start signal-cli in a session of its own, so that Ctrl-C in a terminal reaches only us."""
    try:
        return await asyncio.create_subprocess_exec(
            *arguments,
            stdin=streams.pop("stdin", asyncio.subprocess.DEVNULL),
            env=build_environment(os.environ),
            start_new_session=True,
            **streams,
        )
    except OSError as error:
        raise AccountRefused.say(
            "signal.cant_started",
            "{program} can't be started: {reason}. {fix}",
            program=arguments[0],
            reason=error.strerror,
            fix=INSTALL_STEP,
        ) from None


async def stop_process(process: asyncio.subprocess.Process) -> None:
    """End a process: by SIGTERM, and if that does not help by SIGKILL."""
    if process.returncode is None:
        _send_signal(process, signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), END_SECONDS)
        except TimeoutError:
            log.warning("signal_cli_killed", extra={"pid": process.pid})
            _send_signal(process, signal.SIGKILL)
            await process.wait()


async def _close_writer(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1.0):
            await writer.wait_closed()


def _send_signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


async def read_version(program: str) -> str:
    """Return the version of signal-cli, such as `0.14.6`. Raises AccountRefused if it can't run."""
    pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    process = await start_program([program, "--version"], stdout=pipe, stderr=both)
    try:
        async with asyncio.timeout(VERSION_SECONDS):
            data, _ = await process.communicate()
    except TimeoutError:
        raise _make_timeout_error(VERSION_SECONDS) from None
    finally:
        await stop_process(process)
    output = data.decode("utf-8", "replace")
    words = output.split()
    if process.returncode == 0 and len(words) >= 2 and words[0] == "signal-cli":
        return words[1]
    if refused := find_setup_error(output):
        raise refused
    last = hide_people(output.strip().rpartition("\n")[2])[:200]
    raise AccountRefused.say(
        "signal.not_work",
        "{program} does not work: {reason}. {fix}",
        program=program,
        reason=last or f"exit code {process.returncode}",
        fix=INSTALL_STEP,
    )


def _make_timeout_error(seconds: float) -> ConnectionLost:
    return ConnectionLost.say(
        "signal.timeout", "signal-cli did not answer within {seconds} seconds.", seconds=f"{seconds:g}"
    )


class SignalProcess:
    """A signal-cli that receives and sends for one account."""

    def __init__(
        self, process: asyncio.subprocess.Process, guard: asyncio.subprocess.Process, socket_folder: Path
    ) -> None:
        self._process = process
        self._guard = guard
        self._socket_folder = socket_folder
        self._writer: asyncio.StreamWriter | None = None  # as soon as it is connected
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._late_answers: list[Mapping[str, Any]] = []
        self._error_lines: deque[str] = deque(maxlen=MAX_ERROR_LINES)
        self._count = 0
        self._draining = asyncio.create_task(self._drain_errors(), name="palaver-signal-errors")
        self._ending = asyncio.create_task(process.wait(), name="palaver-signal-exit")
        self._reading: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, arguments: Sequence[str], descriptor: int, pid_file: Path) -> SignalProcess:
        """Start signal-cli with a file of the spool as its output; the descriptor is closed here."""
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="palaver-signal-"))  # only we may enter it
        options = ["daemon", "--socket", str(folder / SOCKET_NAME), "--receive-mode", "on-connection"]
        async with contextlib.AsyncExitStack() as cleanup:  # also when it is canceled: nothing is left behind
            cleanup.push_async_callback(asyncio.to_thread, shutil.rmtree, folder, ignore_errors=True)
            try:
                process = await start_program(
                    [*arguments, *options, "--ignore-stories"], stdout=descriptor, stderr=asyncio.subprocess.PIPE
                )
            finally:
                os.close(descriptor)
            cleanup.push_async_callback(stop_process, process)
            await asyncio.to_thread(pid_file.write_text, str(process.pid))
            guard_arguments = ["sh", "-c", GUARD_SCRIPT, str(process.pid), str(folder)]
            guard = await start_program(guard_arguments, stdin=asyncio.subprocess.PIPE)
            cleanup.pop_all()
            return cls(process, guard, folder)

    async def connect(self, seconds: float, poll_seconds: float) -> None:
        """Connect to signal-cli as soon as it listens: from then on it receives. Returns also if it has ended."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not self.has_ended:
            with contextlib.suppress(OSError):
                path = self._socket_folder / SOCKET_NAME
                reader, self._writer = await asyncio.open_unix_connection(path, limit=MAX_ANSWER_BYTES)
                self._reading = asyncio.create_task(self._read_answers(reader), name="palaver-signal-answers")
                return
            if asyncio.get_running_loop().time() > deadline:
                last = hide_people(self._error_lines[-1]) if self._error_lines else "it says nothing"
                raise ConnectionLost.say(
                    "signal.start_timeout",
                    "signal-cli did not start within {seconds} seconds: {reason}",
                    seconds=f"{seconds:g}",
                    reason=last,
                )
            await self.wait(poll_seconds)

    @property
    def has_ended(self) -> bool:
        return self._ending.done()

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read_errors(self) -> str:
        """Return what an ended signal-cli has written to its standard error, as far as it is kept."""
        await asyncio.wait({self._draining}, timeout=1.0)
        return "\n".join(self._error_lines)

    async def wait(self, seconds: float) -> None:
        """Wait until signal-cli has ended, at most so long."""
        await asyncio.wait({self._ending}, timeout=seconds)

    async def wait_after_disconnect(self) -> None:
        """If signal-cli has closed the connection, wait for its end: the connection closes a moment before."""
        if self._reading is not None and self._reading.done():
            await self.wait(END_SECONDS)

    async def request(
        self, method: str, parameters: Mapping[str, Any], *, key: str = "", seconds: float = REQUEST_SECONDS
    ) -> Any:
        """Make a request and return its result.

        Raises RpcError, RequestNotSent if signal-cli has certainly not seen it, and else ConnectionLost.
        """
        self._count += 1
        request_id = f"{key}#{self._count}"
        answer = self._answers[request_id] = asyncio.get_running_loop().create_future()
        try:
            await call_mark()
            await self._write({"jsonrpc": "2.0", "id": request_id, "method": method, "params": parameters}, seconds)
            await asyncio.wait({answer}, timeout=seconds)
        finally:
            self._answers.pop(request_id, None)
        if not answer.done():
            raise _make_timeout_error(seconds)
        return answer.result()

    async def _write(self, request: Mapping[str, Any], seconds: float) -> None:
        """Write a line. If it was not written completely, signal-cli can't have understood it."""
        writer = self._writer
        if writer is None and not self.has_ended:
            raise RequestNotSent("signal-cli is still starting. Try again in a minute.")
        if writer is None or self.has_ended or writer.is_closing():
            raise RequestNotSent("signal-cli is not running.")
        writer.write(json.dumps(request).encode() + b"\n")
        if writer.is_closing():
            raise RequestNotSent("signal-cli is not running.")
        if writer.transport.get_write_buffer_size():
            try:
                async with asyncio.timeout(seconds):
                    await writer.drain()
            except (OSError, TimeoutError) as error:
                writer.transport.abort()  # the rest is never written, not even later
                raise RequestNotSent("signal-cli takes no requests.") from error

    async def _read_answers(self, reader: asyncio.StreamReader) -> None:
        """Pass answers on until signal-cli closes the connection; messages are in the spool, too."""
        try:
            with contextlib.suppress(OSError):
                async for line in _iterate_lines(reader):
                    with contextlib.suppress(ValueError, AttributeError):
                        self._handle_answer(json.loads(line))
        finally:
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(
                        ConnectionLost.say("signal.ended_before_answer", "signal-cli has ended before it answered.")
                    )

    def _handle_answer(self, line: Mapping[str, Any]) -> None:
        if "id" not in line:
            return
        answer = self._answers.get(str(line["id"]))
        if answer is None or answer.done():
            self._late_answers.append(line)
        elif error := line.get("error"):
            answer.set_exception(RpcError(error))
        else:
            answer.set_result(line.get("result"))

    def take_late_answers(self) -> list[Mapping[str, Any]]:
        """Return the answers that came after their callers stopped waiting."""
        late, self._late_answers = self._late_answers, []
        return late

    async def stop(self) -> None:
        """End signal-cli and wait until it has ended. If that is canceled, it goes on; call it again to wait for it."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(), name="palaver-signal-stop")
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        """End signal-cli without losing a message.

        First the connection is closed from our side. signal-cli then stops receiving, prints what it has received, and
        closes the connection too: only now can it be ended.
        """
        if self._writer is not None and self._reading is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._writer.write_eof()
            await asyncio.wait({self._reading}, timeout=END_SECONDS)
            await _close_writer(self._writer)
        await stop_process(self._process)
        await asyncio.wait({self._ending, self._draining}, timeout=END_SECONDS)
        for task in (self._draining, self._reading):
            if task is not None and not task.done():
                task.cancel()
        assert self._guard.stdin is not None  # noqa: S101  (a pipe, see `start`)
        with contextlib.suppress(OSError):
            self._guard.stdin.write(b"\n")
        await _close_writer(self._guard.stdin)
        await stop_process(self._guard)
        await asyncio.to_thread(shutil.rmtree, self._socket_folder, ignore_errors=True)

    async def _drain_errors(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None  # noqa: S101  (a pipe, see `start`)
        async for line in _iterate_lines(stderr):
            self._error_lines.append(line.decode("utf-8", "replace").rstrip()[:500])


async def _iterate_lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream; one that is longer than the limit of the reader, which drops it, is left out."""
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            continue
        if not line:
            return
        yield line


def read_pid(pid_file: Path) -> int | None:
    """Return the number of the process that was started last; it may have ended."""
    try:
        return int(pid_file.read_text())
    except (OSError, ValueError):
        return None


def kill_leftover(pid: int) -> None:
    """Kill a signal-cli of an earlier process that has not ended with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
        log.warning("signal_cli_leftover_killed", extra={"pid": pid})
