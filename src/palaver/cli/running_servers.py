"""The servers that run on a home folder: each announces its address in a file that it keeps locked.

The system releases the lock when the process ends, however it ends. So a file without a lock is a leftover.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.config import Settings


_FOLDER = "servers"  # in the home folder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """Under which URLs browsers reach a server."""

    url: str  # the configured public one, or else for a browser on this machine
    network_url: str | None  # for other machines in the network; None: only `url` works


@contextlib.contextmanager
def announce_server(home: Path, port: int, server: RunningServer) -> Iterator[None]:
    """Let other processes find this server as long as the block runs."""
    path = home / _FOLDER / f"{port}.json"
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            file = stack.enter_context(path.open("w", encoding="utf-8"))
            fcntl.flock(file, fcntl.LOCK_EX)
            json.dump(asdict(server), file)
            file.flush()
            stack.callback(path.unlink, missing_ok=True)
        except OSError as error:  # the server works all the same
            log.warning("server_not_announced", extra={"path": str(path), "error": str(error)})
        yield


def find_running_server(home: Path, port: int | None) -> RunningServer | None:
    """Find a server that runs on a home folder; with a port, only the server on that port."""
    paths = list((home / _FOLDER).glob("*.json" if port is None else f"{port}.json"))
    return next((server for path in paths if (server := _read_if_running(path))), None)


def find_page_url(settings: Settings) -> str | None:
    """Return the URL of the page that other people can most likely reach; None if no server runs that has one."""
    if settings.web.public_url:
        return settings.web.public_url.rstrip("/")
    server = find_running_server(settings.home, None)
    return None if server is None else server.network_url or server.url


def _read_if_running(path: Path) -> RunningServer | None:
    try:
        with path.open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:  # its server lives
                return RunningServer(**json.load(file))
    except (OSError, ValueError, TypeError):  # it has just ended, or has not written its address yet
        return None
    path.unlink(missing_ok=True)
    return None


# Which program listens on a port, so that an error can name it. Only Linux says; elsewhere the answer is None.

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
