"""Lanes: which session a place is on, and every move from one session to another.

A lane's key is its address (`sessions/keys.py`). A move ends the old session with a reason and never deletes it; it is
recorded, so that `restore_session` can undo the moves one after the other.

Reads of lanes by chat: who has written in a chat, and which chats a person has written in.

Always true: each read is a range of an index, and skips the conversations on the page and in apps, where every
conversation has a lane of its own. So its cost does not grow with the number of conversations.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from palaver.core.clock import BEGINNING_OF_TIME, to_micros
from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Conflict, Transaction, fetch_value
from palaver.core.errors import NothingToRestore
from palaver.core.ids import PersonId, SessionId, SessionKey, new_person_id, new_session_id
from palaver.core.old_rows import declare_old_rows
from palaver.core.source import PLATFORMS_WITHOUT_CHATS, SessionSource, decode_source, encode_source
from palaver.people import table as people
from palaver.people.person_data import ExportedTable, FieldKind, make_fields
from palaver.people.sender_ids import list_sender_ids
from palaver.sessions import (
    activity_table as session_activity,
    message_table as message_log,
    policy as policies,
    settings_table as session_settings,
    table as sessions,
)
from palaver.sessions.gateway_config import MACHINE_PLATFORMS, GatewayConfig
from palaver.sessions.keys import DmScope, list_chat_key_prefixes
from palaver.sessions.message import Author, Message
from palaver.sessions.message_table import FirstMessage
from palaver.sessions.model import (
    AUTOMATIC_START_REASONS,
    EndReason,
    RecordedMessage,
    Session,
    SessionEntry,
    StartReason,
)
from palaver.sessions.table import SESSION_COLUMNS, SessionRow, make_session_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime


MAX_LANES_PER_NETWORK: Final = 300  # that are read for a list
MAX_SHARED_LANES: Final = 300  # that are read for a list
MAX_NETWORKS: Final = 50
MAX_UNDONE_AGE: Final = timedelta(days=30)  # of moves that were undone, unless it is the lane's last
_IS_MEMBER = "EXISTS (SELECT 1 FROM audience_member m WHERE m.person_id = $2 AND m.audience_no = l.audience_no)"
_OWN_AUDIENCES = "SELECT p.audience_no FROM person p WHERE p.id = $1 OR p.merged_into = $1"


@dataclass(slots=True, kw_only=True)
class Arrival:
    """A message or request that arrives from a source now, with the settings that decide where it belongs."""

    source: SessionSource
    config: GatewayConfig
    now: datetime
    said_at: datetime | None = None  # if that was earlier: the reset policy goes by it
    busy_since: Callable[[SessionId], datetime | None]  # since when background work runs in a session, if any does
    is_message_sent: bool = False  # a job or the agent sends it to the source, instead of a person who writes there

    @property
    def is_from_human(self) -> bool:
        return not self.is_message_sent and self.source.platform not in MACHINE_PLATFORMS

    @property
    def now_micros(self) -> int:
        return to_micros(self.now)


_SELECT_CURRENT = f"SELECT {SESSION_COLUMNS} FROM lane l JOIN session s ON s.no = l.session_no WHERE l.key = $1"


def resolve_key(tx: Transaction, arrival: Arrival) -> SessionKey:
    person_id = None
    if arrival.config.get_dm_scope(arrival.source) is DmScope.PERSON:
        person_row = people.find_by_source(tx, arrival.source)
        person_id = person_row.person.id if person_row else None
    return arrival.config.build_session_key(arrival.source, person=person_id)


def find_current_session(tx: Transaction, key: str, lock: str = "") -> SessionRow | None:
    """Return the session that a lane is on; `for_update` of the transaction keeps others from moving the lane."""
    row = tx.fetch_one(f"{_SELECT_CURRENT} {lock}", key)
    return make_session_row(row) if row else None


def list_on_session(tx: Transaction, session_no: int) -> list[tuple[SessionKey, SessionSource]]:
    """List the keys and places of the lanes of one person that are on a session, the one that moved last first."""
    rows = tx.fetch_all(
        "SELECT key, source FROM lane WHERE session_no = $1 AND shared = 0 ORDER BY updated_at DESC, key", session_no
    )
    return [(SessionKey(key), decode_source(source)) for key, source in rows]


def get_audience_no(tx: Transaction, key: str) -> int:
    """Return the audience of a lane; 0, an audience without members, if there is no such lane."""
    return fetch_value(tx, "SELECT audience_no FROM lane WHERE key = $1", key) or 0


# A fork has the key of its original, but the people in that lane do not know the fork until they continue it there.
BELONGS_TO_ITS_LANE = """(s.start_reason <> 'fork' OR EXISTS (SELECT 1 FROM lane l WHERE l.session_no = s.no
    AND l.key = s.key))"""


def belongs_to_its_lane(tx: Transaction, session_no: int) -> bool:
    """Return whether a session takes place, or took place, in the lane that its key names."""
    return tx.fetch_one(f"SELECT 1 FROM session s WHERE s.no = $1 AND {BELONGS_TO_ITS_LANE}", session_no) is not None


def find_entry(tx: Transaction, key: str) -> SessionEntry | None:
    """Return the lane's entry, even if the reset policy would start a new session now."""
    current = find_current_session(tx, key)
    return SessionEntry(SessionKey(key), current.session) if current else None


def find_open_entry(tx: Transaction, arrival: Arrival) -> SessionEntry | None:
    """Return the lane's entry if its session continues; None if a new session has to start."""
    key = resolve_key(tx, arrival)
    current = find_current_session(tx, key)
    if current is None or _find_start_reason(tx, current, arrival, force_new=False) is not None:
        return None
    return SessionEntry(key, current.session)


def get_or_create_entry(tx: Transaction, arrival: Arrival, *, force_new: bool = False) -> SessionEntry:
    """Return the lane's entry; start a session if there is none, the reset policy says so, or `force_new` is set."""
    key, current, reason = _find_current(tx, arrival, force_new=force_new)
    if current is not None and reason is None:
        return SessionEntry(key, current.session)
    no, _ = _start_session(tx, key, arrival, current, reason or StartReason.FIRST)
    return SessionEntry(key, sessions.get_by_no(tx, no).session, is_new=True)


def _find_current(
    tx: Transaction, arrival: Arrival, *, force_new: bool = False
) -> tuple[SessionKey, SessionRow | None, StartReason | None]:
    """Return the lane of an arrival, the session it is on, and why another one starts; None if that continues."""
    person_row = (
        people.find_or_add_by_source(tx, arrival.source, arrival.now_micros)
        if arrival.config.get_dm_scope(arrival.source) is DmScope.PERSON
        else None
    )
    key = arrival.config.build_session_key(arrival.source, person=person_row.person.id if person_row else None)
    current = find_current_session(tx, key, tx.for_update)
    reason = StartReason.FIRST if current is None else _find_start_reason(tx, current, arrival, force_new=force_new)
    return key, current, reason


def _find_start_reason(
    tx: Transaction, current: SessionRow, arrival: Arrival, *, force_new: bool
) -> StartReason | None:
    """Return why another session starts in a lane that is on `current`; None if that continues.

    The reason is the same whether the policy has already ended the session (`sessions/expiry_table.py`) or does so now.
    """
    end_reason = current.session.end_reason
    if end_reason is not None and not current.session.is_expired:
        return StartReason.FIRST
    if force_new:
        return StartReason.FORCED
    reason = _find_reset_reason(tx, current, arrival) or end_reason
    return None if reason is None else StartReason(reason.value)


def _find_reset_reason(tx: Transaction, current: SessionRow, arrival: Arrival) -> policies.ResetReason | None:
    _, policy = find_reset_rule(tx, arrival, current.no)
    if policy.mode is policies.ResetMode.NONE:
        return None
    session = current.session
    if arrival.is_from_human and is_unanswered_post(session):
        return None  # this is the answer
    reason = policies.find_reset_reason(
        policy,
        last_activity=session.last_human_at or session.created_at,
        now=arrival.said_at or arrival.now,
        busy_since=arrival.busy_since(session.id),
    )
    return None if reason is None or session_activity.has_waiting_proposal(tx, current.no) else reason


def find_reset_rule(tx: Transaction, arrival: Arrival, session_no: int) -> tuple[str, policies.ResetPolicy]:
    """Return the reset policy for an arrival in the lane of this session, and the policy's key in the settings."""
    config, source = arrival.config, arrival.source
    profile = session_settings.find_reset_profile(tx, config, session_no)
    return config.find_reset_rule(source.platform, source.chat_type, profile)


def is_unanswered_post(session: Session) -> bool:
    """Whether a session has only what a job or the agent has sent there, so that the next message is the answer."""
    return session.last_human_at is None and session.active_at is not None


def _start_session(
    tx: Transaction,
    key: SessionKey,
    arrival: Arrival,
    current: SessionRow | None,
    reason: StartReason,
    first: FirstMessage | None = None,
) -> tuple[int, SessionId]:
    now = arrival.now_micros
    shared = arrival.config.is_shared(arrival.source)
    audience_no = _get_new_session_audience(tx, key, arrival, shared=shared)
    place = sessions.SessionPlace(key=key, source=arrival.source, audience_no=audience_no, shared=shared)
    reset_setting, profile = None, None
    if current is not None and reason in AUTOMATIC_START_REASONS:
        reset_setting, _ = find_reset_rule(tx, arrival, current.no)
        profile = session_settings.find_profile(tx, current.no)  # the person has not asked for another
    previous = current.session if current else None
    no, session_id = sessions.create(
        tx, place, reason, now, previous=previous, reset_setting=reset_setting, profile=profile, first=first
    )
    if current is None:
        _open_lane(tx, place, no, now)
    elif reason is StartReason.FIRST:
        _set_session(tx, key, current.no, no, now)
    else:
        _move(tx, key, current.no, no, EndReason(reason.value), now)
    return no, session_id


def _get_new_session_audience(tx: Transaction, key: str, arrival: Arrival, *, shared: bool) -> int:
    """Return the audience of a session that starts in this lane: the person's own, or that of the shared lane."""
    person_row = people.find_or_add_by_source(tx, arrival.source, arrival.now_micros)
    if not shared and person_row is not None:
        return person_row.audience_no
    audience_no: int | None = fetch_value(tx, "SELECT audience_no FROM lane WHERE key = $1 AND shared = 1", key)
    if audience_no is None:
        audience_no = people.create_audience(tx, arrival.now_micros)
    if person_row is not None:
        people.join_audience(tx, audience_no, person_row.person.id, arrival.now_micros)
    return audience_no


# A lane of a person who was linked to another is that one's: what is new belongs to them.
_SELECT_PLACE = """SELECT l.source, COALESCE(now.audience_no, l.audience_no), l.shared FROM lane l
    LEFT JOIN person p ON p.audience_no = l.audience_no LEFT JOIN person now ON now.id = p.merged_into
    WHERE l.key = $1"""


def reset_session(tx: Transaction, key: str, now: int) -> SessionEntry | None:
    """End the lane's session and start another in the same place; None if the lane does not exist."""
    current = find_current_session(tx, key, tx.for_update)
    lane = tx.fetch_one(_SELECT_PLACE, key)
    if current is None or lane is None:
        return None
    source, audience_no, shared = lane
    place = sessions.SessionPlace(
        key=SessionKey(key),
        source=decode_source(source),
        audience_no=audience_no,
        shared=bool(shared),
    )
    no, _ = sessions.create(tx, place, StartReason.MANUAL, now, previous=current.session)
    _move(tx, key, current.no, no, EndReason.MANUAL, now)
    return SessionEntry(SessionKey(key), sessions.get_by_no(tx, no).session, is_new=True)


def switch_session(
    tx: Transaction, key: str, target: SessionRow, now: int, person_id: PersonId | None = None
) -> SessionEntry | None:
    """Move a lane to another session, which continues with its own totals; None if the lane does not exist."""
    current = find_current_session(tx, key, tx.for_update)
    if current is None:
        return None
    if current.no != target.no:
        _move(tx, key, current.no, target.no, EndReason.SWITCHED, now)
    return _continue_session(tx, key, target.no, now=now, person_id=person_id)


def continue_expired_session(
    tx: Transaction, arrival: Arrival, person_id: PersonId | None = None
) -> SessionEntry | None:
    """Let the lane's session continue if its reset policy has ended it, or would with the next message; else None."""
    key = resolve_key(tx, arrival)
    current = find_current_session(tx, key, tx.for_update)
    if current is None or current.session.active_at is None:  # nothing was said in it: people mean the one before
        return None
    if _find_start_reason(tx, current, arrival, force_new=False) not in AUTOMATIC_START_REASONS:
        return None
    return _continue_session(tx, key, current.no, now=arrival.now_micros, person_id=person_id)


def _continue_session(
    tx: Transaction, key: str, session_no: int, *, now: int, person_id: PersonId | None
) -> SessionEntry:
    sessions.reopen(tx, session_no, now, person_id)
    session_activity.mark_active(tx, session_no, now)  # the reset policy counts from now
    return SessionEntry(SessionKey(key), sessions.get_by_no(tx, session_no).session)


def restore_session(tx: Transaction, key: str, now: int, person_id: PersonId | None = None) -> SessionEntry:
    """Undo the lane's last move, or the end of its session by the reset policy."""
    current = find_current_session(tx, key, tx.for_update)
    if current is None:
        raise NothingToRestore
    if current.session.is_expired and current.session.active_at is not None:
        return _continue_session(tx, key, current.no, now=now, person_id=person_id)
    find_move = """SELECT no, from_session_no FROM lane_move WHERE lane_key = $1 AND undone_at IS NULL
        AND from_session_no <> $2 ORDER BY no DESC LIMIT 1"""
    move = tx.fetch_one(find_move, key, current.no)
    if move is None:
        raise NothingToRestore
    move_no, session_no = move
    _set_session(tx, key, current.no, session_no, now)
    sessions.end(tx, current.no, EndReason.RESTORED, now, except_lane=key)
    entry = _continue_session(tx, key, session_no, now=now, person_id=person_id)
    sql = "UPDATE lane_move SET undone_at = $3 WHERE lane_key = $1 AND no >= $2 AND undone_at IS NULL"
    tx.execute(sql, key, move_no, now)
    return entry


def find_last_move_time(tx: Transaction, key: str) -> int | None:
    """Return when the lane made the move that `restore_session` would undo; None if there is none."""
    sql = """SELECT m.moved_at FROM lane_move m JOIN lane l ON l.key = m.lane_key WHERE m.lane_key = $1
        AND m.undone_at IS NULL AND m.from_session_no <> l.session_no ORDER BY m.no DESC LIMIT 1"""
    return fetch_value(tx, sql, key)


def find_session_before_move(tx: Transaction, key: str) -> SessionRow | None:
    """Return the session that a lane was on before its last move; None if there is none."""
    sql = f"""SELECT {SESSION_COLUMNS} FROM lane_move m JOIN session s ON s.no = m.from_session_no
        WHERE m.lane_key = $1 ORDER BY m.no DESC LIMIT 1"""
    row = tx.fetch_one(sql, key)
    return make_session_row(row) if row else None


def _open_lane(tx: Transaction, place: sessions.SessionPlace, session_no: int, now: int) -> None:
    """Create a lane, or put one whose session was deleted on a new session."""
    sql = """INSERT INTO lane (key, session_no, source, audience_no, shared, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (key) DO UPDATE SET session_no = excluded.session_no, source = excluded.source,
        audience_no = excluded.audience_no, shared = excluded.shared, updated_at = excluded.updated_at
        WHERE lane.session_no IS NULL"""
    opened = tx.execute(
        sql, place.key, session_no, encode_source(place.source), place.audience_no, int(place.shared), now
    )
    if not opened:  # another process was faster
        raise Conflict


def _move(tx: Transaction, key: str, from_no: int, to_no: int, reason: EndReason, now: int) -> None:
    """Put a lane on another session, end the one it leaves, and record the move."""
    _set_session(tx, key, from_no, to_no, now)
    sessions.end(tx, from_no, reason, now, except_lane=key)
    record_move(tx, key, from_no, to_no, reason, now)


def record_move(tx: Transaction, key: str, from_no: int, to_no: int, reason: EndReason, now: int) -> None:
    sql = """INSERT INTO lane_move (lane_key, from_session_no, to_session_no, reason, moved_at)
        VALUES ($1, $2, $3, $4, $5)"""
    tx.execute(sql, key, from_no, to_no, reason.value, now)


def _set_session(tx: Transaction, key: str, from_no: int, to_no: int, now: int) -> None:
    sql = "UPDATE lane SET session_no = $3, updated_at = $4 WHERE key = $1 AND session_no = $2"
    if not tx.execute(sql, key, from_no, to_no, now):
        raise Conflict  # another process moved it first


def append_message(tx: Transaction, arrival: Arrival, message: Message, *, from_human: bool) -> RecordedMessage:
    """Append a message to the session of its lane, starting one if needed."""
    for may_start in (False, True) if tx.supports_data_ctes else (False,):
        recorded = append_in_one_statement(tx, arrival, message, from_human=from_human, may_start=may_start)
        if recorded is not None:
            return recorded
    key, current, reason = _find_current(tx, arrival)
    if current is None or reason is not None:
        return _start_with_message(
            tx, key, arrival, current, reason or StartReason.FIRST, message, from_human=from_human
        )
    session = current.session
    person_id = None
    if session.shared or arrival.config.is_shared(arrival.source):
        message, person_id = _add_author(tx, arrival, message, current if session.shared else None)
    seq = message_log.append_messages(
        tx, session.id, [message], arrival.now_micros, from_human=from_human, person_id=person_id
    )
    # The reset policy ran out when something was sent to the place, and no person has written since.
    was_started_by_post = session.last_human_at is None and session.start_reason in AUTOMATIC_START_REASONS
    starts_session = from_human and was_started_by_post
    return RecordedMessage(
        session_key=key,
        session_id=session.id,
        session_no=current.no,
        seq=seq,
        start_reason=session.start_reason if starts_session else None,
        previous_had_messages=starts_session and session.previous_had_messages,
    )


def _start_with_message(
    tx: Transaction,
    key: SessionKey,
    arrival: Arrival,
    current: SessionRow | None,
    reason: StartReason,
    message: Message,
    *,
    from_human: bool,
) -> RecordedMessage:
    person_id = None
    if arrival.config.is_shared(arrival.source):
        message, person_id = _add_author(tx, arrival, message)
    first = FirstMessage(message, from_human, person_id)
    session_no, session_id = _start_session(tx, key, arrival, current, reason, first)
    return RecordedMessage(
        session_key=key,
        session_id=session_id,
        session_no=session_no,
        seq=2,  # after the reason
        start_reason=reason,
        previous_had_messages=current is not None and current.session.message_count > 0,
    )


def append_in_one_statement(
    tx: Transaction, arrival: Arrival, message: Message, *, from_human: bool, may_start: bool
) -> RecordedMessage | None:
    """Append a message with one changing statement, if its lane is on one person's session and that continues, or, with
    `may_start`, starts with it. That needs data-modifying CTEs, and makes the statement slower for all other lanes.

    Return None, having changed nothing, otherwise. (`Write.single_statement` of `append_message`.)
    """
    key = resolve_key(tx, arrival)
    profile = session_settings.find_reset_profile(tx, arrival.config, key)
    policy = arrival.config.get_reset_policy(arrival.source, profile)
    cutoff = policies.compute_reset_cutoff(policy, arrival.said_at or arrival.now)
    not_before = BEGINNING_OF_TIME if cutoff is None else to_micros(cutoff)
    first_session = _describe_first_session(arrival) if may_start else None
    appended = message_log.append_message_on_lane(
        tx, key, not_before, message, arrival.now_micros, from_human=from_human, first_session=first_session
    )
    if appended is None:
        return None
    session_no, session_id, seq = appended
    is_new = first_session is not None and session_id == first_session.session_id
    return RecordedMessage(
        session_key=key,
        session_id=session_id,
        session_no=session_no,
        seq=seq,
        start_reason=StartReason.FIRST if is_new else None,
    )


def _describe_first_session(arrival: Arrival) -> message_log.FirstSession | None:
    """Return the session that would start in a lane of one known account; None if it takes more than one statement."""
    config, source = arrival.config, arrival.source
    account = people.find_account(source)
    if account is None or list_sender_ids(source) or config.is_shared(source):
        return None
    if config.get_dm_scope(source) is DmScope.PERSON:
        return None
    name, role = people.choose_name_and_role(source)
    return message_log.FirstSession(
        platform=str(source.platform),
        account=account[1],
        person_id=new_person_id(),
        person_name=name,
        person_role=role.value,
        chat_type=source.chat_type.value,
        source=encode_source(source),
        session_id=new_session_id(arrival.now),
    )


def append_to_session(
    tx: Transaction, session_row: SessionRow, arrival: Arrival, message: Message, person_id: PersonId | None
) -> RecordedMessage:
    """Append a message of a person who has this session open, whichever lane it is on; reopen an ended session."""
    session = session_row.session
    sessions.reopen(tx, session_row.no, arrival.now_micros, person_id)
    if session.shared:
        message, person_id = _add_author(tx, arrival, message, session_row)
    seq = message_log.append_messages(
        tx, session.id, [message], arrival.now_micros, from_human=True, person_id=person_id
    )
    return RecordedMessage(session_key=session.key, session_id=session.id, session_no=session_row.no, seq=seq)


def _add_author(
    tx: Transaction, arrival: Arrival, message: Message, shared: SessionRow | None = None
) -> tuple[Message, PersonId | None]:
    """Add the author to a message where several people write, and let the author see a `shared` session.

    One person's session that continues in a shared lane stays visible to that person only.
    """
    person_row = people.find_or_add_by_source(tx, arrival.source, arrival.now_micros)
    source = arrival.source
    if message.author is None and (source.user_name or source.participant):
        message = replace(message, author=Author(source.user_name or "", source.participant))
    if person_row is None:
        return message, None
    if shared is not None:
        people.join_audience(tx, shared.audience_no, person_row.person.id, arrival.now_micros)
    return message, person_row.person.id


@dataclass(frozen=True, slots=True)
class ChatLane:
    key: str
    source: SessionSource
    audience_no: int
    shared: bool
    updated_at: int


_LANE = Columns(ChatLane)
_SELECT_LANE = f"SELECT {_LANE.format_select('l')}"


def list_lanes_in_chat(
    tx: Transaction, agent: str, target: tuple[str, str, str], person_id: PersonId | None
) -> list[ChatLane]:
    """List some lanes of a chat, given as (platform, account, chat), that a person belongs to; None: of everybody."""
    is_key = "(l.key = $1 OR (l.key >= $1 || ':' AND l.key < $1 || ';'))"
    condition = is_key if person_id is None else f"{is_key} AND {_IS_MEMBER}"
    found: list[ChatLane] = []
    for prefix in list_chat_key_prefixes(f"agent:{agent}", *target):
        params = (prefix,) if person_id is None else (prefix, person_id)
        rows = tx.fetch_all(
            f"{_SELECT_LANE} FROM lane l WHERE {condition} ORDER BY l.key LIMIT {MAX_LANES_PER_NETWORK}", *params
        )
        found += map(_LANE.decode, rows)
    return found


def list_own_lanes(tx: Transaction, agent: str, person_id: PersonId) -> list[ChatLane]:
    """List the lanes in chats that belong to one person alone, such as their own lane in a group."""
    audiences = [int(no) for (no,) in tx.fetch_all(_OWN_AUDIENCES, person_id)]
    return [lane for no in audiences for lane in _list_lanes_by_network(tx, agent, "l.audience_no = $3", no)]


def list_shared_lanes(tx: Transaction, agent: str, person_id: PersonId) -> list[ChatLane]:
    """List the lanes that a person shares with others, the newest first."""
    sql = f"""{_SELECT_LANE} FROM (SELECT m.audience_no FROM audience_member m WHERE m.person_id = $1
        AND m.audience_no NOT IN ({_OWN_AUDIENCES}) ORDER BY m.audience_no DESC LIMIT {MAX_SHARED_LANES}) a
        JOIN lane l ON l.audience_no = a.audience_no WHERE l.key >= $2 AND l.key < $3
        ORDER BY l.updated_at DESC LIMIT {MAX_SHARED_LANES}"""
    return list(map(_LANE.decode, tx.fetch_all(sql, person_id, f"agent:{agent}:", f"agent:{agent};")))


def list_all_lanes(tx: Transaction, agent: str) -> list[ChatLane]:
    return list(_list_lanes_by_network(tx, agent, "$3 = 0", 0))


def _list_lanes_by_network(tx: Transaction, agent: str, condition: str, param: int) -> Iterator[ChatLane]:
    """List lanes network by network: one step in the index leads from each to the next."""
    start, end = f"agent:{agent}:", f"agent:{agent};"
    in_range = f"FROM lane l WHERE l.key >= $1 AND l.key < $2 AND {condition} ORDER BY l.key"
    for _ in range(MAX_NETWORKS):
        first = tx.fetch_one(f"SELECT l.key {in_range} LIMIT 1", start, end, param)
        if first is None:
            return
        network = ":".join(first[0].split(":")[:3])
        if network.split(":")[2].partition("@")[0] not in PLATFORMS_WITHOUT_CHATS:
            rows = tx.fetch_all(
                f"{_SELECT_LANE} {in_range} LIMIT {MAX_LANES_PER_NETWORK}", f"{network}:", f"{network};", param
            )
            yield from map(_LANE.decode, rows)
        start = f"{network};"


OLD_ROWS: Final = {
    "undone_moves": declare_old_rows(  # nothing undoes them again
        "lane_move",
        "undone_at",
        MAX_UNDONE_AGE,
        only="undone_at IS NOT NULL"
        " AND EXISTS (SELECT 1 FROM lane_move l WHERE l.lane_key = lane_move.lane_key AND l.no > lane_move.no)",
    )
}
EXPORT: Final = ExportedTable(
    table="lane",
    fields=(
        *make_fields("key!"),
        *make_fields("source!", FieldKind.JSON),
        *make_fields("shared!", FieldKind.FLAG),
        *make_fields("updated_at!", FieldKind.TIME),
    ),
    references={"audience": "t.audience_no", "session": "(SELECT s.id FROM session s WHERE s.no = t.session_no)"},
    needs_audience=True,
    order=("key",),
    key="key",
    report_kind="lanes",
)
MOVE_EXPORT: Final = ExportedTable(
    table="lane_move",
    fields=(*make_fields("reason!"), *make_fields("moved_at! undone_at", FieldKind.TIME)),
    references={
        "from": "(SELECT s.id FROM session s WHERE s.no = t.from_session_no)",
        "to": "(SELECT s.id FROM session s WHERE s.no = t.to_session_no)",
    },
)
