"""Appends messages to a session's log: the hot path of the whole store.

A message is written together with the counters that lists show. On an engine with data-modifying CTEs the whole
append, usage included, is one statement.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from palaver.core.errors import SessionNotFound
from palaver.core.ids import SessionId, parse_session_id
from palaver.core.titles import make_words_title
from palaver.sessions import usage_table as usages
from palaver.sessions.message import make_preview
from palaver.sessions.message_rows import MessageRow, encode_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.sessions.message import Message
    from palaver.sessions.usage import TurnUsage

# Reserves seqs and updates the counters. Parameters (`_SessionUpdate`): session id, number of messages, now, 1 if a
# human wrote them, preview or NULL, number of tool calls, automatic title or NULL.
_UPDATE_SESSION = """
    UPDATE session SET last_seq = last_seq + $2, message_count = message_count + $2, last_message_at = $3,
        last_human_at = CASE WHEN $4 = 1 THEN $3 ELSE last_human_at END, preview = COALESCE($5, preview),
        tool_call_count = tool_call_count + $6, auto_title = COALESCE(auto_title, $7), redo_seq = NULL"""
_SessionUpdate = tuple[str, int, int, int, str | None, int, str | None]

# `active_at` orders lists by what people do. A quick answer does not move its session up again, which saves two index
# updates on every turn; an answer that took longer than this does.
QUICK_ANSWER_MICROS = 5_000_000
_MOVES_UP = f"(active_at IS NULL OR active_at < $3 - {QUICK_ANSWER_MICROS} OR $4 = 1)"
_UPDATE_AND_MOVE_SESSION = (
    f"{_UPDATE_SESSION}, unindexed = 1, active_at = CASE WHEN {_MOVES_UP} THEN $3 ELSE active_at END"
)

INSERT_EVENT = """
    INSERT INTO event (session_no, seq, kind, created_at, role, content, body, person_id, platform_message_id)"""
INSERT_MESSAGE = INSERT_EVENT + " VALUES ($1, $2, 'message', $3, $4, $5, $6, $7, $8)"

# The session of a lane, as long as it continues: not ended, and not past the reset policy's horizon ($8). The first
# person who writes in one that the policy has started is told so, which takes more than one statement.
_CONTINUES_ON_LANE = """WHERE no = (SELECT session_no FROM lane WHERE key = $1 AND shared = 0) AND ended_at IS NULL
    AND shared = 0 AND COALESCE(last_human_at, created_at) >= $8
    AND (last_human_at IS NOT NULL OR start_reason NOT IN ('idle', 'daily'))"""
_UPDATE_SESSION_ON_LANE = (
    f"{_UPDATE_SESSION}, unindexed = 1, active_at = $3 {_CONTINUES_ON_LANE} RETURNING no, last_seq, id"
)
_APPEND_ON_LANE = f"""WITH updated AS ({_UPDATE_SESSION_ON_LANE}), stored AS ({INSERT_EVENT}
    SELECT no, last_seq, 'message', $3, $9, $10, $11, $12, $13 FROM updated) SELECT no, last_seq, id FROM updated"""

PREVIEW_ROLES = frozenset({"user", "assistant"})


def append_messages(
    tx: Transaction,
    session_id: str,
    messages: Sequence[Message],
    now: int,
    *,
    from_human: bool = False,
    usage: TurnUsage | None = None,
    person_id: PersonId | None = None,
) -> int:
    """Append messages in order, with the usage of their turn, and return the seq of the last one.

    It raises `SessionNotFound` for a deleted session: a late write brings nothing back.
    """
    rows = [encode_message(message, person_id) for message in messages]
    tool_calls = sum(map(_count_tool_calls, messages))
    update = (
        parse_session_id(session_id),
        len(rows),
        now,
        int(from_human),
        _find_preview(rows),
        tool_calls,
        _find_first_words(rows),
    )
    append = _append_in_one_statement if tx.supports_data_ctes else _append_in_steps
    last_seq = append(tx, update, rows, usage)
    if last_seq is None:
        raise SessionNotFound.for_id(session_id)
    return last_seq


def append_message_on_lane(
    tx: Transaction, key: str, not_before: int, message: Message, now: int, *, from_human: bool
) -> tuple[SessionId, int] | None:
    """Append to the session of a lane, if it is one person's and the last activity in it is not before `not_before`.

    Return the session's id and the seq of the message; None, having changed nothing, if there is no such session.
    """
    row = encode_message(message, None)
    preview, first_words = _find_preview([row]), _find_first_words([row])
    update = (key, 1, now, int(from_human), preview, _count_tool_calls(message), first_words, not_before)
    if tx.supports_data_ctes:
        updated = tx.fetch_one(_APPEND_ON_LANE, *update, *row)
    else:
        updated = tx.fetch_one(_UPDATE_SESSION_ON_LANE, *update)
    if updated is None:
        return None
    no, seq, session_id = updated
    if not tx.supports_data_ctes:
        tx.execute(INSERT_MESSAGE, no, seq, now, *row)
    return SessionId(session_id), int(seq)


def _append_in_steps(
    tx: Transaction, update: _SessionUpdate, rows: list[MessageRow], usage: TurnUsage | None
) -> int | None:
    session_id, count, now, from_human, *_ = update
    params: tuple[object, ...] = update
    if usage is not None:
        usage_values = usages.get_values(usage)
        is_new = tx.execute(usages.build_insert(3, "$1", "$2"), session_id, now, *usage_values[:-1])
        params = (*update, is_new, *usage_values)
    updated = tx.fetch_one(_build_session_update(has_usage=usage is not None, from_human=from_human == 1), *params)
    if updated is None:
        return None
    no, last_seq, moves_up = updated
    if moves_up and not from_human:
        tx.execute("UPDATE session SET unindexed = 1, active_at = $2 WHERE no = $1", no, now)
    if count == 1:
        tx.execute(INSERT_MESSAGE, no, last_seq, now, *rows[0])
    else:
        tx.execute_many(INSERT_MESSAGE, [(no, last_seq - count + i, now, *row) for i, row in enumerate(rows, 1)])
    return int(last_seq)


@cache
def _build_session_update(*, has_usage: bool, from_human: bool) -> str:
    """Build the first statement of an append in steps. Parameters: `_SessionUpdate`, then those of the usage."""
    totals = f", {usages.build_totals_update(9, '$8 = 1')}" if has_usage else ""
    move = ", unindexed = 1, active_at = $3" if from_human else ""
    return f"{_UPDATE_SESSION}{totals}{move} WHERE id = $1 RETURNING no, last_seq, unindexed = 0 OR {_MOVES_UP}"


def _append_in_one_statement(
    tx: Transaction, update: _SessionUpdate, rows: list[MessageRow], usage: TurnUsage | None
) -> int | None:
    is_batch = len(rows) > 1
    columns = [list(column) for column in zip(*rows, strict=True)] if is_batch else rows[0]
    usage_values = () if usage is None else usages.get_values(usage)
    statement = _build_whole_append(has_usage=usage is not None, is_batch=is_batch)
    row = tx.fetch_one(statement, *update, *columns, *usage_values)
    return None if row is None else int(row[0])


@cache
def _build_whole_append(*, has_usage: bool, is_batch: bool) -> str:
    """Build the statement that does a whole append.

    Parameters: `_SessionUpdate`, the five columns of the message (arrays for a batch), then those of the usage.
    """
    steps, update, new_usage = [], _UPDATE_AND_MOVE_SESSION, ""
    if has_usage:
        steps.append(f"used AS ({usages.build_insert(13, '$1', '$3')} RETURNING 1)")
        update += f", {usages.build_totals_update(13, 'new_usage.n = 1')}"
        new_usage = " FROM (SELECT COUNT(*) AS n FROM used) AS new_usage"
    steps.append(f"updated AS ({update}{new_usage} WHERE id = $1 RETURNING no, last_seq)")
    if is_batch:
        rows = (
            "SELECT no, last_seq - $2 + m.n, 'message', $3, m.role, m.content, m.body, m.person_id, m.platform_id"
            " FROM updated, unnest($8::text[], $9::text[], $10::text[], $11::text[], $12::text[]) WITH ORDINALITY"
            " AS m (role, content, body, person_id, platform_id, n) ORDER BY m.n"
        )
    else:
        rows = "SELECT no, last_seq, 'message', $3, $8, $9, $10, $11, $12 FROM updated"
    return f"WITH {', '.join(steps)}, stored AS ({INSERT_EVENT} {rows}) SELECT last_seq FROM updated"


def _count_tool_calls(message: Message) -> int:
    calls = message.extra.get("tool_calls")
    return len(calls) if isinstance(calls, list | tuple) else 0


def _find_first_words(rows: list[MessageRow]) -> str | None:
    """Return the automatic title of a session that starts with these messages; None if a person wrote no text."""
    for role, text, *_ in rows:
        if text and role == "user" and (title := make_words_title(text)):
            return title
    return None


def _find_preview(rows: list[MessageRow]) -> str | None:
    """Return the preview that lists show from now on; None if no message has text that people read."""
    for role, text, *_ in reversed(rows):
        if text and role in PREVIEW_ROLES and (preview := make_preview(text)):
            return preview
    return None
