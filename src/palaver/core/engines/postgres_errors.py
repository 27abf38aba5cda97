"""Errors of PostgreSQL, as errors of the store: by their SQLSTATE, never by their text.

Always true: the text of an error that people may read names neither the server nor its paths. The log has both.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors as pg

from palaver.core.errors import (
    InvalidInput,
    PalaverError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)

_DAMAGED: Final = (
    "PostgreSQL reports damaged data. Check the disk of its server, and restore the latest backup"
    " (docs/guides/backup.md)."
)
_LOST_STATEMENTS: Final = (
    "A connection pooler mixes up prepared statements. Restart Palaver, so that it notices the pooler, or connect"
    " it to PostgreSQL directly."
)
_TOO_SLOW: Final = "PostgreSQL took too long for this, so nothing was changed. Try again later."
_REFUSED_VALUE: Final = "A value is too long, too large, or has characters that can't be stored."

# The longest prefix of the SQLSTATE counts.
_BY_STATE: Final[Mapping[str, tuple[type[PalaverError], str]]] = {
    "08": (StoreUnavailable, ""),
    "22": (InvalidInput, _REFUSED_VALUE),
    "25006": (StoreReadOnly, "PostgreSQL does not allow writing. Check whether the server is a replica."),
    "25P03": (StoreBusy, "This process was paused in the middle of a change, so nothing was changed. Try again."),
    "26": (StoreUnavailable, _LOST_STATEMENTS),
    "42501": (StoreReadOnly, "PostgreSQL does not allow this. Check the rights of Palaver's user there."),
    "42P05": (StoreUnavailable, _LOST_STATEMENTS),
    "53": (StoreBusy, "PostgreSQL is at one of its limits. Try again later."),
    "53100": (StoreFull, "PostgreSQL is out of disk space, so nothing was stored. Free some space and try again."),
    "53200": (StoreFull, "PostgreSQL is out of memory, so nothing was stored. Try again later."),
    "54": (InvalidInput, _REFUSED_VALUE),
    "55P03": (StoreBusy, "Something else is changing the same thing and does not finish. Try again in a moment."),
    "57": (StoreUnavailable, ""),
    "57014": (StoreBusy, _TOO_SLOW),
    "58": (StoreUnavailable, ""),
    "XX001": (StoreDamaged, _DAMAGED),
    "XX002": (StoreDamaged, _DAMAGED),
}


class ServerAway(psycopg.OperationalError):
    """The server was away when it was tried last, which has been logged."""


def translate_error(error: psycopg.Error, server: str) -> PalaverError | None:
    """Return the error to raise instead, and log the details; None for a mistake in Palaver itself."""
    state = error.sqlstate or ""
    if state:
        found = next((_BY_STATE[state[:length]] for length in (5, 2) if state[:length] in _BY_STATE), None)
    elif isinstance(error, psycopg.DataError):  # refused before it was sent
        found = _BY_STATE["22"]
    else:
        found = (StoreUnavailable, "") if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) else None
    if found is None:
        return None
    kind, text = found
    if kind is InvalidInput:
        log.warning("postgres_refused_value", extra={"sqlstate": state})  # without its text, which may quote the value
    elif not isinstance(error, ServerAway):
        log.warning("postgres_failed", extra={"server": server, "sqlstate": state, "reason": get_first_line(error)})
    return kind(text)


def is_rolled_back(error: psycopg.Error) -> bool:
    """Whether the server has ended a transaction that stood still: its work can safely run again."""
    return isinstance(error, pg.IdleInTransactionSessionTimeout)


def get_first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
