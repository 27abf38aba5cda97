"""Open connections: how many there may be, in all and from one address, and which one makes room for another.

Always true: there are never more connections than half of the files that the process may open, so that the database
and file downloads always find one free. A new connection beyond a limit takes the place of the one that has kept the
server waiting longest: unused, with an unfinished request, or with a response that its client does not read. Requests
that the server is working on are never given up; if there is nothing else, the new connection is refused.
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Final, Protocol

MAX_CONNECTIONS: Final = 4096  # more would not help one process
MIN_CONNECTIONS: Final = 16
REFUSAL_SECONDS: Final = 60.0  # for so long a refused connection counts as a problem
_ADDRESS_SHARE: Final = 4  # one address gets this part of all connections


class Connection(Protocol):
    """A connection as the registry sees it."""

    def give_up(self) -> None:
        """Close the connection now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections may be open at once."""

    total: int
    per_address: int  # does not hold for trusted proxies, behind which there are many clients

    @classmethod
    def from_open_files(cls) -> ConnectionLimits:
        """Derive the limits from the number of files that this process may open."""
        open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if open_files == resource.RLIM_INFINITY:
            open_files = 2 * MAX_CONNECTIONS
        total = max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, open_files // 2))
        return cls(total=total, per_address=total // _ADDRESS_SHARE)


def raise_open_file_limit() -> None:
    """Let this process open as many files as it can use, if the system allows more than it has by default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    useful = 2 * MAX_CONNECTIONS
    wanted = useful if hard == resource.RLIM_INFINITY else min(useful, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Connections:
    """The open connections of a server."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._refused_at: float | None = None
        self._addresses: dict[Connection, str] = {}
        self._by_address: defaultdict[str, set[Connection]] = defaultdict(set)
        # Those that the server waits for, longest first.
        self._waiting: dict[Connection, None] = {}
        self._waiting_by_address: defaultdict[str, dict[Connection, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._addresses)

    @property
    def has_refused_lately(self) -> bool:
        """Whether a connection was refused because all that are allowed in total were busy."""
        return self._refused_at is not None and time.monotonic() - self._refused_at < REFUSAL_SECONDS

    def make_room(self, address: str, *, is_proxy: bool) -> bool:
        """Make room for a connection from an address; return False if that is not possible."""
        if not is_proxy and len(self._by_address.get(address, ())) >= self._limits.per_address:
            return self._give_up_first(self._waiting_by_address.get(address, {}))
        has_room = len(self) < self._limits.total or self._give_up_first(self._waiting)
        if not has_room:
            self._refused_at = time.monotonic()
        return has_room

    def give_up_longest_waiting(self) -> bool:
        """Close the connection that the server has been waiting for longest; return False if it waits for none."""
        return self._give_up_first(self._waiting)

    def add(self, connection: Connection, address: str) -> None:
        self._addresses[connection] = address
        self._by_address[address].add(connection)

    def remove(self, connection: Connection) -> None:
        """Forget a connection; do nothing if it was removed before."""
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self.mark_busy(connection, address)
        self._by_address[address].discard(connection)
        if not self._by_address[address]:
            del self._by_address[address]

    def mark_waiting(self, connection: Connection) -> None:
        """Note that the server waits for this connection's client, from now on."""
        address = self._addresses.get(connection)
        if address is not None:
            self.mark_busy(connection, address)
            self._waiting[connection] = None
            self._waiting_by_address[address][connection] = None

    def mark_busy(self, connection: Connection, address: str) -> None:
        """Note that the server works on a request of this connection."""
        if connection in self._waiting:
            del self._waiting[connection]
            del self._waiting_by_address[address][connection]
            if not self._waiting_by_address[address]:
                del self._waiting_by_address[address]

    def _give_up_first(self, waiting: dict[Connection, None]) -> bool:
        connection = next(iter(waiting), None)
        if connection is None:
            return False
        self.remove(connection)
        connection.give_up()
        return True
