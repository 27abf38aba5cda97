"""Entries of a person's list of sessions, and how far each person has read in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.statements import build_placeholders
from palaver.people.table import AUDIENCE_OWNER_NAME
from palaver.sessions import settings_table as session_settings
from palaver.sessions.inbound import find_delivery_address
from palaver.sessions.lanes_table import BELONGS_TO_ITS_LANE
from palaver.sessions.session_summary import SessionSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Row, Transaction
    from palaver.core.ids import PersonId
    from palaver.sessions.model import Session


def load_summaries(tx: Transaction, sessions: Sequence[Session], person_id: PersonId) -> list[SessionSummary]:
    """Return the list entries of these sessions for one person, in order; it takes two statements for any number."""
    if not sessions:
        return []
    rows = {
        row[0]: row
        for row in tx.fetch_all(
            "SELECT s.id, s.last_seq, COALESCE(m.read_seq, 0), s.no,"
            f" CASE WHEN s.shared = 0 THEN {AUDIENCE_OWNER_NAME} END,"
            f" CASE WHEN {BELONGS_TO_ITS_LANE} THEN 1 ELSE 0 END,"
            " s.chosen_model, s.profile, s.personality, s.workspace, s.busy_policy, s.disabled_toolsets FROM session s"
            " LEFT JOIN read_mark m ON m.session_no = s.no AND m.person_id = $1"
            f" WHERE s.id IN ({build_placeholders(len(sessions), first=2)})",
            person_id,
            *(session.id for session in sessions),
        )
    }
    turn_counts = _count_open_turns(tx, [row[3] for row in rows.values()])
    return [_make_summary(session, rows[session.id], turn_counts) for session in sessions if session.id in rows]


def _count_open_turns(tx: Transaction, session_nos: Sequence[int]) -> dict[tuple[int, str], int]:
    """Return how many turns run and wait in these sessions, by session number and state."""
    if not session_nos:
        return {}
    rows = tx.fetch_all(
        f"SELECT session_no, state, COUNT(*) FROM turn WHERE session_no IN ({build_placeholders(len(session_nos))})"
        " AND state IN ('queued', 'running') GROUP BY session_no, state",
        *session_nos,
    )
    return {(no, state): count for no, state, count in rows}


def _make_summary(session: Session, row: Row, turn_counts: dict[tuple[int, str], int]) -> SessionSummary:
    _, last_seq, read_seq, no, owner_name, belongs_to_its_lane, *setting_columns = row
    settings = session_settings.settings_from_columns(*setting_columns)
    return SessionSummary(
        session=session,
        last_seq=last_seq,
        read_seq=min(read_seq, last_seq),
        chosen_model=settings.model,
        profile=settings.profile,
        personality=settings.personality,
        workspace=settings.workspace,
        busy_policy=settings.busy_policy,
        disabled_toolsets=settings.disabled_toolsets,
        running=bool(turn_counts.get((no, "running"))),
        queued=turn_counts.get((no, "queued"), 0),
        owner_name=owner_name,
        has_delivery_address=bool(belongs_to_its_lane) and find_delivery_address(session.origin) is not None,
    )
