"""Which program listens on a port, so that an error can name it. Only Linux says; elsewhere the answer is None."""

from __future__ import annotations

import contextlib
from pathlib import Path

_LISTENING = "0A"  # the state of a listening socket in /proc/net/tcp


def describe_port_user(port: int, proc: Path = Path("/proc")) -> str | None:
    """Describe the process that listens on a port: `python3 (process 4711)`.

    None if it cannot be found out: other users' processes are hidden, and not every system has /proc.
    """
    sockets = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _list_inodes(proc / "net" / table, port)}
    if not sockets:
        return None
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if any(str(file.readlink()) in sockets for file in (folder / "fd").iterdir()):
                return f"{_read_program(folder)} (process {folder.name})"
    return None


def _list_inodes(table: Path, port: int) -> list[str]:
    """List the sockets that listen on a port, from a table with the columns number, address, peer, state, …, inode."""
    try:
        rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port]


def _read_program(folder: Path) -> str:
    """Return the name of a program, never its arguments: they may contain a password."""
    program, _, _ = (folder / "cmdline").read_text(encoding="utf-8", errors="replace").partition("\0")
    return Path(program).name
