"""Names this process as the owner of leases, and detects owners whose process has certainly ended.

Leases expire on their own. But after a restart, people should not have to wait for that: where the operating system can
tell that the process which held a lease has ended, its work is taken over at once. Where it cannot tell (another
machine, another container, a system other than Linux), the lease decides.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

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
