"""Lists of sessions: newest first, page by page, at the same cost however many there are."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from palaver.domain.errors import InvalidInput
from palaver.domain.session import Page
from palaver.storage.session_rows import COLUMNS, WIDTH, session_from_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.domain.session import Session
    from palaver.storage.engines.base import Row, Transaction

LONGEST_PAGE = 1000
LOOKED_THROUGH = 2000  # sessions, at most, for those that fit a condition which no index knows
_AT_ONCE = 200


_SHELVES = {
    "current": "s.active_at IS NOT NULL AND s.archived_at IS NULL",
    "archived": "s.active_at IS NOT NULL AND s.archived_at IS NOT NULL",
    "pinned": "s.pinned_at IS NOT NULL AND s.active_at IS NOT NULL",
}
_TOGETHER = 100  # audiences in one statement
_CURSOR = re.compile(r"(-?[0-9]{1,18})\.([0-9]{1,18})")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Which part of a list: newest first, after a cursor."""

    shelf: str = "current"  # current, archived or pinned
    limit: int = 50
    cursor: str | None = None
    since: int | None = None  # active at or after
    project_id: str | None = None

    def bounds(self) -> tuple[int, int, int]:
        """The first row must come before (active_at, no) and not before `since`."""
        if self.shelf not in _SHELVES:
            raise InvalidInput(f"shelf: {self.shelf!r} is not allowed; use one of {', '.join(_SHELVES)}")
        if not 1 <= self.limit <= LONGEST_PAGE:
            raise InvalidInput(f"limit: {self.limit} is not allowed (1 to {LONGEST_PAGE})")
        if self.cursor is None:
            return 2**62, 2**62, self.since or 0
        given = _CURSOR.fullmatch(self.cursor)
        if given is None:
            raise InvalidInput("cursor: this is not a cursor that a list has given")
        return int(given[1]), int(given[2]), self.since or 0


def listed(tx: Transaction, wanted: SessionFilter, audiences: Sequence[int] | None) -> Page[Session]:
    """A page of sessions, newest first, among these audiences (None: among all)."""
    rows, cursor = _rows(tx, wanted, audiences)
    return Page([session_from_row(row) for row in rows], cursor)


def matching(
    tx: Transaction, wanted: SessionFilter, audiences: Sequence[int] | None, fits: Callable[[Session], bool]
) -> Page[Session]:
    """A page of those sessions that fit; it may end early, even empty, and is then continued by its cursor."""
    found: list[Session] = []
    looked, cursor = 0, wanted.cursor
    while looked < LOOKED_THROUGH:
        rows, cursor = _rows(tx, replace(wanted, cursor=cursor, limit=_AT_ONCE), audiences)
        for row in rows:
            session = session_from_row(row)
            if fits(session):
                found.append(session)
                if len(found) == wanted.limit:
                    return Page(found, _cursor(row))
        looked += len(rows)
        if cursor is None:
            break
    return Page(found, cursor)


def _rows(tx: Transaction, wanted: SessionFilter, audiences: Sequence[int] | None) -> tuple[list[Row], str | None]:
    """The rows of a page, and the cursor that continues it."""
    bounds = wanted.bounds()
    if audiences is None:
        rows = tx.all(_page(wanted, ""), *bounds, wanted.limit, *_project(wanted))
    else:
        rows = []
        for start in range(0, len(audiences), _TOGETHER):
            some = audiences[start : start + _TOGETHER]
            first = 5 + len(_project(wanted))
            statement = " UNION ALL ".join(
                f"SELECT * FROM ({_page(wanted, f'AND s.audience_no = ${first + i}')}) AS a{i}"
                for i in range(len(some))
            )
            rows += tx.all(
                f"SELECT * FROM ({statement}) AS page ORDER BY 10 DESC, {WIDTH + 1} DESC LIMIT $4",
                *bounds,
                wanted.limit,
                *_project(wanted),
                *some,
            )
        rows.sort(key=lambda row: (row[9], row[WIDTH]), reverse=True)
        del rows[wanted.limit :]
    return rows, _cursor(rows[-1]) if len(rows) == wanted.limit else None


def _cursor(row: Row) -> str:
    return f"{row[9]}.{row[WIDTH]}"


def _page(wanted: SessionFilter, audience: str) -> str:
    project = "AND s.project_no = (SELECT no FROM project WHERE id = $5)" if wanted.project_id else ""
    return (
        f"SELECT {COLUMNS}, s.no FROM session s WHERE {_SHELVES[wanted.shelf]} {project} {audience}"
        " AND (s.active_at, s.no) < ($1, $2) AND s.active_at >= $3 ORDER BY s.active_at DESC, s.no DESC LIMIT $4"
    )


def _project(wanted: SessionFilter) -> tuple[str, ...]:
    return (wanted.project_id,) if wanted.project_id else ()


def any_with_messages(tx: Transaction) -> bool:
    """Whether anything was ever said."""
    return tx.one("SELECT 1 FROM session WHERE active_at IS NOT NULL LIMIT 1") is not None
