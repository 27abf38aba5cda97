"""Which server a connection has reached, and whether it is the one that has the store.

After a failover the new primary is on a higher timeline than the old one. An old primary that comes back accepts writes
like the new one, and everything written there would be missing from the store. So this process remembers the highest
timeline that it has seen, also in a file in its home folder, and refuses servers that are behind it.

Two servers that were both promoted from the same timeline have the same number and can't be told apart here.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors as pg

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.core.engines.postgres_connection import PooledConnection

FILE_NAME: Final = "postgres-timelines.json"

log = logging.getLogger(__name__)


class WrongServer(psycopg.OperationalError):
    """The server answers, but the store must not be used there; the text says why, for the operator."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Which database cluster, and which of its histories."""

    system_id: str
    timeline: int


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What a server says about itself over a new connection."""

    backend_pid: int
    is_replica: bool
    identity: ServerIdentity | None  # None: this server does not tell


_READ_REPORT: Final = "SELECT pg_backend_pid(), pg_is_in_recovery()"
# The timeline of the last checkpoint (pg_control_checkpoint) is the old one for minutes after a promotion.
_READ_IDENTITY: Final = """SELECT (SELECT system_identifier FROM pg_control_system())::text,
    CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"""


def read_report(connection: PooledConnection) -> ServerReport:
    """Ask a server over a new connection, in one message."""
    try:
        cursor = connection.execute(f"{_READ_REPORT}; {_READ_IDENTITY}", prepare=False)
    except (pg.FeatureNotSupported, pg.InsufficientPrivilege, pg.UndefinedFunction):  # a service like PostgreSQL
        pid, is_replica = connection.execute(_READ_REPORT, prepare=False).fetchall()[0]
        return ServerReport(int(pid), bool(is_replica), None)
    pid, is_replica = cursor.fetchall()[0]
    cursor.nextset()
    system_id, timeline = cursor.fetchall()[0]
    identity = None if timeline is None else ServerIdentity(str(system_id), int(timeline, 16))
    return ServerReport(int(pid), bool(is_replica), identity)


class TimelineFile:
    """The highest timeline of every cluster that this machine has used; without a folder it remembers nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.path = None if folder is None else folder / FILE_NAME

    def load(self, system_id: str) -> int:
        """Return the highest timeline that was seen of a cluster; 0 if none was."""
        return self._read().get(system_id, 0)

    def save(self, identity: ServerIdentity) -> None:
        known = self._read()
        if self.path is None or known.get(identity.system_id, 0) >= identity.timeline:
            return
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_text(json.dumps({**known, identity.system_id: identity.timeline}), encoding="ascii")
            temporary.replace(self.path)
        except OSError as error:  # the process still remembers it
            log.warning("timeline_not_saved", extra={"path": str(self.path), "error": str(error)})

    def _read(self) -> dict[str, int]:
        try:
            found = json.loads(self.path.read_text(encoding="ascii")) if self.path is not None else {}
        except (OSError, ValueError):
            return {}
        return {str(name): value for name, value in found.items() if isinstance(value, int)}
