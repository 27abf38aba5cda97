"""Notices commits to a SQLite file: our own at once, those of other processes within a few milliseconds.

Of our own commits, triggers of the connection that writes say which sessions they have changed. After a commit of
others, that is found by comparing marks, and once a second after our own, in case that the triggers have missed one.

SQLite cannot notify other processes. `data_version` is an integer that changes whenever any other connection commits,
so it only has to be read at the right moment. Every commit writes to the WAL first, which is an event of the file
system; the commit becomes visible a moment later, when the WAL is on the disk. So after an event `data_version` is read
a few times, first often and then less and less. Without file events it is read at a steady interval.

Changes of files are noticed with inotify on Linux: waiting for one costs nothing, and asking for one a microsecond.
Folders are watched, not files, so that a file may be deleted and created again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import struct
import sys
import threading
import time
from dataclasses import KW_ONLY  # noqa: TC003  (read at run time)
from typing import TYPE_CHECKING, Any, Final

import apsw

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import ACCESS_CHANGE, SETTINGS_CHANGE, WORK_CHANGE, OnChange, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


_SELECT_OPEN_TURNS = "SELECT no, session_no, state, input_seq, stop_request FROM turn"
MAX_WATCHED_QUEUED_TURNS = 500  # changes of turns further back in the queue are noticed when those turns start
POLL_SECONDS = 0.04  # between two reads where the system has no file events
MIN_WAIT_SECONDS = 0.01  # between two reads right after an event
MAX_WAIT_SECONDS = 1.0  # between two reads when there are no events: finds out whether events are reliable
CHECK_SECONDS = 1.0  # after a commit of our own: then marks are compared, too
WAIT_GROWTH = 0.2  # each wait is this fraction of the time since the last event

# What each change means to those who wait for changes: an expression for the number of the session, or other numbers.
# On PostgreSQL, triggers of the database do the same for the writes of all processes.
_CHANGES: Final = {
    "INSERT ON event": ("NEW.session_no",),
    "INSERT ON turn": ("NEW.session_no", str(WORK_CHANGE)),
    "UPDATE OF state, stop_request, input_seq ON turn": (
        "NEW.session_no",
        f"CASE WHEN NEW.state = 'running' AND NEW.stop_request IS NULL THEN NEW.session_no ELSE {WORK_CHANGE} END",
    ),
    "INSERT ON draft": ("NEW.session_no",),
    "INSERT ON delivery": ("COALESCE(NEW.session_no, 0)", str(WORK_CHANGE)),
    "UPDATE OF state ON delivery": ("COALESCE(NEW.session_no, 0)",),
    "UPDATE OF due_at ON delivery": (str(WORK_CHANGE),),
    "DELETE ON session": ("OLD.no",),
    "INSERT ON job": (str(WORK_CHANGE),),
    "UPDATE OF state, next_slot ON job": (str(WORK_CHANGE),),
    "INSERT ON job_run": (str(WORK_CHANGE),),
    "UPDATE OF state ON job_run": (str(WORK_CHANGE),),
    "UPDATE ON access_change": (str(ACCESS_CHANGE),),
    "UPDATE ON setting_state": (str(SETTINGS_CHANGE),),
    "INSERT ON setting_state": (str(SETTINGS_CHANGE),),
}

_IN_MODIFY: Final = 0x0002
_IN_CREATE: Final = 0x0100
_NAME_CHANGES: Final = 0x0FC0  # of what is in a folder, or of the folder: created, deleted, moved
_IN_Q_OVERFLOW: Final = 0x4000  # there were more events than the system could keep
_HEADER: Final = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_BUFFER_BYTES: Final = 65536

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChangeMarks:
    """The state of the tables at the last check, to compare the next one with."""

    event_no: int = 0
    draft_no: int = 0
    turn_no: int = 0
    delivery_no: int = 0
    access_change_no: int = 0
    job_run_no: int = 0
    next_job_slot: int = 0
    settings_version: int = 0
    _: KW_ONLY
    open_turns: frozenset[tuple[int, int, str, int, str | None]] = frozenset()
    sending: frozenset[tuple[int, int | None]] = frozenset()  # (delivery, its session)
    next_delivery_at: int | None = None  # when the first delivery that waits is due

    def has_more_work_than(self, last: ChangeMarks) -> bool:
        """Tell whether there may be something to run, to stop or to send that was not there at the last check."""
        if self.next_delivery_at is not None and (
            last.next_delivery_at is None or self.next_delivery_at < last.next_delivery_at
        ):
            return True  # the one before it may have been deleted
        return self._work_state != last._work_state

    @property
    def _work_state(self) -> tuple[object, ...]:
        return self.turn_no, self.delivery_no, self.open_turns, self.job_run_no, self.next_job_slot


def record_changed_sessions(db: apsw.Connection, changed: set[int]) -> None:
    """Let a connection add what its statements change to `changed`, from now on."""

    def record(*numbers: Any) -> None:
        changed.update(numbers)

    db.create_scalar_function("palaver_record_change", record)
    for number, (change, values) in enumerate(_CHANGES.items()):
        # One call for each row: every call takes the lock of the interpreter, for which the event loop waits.
        call = f"palaver_record_change({', '.join(values)})"
        db.execute(f"CREATE TEMP TRIGGER IF NOT EXISTS change_{number} AFTER {change} BEGIN SELECT {call}; END")


def find_changed_sessions(tx: Transaction, marks: ChangeMarks | None) -> tuple[ChangeMarks, frozenset[int]]:
    """Return new marks, and the numbers of the sessions with something new or something in another state.

    `ACCESS_CHANGE` is among them if a person may have lost access, `SETTINGS_CHANGE` if an owner has changed settings.
    """
    sql = """SELECT (SELECT MAX(no) FROM event), (SELECT MAX(no) FROM draft), (SELECT MAX(no) FROM turn),
        (SELECT MAX(no) FROM delivery), (SELECT no FROM access_change WHERE id = 1),
        (SELECT MAX(no) FROM job_run), (SELECT MIN(next_slot) FROM job WHERE next_slot IS NOT NULL),
        (SELECT version FROM setting_state WHERE id = 1),
        (SELECT MIN(due_at) FROM delivery WHERE state = 'pending' AND due_at IS NOT NULL)"""
    last_numbers = tx.fetch_one(sql)
    assert last_numbers is not None  # noqa: S101
    *numbers, next_delivery_at = last_numbers
    open_turns = frozenset(
        tx.fetch_all(f"{_SELECT_OPEN_TURNS} WHERE state = 'running'")
        + tx.fetch_all(
            f"{_SELECT_OPEN_TURNS} WHERE state = 'queued' ORDER BY queue_round, no LIMIT $1", MAX_WATCHED_QUEUED_TURNS
        )
    )
    sending = frozenset(tx.fetch_all("SELECT no, session_no FROM delivery WHERE state = 'sending'"))
    new_marks = ChangeMarks(
        *(int(no or 0) for no in numbers), open_turns=open_turns, sending=sending, next_delivery_at=next_delivery_at
    )
    if marks is None:  # later calls count from these
        return new_marks, frozenset()
    changed = {turn[1] for turn in open_turns ^ marks.open_turns}
    if new_marks.access_change_no != marks.access_change_no:
        changed.add(ACCESS_CHANGE)
    if new_marks.settings_version != marks.settings_version:
        changed.add(SETTINGS_CHANGE)
    changed |= {session_no for _, session_no in sending ^ marks.sending if session_no is not None}
    for table in ("event", "draft", "turn"):
        before: int = getattr(marks, f"{table}_no")
        if getattr(new_marks, f"{table}_no") > before:
            # Without DISTINCT, for which SQLite would scan a whole index of the table.
            changed |= {no for (no,) in tx.fetch_all(f"SELECT session_no FROM {table} WHERE no > $1", before)}
    return new_marks, frozenset(changed)


class WakeUp:
    """Wakes a thread that waits for file descriptors: `fd` becomes readable."""

    def __init__(self) -> None:
        self.fd, self._writer = os.pipe()
        for fd in (self.fd, self._writer):
            os.set_blocking(fd, False)
        self._lock = threading.Lock()  # nothing is written after the descriptors are closed
        self._closed = False

    def send(self) -> None:
        """Wake the thread; may be called from any thread."""
        with self._lock, contextlib.suppress(BlockingIOError):  # the pipe is full of wake-ups
            if not self._closed:
                os.write(self._writer, b"\0")

    def clear(self) -> None:
        os.read(self.fd, _BUFFER_BYTES)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            os.close(self.fd)
            os.close(self._writer)


class FileEvents:
    """Says when a file was written to, by any process of this machine, or when `wake` was called."""

    def __init__(self, path: Path) -> None:
        """Start to watch. Without inotify, `wait` returns only after its timeout or a `wake`."""
        self._name = os.fsencode(path.name)
        self._events = _open_inotify([path.parent], _IN_MODIFY | _IN_CREATE)
        self._wake_up = WakeUp()
        self._poll = select.poll()
        self._poll.register(self._wake_up.fd, select.POLLIN)
        if self._events is not None:
            self._poll.register(self._events, select.POLLIN)

    @property
    def is_supported(self) -> bool:
        return self._events is not None

    def wake(self) -> None:
        """Let `wait` return now; may be called from any thread."""
        self._wake_up.send()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until the file is written to, until `wake` or until the timeout; return whether it was written to."""
        ready = {fd for fd, _ in self._poll.poll(timeout_seconds * 1000)}
        if self._wake_up.fd in ready:
            self._wake_up.clear()
        if self._events is None or self._events not in ready:
            return False
        return self._has_event(os.read(self._events, _BUFFER_BYTES))

    def close(self) -> None:
        self._wake_up.close()
        if self._events is not None:
            os.close(self._events)

    def _has_event(self, data: bytes) -> bool:
        position = 0
        while position < len(data):
            _, mask, _, length = _HEADER.unpack_from(data, position)
            position += _HEADER.size + length
            name = data[position - length : position].rstrip(b"\0")
            if name == self._name or mask & _IN_Q_OVERFLOW:
                return True
        return False


class NameChanges:
    """Says whether a file in some folders was created, deleted or renamed, or one of the folders, since the last call.

    The system queues an event before the change is finished, so none that came earlier is missed.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._events = _open_inotify(folders, _NAME_CHANGES)
        self._poll = select.poll()
        if self._events is not None:
            self._poll.register(self._events, select.POLLIN)

    def has_any(self) -> bool:
        """Return whether there was a change; always True if this system does not say."""
        if self._events is None:
            return True
        if not self._poll.poll(0):
            return False
        os.read(self._events, _BUFFER_BYTES)
        return True

    def close(self) -> None:
        if self._events is not None:
            os.close(self._events)
            self._events = None


def _open_inotify(folders: Iterable[Path], mask: int) -> int | None:
    """Return a file descriptor with events of some folders; None if this system does not offer that."""
    if sys.platform != "linux":
        return None
    import ctypes  # what only reads watches nothing

    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        return None
    if any(libc.inotify_add_watch(fd, os.fsencode(folder), mask) < 0 for folder in folders):
        os.close(fd)
        return None
    return fd


class SqliteWatch:
    """Calls `on_change` after every commit by any process; a thread finds those of others.

    It removes itself from `watches`, the engine's list, when it is closed.
    """

    def __init__(
        self,
        path: Path,
        open_reader: Callable[..., apsw.Connection],
        on_change: OnChange,
        watches: list[SqliteWatch],
        check_files: Callable[[], None],
        read_other_commits: Callable[..., int | None],
    ) -> None:
        self._path = path
        self._open_reader = open_reader
        self._check_files = check_files  # called once a second
        self._read_other_commits = read_other_commits  # a number that changes with them; None: there may be some
        self._last_other_commit: int | None = None
        self._on_change = on_change
        self._watches = watches
        real_path = path.resolve()  # SQLite puts the WAL beside the file that a link points to
        self._events = FileEvents(real_path.with_name(f"{real_path.name}-wal"))
        self._own_commit_at = 0.0
        self._closed = threading.Event()
        self._has_started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="palaver-watch", daemon=True)
        self._thread.start()
        self._has_started.wait()  # every commit from now on is noticed

    def report_commit(self, changed: frozenset[int]) -> None:
        """Report a commit of this process: the thread need not find it."""
        self._own_commit_at = time.monotonic()
        self._on_change(changed)

    def close(self) -> None:
        with contextlib.suppress(ValueError):  # closed before
            self._watches.remove(self)
        if not self._closed.is_set():
            self._closed.set()
            self._events.wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._watch()
        finally:
            self._has_started.set()  # also if the file can't be opened

    def _watch(self) -> None:
        with contextlib.closing(self._events), contextlib.closing(self._open_reader(reader=True)) as db:
            version = self._read_version(db)
            self._last_other_commit = self._read_other_commits(is_writing=False)
            self._has_started.set()
            is_reliable = self._events.is_supported
            last_event = last_check = 0.0
            changed_at: float | None = None  # there are commits that were not reported, or by triggers only
            while not self._closed.is_set():
                since_event = time.monotonic() - last_event
                wait = min(MAX_WAIT_SECONDS, max(MIN_WAIT_SECONDS, since_event * WAIT_GROWTH))
                has_event = self._events.wait(wait if is_reliable else POLL_SECONDS)
                now = time.monotonic()
                is_expected = has_event or now - self._own_commit_at <= wait
                if has_event:
                    last_event = now
                if now - last_check >= MAX_WAIT_SECONDS:
                    last_check = now
                    self._check_files()
                new_version = self._read_version(db)
                if new_version == version:
                    changed_at = None
                elif not self._closed.is_set():
                    if changed_at is None and wait >= MAX_WAIT_SECONDS and not (is_expected or self._events.wait(0)):
                        if is_reliable:
                            log.info("file_events_missing", extra={"path": str(self._path)})
                        is_reliable = False  # a network file system, for example
                    changed_at = now if changed_at is None else changed_at
                    if self._has_other_commit() or now - changed_at >= CHECK_SECONDS:
                        version, changed_at = new_version, None
                        self._on_change(None)
                if has_event:  # more of them belong to the same commit
                    self._closed.wait(MIN_WAIT_SECONDS)

    def _has_other_commit(self) -> bool:
        """Return whether another process has, or may have, committed since the last time."""
        try:
            is_writing = time.monotonic() - self._own_commit_at < MIN_WAIT_SECONDS
            last, self._last_other_commit = self._last_other_commit, self._read_other_commits(is_writing=is_writing)
        except apsw.Error:  # a disk problem
            return True
        return self._last_other_commit is None or self._last_other_commit != last

    def _read_version(self, db: apsw.Connection) -> int:
        try:
            return int(db.execute("PRAGMA data_version").get)
        except apsw.Error:  # a disk problem: the next read by a caller reports it
            return -1
