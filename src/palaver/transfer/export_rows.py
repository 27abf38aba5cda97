"""Reads whole rows for an export in Palaver's own format, in pages of bounded size.

The order is the same after an import into an empty store, where rows get new numbers in the order of the file. Nothing
that proves who a person is leaves here: no passwords, tokens, codes or secrets of links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palaver.core.engines.base import build_placeholders
from palaver.transfer.export_records import (
    ATTACHMENT_FIELDS,
    EVENT_COLUMNS,
    HOME_CHANNEL_FIELDS,
    IDENTITY_FIELDS,
    JOB_FIELDS,
    LANE_FIELDS,
    LANE_MOVE_FIELDS,
    MEMORY_FIELDS,
    PERSON_FIELDS,
    PROJECT_FIELDS,
    READ_MARK_FIELDS,
    SAVED_PROMPT_FIELDS,
    SENDER_ID_FIELDS,
    SESSION_FIELDS,
    USAGE_FIELDS,
    list_columns,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Row, Transaction
    from palaver.core.ids import PersonId

# An import that was interrupted has left a session that is not complete, and so has a deletion that goes on.
_IS_COMPLETE = """s.is_deleted = 0 AND NOT EXISTS
    (SELECT 1 FROM imported_item i WHERE i.state = 'writing' AND i.session_id = s.id)"""
_IS_REFERENCED = """(EXISTS (SELECT 1 FROM person p WHERE p.audience_no = a.no)
    OR EXISTS (SELECT 1 FROM session s WHERE s.audience_no = a.no AND s.is_deleted = 0)
    OR EXISTS (SELECT 1 FROM lane l WHERE l.audience_no = a.no)
    OR EXISTS (SELECT 1 FROM memory m WHERE m.audience_no = a.no))"""


@dataclass(frozen=True, slots=True)
class AudienceRow:
    """An audience, and by what an import recognizes it in a store that has it already."""

    no: int
    created_at: int
    session_id: str | None  # its oldest session
    lane_key: str | None  # its first lane
    memory_id: str | None  # its first memory
    owner_id: str | None  # the person whose own audience it is

    @property
    def sort_key(self) -> tuple[object, ...]:
        """What orders audiences in every export in the same way, also after an import."""
        return (self.owner_id or "", f"{self.created_at:020}", self.session_id, self.lane_key, self.memory_id)


def list_audiences(tx: Transaction, after: int, limit: int) -> list[AudienceRow]:
    """List the audiences that something refers to, in order."""
    rows = tx.fetch_all(
        "SELECT a.no, a.created_at, (SELECT s.id FROM session s WHERE s.audience_no = a.no ORDER BY s.id LIMIT 1),"
        " (SELECT MIN(l.key) FROM lane l WHERE l.audience_no = a.no),"
        " (SELECT m.id FROM memory m WHERE m.audience_no = a.no ORDER BY m.id LIMIT 1),"
        " (SELECT MIN(p.id) FROM person p WHERE p.audience_no = a.no)"
        f" FROM audience a WHERE a.no > $1 AND {_IS_REFERENCED} ORDER BY a.no LIMIT $2",
        after,
        limit,
    )
    return [AudienceRow(*row) for row in rows]


def list_members(tx: Transaction, audience_no: int) -> list[tuple[PersonId, int]]:
    rows = tx.fetch_all(
        "SELECT person_id, joined_at FROM audience_member WHERE audience_no = $1 ORDER BY person_id", audience_no
    )
    return [(person_id, joined_at) for person_id, joined_at in rows]


def list_people(tx: Transaction, after: str, limit: int, *, merged: bool) -> list[Row]:
    """List people by id: their fields, audience number, and the person that they were merged into."""
    condition = "merged_into IS NOT NULL" if merged else "merged_into IS NULL"
    return tx.fetch_all(
        f"SELECT {list_columns(PERSON_FIELDS)}, audience_no, merged_into FROM person WHERE id > $1 AND {condition}"
        " ORDER BY id LIMIT $2",
        after,
        limit,
    )


def find_person(tx: Transaction, person_id: str) -> Row | None:
    """Find a person: their fields, audience number, and the person that they were merged into."""
    return tx.fetch_one(
        f"SELECT {list_columns(PERSON_FIELDS)}, audience_no, merged_into FROM person WHERE id = $1", person_id
    )


def list_merged_ids(tx: Transaction, person_id: str) -> list[str]:
    return [row[0] for row in tx.fetch_all("SELECT id FROM person WHERE merged_into = $1 ORDER BY id", person_id)]


def list_identities(tx: Transaction, person_id: str) -> list[tuple[Row, list[Row]]]:
    """List a person's accounts, each with the further ids of its owner on that platform."""
    identities = tx.fetch_all(
        f"SELECT {list_columns(IDENTITY_FIELDS)} FROM identity WHERE person_id = $1 ORDER BY platform, account",
        person_id,
    )
    sender_ids = (
        f"SELECT {list_columns(SENDER_ID_FIELDS)} FROM sender_id WHERE platform = $1 AND main_id = $2 ORDER BY id"
    )
    return [(row, tx.fetch_all(sender_ids, row[0], row[1])) for row in identities]


def list_projects(tx: Transaction, person_id: str) -> list[Row]:
    return tx.fetch_all(
        f"SELECT {list_columns(PROJECT_FIELDS)} FROM project WHERE person_id = $1 AND is_deleted = 0"
        " ORDER BY created_at, id",
        person_id,
    )


def list_saved_prompts(tx: Transaction, person_id: str) -> list[Row]:
    return tx.fetch_all(
        f"SELECT {list_columns(SAVED_PROMPT_FIELDS)} FROM saved_prompt WHERE person_id = $1 ORDER BY created_at, id",
        person_id,
    )


def find_session_project(tx: Transaction, session_no: int) -> Row | None:
    """Find the project of a session: PROJECT_FIELDS, its person."""
    return tx.fetch_one(
        f"SELECT {list_columns(PROJECT_FIELDS, 'p')}, p.person_id FROM session s JOIN project p ON p.no = s.project_no"
        " WHERE s.no = $1 AND p.is_deleted = 0",
        session_no,
    )


def list_attachments(tx: Transaction, audiences: Sequence[int] | None, after: int, limit: int) -> list[Row]:
    """List files that sessions of these audiences use (None: all that a session uses): fields, sender, number."""
    condition, params = _build_audience_condition("s.audience_no", audiences, 3)
    return tx.fetch_all(
        f"SELECT {list_columns(ATTACHMENT_FIELDS, 'a')}, a.person_id, a.no FROM attachment a WHERE a.no > $1"
        " AND EXISTS (SELECT 1 FROM attachment_use u JOIN session s ON s.no = u.session_no WHERE u.attachment_no = a.no"
        f" AND s.is_deleted = 0{condition}) ORDER BY a.no LIMIT $2",
        after,
        limit,
        *params,
    )


def list_session_attachments(tx: Transaction, session_no: int) -> list[Row]:
    """List the files of one session: fields, sender, number."""
    return tx.fetch_all(
        f"SELECT {list_columns(ATTACHMENT_FIELDS, 'a')}, a.person_id, a.no FROM attachment a"
        " JOIN attachment_use u ON u.attachment_no = a.no WHERE u.session_no = $1 ORDER BY a.no",
        session_no,
    )


# ---- sessions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionExport:
    """A session row with what refers to other rows."""

    no: int
    audience_no: int
    values: tuple[Any, ...]  # of SESSION_FIELDS
    project_id: str | None
    parent_id: str | None
    attachment_ids: list[str]
    read_marks: list[Row]  # person, then READ_MARK_FIELDS


def list_session_nos(tx: Transaction, after: int, limit: int) -> list[int]:
    """List the numbers of all complete sessions, oldest first."""
    rows = tx.fetch_all(f"SELECT no FROM session s WHERE no > $1 AND {_IS_COMPLETE} ORDER BY no LIMIT $2", after, limit)
    return [no for (no,) in rows]


def list_audience_sessions(tx: Transaction, audience_no: int, after: str, limit: int) -> list[tuple[str, int]]:
    """List the ids and numbers of the complete sessions of an audience by id."""
    rows = tx.fetch_all(
        f"SELECT id, no FROM session s WHERE audience_no = $1 AND id > $2 AND {_IS_COMPLETE} ORDER BY id LIMIT $3",
        audience_no,
        after,
        limit,
    )
    return [(session_id, no) for session_id, no in rows]


def load_session(tx: Transaction, session_no: int) -> SessionExport | None:
    count = len(SESSION_FIELDS)
    row = tx.fetch_one(
        f"SELECT {list_columns(SESSION_FIELDS, 's')}, s.audience_no,"
        " (SELECT p.id FROM project p WHERE p.no = s.project_no AND p.is_deleted = 0),"
        " (SELECT f.id FROM session f WHERE f.no = s.parent_no)"
        " FROM session s WHERE s.no = $1 AND s.is_deleted = 0",
        session_no,
    )
    if row is None:
        return None
    attachments = tx.fetch_all(
        "SELECT a.id FROM attachment_use u JOIN attachment a ON a.no = u.attachment_no WHERE u.session_no = $1"
        " ORDER BY a.id",
        session_no,
    )
    marks = tx.fetch_all(
        f"SELECT person_id, {list_columns(READ_MARK_FIELDS)} FROM read_mark WHERE session_no = $1 ORDER BY person_id",
        session_no,
    )
    return SessionExport(
        session_no, row[count], row[:count], row[count + 1], row[count + 2], [each for (each,) in attachments], marks
    )


def list_events(tx: Transaction, session_no: int, after: int, limit: int) -> list[Row]:
    """List events as they are stored, readable or not."""
    return tx.fetch_all(
        f"SELECT {', '.join(EVENT_COLUMNS)} FROM event WHERE session_no = $1 AND seq > $2 ORDER BY seq LIMIT $3",
        session_no,
        after,
        limit,
    )


def list_usage(tx: Transaction, session_no: int, after: tuple[str, str], limit: int) -> list[Row]:
    """List the usage of one session: USAGE_FIELDS, audience number."""
    return tx.fetch_all(
        f"SELECT {list_columns(USAGE_FIELDS)}, audience_no FROM usage WHERE session_no = $1"
        " AND (turn_id, model) > ($2, $3) ORDER BY turn_id, model LIMIT $4",
        session_no,
        *after,
        limit,
    )


def list_orphan_usage(
    tx: Transaction, audiences: Sequence[int] | None, after: tuple[int, str, str, int], limit: int
) -> list[Row]:
    """List the usage of sessions that were deleted since: USAGE_FIELDS, audience number, session number."""
    condition, params = _build_audience_condition("u.audience_no", audiences, 6)
    return tx.fetch_all(
        f"SELECT {list_columns(USAGE_FIELDS, 'u')}, u.audience_no, u.session_no FROM usage u"
        " WHERE (u.created_at, u.turn_id, u.model, u.session_no) > ($1, $2, $3, $4)"
        f" AND NOT EXISTS (SELECT 1 FROM session s WHERE s.no = u.session_no AND s.is_deleted = 0){condition}"
        " ORDER BY u.created_at, u.turn_id, u.model, u.session_no LIMIT $5",
        *after,
        limit,
        *params,
    )


# ---- everything else ---------------------------------------------------------------------------------------


def list_lanes(tx: Transaction, audiences: Sequence[int] | None, after: str, limit: int) -> list[Row]:
    """List lanes by key: LANE_FIELDS, audience number, the id of the session that each is on."""
    condition, params = _build_audience_condition("l.audience_no", audiences, 3)
    return tx.fetch_all(
        f"SELECT {list_columns(LANE_FIELDS, 'l')}, l.audience_no, s.id FROM lane l LEFT JOIN session s"
        f" ON s.no = l.session_no WHERE l.key > $1{condition} ORDER BY l.key LIMIT $2",
        after,
        limit,
        *params,
    )


def list_lane_moves(tx: Transaction, key: str) -> list[Row]:
    """List the moves of a lane in order: LANE_MOVE_FIELDS, the ids of the sessions from and to."""
    return tx.fetch_all(
        f"SELECT {list_columns(LANE_MOVE_FIELDS, 'm')}, f.id, t.id FROM lane_move m JOIN session f"
        " ON f.no = m.from_session_no JOIN session t ON t.no = m.to_session_no WHERE m.lane_key = $1 ORDER BY m.no",
        key,
    )


def list_memories(tx: Transaction, audiences: Sequence[int] | None, after: int, limit: int) -> list[Row]:
    """List memories in order: MEMORY_FIELDS, audience number, number."""
    condition, params = _build_audience_condition("audience_no", audiences, 3)
    return tx.fetch_all(
        f"SELECT {list_columns(MEMORY_FIELDS)}, audience_no, no FROM memory WHERE no > $1{condition}"
        " ORDER BY no LIMIT $2",
        after,
        limit,
        *params,
    )


def list_jobs(tx: Transaction, person_id: str | None, after: int, limit: int) -> list[Row]:
    """List the jobs of a person (None: of everybody) in order: JOB_FIELDS, two session ids, number.

    The sessions are the one in which the job was made, and the one in which its person is asked to confirm it.
    """
    condition = "" if person_id is None else " AND j.person_id = $3"
    return tx.fetch_all(
        f"SELECT {list_columns(JOB_FIELDS, 'j')}, (SELECT s.id FROM session s WHERE s.no = j.origin_session_no"
        " AND s.is_deleted = 0),"
        " (SELECT s.id FROM session s WHERE s.no = j.proposed_session_no), j.no FROM job j"
        f" WHERE j.no > $1 AND j.is_deleted = 0{condition} ORDER BY j.no LIMIT $2",
        after,
        limit,
        *(() if person_id is None else (person_id,)),
    )


def list_home_channels(tx: Transaction) -> list[Row]:
    return tx.fetch_all(f"SELECT {list_columns(HOME_CHANNEL_FIELDS)} FROM home_channel ORDER BY platform")


def _build_audience_condition(column: str, audiences: Sequence[int] | None, first: int) -> tuple[str, tuple[int, ...]]:
    """Build the end of a WHERE clause, and its parameters from number `first` on; empty for all audiences."""
    if audiences is None:
        return "", ()
    return f" AND {column} IN ({build_placeholders(len(audiences), first)})", tuple(audiences)
