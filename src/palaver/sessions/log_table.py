"""The log of each session: reads it, appends events that are not messages, hides and shows messages.

Hidden messages stay stored; an event is deleted only with its whole session. `message_table.py` appends messages.
"""

from __future__ import annotations

import json
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_value, list_columns
from palaver.core.errors import ChangeTooLarge, NothingToRedo, NothingToUndo, SessionNotFound
from palaver.core.ids import PersonId, parse_session_id
from palaver.core.text import make_json_storable, make_storable
from palaver.people.person_data import ErasureStep, ExportedTable, Field, FieldKind, PersonColumn, Stays, make_fields
from palaver.sessions import hidden_ranges as read_marks
from palaver.sessions.events import UNREAD_KINDS, Event, EventKind
from palaver.sessions.hidden_ranges import (
    BY_ID,
    BY_NO,
    IS_NEAR_HIDDEN,
    MAX_ROWS_PER_READ,
    iterate_backwards,
    mark_near_hidden,
)
from palaver.sessions.message import Message, make_preview
from palaver.sessions.message_table import (
    EDITED_TEXT,
    INSERT_EVENT,
    INSERT_MESSAGE,
    PREVIEW_ROLES,
    SELECT_EVENT,
    EventColumns,
    UnreadableRow,
    decode_body,
    decode_message,
    encode_message,
    event_from_row,
    find_facts,
)
from palaver.sessions.model import UndoResult
from palaver.sessions.sent_message import SENT_BY_KEY, find_sent_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


END_OF_LOG = 2**62  # a seq after every event
# That one transaction hides or copies: other writers wait for about a hundredth of a second.
MAX_CHANGED_EVENTS = 2_000
MAX_CHANGED_BYTES = 1_000_000
UNREADABLE_TEXT = "(This message can't be read: its entry in the log is damaged.)"
_SEQ, _KIND, _ROLE = map(EventColumns._fields.index, ("seq", "kind", "role"))
_IS_VISIBLE = "kind = 'message' AND hidden_by IS NULL"
_IS_ANSWER = "role IN ('assistant', 'tool')"
_EVENT_BYTES = "COALESCE(octet_length(content), 0) + COALESCE(octet_length(body), 0)"
# The columns of `SELECT_EVENT` with the size instead of the texts, which are not read.
_SELECT_EVENT_SIZES = (
    f"SELECT {list_columns(EventColumns, content=_EVENT_BYTES, body='NULL', edited_text='NULL')} FROM event"
)


def append_event(
    tx: Transaction,
    session_no: int,
    kind: EventKind,
    now: int,
    person_id: PersonId | None = None,
    **facts: object,
) -> int:
    """Append an event that is not a message, and return its seq."""
    text = facts.pop("text") if kind is EventKind.MESSAGE_EDITED else None  # in its own column, for searches
    sql = "UPDATE session SET last_seq = last_seq + 1 WHERE no = $1 AND is_deleted = 0 RETURNING last_seq"
    seq: int | None = fetch_value(tx, sql, session_no)
    if seq is None:
        raise SessionNotFound
    tx.execute(
        INSERT_EVENT + " VALUES ($1, $2, $3, $4, NULL, $7, $5, $6, NULL)",
        session_no,
        seq,
        kind.value,
        now,
        encode_facts(facts),
        person_id,
        None if text is None else make_storable(str(text)),
    )
    if kind not in UNREAD_KINDS:
        read_marks.move_from_end(tx, session_no, seq)
    return seq


def encode_facts(facts: Mapping[str, object]) -> str | None:
    return json.dumps(make_json_storable(facts)) if facts else None


def load_transcript(tx: Transaction, session_id: str, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the visible messages in log order as dicts for a model; with `limit`, only the last of them."""
    session_id = parse_session_id(session_id)
    # With a limit, PostgreSQL would need another round trip for a log in which something was hidden.
    rows = _load_unmarked_log(tx, session_id, limit) if limit is None or tx.name == "sqlite" else []
    if not rows:
        expected = MAX_ROWS_PER_READ if limit is None else limit
        newest = _iter_newest_messages(tx, session_id, END_OF_LOG, expected, session_condition=BY_ID)
        rows = list(map(_get_transcript_columns, islice(newest, limit)))
        rows.reverse()
    if not rows and tx.fetch_one("SELECT 1 FROM session WHERE id = $1", session_id) is None:
        raise SessionNotFound.for_id(session_id)
    return [
        {"role": role, "content": content}
        if body is None and edited_text is None
        else _build_transcript_message(role, content, body, edited_text)
        for role, content, body, edited_text in rows
    ]


_get_transcript_columns = itemgetter(*map(EventColumns._fields.index, ("role", "content", "body", "edited_text")))


def _load_unmarked_log(tx: Transaction, session_id: str, limit: int | None) -> list[Row]:
    """Return the messages of a log in which nothing was ever hidden, which is the usual case; of others, none."""
    order, limits = ("seq", ()) if limit is None else ("seq DESC LIMIT $2", (limit,))
    rows = tx.fetch_all(f"{_SELECT_UNMARKED_LOG} ORDER BY {order}", session_id, *limits)
    return rows if limit is None else rows[::-1]


_SELECT_UNMARKED_LOG = f"""SELECT role, content, body, {EDITED_TEXT} FROM event WHERE kind = 'message' AND session_no =
    (SELECT s.no FROM session s WHERE s.id = $1
    AND NOT EXISTS (SELECT 1 FROM event near WHERE near.session_no = s.no AND {IS_NEAR_HIDDEN}))"""


def _build_transcript_message(
    role: str, content: str | None, body: str | None, edited_text: str | None
) -> dict[str, Any]:
    if body is None:
        return {"role": role, "content": content if edited_text is None else edited_text}
    try:
        if edited_text is not None:
            return decode_message(role, content, body, None, edited_text).to_dict()
        return {"role": role, "content": content, **decode_body(body)}
    except UnreadableRow:
        return {"role": role, "content": UNREADABLE_TEXT}


def _iter_newest_messages(
    tx: Transaction,
    session: object,
    before: int,
    expected: int,
    *,
    session_condition: str = BY_NO,
    first_seq: int = 0,
) -> Iterator[Row]:
    """Yield the visible messages from before `before` back to `first_seq`, newest first, as rows of `EventColumns`."""
    rows = iterate_backwards(tx, session, before, expected, session_condition=session_condition, first_seq=first_seq)
    return (row for row in rows if row[_KIND] == "message")


def list_messages(
    tx: Transaction, session_no: int, *, before: int | None = None, limit: int | None = None
) -> list[Event]:
    """Return the last visible messages before a seq (None: before the end of the log), oldest first."""
    newest = _iter_newest_messages(tx, session_no, END_OF_LOG if before is None else before, limit or MAX_ROWS_PER_READ)
    return [event_from_row(row) for row in reversed(list(islice(newest, limit)))]


def iterate_newest_messages(
    tx: Transaction, session_no: int, *, first_seq: int = 0, before: int = END_OF_LOG
) -> Iterator[Event]:
    """Yield the visible messages from a seq on, before another one; the last one first, a few at a time."""
    return map(event_from_row, _iter_newest_messages(tx, session_no, before, 50, first_seq=first_seq))


def load_context(
    tx: Transaction, session_no: int, *, first_seq: int, up_to: int, max_messages: int = 2000
) -> tuple[list[Event], bool]:
    """Return the messages from `first_seq` on that a turn which answers message `up_to` sees, and whether some were
    left out.

    Answers later in the log than `up_to` are included, later messages of people are not. Of more than `max_messages`
    only the last are returned. Their beginning moves on by half of `max_messages` at a time, so that the turns in
    between begin alike and the provider's prompt cache hits.
    """
    newest = _iter_newest_messages(tx, session_no, END_OF_LOG, max_messages, first_seq=first_seq)
    rows = list(islice(newest, max_messages + 1))
    is_shortened = len(rows) > max_messages
    if is_shortened:
        count = fetch_value(tx, "SELECT message_count FROM session WHERE no = $1", session_no) or len(rows)
        half = max(max_messages // 2, 1)
        # Counted among all visible messages, because only an undo changes their positions.
        begin = -(-(count - max_messages) // half) * half
        rows = rows[: count - begin]
    messages = [event_from_row(row) for row in reversed(rows) if row[_ROLE] != "user" or row[_SEQ] <= up_to]
    return messages, is_shortened


class EventSize(NamedTuple):
    seq: int
    created_at: int
    byte_count: int


def list_sizes(tx: Transaction, session_no: int, limit: int) -> list[EventSize]:
    """Return how much text the first events of a session have, without reading it."""
    sql = """SELECT seq, created_at, COALESCE(octet_length(content), 0) + COALESCE(octet_length(body), 0) FROM event
        WHERE session_no = $1 ORDER BY seq LIMIT $2"""
    return [EventSize._make(row) for row in tx.fetch_all(sql, session_no, limit)]


def list_events(tx: Transaction, session_no: int, *, after: int = 0, limit: int = 1000) -> list[Event]:
    """Return the events after a seq, hidden messages included."""
    rows = tx.fetch_all(
        f"{SELECT_EVENT} WHERE session_no = $1 AND seq > $2 ORDER BY seq LIMIT $3", session_no, after, limit
    )
    return [event_from_row(row) for row in rows]


def iterate_events(
    tx: Transaction, session_no: int, batch_size: int, pause: Callable[[], None] = lambda: None
) -> Iterator[Event]:
    """Yield every event of a session, oldest first; `pause` is called after each batch."""
    after = 0
    while batch := list_events(tx, session_no, after=after, limit=batch_size):
        yield from batch
        after = batch[-1].seq
        pause()


def list_reactions(tx: Transaction, session_no: int, *, after: int, before: int) -> list[Event]:
    """Return the reactions between two seqs, without those in another version."""
    sql = f"""{SELECT_EVENT} WHERE session_no = $1 AND seq > $2 AND seq < $3 AND kind = 'reaction' AND hidden_by IS NULL
        ORDER BY seq"""
    return [event_from_row(row) for row in tx.fetch_all(sql, session_no, after, before)]


def find_row(tx: Transaction, session_no: int, seq: int) -> EventColumns | None:
    row = tx.fetch_one(f"{SELECT_EVENT} WHERE session_no = $1 AND seq = $2", session_no, seq)
    return None if row is None else EventColumns._make(row)


def is_visible_question(tx: Transaction, session_no: int, seq: int) -> bool:
    sql = f"SELECT 1 FROM event WHERE session_no = $1 AND seq = $2 AND {_IS_VISIBLE} AND role = 'user'"
    return tx.fetch_one(sql, session_no, seq) is not None


def list_events_at(tx: Transaction, session_no: int, seqs: Sequence[int]) -> list[Event]:
    """Return the events with these seqs; a seq without an event is left out."""
    return [event_from_row(row) for seq in seqs if (row := find_row(tx, session_no, seq)) is not None]


def load_facts(tx: Transaction, session_no: int, seq: int) -> dict[str, Any]:
    """Return the facts of an event; empty if there is none, or they cannot be read."""
    return find_facts(fetch_value(tx, "SELECT body FROM event WHERE session_no = $1 AND seq = $2", session_no, seq))


def lock_session(tx: Transaction, session_no: int, column: str = "no") -> Any:
    """Keep others from changing a session until this transaction ends, and return one of its columns."""
    row = tx.fetch_one(f"SELECT {column} FROM session WHERE no = $1 {tx.for_update}", session_no)
    if row is None:
        raise SessionNotFound
    return row[0]


def get_last_seq(tx: Transaction, session_no: int) -> int:
    seq: int | None = fetch_value(tx, "SELECT last_seq FROM session WHERE no = $1", session_no)
    if seq is None:
        raise SessionNotFound
    return seq


class ExchangeEnd(NamedTuple):
    """The end of an exchange: before `seq`, except for its answers, which end before `answers_before`.

    A message that arrives during an answer is stored before that answer, so `answers_before` may be greater.
    """

    seq: int
    answers_before: int


WHOLE_LOG = ExchangeEnd(END_OF_LOG, END_OF_LOG)


def find_exchange_end(tx: Transaction, session_no: int, seq: int) -> ExchangeEnd | None:
    """Return where the exchange with this visible message ends; None if there is no such message."""
    message = find_row(tx, session_no, seq)
    if message is None or not message.is_visible_message:
        return None
    question_seq = seq if message.role == "user" else (_find_answered_seq(message.body) or seq)
    following = f"SELECT seq FROM event WHERE session_no = $1 AND seq > $2 AND {_IS_VISIBLE} AND role = 'user'"
    next_question: int | None = fetch_value(tx, f"{following} ORDER BY seq LIMIT 1", session_no, question_seq)
    if next_question is None:
        return WHOLE_LOG
    return ExchangeEnd(next_question, _find_end_of_earlier_answers(tx, session_no, next_question) or next_question)


def _find_answered_seq(body: str | None) -> int | None:
    """Return the seq of the message that an answer with this body answers, if it names one."""
    answered_seq = find_facts(body).get("answers") if body and '"answers"' in body else None
    return answered_seq if isinstance(answered_seq, int) else None


def _is_post(role: str, body: str | None) -> bool:
    """Return whether a job, or the agent from another conversation, has sent a message: it is part of no turn here."""
    return role == "assistant" and body is not None and SENT_BY_KEY in body and bool(find_sent_by(find_facts(body)))


def _list_posts(tx: Transaction, session_no: int, after: int) -> list[int]:
    """List the visible messages after an event that are part of no turn."""
    sql = f"""SELECT seq, role, body FROM event WHERE session_no = $1 AND seq > $2 AND {_IS_VISIBLE}
        AND role = 'assistant' AND body IS NOT NULL ORDER BY seq"""
    return [seq for seq, role, body in tx.fetch_all(sql, session_no, after) if _is_post(role, body)]


def _find_end_of_earlier_answers(tx: Transaction, session_no: int, question_seq: int) -> int | None:
    """Return the seq before which the answers after a question answer earlier messages; None if there are none.

    The answers of a session follow each other in the order of their questions, so it reads only these and one more.
    """
    sql = f"""SELECT seq, role, body FROM event WHERE session_no = $1 AND seq > $2 AND {_IS_VISIBLE} AND {_IS_ANSWER}
        ORDER BY seq LIMIT $3"""
    end = None
    after, row_limit = question_seq, 4
    while True:
        rows = tx.fetch_all(sql, session_no, after, row_limit)
        for seq, role, body in rows:
            after = seq
            if _is_post(role, body):
                continue
            answered_seq = _find_answered_seq(body)
            if answered_seq is None or answered_seq >= question_seq:
                return end
            end = seq + 1
        if len(rows) < row_limit:
            return end
        row_limit = MAX_ROWS_PER_READ


def is_larger_than(tx: Transaction, session_no: int, first_seq: int, max_events: int, max_bytes: int) -> bool:
    """Return whether the log from this event on has more entries or bytes, without reading their content."""
    sql = f"SELECT {_EVENT_BYTES} FROM event WHERE session_no = $1 AND seq >= $2 ORDER BY seq LIMIT $3"
    sizes = tx.fetch_all(sql, session_no, first_seq, max_events + 1)
    return len(sizes) > max_events or sum(size for (size,) in sizes) > max_bytes


def undo_turns(tx: Transaction, session_no: int, turns: int, now: int, person_id: PersonId | None = None) -> UndoResult:
    """Hide the last `turns` turns: each a user message and what follows it."""
    facts = {"previous_seq": lock_session(tx, session_no, "redo_seq")}
    seqs = _find_last_questions(tx, session_no, turns)
    if not seqs:
        raise NothingToUndo
    facts |= {"turns": len(seqs), "first_seq": seqs[-1]}
    hidden = hide_exchanges(tx, session_no, EventKind.UNDONE, seqs[-1], now, person_id, facts)
    tx.execute("UPDATE session SET redo_seq = $2 WHERE no = $1", session_no, hidden.seq)
    end_compaction_of_hidden(tx, session_no, seqs[-1])
    update_counters(tx, session_no, -hidden.message_count)
    return _make_undo_result(tx, session_no, facts, hidden.message_count)


def _make_undo_result(tx: Transaction, session_no: int, facts: Mapping[str, Any], message_count: int) -> UndoResult:
    question = find_row(tx, session_no, facts["first_seq"])
    prompt = (question.text if question else None) or ""
    return UndoResult(turns=facts["turns"], messages=message_count, prompt=prompt)


def _find_last_questions(tx: Transaction, session_no: int, turns: int) -> list[int]:
    """Return the numbers of the last messages of people, newest first, without reading the text of any message.

    Raises `ChangeTooLarge` where more follows than may be changed.
    """
    seqs: list[int] = []
    left_events, left_bytes = MAX_CHANGED_EVENTS, MAX_CHANGED_BYTES
    expected = min(turns * 4, MAX_ROWS_PER_READ)
    newest = iterate_backwards(tx, session_no, END_OF_LOG, expected, select=_SELECT_EVENT_SIZES)
    for row in map(EventColumns._make, newest):
        left_events -= 1
        left_bytes -= int(row.content or 0)  # its size
        if left_events < 0 or left_bytes < 0:
            raise ChangeTooLarge(max_messages=MAX_CHANGED_EVENTS, max_bytes=MAX_CHANGED_BYTES)
        if row.kind == "message" and row.role == "user":
            seqs.append(row.seq)
            if len(seqs) == turns:
                break
    return seqs


def redo_turns(tx: Transaction, session_no: int, now: int, person_id: PersonId | None = None) -> UndoResult:
    """Show again what the last undo hid, unless new messages have come since."""
    undo_seq: int | None = lock_session(tx, session_no, "redo_seq")
    facts = load_facts(tx, session_no, undo_seq or 0)
    if undo_seq is None or not isinstance(facts.get("first_seq"), int) or not isinstance(facts.get("turns"), int):
        raise NothingToRedo
    sql = "UPDATE event SET hidden_by = NULL WHERE session_no = $1 AND seq >= $2 AND seq < $3 AND hidden_by = $3"
    shown_count = tx.execute(sql, session_no, facts["first_seq"], undo_seq)
    append_event(tx, session_no, EventKind.REDONE, now, person_id, undo_seq=undo_seq, turns=facts["turns"])
    tx.execute("UPDATE session SET redo_seq = $2 WHERE no = $1", session_no, facts.get("previous_seq"))
    update_counters(tx, session_no, shown_count)
    return _make_undo_result(tx, session_no, facts, shown_count)


def rewrite_transcript(tx: Transaction, session_no: int, messages: Sequence[Message], now: int) -> None:
    """Make the visible transcript equal to `messages`: hide from the first difference on, and append the rest."""
    lock_session(tx, session_no)
    sql = f"SELECT seq, role, content, body FROM event WHERE session_no = $1 AND {_IS_VISIBLE} ORDER BY seq"
    old_rows = tx.fetch_all(sql, session_no)
    new_rows = [encode_message(message, None) for message in messages]
    same = 0
    while same < min(len(old_rows), len(new_rows)) and old_rows[same][1:] == new_rows[same][:3]:
        same += 1
    if same == len(old_rows) == len(new_rows):
        return
    first_seq = old_rows[same][0] if same < len(old_rows) else END_OF_LOG
    counts = {"hidden": len(old_rows) - same, "added": len(new_rows) - same}
    seq = append_event(tx, session_no, EventKind.REWRITTEN, now, None, first_seq=first_seq, **counts)
    hidden_count = _hide_messages(tx, session_no, first_seq, seq, answers_from=first_seq)
    end_compaction_of_hidden(tx, session_no, first_seq)
    added_rows = new_rows[same:]
    tx.execute_many(INSERT_MESSAGE, [(session_no, seq + i, now, *row) for i, row in enumerate(added_rows, 1)])
    sql = """UPDATE session SET last_seq = last_seq + $2, redo_seq = NULL, unindexed = 1,
        active_at = COALESCE(active_at, $3)
        WHERE no = $1"""
    tx.execute(sql, session_no, len(added_rows), now)
    update_counters(tx, session_no, len(added_rows) - hidden_count)


class HiddenExchanges(NamedTuple):
    seq: int  # of the event that has hidden them
    message_count: int
    answers_from: int  # answers before this seq answer earlier messages, and stay


def hide_exchanges(
    tx: Transaction,
    session_no: int,
    kind: EventKind,
    first_seq: int,
    now: int,
    person_id: PersonId | None,
    facts: Mapping[str, object],
) -> HiddenExchanges:
    """Append an event that hides the visible messages from a question on.

    Answers to earlier messages stay, and so does what a job or another conversation has sent here since: the facts of
    the event say up to where. Raises `ChangeTooLarge` if so much follows the question that other writers would wait.
    """
    if is_larger_than(tx, session_no, first_seq, MAX_CHANGED_EVENTS, MAX_CHANGED_BYTES):
        raise ChangeTooLarge(max_messages=MAX_CHANGED_EVENTS, max_bytes=MAX_CHANGED_BYTES)
    answers_end = _find_end_of_earlier_answers(tx, session_no, first_seq)
    posts = _list_posts(tx, session_no, first_seq)
    kept = {} if answers_end is None else {"answers_kept_before": answers_end}
    if posts:
        kept["posts_kept_before"] = posts[-1] + 1
    seq = append_event(tx, session_no, kind, now, person_id, **facts, **kept)
    answers_from = answers_end or first_seq
    message_count = _hide_messages(tx, session_no, first_seq, seq, answers_from=answers_from, kept=posts)
    return HiddenExchanges(seq, message_count, answers_from)


def _hide_messages(
    tx: Transaction, session_no: int, first_seq: int, hidden_by: int, *, answers_from: int, kept: Sequence[int] = ()
) -> int:
    """Hide the visible messages from `first_seq` on, answers from `answers_from` on, and return how many they are."""
    is_kept = f"AND seq NOT IN ({build_placeholders(len(kept), first=5)})" if kept else ""
    sql = f"""UPDATE event SET hidden_by = $3, is_near_hidden = 1 WHERE session_no = $1 AND seq >= $2 AND {_IS_VISIBLE}
        AND (seq >= $4 OR NOT {_IS_ANSWER}) {is_kept}"""
    hidden_count = tx.execute(sql, session_no, first_seq, hidden_by, answers_from, *kept)
    if hidden_count:
        mark_near_hidden(tx, session_no, first_seq, hidden_by)
    return hidden_count


def end_compaction_of_hidden(tx: Transaction, session_no: int, first_seq: int) -> None:
    """End the compaction in effect if it summarizes hidden messages (from `first_seq` on)."""
    sql = """SELECT e.body FROM session s JOIN event e ON e.session_no = s.no AND e.seq = s.compaction_seq
        WHERE s.no = $1"""
    row = tx.fetch_one(sql, session_no)
    if row is None:
        return
    first_kept_seq = find_facts(row[0]).get("first_kept_seq")
    if not isinstance(first_kept_seq, int) or first_kept_seq > first_seq:
        tx.execute("UPDATE session SET compaction_seq = NULL WHERE no = $1", session_no)


def update_counters(tx: Transaction, session_no: int, change: int) -> None:
    """Add `change` to the number of visible messages, and set last message and preview to the newest visible ones."""
    last_message_at, preview = find_last_message(tx, session_no)
    sql = "UPDATE session SET message_count = message_count + $2, last_message_at = $3, preview = $4 WHERE no = $1"
    tx.execute(sql, session_no, change, last_message_at, preview)


def find_last_message(tx: Transaction, session_no: int) -> tuple[int | None, str]:
    """Return when the newest visible message was stored, and the preview of the newest one that has a text."""
    last_message_at, preview = None, ""
    for row in map(EventColumns._make, _iter_newest_messages(tx, session_no, END_OF_LOG, 8)):
        last_message_at = row.created_at if last_message_at is None else last_message_at
        if (text := row.text) and row.role in PREVIEW_ROLES and (preview := make_preview(text)):
            break
    return last_message_at, preview


def copy_messages(tx: Transaction, from_session_no: int, to_session_no: int, end: ExchangeEnd) -> tuple[int, bool]:
    """Copy the visible messages up to the end of an exchange to another session's log.

    Of a very long log, the newest ones: other writers would wait for the rest. Return how many were copied, and whether
    others were left out.
    """
    last_seq = get_last_seq(tx, to_session_no)
    first_seq = _find_copy_start(tx, from_session_no, end)
    count = tx.execute(
        INSERT_EVENT
        + " SELECT $2, $3 + ROW_NUMBER() OVER (ORDER BY seq), kind, created_at, role, content, body, person_id,"
        f" platform_message_id FROM event WHERE session_no = $1 AND seq >= $6 AND {_IS_VISIBLE}"
        f" AND (seq < $4 OR (seq < $5 AND {_IS_ANSWER})) ORDER BY seq",
        from_session_no,
        to_session_no,
        last_seq,
        *end,
        first_seq,
    )
    _renumber_answers(tx, from_session_no, to_session_no, last_seq, first_seq, end)
    tx.execute("UPDATE session SET last_seq = last_seq + $2, unindexed = 1 WHERE no = $1", to_session_no, count)
    update_counters(tx, to_session_no, count)
    return count, first_seq > 0


def _find_copy_start(tx: Transaction, session_no: int, end: ExchangeEnd) -> int:
    """Return the seq of the first message to copy; 0 if all messages before `end` are few enough."""
    sql = f"SELECT seq, {_EVENT_BYTES} FROM event WHERE session_no = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3"
    rows = tx.fetch_all(sql, session_no, end.answers_before, MAX_CHANGED_EVENTS + 1)
    left_bytes, seq = MAX_CHANGED_BYTES, 0
    for index, (event_seq, size) in enumerate(rows):
        left_bytes -= size
        if index == MAX_CHANGED_EVENTS or (left_bytes < 0 and index > 0):
            return seq
        seq = int(event_seq)
    return 0


def _renumber_answers(
    tx: Transaction, from_session_no: int, to_session_no: int, last_seq: int, first_seq: int, end: ExchangeEnd
) -> None:
    """Let each copied answer name the copy of the message that it answers, not the number in the other session.

    The copy of a message that its author has edited gets the new text, because its edit is not copied.
    """
    sql = f"""SELECT seq, CASE WHEN role <> 'user' THEN body END, edited_by FROM event WHERE session_no = $1
        AND seq >= $4 AND {_IS_VISIBLE} AND (seq < $2 OR (seq < $3 AND {_IS_ANSWER})) ORDER BY seq"""
    rows = tx.fetch_all(sql, from_session_no, *end, first_seq)
    new_seqs = {seq: last_seq + index for index, (seq, _, _) in enumerate(rows, 1)}
    for event in list_events_at(tx, from_session_no, [seq for seq, _, edited_by in rows if edited_by is not None]):
        if event.message is not None:
            _, text, body, *_ = encode_message(event.message, None)
            update = "UPDATE event SET content = $3, body = $4 WHERE session_no = $1 AND seq = $2"
            tx.execute(update, to_session_no, new_seqs[event.seq], text, body)
    renumbered = []
    for seq, body, _ in rows:
        fields = find_facts(body) if body and '"answers"' in body else {}
        if isinstance(fields.get("answers"), int):
            fields["answers"] = new_seqs.get(fields["answers"])
            renumbered.append((to_session_no, new_seqs[seq], json.dumps(fields, separators=(",", ":"))))
    if renumbered:
        tx.execute_many("UPDATE event SET body = $3 WHERE session_no = $1 AND seq = $2", renumbered)


PERSON_DATA: Final = (
    PersonColumn("event", merge=Stays("says who wrote it, under the id of that time"), erase=ErasureStep.SHARED),
)


def _make_export(body: FieldKind) -> ExportedTable:
    return ExportedTable(
        table="event",
        fields=(
            *make_fields("seq!", FieldKind.NUMBER),
            *make_fields("kind!"),
            *make_fields("created_at!", FieldKind.TIME),
            *make_fields("role content"),
            Field("body", body),
            *make_fields("person_id platform_message_id"),
            *make_fields("hidden_by edited_by", FieldKind.NUMBER),
        ),
        order=("seq",),
    )


MESSAGE_EXPORT: Final = _make_export(FieldKind.JSON)
OTHER_EVENT_EXPORT: Final = _make_export(FieldKind.SPACED_JSON)
