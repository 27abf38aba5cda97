"""The loop of a background worker, and leases by name: what only one process on the database may do at a time.

Leases expire on their own. But after a restart, people should not have to wait for that: where the operating system
can tell that the process which held a lease has ended, its work is taken over at once. Where it cannot tell (another
machine, another container, a system other than Linux), the lease decides.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from palaver.core.clock import to_micros
from palaver.core.engines.base import Transaction, WorkKind, Write, write_kind
from palaver.core.errors import StoreError
from palaver.core.tasks import cancel_tasks

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable

    from palaver.core.clock import Clock
    from palaver.core.engines.base import Engine


RETRY_SECONDS = 1.0  # pause after a poll that failed


class PollLoop:
    """Calls `poll` in a task, then sleeps until something wakes it or the next work is due.

    `poll` returns the seconds until the next call; `wake` makes that call now. A poll that fails is logged as
    `failure_event` and tried again: without this loop no work of its kind is done.
    """

    def __init__(
        self,
        poll: Callable[[], Awaitable[float]],
        name: str,
        *,
        log: logging.Logger,
        failure_event: str,
        kind: WorkKind = WorkKind.BACKGROUND,
        is_needed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._poll = poll
        self._name = name
        self._log = log
        self._failure_event = failure_event
        self._kind = kind
        self._is_needed = is_needed  # asked with each `wake`, until the task runs
        self._wake_event = asyncio.Event()
        self._has_started = False
        self._task: asyncio.Task[None] | None = None
        self.is_stopping = False

    @property
    def is_running(self) -> bool:
        return self._task is not None

    def start(self) -> None:
        self._has_started = True
        self.wake()

    def wake(self) -> None:
        """Poll now."""
        if self._has_started and self._task is None and not self.is_stopping and self._is_needed():
            self._task = asyncio.create_task(self._run(), name=self._name)
        self._wake_event.set()

    def clear_wake(self) -> None:
        """Say, in a poll, that it does also what the loop was woken for until now."""
        self._wake_event.clear()

    async def _run(self) -> None:
        log, loop = self._log, asyncio.get_running_loop()
        write_kind.set(self._kind)  # of this task, and of those that it starts
        while not self.is_stopping:
            self._wake_event.clear()
            try:
                wait = await self._poll()
            except StoreError as error:
                log.warning(self._failure_event, extra={"error": str(error)})
                wait = RETRY_SECONDS
            except Exception:  # whatever it is, the loop must go on
                log.exception(self._failure_event)
                wait = RETRY_SECONDS
            timer = loop.call_later(wait, self._wake_event.set)
            try:
                await self._wake_event.wait()
            finally:
                timer.cancel()

    async def stop(self, seconds: float | None = None) -> None:
        """Let the poll that runs end, for so long: what it has begun must not be forgotten."""
        self.is_stopping = True
        self._wake_event.set()
        task, self._task = self._task, None
        if task is not None and seconds is None:
            await task
        elif task is not None:
            await asyncio.wait([task], timeout=seconds)
            task.cancel()

    async def cancel(self) -> None:
        """End at once, also in the middle of a poll."""
        self.is_stopping = True
        task, self._task = self._task, None
        await cancel_tasks([] if task is None else [task])


_PROC_PATH = Path("/proc")


def create_lease_owner() -> str:
    """Return a new name under which this process holds leases: `host/pid/start/random`."""
    pid = os.getpid()
    return f"{_read_host_id() or 'unknown'}/{pid}/{_read_start_ticks(pid) or 0}/{secrets.token_hex(4)}"


def is_owner_dead(owner: str) -> bool:
    """Tell whether the process of a lease owner has certainly ended; False when that cannot be known."""
    host_id, pid_text, start_ticks, _ = owner.split("/")
    if host_id != _read_host_id():
        return False
    pid = int(pid_text)
    current_ticks = _read_start_ticks(pid)
    return current_ticks != int(start_ticks) and (current_ticks is not None or not _is_hidden(pid))


def _read_host_id() -> str | None:
    """Identify this boot of this machine and the namespace in which its process ids are valid."""
    try:
        boot = (_PROC_PATH / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}.{(_PROC_PATH / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return None


def _is_hidden(pid: int) -> bool:
    """Tell whether a process exists that `/proc` does not show: it may hide the processes of other users."""
    if (_PROC_PATH / str(pid)).exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _read_start_ticks(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None when it does not exist or has already died."""
    try:
        fields = (_PROC_PATH / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {b"Z", b"X"} else int(fields[19])


class NamedLease:
    """A lease by name: this process alone does something on the database until it ends or is given back."""

    def __init__(self, engine: Engine, clock: Clock, name: str, lease_time: timedelta) -> None:
        self._engine = engine
        self._clock = clock
        self._name = name
        self._lease_time = lease_time
        self._owner = create_lease_owner()

    async def take(self) -> bool:
        """Take or extend the lease; False if another process that may still be alive holds it."""
        now = to_micros(self._clock.now())
        until = now + self._lease_time // timedelta(microseconds=1)

        def take(tx: Transaction) -> bool:
            tx.lock_name(f"palaver lease {self._name}")
            if self._is_held_by_other(tx, now):
                return False
            insert = "INSERT INTO named_lease (name, owner, until) VALUES ($1, $2, $3)"
            update = "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until"
            tx.execute(f"{insert} {update}", self._name, self._owner, until)
            return True

        return await self._engine.arun(
            Write(take, read_first=lambda tx: False if self._is_held_by_other(tx, now) else None)
        )

    async def release(self) -> None:
        """Give the lease back, if this process holds it."""
        delete = "DELETE FROM named_lease WHERE name = $1 AND owner = $2"
        await self._engine.arun(Write(lambda tx: tx.execute(delete, self._name, self._owner)))

    def _is_held_by_other(self, tx: Transaction, now: int) -> bool:
        row = tx.fetch_one("SELECT owner, until FROM named_lease WHERE name = $1", self._name)
        if row is None:
            return False
        holder, until = row
        return holder != self._owner and until > now and not is_owner_dead(holder)
