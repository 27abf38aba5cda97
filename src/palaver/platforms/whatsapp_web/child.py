"""The process that runs the WhatsApp library: `python -m palaver.platforms.whatsapp_web.child`.

It speaks the lines of `protocol.py` on its standard input and output. The library calls it from threads of its own and
is never made to wait for Palaver: what it delivers goes to the spool, and a single thread writes lines.

Always true: an event is on disk before a line about it is written, and until it was acknowledged. The process ends when
its input ends, or with its parent. It writes no text of a message anywhere but into the spool and the lines.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import threading
from collections import Counter, deque
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol

from palaver.core.texts import pack_text, say
from palaver.platforms.whatsapp_web.protocol import (
    FILES_FOLDER,
    HEARTBEAT_SECONDS,
    LOCK_FILE,
    MAX_EVENTS,
    MAX_LINE_BYTES,
    MAX_UNACKNOWLEDGED_EVENTS,
    MAX_WAITING_REQUESTS,
    SPOOL_FOLDER,
    ErrorKind,
    RequestError,
    Spool,
    State,
    decode_line,
    encode_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.platforms.whatsapp_web.protocol import Receive, Report

WORKERS: Final = 4  # downloads, and other requests, that the library works on at once
INTERRUPT_SECONDS: Final = 0.2  # in which the main thread notices a signal that it was given itself
GRACE_SECONDS: Final = 4.0  # to finish what is being sent, after Palaver has gone
STOP_SECONDS: Final = 1.0  # for the library to stop, and for the last line to be written
MAX_WAITING_STATES: Final = 200
MAX_ENVELOPE_BYTES: Final = 100  # of a line around an event
SENDING_REQUESTS: Final = frozenset({"send_text", "send_file"})
PARENT_DEATH_SIGNAL_OPTION: Final = 1  # PR_SET_PDEATHSIG of prctl(2)


class Library(Protocol):
    """A WhatsApp client. Its methods are called from several threads."""

    version: str

    def connect(self, options: Mapping[str, Any], *, report: Report, receive: Receive) -> None:
        """Connect, and return when the connection has ended for good."""
        ...

    def is_alive(self) -> bool: ...

    def perform(self, name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Do what Palaver asks for. Raises RequestError."""
        ...

    def stop(self) -> None: ...


class Child:
    """Connects the library with Palaver."""

    def __init__(
        self,
        library: Library,
        output: int,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        max_events: int = MAX_EVENTS,
    ) -> None:
        self._library = library
        self._output = output
        self._heartbeat_seconds = heartbeat_seconds
        self._max_events = max_events
        self._changed = threading.Condition()
        self._replies: deque[dict[str, Any]] = deque()  # of requests that wait, which are bounded, and the states
        self._unacknowledged: set[int] = set()
        self._spool: Spool | None = None
        self._is_spool_readable = True
        # By whether they are downloads: one that hangs does not block sending.
        self._requests: dict[bool, SimpleQueue[dict[str, Any] | None]] = {False: SimpleQueue(), True: SimpleQueue()}
        self._pending: Counter[bool] = Counter()  # requests that wait for a worker or are being worked on
        self._stopping = threading.Event()
        self._was_connected = False  # since the start
        self._lock_file: int | None = None

    # ---- lines -----------------------------------------------------------------------------------------------

    def run(self, read_line: Callable[[int], bytes]) -> None:
        writer = threading.Thread(target=self._write_lines, daemon=True)
        writer.start()
        for is_download in [False, True] * WORKERS:
            threading.Thread(target=self._work, args=[is_download], daemon=True).start()
        self.report(State.READY, {"version": self._library.version})
        try:
            while line := read_line(MAX_LINE_BYTES):
                self._handle(decode_line(line))
        finally:
            self._shut_down()
            writer.join(STOP_SECONDS)  # nothing is written to the output after the end, unless nobody reads it

    def _handle(self, fields: dict[str, Any]) -> None:
        if "ack" in fields:
            self._acknowledge(int(fields["ack"]))
        elif fields["do"] == "connect":
            self._reply(fields["id"], lambda: self._connect(fields))
        else:
            is_download = fields["do"] == "download"
            with self._changed:
                has_room = self._pending[is_download] < MAX_WAITING_REQUESTS
                self._pending[is_download] += has_room
            if has_room:
                self._requests[is_download].put(fields)
            else:
                self._reply(fields["id"], _refuse_busy)

    def _work(self, is_download: bool) -> None:
        while (fields := self._requests[is_download].get()) is not None:
            self._reply(fields["id"], partial(self._perform, fields))
            with self._changed:
                self._pending[is_download] -= 1
                self._changed.notify_all()

    def _perform(self, fields: dict[str, Any]) -> dict[str, Any]:
        result = self._library.perform(fields["do"], fields)
        if fields["do"] in SENDING_REQUESTS and self._spool is not None:
            # Keep that a message was sent, in case Palaver is no longer there to read the reply.
            with contextlib.suppress(OSError):  # the reply says it, too
                self._spool.append({"kind": "sent", "key": fields["key"], "id": result["id"]})
        return result

    def _reply(self, number: int, work: Callable[[], dict[str, Any]]) -> None:
        try:
            reply: dict[str, Any] = {"re": number, "ok": work()}
        except RequestError as error:
            reply = {"re": number, "error": {"kind": error.kind, "text": pack_text(error.text)}}
        except Exception as error:  # noqa: BLE001  (its text may hold anything)
            text = f"Unexpected error in the WhatsApp library ({type(error).__name__})."
            reply = {"re": number, "error": {"kind": ErrorKind.UNCERTAIN, "text": text}}
        with self._changed:
            self._replies.append(reply)
            self._changed.notify_all()

    def report(self, state: State, fields: dict[str, Any]) -> None:
        """Tell Palaver about the connection. It is left out if Palaver does not read for long."""
        with self._changed:
            self._was_connected = self._was_connected or state is State.CONNECTED
            if len(self._replies) < MAX_WAITING_STATES:
                packed = {name: pack_text(value) if isinstance(value, str) else value for name, value in fields.items()}
                self._replies.append({"state": state, **packed})
                self._changed.notify_all()

    def receive(self, event: dict[str, Any]) -> None:
        """Store an event durably, and let it be handed on. It does not wait for Palaver.

        If that is not possible, or too much waits already, the connection ends: WhatsApp keeps what comes while the
        device is offline.
        """
        assert self._spool is not None  # noqa: S101  (set before anything is received)
        if len(encode_line(event)) > MAX_LINE_BYTES - MAX_ENVELOPE_BYTES:  # Palaver could never read it
            self.report(State.UNREADABLE, {"reason": "too long"})
            return
        try:
            self._spool.append(event)
        except OSError as error:
            self._end_connection(f"What was received can't be written to the disk: {error.strerror}.")
            raise
        if self._spool.is_full:
            self._end_connection("Too many messages wait to be stored.")
        with self._changed:
            self._changed.notify_all()

    def _end_connection(self, reason: str) -> None:
        self.report(State.ENDED, {"reason": reason})
        self._library.stop()

    def _write_lines(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._has_line() or self._stopping.is_set())
                if self._stopping.is_set():
                    return
                fields = self._replies.popleft() if self._replies else None
            line = encode_line(fields) if fields is not None else self._take_event()
            try:
                while line:
                    line = line[os.write(self._output, line) :]
            except OSError:  # Palaver is gone: the input has ended, too
                return

    def _has_line(self) -> bool:
        """Whether there is something to write. Events wait for the connection: their files are downloaded with it."""
        if self._replies or self._spool is None:
            return bool(self._replies)
        has_room = len(self._unacknowledged) < MAX_UNACKNOWLEDGED_EVENTS
        is_ready = self._is_spool_readable and (self._was_connected or self._spool.is_full)
        return has_room and is_ready and self._spool.has_waiting

    def _take_event(self) -> bytes:
        assert self._spool is not None  # noqa: S101  (`_has_line`)
        try:
            taken = self._spool.take()
        except OSError as error:
            self._is_spool_readable = False  # later events must not overtake this one: Palaver starts the child again
            reason = f"What was received can't be read from the disk: {error.strerror}."
            self.report(State.ENDED, {"reason": reason})
            return b""
        if taken is None:  # what was waiting can't be read
            with self._changed:
                self._changed.notify_all()
            return b""
        self._unacknowledged.add(taken[0])
        return encode_line({"seq": taken[0], "event": taken[1]})

    def _acknowledge(self, number: int) -> None:
        if self._spool is not None:
            self._spool.remove(number)
        with self._changed:
            self._unacknowledged.discard(number)
            self._changed.notify_all()

    # ---- connection ------------------------------------------------------------------------------------------

    def _connect(self, options: dict[str, Any]) -> dict[str, Any]:
        folder = Path(options["folder"])
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_file = _lock_account(folder)
        os.chdir(folder)  # the library opens its database by a name without special characters
        files = folder / FILES_FOLDER
        files.mkdir(mode=0o700, exist_ok=True)
        for path in files.iterdir():
            path.unlink()
        self._spool = Spool(folder / SPOOL_FOLDER, max_events=self._max_events)
        threading.Thread(target=self._keep_connected, args=[options], name="connection", daemon=True).start()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        return {}

    def _keep_connected(self, options: dict[str, Any]) -> None:
        """Receive; if too much waits already, hand that over first."""
        with self._changed:
            self._changed.wait_for(lambda: self._spool is not None and not self._spool.is_full)
        reason: str = say("whatsapp_web.connection_whatsapp_ended", "The connection to WhatsApp has ended.")
        try:
            self._library.connect(options, report=self.report, receive=self.receive)
        except RequestError as error:
            reason = error.text
        except Exception as error:  # noqa: BLE001  (its text may hold anything)
            reason = f"Unexpected error in the WhatsApp library ({type(error).__name__})."
        self.report(State.ENDED, {"reason": reason})

    def _beat(self) -> None:
        while True:
            if self._library.is_alive():
                self.report(State.ALIVE, {})
            if self._stopping.wait(self._heartbeat_seconds):
                return

    def _shut_down(self) -> None:
        """Let what is being sent or asked for end, so that its outcome is known after a restart."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending[False] == 0, GRACE_SECONDS)
            self._stopping.set()
            self._changed.notify_all()
        for is_download in [False, True] * WORKERS:
            self._requests[is_download].put(None)
        stopping = threading.Thread(target=self._library.stop, daemon=True)
        stopping.start()
        stopping.join(STOP_SECONDS)
        if self._lock_file is not None:
            os.close(self._lock_file)


def _refuse_busy() -> dict[str, Any]:
    raise RequestError(ErrorKind.NOT_SENT, "Too much is being sent to WhatsApp at once.")


def _lock_account(folder: Path) -> int:
    """Let no other process run the account: two clients with the same keys end each other, and lose messages."""
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise RequestError(ErrorKind.IN_USE, "Another process of Palaver runs this WhatsApp account.") from None
    return descriptor


# ---- process -------------------------------------------------------------------------------------------------


def take_output() -> int:
    """Keep the standard output for lines, and let what the library prints go nowhere."""
    output = os.dup(sys.stdout.fileno())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return output


def end_with_parent() -> None:
    """Ask the system for a signal when the parent ends, and end on it, as at the end of the input."""
    is_ending = threading.Event()

    def end(_signal: int, _frame: object) -> None:
        if is_ending.is_set():
            return
        is_ending.set()
        timer = threading.Timer(GRACE_SECONDS + 2, os._exit, [1])  # whatever the library does
        timer.daemon = True
        timer.start()
        raise SystemExit

    signal.signal(signal.SIGTERM, end)
    signals, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    threading.Thread(target=_interrupt_main_thread, args=[signals, is_ending], daemon=True).start()
    with contextlib.suppress(OSError, AttributeError):  # not on this system
        import ctypes

        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL_OPTION, signal.SIGTERM)


def _interrupt_main_thread(signals: int, is_ending: threading.Event) -> None:
    """Wake the main thread at a signal: the system may give it to a thread of the library, which does not."""
    os.read(signals, 1)
    main_thread = threading.main_thread().ident
    if not is_ending.wait(INTERRUPT_SECONDS) and main_thread is not None:
        signal.pthread_kill(main_thread, signal.SIGTERM)


def serve(load_library: Callable[[], Library], *, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
    """Run a child until Palaver ends it."""
    os.umask(0o077)
    output = take_output()
    end_with_parent()
    try:
        library = load_library()
    except Exception as error:  # noqa: BLE001  (told to Palaver, which tells the operator)
        fields = {"state": State.FAILED, "module": getattr(error, "name", None) or "", "error": str(error)[:300]}
        os.write(output, encode_line(fields))
        return
    with contextlib.suppress(ValueError, KeyError, TypeError, SystemExit):  # also a line that is none of ours
        Child(library, output, heartbeat_seconds=heartbeat_seconds).run(sys.stdin.buffer.readline)


def _load_neonize() -> Library:
    import logging

    logging.disable(logging.CRITICAL)  # the library logs to the standard error
    from palaver.platforms.whatsapp_web.library import NeonizeLibrary

    return NeonizeLibrary()


if __name__ == "__main__":
    serve(_load_neonize)
    os._exit(0)  # threads of the library may go on for ever
