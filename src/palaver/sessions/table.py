"""Sessions: creates, finds and changes them. `list_table.py` lists, `deletion_table.py` deletes them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from palaver.core.clock import from_micros
from palaver.core.columns import update_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Conflict, Row, Transaction, build_placeholders, fetch_number, fetch_value
from palaver.core.errors import InvalidInput, SessionNotFound, TitleTaken
from palaver.core.ids import PersonId, ProjectId, SessionId, SessionKey, new_session_id, parse_session_id
from palaver.core.source import ChatType, SessionSource, encode_source
from palaver.core.texts import say
from palaver.core.titles import (
    MAX_TITLE_NUMBER,
    TitleSlot,
    clean_title,
    number_title,
    parse_title_slot,
    strip_title_number,
)
from palaver.people import table as people
from palaver.people.person_data import ExportedTable, FieldKind, make_fields
from palaver.sessions import activity_table as auto_titles, hidden_ranges as read_marks, log_table as events, model
from palaver.sessions.events import EventKind
from palaver.sessions.message_table import INSERT_ANY_EVENT, FirstMessage, prepare_first_message
from palaver.sessions.model import EndReason, Session, StartReason
from palaver.sessions.turn import BusyPolicy
from palaver.sessions.usage import CostStatus

if TYPE_CHECKING:
    from collections.abc import Sequence


_IS_VISIBLE = """($2 = '' OR EXISTS
    (SELECT 1 FROM audience_member m WHERE m.person_id = $2 AND m.audience_no = s.audience_no))"""
_MAX_SAME_TITLES = 50
SessionFlag = Literal["pinned", "archived"]
_FLAG_EVENTS = {  # when it is taken back, and when it is set
    "pinned": (EventKind.UNPINNED, EventKind.PINNED),
    "archived": (EventKind.UNARCHIVED, EventKind.ARCHIVED),
}
_SELECTED = model.SESSION_COLUMNS.format_select(
    "s",
    project_id="(SELECT p.id FROM project p WHERE p.no = s.project_no AND p.is_deleted = 0)",
    parent_id="(SELECT f.id FROM session f WHERE f.no = s.parent_no)",
    pinned="s.pinned_at IS NOT NULL",
    archived="s.archived_at IS NOT NULL",
    model_provider="s.provider",
    source_json="s.source",
)
VALUE_COLUMNS = f"{_SELECTED}, {model.USAGE_COLUMNS.format_select('s')}"
PLACE_COLUMNS = "s.no, s.audience_no"  # at the end of a row
SESSION_COLUMNS = f"{VALUE_COLUMNS}, {PLACE_COLUMNS}"
SELECT_SESSION = f"SELECT {SESSION_COLUMNS} FROM session s"  # for `make_session_row`


@dataclass(frozen=True, slots=True)
class SessionRow:
    no: int
    audience_no: int
    session: Session


def make_session_row(row: Row) -> SessionRow:
    """Read a row of `SESSION_COLUMNS`."""
    return SessionRow(row[-2], row[-1], model.read_session(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlace:
    key: SessionKey
    source: SessionSource
    audience_no: int
    shared: bool


def create(
    tx: Transaction,
    place: SessionPlace,
    reason: StartReason,
    now: int,
    *,
    previous: Session | None = None,
    reset_setting: str | None = None,
    profile: str | None = None,
    first: FirstMessage | None = None,
) -> tuple[int, SessionId]:
    """Create a session, with its first message if there is one, and record the reason in its log.

    Return its number and its id. `reset_setting` is the key of the reset policy that has ended the previous session,
    `profile` the profile that the new one takes over from it.
    """
    columns, row = ({"last_seq": 1}, None) if first is None else prepare_first_message(first, now)
    no, session_id = _insert_session(tx, place, reason, now, previous=previous, profile=profile, **columns)
    previous_id = previous.id if previous else None
    facts = {"reason": reason.value, "previous": previous_id, "reset_setting": reset_setting, "profile": profile}
    body = events.encode_facts({name: fact for name, fact in facts.items() if fact is not None})
    rows: list[tuple[object, ...]] = [(no, 1, EventKind.STARTED.value, now, None, None, body, None, None)]
    if row is not None:
        rows.append((no, 2, EventKind.MESSAGE.value, now, *row))
    tx.execute_many(INSERT_ANY_EVENT, rows)
    return no, session_id


def _insert_session(
    tx: Transaction,
    place: SessionPlace,
    reason: StartReason,
    now: int,
    *,
    previous: Session | None,
    **others: object,
) -> tuple[int, SessionId]:
    session_id = new_session_id(from_micros(now))
    columns = {
        "audience_no": place.audience_no,
        "id": session_id,
        "key": place.key,
        "platform": str(place.source.platform),
        "chat_type": place.source.chat_type.value,
        "source": encode_source(place.source),
        "shared": int(place.shared),
        "created_at": now,
        "expiry_base": now,
        "start_reason": reason.value,
        "previous_had_messages": int(previous is not None and previous.message_count > 0),
        **others,
    }
    return fetch_number(tx, _build_insert(tuple(columns)), *columns.values()), session_id


@cache
def _build_insert(columns: tuple[str, ...]) -> str:
    return f"""INSERT INTO session ({", ".join(columns)}, is_first_contact) VALUES ({build_placeholders(len(columns))},
        CASE WHEN EXISTS (SELECT 1 FROM session e WHERE e.audience_no = $1 AND e.active_at IS NOT NULL) THEN 0 ELSE 1
        END) RETURNING no"""


def end(tx: Transaction, session_no: int, reason: EndReason, now: int, *, except_lane: str = "") -> None:
    """End a session, unless a lane other than `except_lane` is on it. The reason of a session that has already ended
    does not change.
    """
    sql = """UPDATE session SET ended_at = $2, end_reason = $3 WHERE no = $1 AND ended_at IS NULL AND NOT EXISTS
        (SELECT 1 FROM lane l WHERE l.session_no = $1 AND l.key <> $4)"""
    if tx.execute(sql, session_no, now, reason.value, except_lane):
        events.append_event(tx, session_no, EventKind.ENDED, now, reason=reason.value)


def end_on_lanes(tx: Transaction, session_no: int, reason: EndReason, now: int) -> None:
    """End an open session that lanes are on: the next message there starts another."""
    tx.execute("UPDATE session SET ended_at = $2, end_reason = $3 WHERE no = $1", session_no, now, reason.value)
    events.append_event(tx, session_no, EventKind.ENDED, now, reason=reason.value)


def reopen(tx: Transaction, session_no: int, now: int, person_id: PersonId | None = None) -> None:
    """Let a session continue if it has ended."""
    sql = """UPDATE session SET ended_at = NULL, end_reason = NULL, expiry_base = $2
        WHERE no = $1 AND ended_at IS NOT NULL"""
    if tx.execute(sql, session_no, now):
        events.append_event(tx, session_no, EventKind.REOPENED, now, person_id)


def get(tx: Transaction, session_id: str) -> SessionRow:
    row = find(tx, parse_session_id(session_id))
    if row is None:
        raise SessionNotFound.for_id(session_id)
    return row


def find(tx: Transaction, session_id: str) -> SessionRow | None:
    row = tx.fetch_one(f"{SELECT_SESSION} WHERE s.id = $1", session_id)
    return make_session_row(row) if row else None


def get_no(tx: Transaction, session_id: str) -> int:
    no: int | None = fetch_value(tx, "SELECT no FROM session WHERE id = $1", session_id)
    if no is None:
        raise SessionNotFound
    return no


def get_by_no(tx: Transaction, session_no: int) -> SessionRow:
    row = find_by_no(tx, session_no)
    if row is None:
        raise SessionNotFound
    return row


def find_by_no(tx: Transaction, session_no: int, lock: str = "") -> SessionRow | None:
    """Return a session; None if it was deleted. `lock` is what the transaction offers, such as `for_update`."""
    row = tx.fetch_one(f"{SELECT_SESSION} WHERE s.no = $1 AND s.is_deleted = 0 {lock}", session_no)
    return make_session_row(row) if row else None


def get_visible(tx: Transaction, session_id: str, person_id: PersonId | None) -> SessionRow:
    """Return a session if this person may see it (None: the asker may see everything)."""
    return make_session_row(_fetch_visible(tx, SELECT_SESSION, session_id, person_id))


class SessionEnds(NamedTuple):
    """The newest entries of a session; 0 if there is none."""

    session_no: int
    seq: int
    turn_no: int
    delivery_no: int


def get_visible_ends(tx: Transaction, session_id: str, person_id: PersonId | None) -> SessionEnds:
    """Return the ends of a session if this person may see it (None: the asker may see everything)."""
    select = """SELECT s.no, s.last_seq, (SELECT MAX(t.no) FROM turn t WHERE t.session_no = s.no),
        (SELECT MAX(d.no) FROM delivery d WHERE d.session_no = s.no) FROM session s"""
    no, seq, turn_no, delivery_no = _fetch_visible(tx, select, session_id, person_id)
    return SessionEnds(no, seq, turn_no or 0, delivery_no or 0)


def _fetch_visible(tx: Transaction, select: str, session_id: str, person_id: PersonId | None) -> Row:
    row = tx.fetch_one(f"{select} WHERE s.id = $1 AND {_IS_VISIBLE}", parse_session_id(session_id), person_id or "")
    if row is None:
        raise SessionNotFound.for_id(session_id)
    return row


def is_visible(tx: Transaction, session_no: int, person_id: PersonId) -> bool:
    return tx.fetch_one(f"SELECT 1 FROM session s WHERE s.no = $1 AND {_IS_VISIBLE}", session_no, person_id) is not None


def list_by_id_prefix(tx: Transaction, prefix: str, audiences: Sequence[int] | None, limit: int) -> list[SessionRow]:
    """Return the newest sessions whose id begins with a prefix, in these audiences (None: in all)."""
    select = f"{SELECT_SESSION} WHERE s.id >= $1 AND s.id < $2 AND s.is_deleted = 0"
    newest_first, params = "ORDER BY s.id DESC LIMIT $3", (prefix, prefix + "\uffff", limit)
    if audiences is None:
        rows = tx.fetch_all(f"{select} {newest_first}", *params)
    else:
        in_audience = f"{select} AND s.audience_no = $4 {newest_first}"
        rows = [row for audience_no in audiences for row in tx.fetch_all(in_audience, *params, audience_no)]
    return [make_session_row(row) for row in rows[:limit]]


def list_by_title(
    tx: Transaction, slot: TitleSlot, audiences: Sequence[int] | None, *, exact: bool
) -> list[SessionRow]:
    """Return, for each audience, the session with the highest number of a title; the highest of all first.

    With `exact`, only sessions with exactly this number. Without audiences (None), in all audiences, up to a limit.
    """
    number_condition = "AND s.title_number = $2" if exact else "AND s.title_number >= $2"
    number = slot.number if exact else 1
    newest_first = "ORDER BY s.title_number DESC, s.active_at DESC"
    select = f"{SELECT_SESSION} WHERE s.title_base = $1 {number_condition}"
    if audiences is None:
        found = tx.fetch_all(f"{select} {newest_first} LIMIT {_MAX_SAME_TITLES}", slot.base, number)
        rows = list({row.audience_no: row for row in map(make_session_row, reversed(found))}.values())
    else:
        newest_rows = (
            tx.fetch_one(f"{select} AND s.audience_no = $3 {newest_first} LIMIT 1", slot.base, number, audience_no)
            for audience_no in audiences
        )
        rows = [make_session_row(row) for row in newest_rows if row is not None]
    rows.sort(key=lambda row: (_get_title_number(row.session), row.session.updated_at), reverse=True)
    return rows


def _get_title_number(session: Session) -> int:
    return parse_title_slot(session.title or "").number


def rename(
    tx: Transaction, session_row: SessionRow, title: str | None, now: int, person_id: PersonId | None
) -> Session:
    """Set the title of a session (None removes it); titles are unique for each owner."""
    no, session = session_row.no, session_row.session
    clean = None if title is None else clean_title(title)
    if clean == session.title:
        return session
    if clean is not None:
        same = list_by_title(tx, parse_title_slot(clean), _list_title_audiences(tx, session_row), exact=True)
        other = next((each for each in same if each.no != no), None)
        if other is not None:
            free = find_free_title(tx, session_row, clean)
            raise TitleTaken(
                say(
                    "title.taken",
                    "You already have a conversation titled {title}. {available} is free.",
                    title=repr(other.session.title),
                    available=repr(free),
                ),
                title=clean,
                available_title=free,
            )
    _set_title(tx, no, clean)
    events.append_event(tx, no, EventKind.RENAMED, now, person_id, title=clean, previous=session.title)
    return get_by_no(tx, no).session


def _set_title(tx: Transaction, session_no: int, title: str | None) -> None:
    slot = None if title is None else parse_title_slot(title)
    values = {"title": title, "title_base": slot and slot.base, "title_number": slot and slot.number}
    update_row(tx, "session", "no", session_no, values)


def _copy_title(tx: Transaction, session_row: SessionRow, fork_row: SessionRow) -> None:
    """Give a copy the title of its original with the next number: `My Project` becomes `My Project #2`."""
    session = session_row.session
    if session.title is not None:
        _set_title(tx, fork_row.no, find_free_title(tx, fork_row, session.title))
    if session.auto_title is not None:
        sql = "SELECT COUNT(*) FROM session WHERE parent_no = $1"
        copies = fetch_number(tx, sql, session_row.no)  # with the new one
        number = min(parse_title_slot(session.auto_title).number + copies, MAX_TITLE_NUMBER)
        auto_titles.set_copied_title(tx, fork_row.no, number_title(session.auto_title, number))


def find_free_title(tx: Transaction, session_row: SessionRow, title: str) -> str:
    """Return the title itself if it is free for this session's owner, otherwise the title with the next number."""
    base = strip_title_number(clean_title(title))
    audiences = _list_title_audiences(tx, session_row)
    while same := list_by_title(tx, parse_title_slot(base), audiences, exact=False):
        candidate = number_title(base, _get_title_number(same[0].session) + 1)
        if not list_by_title(tx, parse_title_slot(candidate), audiences, exact=True):
            return candidate
        base = strip_title_number(candidate)  # the number has shortened a long title: try again with the shorter one
    return base


def _list_title_audiences(tx: Transaction, session_row: SessionRow) -> list[int]:
    return people.list_title_audiences(tx, session_row.audience_no, shared=session_row.session.shared)


def set_flag(
    tx: Transaction, session_row: SessionRow, flag: SessionFlag, value: bool, now: int, person_id: PersonId | None
) -> Session:
    """Pin, unpin, archive or unarchive a session; doing it twice changes nothing."""
    no, session = session_row.no, session_row.session
    if getattr(session, flag) == value:
        return session
    tx.execute(f"UPDATE session SET {flag}_at = $2 WHERE no = $1", no, now if value else None)
    events.append_event(tx, no, _FLAG_EVENTS[flag][value], now, person_id)
    return get_by_no(tx, no).session


def move_to_project(
    tx: Transaction,
    session_row: SessionRow,
    project_id: ProjectId | None,
    project_no: int | None,
    now: int,
    person_id: PersonId | None,
) -> Session:
    no, session = session_row.no, session_row.session
    if session.project_id == project_id:
        return session
    sql = """UPDATE session SET project_no = $2 WHERE no = $1
        AND NOT EXISTS (SELECT 1 FROM project WHERE no = $2 AND is_deleted = 1)"""
    moved = tx.execute(sql, no, project_no)
    if not moved:
        raise Conflict  # another process has deleted the project meanwhile
    events.append_event(tx, no, EventKind.MOVED, now, person_id, project=project_id, previous=session.project_id)
    return get_by_no(tx, no).session


def fork(
    tx: Transaction,
    session_row: SessionRow,
    at_seq: int | None,
    now: int,
    *,
    person_id: PersonId | None,
    audience_no: int,
    is_empty: bool = False,
) -> SessionRow:
    """Create a session with a copy of this one's messages, up to the end of the exchange that `at_seq` belongs to.

    With `is_empty` it has none, for another version of the first message, `at_seq`. The line that says where it comes
    from stands after the copied messages; the person who forks has read it all.
    """
    if is_empty:
        end: events.ExchangeEnd | None = events.ExchangeEnd(0, 0)
    else:
        end = events.WHOLE_LOG if at_seq is None else events.find_exchange_end(tx, session_row.no, at_seq)
    if end is None:
        raise InvalidInput(
            say("branch.no_message", "There is no message number {seq} in this conversation.", seq=str(at_seq)),
            at=at_seq,
        )
    session = session_row.session
    place = SessionPlace(
        key=session.key,
        source=session.origin,
        audience_no=audience_no,
        shared=session.shared and audience_no == session_row.audience_no,
    )
    no, _ = _insert_session(tx, place, StartReason.FORK, now, previous=session, parent_no=session_row.no)
    copied_count, is_shortened = events.copy_messages(tx, session_row.no, no, end)
    facts: dict[str, Any] = {"previous": session.id, "copied_count": copied_count}
    if is_shortened:
        facts["is_shortened"] = True
    last_seq = events.append_event(tx, no, EventKind.STARTED, now, person_id, reason="fork", **facts)
    if copied_count > 0:
        sql = """UPDATE session SET active_at = $2, last_human_at = $2, has_shared_content = (SELECT
            CASE WHEN p.shared = 1 THEN 1 ELSE p.has_shared_content END FROM session p WHERE p.no = $3)
            WHERE no = $1"""
        tx.execute(sql, no, now, session_row.no)
    if person_id is not None:
        read_marks.mark_read(tx, no, person_id, last_seq, now)
    _copy_title(tx, session_row, get_by_no(tx, no))
    fork_row = get_by_no(tx, no)
    events.append_event(
        tx, session_row.no, EventKind.FORKED, now, person_id, fork_id=fork_row.session.id, at_seq=at_seq
    )
    return fork_row


EXPORT: Final = ExportedTable(
    table="session",
    fields=(
        *make_fields("id! key! platform!"),
        *make_fields("chat_type!", choices=ChatType),
        *make_fields("source!", FieldKind.JSON),
        *make_fields("shared! has_shared_content!", FieldKind.FLAG),
        *make_fields("title auto_title"),
        *make_fields("auto_title_asked!", FieldKind.FLAG),
        *make_fields("preview!"),
        *make_fields("created_at! active_at last_message_at last_human_at ended_at", FieldKind.TIME),
        *make_fields("end_reason", choices=EndReason),
        *make_fields("start_reason!", choices=StartReason),
        *make_fields("previous_had_messages! is_first_contact!", FieldKind.FLAG),
        *make_fields("pinned_at archived_at", FieldKind.TIME),
        *make_fields("last_seq! redo_seq compaction_seq message_count! tool_call_count!", FieldKind.NUMBER),
        *make_fields("chosen_model profile personality workspace"),
        *make_fields("busy_policy", choices=BusyPolicy),
        *make_fields("disabled_toolsets", FieldKind.SPACED_JSON),
        *make_fields("model provider"),
        *make_fields("last_prompt_tokens! input_tokens! output_tokens! cache_read_tokens!", FieldKind.NUMBER),
        *make_fields("cache_write_tokens! reasoning_tokens! cost_nanos", FieldKind.NUMBER),
        *make_fields("cost_status!", choices=CostStatus),
        *make_fields("cost_source"),
        *make_fields("unpriced_turns! estimated_nanos", FieldKind.NUMBER),
    ),
    references={
        "audience": "t.audience_no",
        "project": "(SELECT p.id FROM project p WHERE p.no = t.project_no AND p.is_deleted = 0)",
        "parent": "(SELECT f.id FROM session f WHERE f.no = t.parent_no)",
    },
    needs_audience=True,
    only="t.is_deleted = 0",
    report_kind="conversations",
)
