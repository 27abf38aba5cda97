"""Lists of sessions: newest first, page by page, at the same cost however many there are.

Entries of a person's list of sessions, and how far each person has read in a session.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, build_placeholders
from palaver.core.errors import InvalidInput
from palaver.core.ids import SESSION_ID_PATTERN, PersonId
from palaver.core.operation import Page
from palaver.people import table as people
from palaver.people.table import AUDIENCE_OWNER_NAME
from palaver.sessions.lanes_table import BELONGS_TO_ITS_LANE
from palaver.sessions.model import (
    SESSION_COLUMNS,
    SUMMARY_COLUMNS,
    Session,
    SessionSummary,
    read_session,
    read_summary,
)
from palaver.sessions.table import PLACE_COLUMNS, SELECT_SESSION, VALUE_COLUMNS, SessionRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


MAX_PAGE_SIZE = 1000
MAX_LEFT_OUT_PLATFORMS = 20
DEFAULT_PROFILE_NAME = "default"  # what sessions have that chose none
_AFTER_ALL = 2**62
_ID, _ACTIVE_AT = map([column.name for column in SESSION_COLUMNS.columns].index, ("id", "active_at"))  # places in a row
_NO = -2
MAX_SESSIONS_EXAMINED = 2000  # for one page of a list with a condition that no index covers
_ROWS_PER_READ = 200
_MAX_AUDIENCES_PER_STATEMENT = 100
_CURSOR = re.compile(rf"(-?[0-9]{{1,18}})\.({SESSION_ID_PATTERN.pattern})")
_STATE_CONDITIONS = {
    "active": "s.active_at IS NOT NULL AND s.archived_at IS NULL",
    "archived": "s.active_at IS NOT NULL AND s.archived_at IS NOT NULL",
    "pinned": "s.pinned_at IS NOT NULL AND s.active_at IS NOT NULL",
    "expired": "s.end_reason IN ('idle', 'daily') AND s.active_at IS NOT NULL",  # ended by the reset policy
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """The conditions of a page: the newest sessions in a state, after a cursor."""

    state: str = "active"  # active, archived, pinned or expired
    limit: int = 50
    cursor: str | None = None
    active_since: int | None = None  # only sessions that were active at this moment or later
    active_before: int | None = None  # only sessions that were last active before this moment
    project_id: str | None = None
    platform: str | None = None
    without_platforms: Sequence[str] = ()
    profile: str | None = None  # of its name, or `DEFAULT_PROFILE_NAME`; only for `list_matching_sessions`

    def check(self) -> None:
        if self.state not in _STATE_CONDITIONS:
            raise InvalidInput(f"state: {self.state!r} is not allowed. Use one of {', '.join(_STATE_CONDITIONS)}.")
        if not 1 <= self.limit <= MAX_PAGE_SIZE:
            raise InvalidInput(f"limit: {self.limit} is not allowed (1 to {MAX_PAGE_SIZE})")
        if len(self.without_platforms) > MAX_LEFT_OUT_PLATFORMS:
            raise InvalidInput(f"without_platforms: at most {MAX_LEFT_OUT_PLATFORMS} platforms can be left out")
        if self.cursor is not None and not _CURSOR.fullmatch(self.cursor):
            raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.")


def list_sessions(tx: Transaction, session_filter: SessionFilter, audiences: Sequence[int] | None) -> Page[Session]:
    """Return a page of sessions, newest first, in these audiences (None: in all)."""
    rows, cursor = _read_page(tx, session_filter, audiences)
    return Page(map(read_session, rows), cursor)


def list_summaries(
    tx: Transaction, session_filter: SessionFilter, audiences: Sequence[int] | None, person_id: PersonId
) -> Page[SessionSummary]:
    """Return the same page as the list entries of one person."""
    rows, cursor = _read_page(tx, session_filter, audiences, person_id)
    return Page(map(read_summary, rows), cursor)


def list_matching_sessions(
    tx: Transaction,
    session_filter: SessionFilter,
    audiences: Sequence[int] | None,
    matches: Callable[[Session], bool],
) -> Page[Session]:
    """Return a page of the sessions that match. It may be short, even empty, and still have a cursor to continue."""
    found: list[Session] = []
    examined, cursor = 0, session_filter.cursor
    while examined < MAX_SESSIONS_EXAMINED:
        rows, cursor = _read_page(tx, replace(session_filter, cursor=cursor, limit=_ROWS_PER_READ), audiences)
        with_profile = _find_with_profile(tx, session_filter, rows)
        for row in rows:
            session = read_session(row)
            if (with_profile is None or row[_NO] in with_profile) and matches(session):
                found.append(session)
                if len(found) == session_filter.limit:
                    return Page(found, _make_cursor(session.get_row()))
        examined += len(rows)
        if cursor is None:
            break
    return Page(found, cursor)


def _read_page(
    tx: Transaction,
    session_filter: SessionFilter,
    audiences: Sequence[int] | None,
    person_id: PersonId | None = None,
) -> tuple[list[Row], str | None]:
    """Return the rows of a page, for a person with the columns of their summaries, and the cursor that continues it."""
    session_filter.check()
    limit, conditions = session_filter.limit, _list_conditions(session_filter)
    params: list[object] = [*_find_bounds(tx, session_filter, audiences), limit, *(value for _, value in conditions)]
    if person_id is not None:
        params.append(person_id)
    build = partial(
        _build_page_statement, session_filter.state, tuple(sql for sql, _ in conditions), person_id is not None
    )
    if audiences is None:
        rows = tx.fetch_all(build(None), *params)
    elif len(audiences) == 1:
        rows = tx.fetch_all(build(1), *params, *audiences)
    else:
        rows = []
        for start in range(0, len(audiences), _MAX_AUDIENCES_PER_STATEMENT):
            batch = audiences[start : start + _MAX_AUDIENCES_PER_STATEMENT]
            rows += tx.fetch_all(build(len(batch)), *params, *batch)
        rows.sort(key=lambda row: (row[_ACTIVE_AT], row[_NO]), reverse=True)
        del rows[limit:]
    return rows, _make_cursor(rows[-1]) if len(rows) == limit else None


def _make_cursor(row: Sequence[Any]) -> str:
    """Return when the last session was active, and its id. Its number would tell how many sessions others have."""
    return f"{row[_ACTIVE_AT]}.{row[_ID]}"


def _find_bounds(
    tx: Transaction, session_filter: SessionFilter, audiences: Sequence[int] | None
) -> tuple[int, int, int]:
    """Return the bounds of a page: rows come before (active_at, no), and not before `active_since`."""
    end = (_AFTER_ALL, _AFTER_ALL) if session_filter.active_before is None else (session_filter.active_before, 0)
    if match := _CURSOR.fullmatch(session_filter.cursor or ""):
        no, audience_no = tx.fetch_one("SELECT no, audience_no FROM session WHERE id = $1", match[2]) or (None, None)
        is_known = no is not None and (audiences is None or audience_no in audiences)
        # Without the session, which may have been deleted, those active at the same moment are listed again.
        end = min(end, (int(match[1]), no if is_known else _AFTER_ALL))
    return *end, session_filter.active_since or 0


@lru_cache(maxsize=64)
def _build_page_statement(state: str, conditions: Sequence[str], for_person: bool, audience_count: int | None) -> str:
    """Build the statement of a page; its parameters are those of `_read_page`. The same few are used all the time."""
    number = 5 + len(conditions)
    select = _SELECT_SUMMARY.format(person=f"${number}") if for_person else SELECT_SESSION
    checks = "".join(f" AND {sql.format(n)}" for n, sql in enumerate(conditions, 5))
    page = (
        f"WHERE {_STATE_CONDITIONS[state]}{checks} AND {{}} AND (s.active_at, s.no) < ($1, $2) AND s.active_at >= $3"
        " ORDER BY s.active_at DESC, s.no DESC LIMIT $4"
    )
    if audience_count is None:
        return f"{select} {page.format('TRUE')}"
    first = number + for_person
    pages = [page.format(f"s.audience_no = ${n}") for n in range(first, first + audience_count)]
    if audience_count == 1:
        return f"{select} {pages[0]}"
    found = " UNION ALL ".join(
        f"SELECT * FROM (SELECT s.no, s.active_at FROM session s {each}) AS a{i}" for i, each in enumerate(pages)
    )
    newest = f"SELECT no FROM ({found}) AS page ORDER BY active_at DESC, no DESC LIMIT $4"
    return f"{select} WHERE s.no IN ({newest})"


def _list_conditions(session_filter: SessionFilter) -> list[tuple[str, str]]:
    """List the conditions of a filter that have one parameter each, and the parameter."""
    conditions = [("s.platform <> ${}", platform) for platform in session_filter.without_platforms]
    if session_filter.project_id is not None:
        conditions.append(("s.project_no = (SELECT no FROM project WHERE id = ${})", session_filter.project_id))
    if session_filter.platform is not None:
        conditions.append(("s.platform = ${}", session_filter.platform))
    return conditions


def _find_with_profile(tx: Transaction, session_filter: SessionFilter, rows: Sequence[Row]) -> set[int] | None:
    """Return the numbers of those sessions that have the profile of a filter; None if it has none."""
    if session_filter.profile is None or not rows:
        return None
    profile = None if session_filter.profile == DEFAULT_PROFILE_NAME else session_filter.profile
    sql = f"SELECT no, profile FROM session WHERE no IN ({build_placeholders(len(rows))})"
    return {no for no, name in tx.fetch_all(sql, *(row[_NO] for row in rows)) if name == profile}


def has_any_messages(tx: Transaction) -> bool:
    return tx.fetch_one("SELECT 1 FROM session WHERE active_at IS NOT NULL LIMIT 1") is not None


_OPEN_TURNS = "FROM turn t WHERE t.session_no = s.no AND t.state IN ('queued', 'running')"  # as in their index
_SUMMARY_COLUMNS = SUMMARY_COLUMNS.format_select(
    "s",
    read_seq="CASE WHEN m.read_seq < s.last_seq THEN m.read_seq WHEN m.read_seq IS NULL THEN 0 ELSE s.last_seq END",
    owner_name=f"CASE WHEN s.shared = 0 THEN {AUDIENCE_OWNER_NAME} END",
    running=f"EXISTS (SELECT 1 {_OPEN_TURNS} AND t.state = 'running')",
    queued=f"(SELECT COUNT(*) {_OPEN_TURNS} AND t.state = 'queued')",
    belongs_to_its_lane=BELONGS_TO_ITS_LANE,
)
_SELECT_SUMMARY = f"""SELECT {VALUE_COLUMNS}, {_SUMMARY_COLUMNS}, {PLACE_COLUMNS} FROM session s
    LEFT JOIN read_mark m ON m.session_no = s.no AND m.person_id = {{person}}"""


def load_summaries(tx: Transaction, sessions: Sequence[Session], person_id: PersonId) -> list[SessionSummary]:
    """Return the list entries of these sessions for one person, in order; it takes one statement for any number."""
    if not sessions:
        return []
    sql = f"{_SELECT_SUMMARY.format(person='$1')} WHERE s.id IN ({build_placeholders(len(sessions), first=2)})"
    found = map(read_summary, tx.fetch_all(sql, person_id, *(session.id for session in sessions)))
    by_id = {summary.session.id: summary for summary in found}
    return [by_id[session.id] for session in sessions if session.id in by_id]


def is_private_to(tx: Transaction, session_row: SessionRow, person_id: PersonId) -> bool:
    """Return whether this person belongs to the session's audience and no person outside that audience reads along.

    It is not always so: one person's session may continue in a lane that several people share, and an owner may write
    in another person's session.
    """
    if session_row.audience_no not in people.list_audiences(tx, person_id):
        return False
    if session_row.session.shared:
        return True
    return tx.fetch_one("SELECT 1 FROM lane WHERE session_no = $1 AND shared = 1 LIMIT 1", session_row.no) is None
