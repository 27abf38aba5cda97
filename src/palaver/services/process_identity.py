"""Which process this is, and whether another one on the same machine is dead for certain.

Leases run out by themselves. But whoever restarts Palaver does not want to wait for that: where the operating system
can tell that the process which held a lease is gone, its turns are taken over at once. Where it cannot tell (another
machine, another container, another system than Linux) the lease decides.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_PROC = Path("/proc")


def new_owner() -> str:
    """A name for this process as a holder of leases; different each time."""
    return f"{_place() or 'elsewhere'}/{os.getpid()}/{_started(os.getpid()) or 0}/{secrets.token_hex(4)}"


def is_dead(owner: str) -> bool:
    """Whether the process of that name has certainly ended."""
    place, pid, started, _ = owner.split("/")
    if place != _place():
        return False
    now = _started(int(pid))
    return now != int(started) and (now is not None or not _is_hidden(int(pid)))


def _place() -> str | None:
    """This boot of this machine, and the space in which its process numbers mean something."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}.{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return None


def _is_hidden(pid: int) -> bool:
    """Whether there is a process that we are not shown: `/proc` may keep other people's processes to itself."""
    if (_PROC / str(pid)).exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _started(pid: int) -> int | None:
    """When a process began, in ticks since the boot; None when there is no such process, or it is dead already."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {b"Z", b"X"} else int(fields[19])
