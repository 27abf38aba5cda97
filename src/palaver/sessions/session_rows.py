"""Reads sessions from the columns of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.ids import SessionId, SessionKey
from palaver.core.source import ChatType, Platform
from palaver.core.timestamps import from_micros, from_micros_or_none
from palaver.sessions.model import EndReason, Session, StartReason
from palaver.sessions.usage import CostStatus, UsageTotals

if TYPE_CHECKING:
    from palaver.core.engines.base import Row

SESSION_COLUMNS = """s.id, s.key, s.platform, s.chat_type, s.title, s.preview, s.shared, s.message_count, s.created_at,
    s.active_at, s.last_message_at, s.last_human_at, s.ended_at, s.end_reason, s.start_reason,
    s.previous_had_messages, s.pinned_at, s.archived_at,
    (SELECT p.id FROM project p WHERE p.no = s.project_no AND p.is_deleted = 0),
    (SELECT f.id FROM session f WHERE f.no = s.parent_no),
    s.model, s.provider, s.last_prompt_tokens, s.input_tokens, s.output_tokens, s.cache_read_tokens,
    s.cache_write_tokens, s.reasoning_tokens, s.cost_nanos, s.cost_status, s.cost_source, s.unpriced_turns, s.source,
    s.tool_call_count, s.auto_title, s.is_first_contact"""
SESSION_COLUMN_COUNT = 36


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session with its number and its audience."""

    no: int
    audience_no: int
    session: Session


def make_session_row(row: Row) -> SessionRow:
    """Read a row that consists of `SESSION_COLUMNS`, s.no and s.audience_no."""
    return SessionRow(row[SESSION_COLUMN_COUNT], row[SESSION_COLUMN_COUNT + 1], session_from_row(row))


def session_from_row(row: Row) -> Session:
    """Read a session from a row that begins with `SESSION_COLUMNS`."""
    return Session(
        id=SessionId(row[0]),
        key=SessionKey(row[1]),
        platform=Platform(row[2]),
        chat_type=ChatType(row[3]),
        title=row[4],
        auto_title=row[34],
        preview=row[5],
        shared=bool(row[6]),
        message_count=row[7],
        created_at=from_micros(row[8]),
        active_at=from_micros_or_none(row[9]),
        last_message_at=from_micros_or_none(row[10]),
        last_human_at=from_micros_or_none(row[11]),
        ended_at=from_micros_or_none(row[12]),
        end_reason=None if row[13] is None else EndReason(row[13]),
        start_reason=StartReason(row[14]),
        previous_had_messages=bool(row[15]),
        pinned=row[16] is not None,
        archived=row[17] is not None,
        project_id=row[18],
        parent_id=row[19],
        model=row[20],
        model_provider=row[21],
        last_prompt_tokens=row[22],
        usage=UsageTotals(
            input_tokens=row[23],
            output_tokens=row[24],
            cache_read_tokens=row[25],
            cache_write_tokens=row[26],
            reasoning_tokens=row[27],
            cost_nanos=row[28],
            cost_status=CostStatus(row[29]),
            cost_source=row[30],
            unpriced_turns=row[31],
        ),
        source_json=row[32],
        tool_call_count=row[33],
        is_first_contact=bool(row[35]),
    )
