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
from palaver.core.engines.base import Conflict, Row, Transaction, fetch_value, list_columns
from palaver.core.errors import InvalidMessage, SessionNotFound
from palaver.core.ids import PersonId, SessionId, parse_session_id
from palaver.core.text import encode_json, is_too_deep, make_storable
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


class FirstSession(NamedTuple):
    """The session to start in a lane that does not exist, and its person, who is added if they are unknown."""

    platform: str
    account: str
    person_id: PersonId
    person_name: str
    person_role: str
    chat_type: str
    source: str
    session_id: SessionId


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
        encoded = encode_json(body, allow_nan=False) if body else None
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
    kind = _STORED_KINDS.get(text)
    if kind is None:
        raise UnreadableRow("unknown_kind")
    return kind


_STORED_KINDS = {str(kind): kind for kind in EventKind if kind is not EventKind.UNREADABLE}


def _parse_finite(text: str) -> float:
    """Read a number; infinity and NaN, which no JSON response can contain, raise ValueError."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_DECODER = json.JSONDecoder(parse_float=_parse_finite, parse_constant=_parse_finite)


class _AppendTarget(NamedTuple):
    """What an append in steps must know of its session, read in its transaction."""

    no: int
    id: str
    platform: str
    audience_no: int
    last_seq: int
    message_count: int
    tool_call_count: int
    active_at: int | None
    last_human_at: int | None
    unindexed: int
    has_title: int


class FirstMessage(NamedTuple):
    """The message with which a session starts."""

    message: Message
    from_human: bool
    person_id: PersonId | None = None  # its author, where several people write


_STARTED = _AppendTarget(0, "", "", 0, 1, 0, 0, None, None, 0, 0)  # a session with one event, and no message
_SELECT_TARGET = f"SELECT {list_columns(_AppendTarget, has_title='auto_title IS NOT NULL')} FROM session"
_SELECT_TARGET_BY_ID = f"{_SELECT_TARGET} WHERE id = $1"

# Reserves seqs and updates the counters in a statement that does a whole append. Parameters (`_SessionUpdate`): session
# id, number of messages, now, 1 if a human wrote them, preview or NULL, number of tool calls, automatic title or NULL.
_UPDATE_SESSION = """
    UPDATE session SET last_seq = last_seq + $2, message_count = message_count + $2, last_message_at = $3,
        last_human_at = CASE WHEN $4 = 1 THEN $3 ELSE last_human_at END,
        expiry_base = CASE WHEN $4 = 1 AND last_human_at IS NULL THEN $3 ELSE expiry_base END,
        preview = COALESCE($5, preview), tool_call_count = tool_call_count + $6,
        auto_title = COALESCE(auto_title, $7), redo_seq = NULL"""
_SessionUpdate = tuple[str, int, int, int, str | None, int, str | None]

_UPDATE_AND_MOVE_SESSION = (
    f"{_UPDATE_SESSION}, unindexed = 1, active_at = CASE WHEN {_MOVES_UP} THEN $3 ELSE active_at END"
)

INSERT_EVENT = """
    INSERT INTO event (session_no, seq, kind, created_at, role, content, body, person_id, platform_message_id)"""
INSERT_ANY_EVENT = INSERT_EVENT + " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
INSERT_MESSAGE = INSERT_EVENT + " VALUES ($1, $2, 'message', $3, $4, $5, $6, $7, $8)"

# The session of a lane, as long as it continues: not ended, and not past the reset policy's horizon ($8). The first
# person who writes in one that the policy has started is told so, which takes more than one statement.
_CONTINUES_ON_LANE = """WHERE no = (SELECT session_no FROM lane WHERE key = $1 AND shared = 0) AND ended_at IS NULL
    AND shared = 0 AND COALESCE(last_human_at, created_at) >= $8
    AND (last_human_at IS NOT NULL OR start_reason NOT IN ('idle', 'daily'))"""
_CONTINUES_AND_IS_FREE = f"WHERE no = (SELECT no FROM session {_CONTINUES_ON_LANE} FOR NO KEY UPDATE SKIP LOCKED)"


def _build_append_on_lane(condition: str) -> str:
    return f"""WITH updated AS ({_UPDATE_SESSION}, unindexed = 1, active_at = $3 {condition}
    RETURNING no, last_seq, id), stored AS ({INSERT_EVENT}
    SELECT no, last_seq, 'message', $3, $9, $10, $11, $12, $13 FROM updated) SELECT no, last_seq, id FROM updated"""


_SELECT_TARGET_ON_LANE = f"{_SELECT_TARGET} {_CONTINUES_ON_LANE.replace('$8', '$2')}"
_APPEND_ON_LANE = _build_append_on_lane(_CONTINUES_ON_LANE)
_APPEND_ON_FREE_LANE = _build_append_on_lane(_CONTINUES_AND_IS_FREE)
# The same, or the lane's first session starts (PostgreSQL). A function of the schema, because steps in this statement
# would take time with every message. Parameters: those of `_APPEND_ON_LANE`, then `FirstSession`.
_APPEND_OR_START = f"""{_APPEND_ON_LANE} UNION ALL SELECT * FROM palaver_start_session($1, $3, $4, $5, $6, $7,
    $9, $10, $11, $13, $14, $15, $16, $17, $18, $19, $20, $21) WHERE NOT EXISTS (SELECT FROM updated)"""


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
    last_seq: int | None = None
    if tx.supports_data_ctes:
        update = _build_update_params(parse_session_id(session_id), messages, rows, now, from_human=from_human)
        last_seq = _append_in_one_statement(tx, update, rows, usage)
    elif (target := _find_target(tx, _SELECT_TARGET_BY_ID, parse_session_id(session_id))) is not None:
        last_seq = _append_in_steps(tx, target, messages, rows, now, from_human=from_human, usage=usage)
    if last_seq is None:
        raise Conflict if tx.is_shared else SessionNotFound.for_id(session_id)  # it may only be locked
    return last_seq


def append_message_on_lane(
    tx: Transaction,
    key: str,
    not_before: int,
    message: Message,
    now: int,
    *,
    from_human: bool,
    first_session: FirstSession | None = None,
) -> tuple[int, SessionId, int] | None:
    """Append to the session of a lane, if it is one person's and the last activity in it is not before `not_before`.

    Return the session's number and id, and the seq of the message; None, having changed nothing, if there is no such
    session. On an engine with data-modifying CTEs `first_session` is started if the lane does not exist.
    """
    row = encode_message(message, None)
    if not tx.supports_data_ctes:
        target = _find_target(tx, _SELECT_TARGET_ON_LANE, key, not_before)
        if target is None:
            return None
        seq = _append_in_steps(tx, target, [message], [row], now, from_human=from_human)
        return target.no, SessionId(target.id), seq
    update = _build_update_params(key, [message], [row], now, from_human=from_human)
    if tx.is_shared:  # a first session could wait for another process that adds the same person
        updated = tx.fetch_one(_APPEND_ON_FREE_LANE, *update, not_before, *row)
    elif first_session is not None:
        updated = tx.fetch_one(_APPEND_OR_START, *update, not_before, *row, *first_session)
    else:
        updated = tx.fetch_one(_APPEND_ON_LANE, *update, not_before, *row)
    if updated is None:
        return None
    no, seq, session_id = updated
    return int(no), SessionId(session_id), int(seq)


def _find_target(tx: Transaction, select: str, *params: object) -> _AppendTarget | None:
    row = tx.fetch_one(select, *params)
    return None if row is None else _AppendTarget._make(row)


def _append_in_steps(
    tx: Transaction,
    target: _AppendTarget,
    messages: Sequence[Message],
    rows: list[MessageRow],
    now: int,
    *,
    from_human: bool,
    usage: TurnUsage | None = None,
) -> int:
    """Append to a session that this transaction has read: only the columns and indexes that change are written."""
    no, count = target.no, len(rows)
    last_seq = target.last_seq + count
    changes = _list_changes(target, messages, rows, now, from_human=from_human)
    totals: tuple[object, ...] = ()
    if usage is not None:
        values = usages.get_values(usage)
        if usages.insert(tx, no, now, target.platform, target.audience_no, *values[:-1]):
            totals = values[usages.ROW_VALUE_COUNT :]
    tx.execute(_build_update_in_steps(tuple(changes), has_totals=bool(totals)), no, *totals, *changes.values())
    if count == 1:
        tx.execute(INSERT_MESSAGE, no, last_seq, now, *rows[0])
    else:
        tx.execute_many(INSERT_MESSAGE, [(no, last_seq - count + i, now, *row) for i, row in enumerate(rows, 1)])
    return last_seq


def _list_changes(
    target: _AppendTarget, messages: Sequence[Message], rows: list[MessageRow], now: int, *, from_human: bool
) -> dict[str, object]:
    """Return the columns of a session that change with messages."""
    changes: dict[str, object] = {
        "last_seq": target.last_seq + len(rows),
        "message_count": target.message_count + len(rows),
        "last_message_at": now,
        "redo_seq": None,
    }
    if (preview := _find_preview(rows)) is not None:
        changes["preview"] = preview
    if not target.has_title and (first_words := _find_first_words(rows)) is not None:
        changes["auto_title"] = first_words
    if tool_calls := sum(map(_count_tool_calls, messages)):
        changes["tool_call_count"] = target.tool_call_count + tool_calls
    if from_human:
        changes["last_human_at"] = now
        if target.last_human_at is None:  # what was sent there before has let the expiry watcher pass it by
            changes["expiry_base"] = now
    if from_human or target.active_at is None or target.active_at < now - QUICK_ANSWER_MICROS:
        changes["active_at"] = now
    if not target.unindexed:
        changes["unindexed"] = 1
    return changes


def prepare_first_message(first: FirstMessage, now: int) -> tuple[dict[str, object], MessageRow]:
    """Return the columns that a session has from its first message, which follows one other event, and its row."""
    row = encode_message(first.message, first.person_id)
    return _list_changes(_STARTED, [first.message], [row], now, from_human=first.from_human), row


@cache
def _build_update_in_steps(columns: tuple[str, ...], *, has_totals: bool) -> str:
    """Build the change of a session. Parameters: its number, the totals of the usage, then one for each column."""
    totals = [usages.build_totals_update(2)] if has_totals else []
    first = 2 + (usages.TOTALS_VALUE_COUNT if has_totals else 0)
    changes = [f"{name} = ${number}" for number, name in enumerate(columns, first)]
    return f"UPDATE session SET {', '.join([*totals, *changes])} WHERE no = $1"


def _build_update_params(
    id_or_key: str, messages: Sequence[Message], rows: list[MessageRow], now: int, *, from_human: bool
) -> _SessionUpdate:
    tool_calls = sum(map(_count_tool_calls, messages))
    preview, first_words = _find_preview(rows), _find_first_words(rows)
    return (id_or_key, len(rows), now, int(from_human), preview, tool_calls, first_words)


def _append_in_one_statement(
    tx: Transaction, update: _SessionUpdate, rows: list[MessageRow], usage: TurnUsage | None
) -> int | None:
    is_batch = len(rows) > 1
    columns = [list(column) for column in zip(*rows, strict=True)] if is_batch else rows[0]
    usage_values = () if usage is None else usages.get_values(usage)
    statement = _build_whole_append(has_usage=usage is not None, is_batch=is_batch, is_shared=tx.is_shared)
    return fetch_value(tx, statement, *update, *columns, *usage_values)


@cache
def _build_whole_append(*, has_usage: bool, is_batch: bool, is_shared: bool) -> str:
    """Build the statement that does a whole append.

    Parameters: `_SessionUpdate`, the five columns of the message (arrays for a batch), then those of the usage.
    """
    steps, update, new_usage, condition = [], _UPDATE_AND_MOVE_SESSION, "", "id = $1"
    if is_shared:
        steps.append("free AS (SELECT no FROM session WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED)")
        condition = "no = (SELECT no FROM free)"
    if has_usage:
        steps.append(f"used AS ({usages.build_insert(13, '$3', condition)} RETURNING 1)")
        update += f", {usages.build_totals_update(13 + usages.ROW_VALUE_COUNT, 'new_usage.n = 1')}"
        new_usage = " FROM (SELECT COUNT(*) AS n FROM used) AS new_usage"
    steps.append(f"updated AS ({update}{new_usage} WHERE {condition} RETURNING no, last_seq)")
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
