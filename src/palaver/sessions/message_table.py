"""Appends messages to a session's log: the hot path of the whole store.

A message is written together with the counters that lists show. On an engine with data-modifying CTEs the whole
append, usage included, is one statement.
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from palaver.core.clock import from_micros
from palaver.core.engines.base import Row, Transaction, fetch_value, list_columns
from palaver.core.errors import InvalidMessage, SessionNotFound
from palaver.core.ids import PersonId, SessionId, parse_session_id
from palaver.core.text import is_too_deep, make_json_storable, make_storable
from palaver.core.titles import make_words_title
from palaver.sessions import usage_table as usages
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import MESSAGE_ROLES, Message, make_preview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.sessions.usage import TurnUsage


# role, content, body, person_id, platform_message_id
MessageRow = tuple[str, str | None, str | None, str | None, str | None]

EDITED_TEXT = """CASE WHEN event.edited_by IS NOT NULL THEN (SELECT edit.content FROM event AS edit
    WHERE edit.session_no = event.session_no AND edit.seq = event.edited_by) END"""

# `active_at` orders lists by what people do. A quick answer does not move its session up again, which saves two index
# updates on every turn; an answer that took longer than this does.
QUICK_ANSWER_MICROS = 5_000_000
_MOVES_UP = f"(active_at IS NULL OR active_at < $3 - {QUICK_ANSWER_MICROS} OR $4 = 1)"
PREVIEW_ROLES = frozenset({"user", "assistant"})


class EventColumns(NamedTuple):
    seq: int
    kind: str
    created_at: int
    role: str | None
    content: str | None
    body: str | None
    person_id: str | None
    platform_message_id: str | None
    hidden_by: int | None
    edited_text: str | None

    @property
    def text(self) -> str | None:
        """The text of a message as its author has edited it."""
        return self.content if self.edited_text is None else self.edited_text

    @property
    def is_visible_message(self) -> bool:
        return self.kind == EventKind.MESSAGE and self.hidden_by is None


SELECT_EVENT = f"SELECT {list_columns(EventColumns, edited_text=EDITED_TEXT)} FROM event"  # for `event_from_row`


class UnreadableRow(Exception):
    """A row of the log cannot be read: something other than Palaver wrote it, or it is damaged."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # invalid_json, too_deep, wrong_shape or unknown_kind


def encode_message(message: Message, person_id: PersonId | None) -> MessageRow:
    """Return the columns of a message. Content that is not plain text goes into the JSON body.

    Every message enters the store here: text that cannot be stored is replaced (see `core/text.py`).
    Raises InvalidMessage for a message that could not be read again.
    """
    message.check_limits()
    content = message.content
    body: dict[str, Any] = dict(message.extra)
    text: str | None
    if content is None or isinstance(content, str):
        text = None if content is None else make_storable(content)
    else:
        body["content"] = content
        text = make_storable(message.text)
    if message.author is not None:
        body["author"] = message.author.to_dict()
    try:
        encoded = json.dumps(make_json_storable(body), allow_nan=False, separators=(",", ":")) if body else None
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"The message contains something that JSON cannot represent: {error}") from None
    return (message.role, text, encoded, person_id, message.platform_message_id)


def event_from_row(row: Row) -> Event:
    """Read an event. One that cannot be read becomes an event of kind `unreadable`, so that the others can be read."""
    seq, stored_kind, created_at, role, content, body, person_id, platform_message_id, hidden_by, edited_text = row
    message: Message | None = None
    facts: dict[str, Any] = {}
    try:
        kind = _parse_kind(stored_kind)
        if kind is EventKind.MESSAGE:
            message = decode_message(role, content, body, platform_message_id, edited_text)
        else:
            facts = decode_body(body)
            if content is not None:
                facts["text"] = content
    except UnreadableRow as error:
        kind, facts = EventKind.UNREADABLE, {"stored_kind": str(stored_kind), "reason": error.reason}
    return Event(
        seq=seq,
        kind=kind,
        at=from_micros(created_at),
        message=message,
        facts=facts,
        person_id=None if person_id is None else PersonId(person_id),
        hidden=hidden_by is not None,
    )


def decode_message(
    role: str, content: str | None, body: str | None, platform_message_id: str | None, edited_text: str | None = None
) -> Message:
    """Read a message, with the text that its author has given it since; raises `UnreadableRow`."""
    if body is None and role in MESSAGE_ROLES and (content is None or isinstance(content, str)):
        message = Message(role, content, None, platform_message_id)
    else:
        try:
            fields = {"role": role, "content": content, **decode_body(body), "platform_message_id": platform_message_id}
            message = Message.from_dict(fields)
        except InvalidMessage:
            raise UnreadableRow("wrong_shape") from None
    return message if edited_text is None else message.with_edited_text(edited_text)


def decode_body(body: str | None) -> dict[str, Any]:
    """Read the JSON of an event; raises `UnreadableRow`."""
    if not body:
        return {}
    try:
        value = _DECODER.decode(body)
    except RecursionError:
        raise UnreadableRow("too_deep") from None
    except (ValueError, TypeError):
        raise UnreadableRow("invalid_json") from None
    if not isinstance(value, dict):
        raise UnreadableRow("wrong_shape")
    if is_too_deep(value, body):
        raise UnreadableRow("too_deep")
    return value


def find_facts(body: str | None) -> dict[str, Any]:
    """Return the facts of an event that is not a message; empty if they cannot be read."""
    try:
        return decode_body(body)
    except UnreadableRow:
        return {}


def _parse_kind(text: str) -> EventKind:
    try:
        kind = EventKind(text)
    except ValueError:
        raise UnreadableRow("unknown_kind") from None
    if kind is EventKind.UNREADABLE:
        raise UnreadableRow("unknown_kind")
    return kind


def _parse_finite(text: str) -> float:
    """Read a number; infinity and NaN, which no JSON response can contain, raise ValueError."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_DECODER = json.JSONDecoder(parse_float=_parse_finite, parse_constant=_parse_finite)


# Reserves seqs and updates the counters. Parameters (`_SessionUpdate`): session id, number of messages, now, 1 if a
# human wrote them, preview or NULL, number of tool calls, automatic title or NULL.
_UPDATE_SESSION = """
    UPDATE session SET last_seq = last_seq + $2, message_count = message_count + $2, last_message_at = $3,
        last_human_at = CASE WHEN $4 = 1 THEN $3 ELSE last_human_at END, preview = COALESCE($5, preview),
        tool_call_count = tool_call_count + $6, auto_title = COALESCE(auto_title, $7), redo_seq = NULL"""
_SessionUpdate = tuple[str, int, int, int, str | None, int, str | None]

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
        is_new = tx.execute(usages.build_insert(3, "$2"), session_id, now, *usage_values[:-1])
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
    return fetch_value(tx, statement, *update, *columns, *usage_values)


@cache
def _build_whole_append(*, has_usage: bool, is_batch: bool) -> str:
    """Build the statement that does a whole append.

    Parameters: `_SessionUpdate`, the five columns of the message (arrays for a batch), then those of the usage.
    """
    steps, update, new_usage = [], _UPDATE_AND_MOVE_SESSION, ""
    if has_usage:
        steps.append(f"used AS ({usages.build_insert(13, '$3')} RETURNING 1)")
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
