"""Ends the sessions whose reset policy has run out, before the next message would do it.

Always true: a session ends here only if every lane that is on it would start another session with the next message
(`lanes.get_or_create_entry`). The lanes stay on it: the next message there starts the other session, for the same
reason, and `lanes.restore_session` lets this one continue.

`expiry_base` finds them: it is not after the last activity of a human, and moves on only when the watcher meets a
session that has been used since, or a person comes back to one that the watcher has passed by. So a message costs no
change of an index.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Transaction, build_placeholders, fetch_value
from palaver.core.source import decode_source
from palaver.sessions import (
    activity_table as session_activity,
    lanes_table as lanes,
    policy as policies,
    settings_table as session_settings,
    turns_table as turns,
)
from palaver.sessions.gateway_config import MACHINE_PLATFORMS, GatewayConfig
from palaver.sessions.model import EndReason, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from palaver.core.ids import SessionId
    from palaver.sessions.table import SessionRow

_ACTIVITY = "COALESCE(last_human_at, created_at)"
_IS_BEHIND = f"ended_at IS NULL AND expiry_base < {_ACTIVITY}"


class PlaceType(NamedTuple):
    """A type of chats on a platform: one range of the index on open sessions."""

    platform: str
    chat_type: str


class Position(NamedTuple):
    """A position in such a range: the `expiry_base` of a session, and its number."""

    base: int
    session_no: int


START = Position(-(2**62), 0)


@dataclass(frozen=True, slots=True)
class OpenSession:
    position: Position
    is_silent: bool  # a lane is on it, and its last activity is before the time in question


class ExpiryOutcome(Enum):
    ENDED = auto()
    PINNED = auto()  # it has expired and ends when the work in it does
    CONTINUES = auto()


def list_place_types(tx: Transaction) -> list[PlaceType]:
    """List the types of chats that open sessions are from, with one step in the index for each."""
    found: list[PlaceType] = []
    last = PlaceType("", "")
    find_next = """SELECT s.platform, s.chat_type FROM session s WHERE s.ended_at IS NULL
        AND (s.platform, s.chat_type) > ($1, $2) ORDER BY s.platform, s.chat_type LIMIT 1"""
    while row := tx.fetch_one(find_next, *last):
        last = PlaceType(*row)
        found.append(last)
    return found


def list_open_sessions(
    tx: Transaction, place_type: PlaceType, after: Position, before: int, limit: int
) -> list[OpenSession]:
    """List open sessions after a position, among them all whose last activity is before a time."""
    sql = f"""SELECT s.expiry_base, s.no, {_ACTIVITY} < $4 AND EXISTS (SELECT 1 FROM lane l WHERE l.session_no = s.no)
        FROM session s WHERE s.platform = $1 AND s.chat_type = $2 AND s.ended_at IS NULL AND s.expiry_base >= $3
        AND s.expiry_base < $4 AND (s.expiry_base > $3 OR s.no > $5) ORDER BY s.expiry_base, s.no LIMIT $6"""
    rows = tx.fetch_all(sql, *place_type, after.base, before, after.session_no, limit)
    return [OpenSession(Position(base, no), bool(is_silent)) for base, no, is_silent in rows]


def has_any_behind(tx: Transaction, session_nos: Sequence[int]) -> bool:
    """Return whether a human was active in one of these sessions since its `expiry_base`."""
    some = build_placeholders(len(session_nos))
    return tx.fetch_one(f"SELECT 1 FROM session WHERE no IN ({some}) AND {_IS_BEHIND}", *session_nos) is not None


def bring_up_to_date(tx: Transaction, session_nos: Sequence[int]) -> None:
    """Let the watcher meet these sessions again when they may expire after their last activity."""
    some = build_placeholders(len(session_nos))
    tx.execute(f"UPDATE session SET expiry_base = {_ACTIVITY} WHERE no IN ({some}) AND {_IS_BEHIND}", *session_nos)


def find_first_base(tx: Transaction, place_type: PlaceType, since: int) -> int | None:
    """Return the oldest `expiry_base`, at a time or later, of the open sessions from a type of chats."""
    sql = """SELECT s.expiry_base FROM session s WHERE s.platform = $1 AND s.chat_type = $2 AND s.ended_at IS NULL
        AND s.expiry_base >= $3 ORDER BY s.expiry_base LIMIT 1"""
    return fetch_value(tx, sql, *place_type, since)


def check_session(
    tx: Transaction,
    config: GatewayConfig,
    session_row: SessionRow | None,
    now: datetime,
    busy_since: Callable[[SessionId], datetime | None],
) -> EndReason | ExpiryOutcome:
    """Return the reason for which a session ends now, or why it does not (None: it was deleted)."""
    if session_row is None or session_row.session.end_reason is not None:
        return ExpiryOutcome.CONTINUES
    no, session = session_row.no, session_row.session
    reason = _find_reason(tx, config, no, session, now)
    if reason is None:
        return ExpiryOutcome.CONTINUES
    since = busy_since(session.id)
    is_busy = since is not None and now - since < policies.MAX_BACKGROUND_AGE
    if is_busy or turns.load_open(tx, no).is_busy or session_activity.has_waiting_proposal(tx, no):
        return ExpiryOutcome.PINNED
    return EndReason(reason.value)


def _find_reason(
    tx: Transaction, config: GatewayConfig, session_no: int, session: Session, now: datetime
) -> policies.ResetReason | None:
    """Return the reason of the lane that would leave the session last; None if one of them would stay, or none is."""
    last_activity = session.last_human_at or session.created_at
    latest: tuple[datetime, policies.ResetReason] | None = None
    profile = session_settings.find_reset_profile(tx, config, session_no)
    for (encoded_source,) in tx.fetch_all("SELECT source FROM lane WHERE session_no = $1 ORDER BY key", session_no):
        source = decode_source(encoded_source)
        if lanes.is_unanswered_post(session) and source.platform not in MACHINE_PLATFORMS:
            return None  # the next message is the answer
        for policy in config.list_lane_policies(source, profile):
            reason = policies.find_reset_reason(policy, last_activity=last_activity, now=now)
            due_at = policies.compute_reset_time(policy, last_activity)
            if reason is None or due_at is None:
                return None
            if latest is None or due_at > latest[0]:
                latest = due_at, reason
    return None if latest is None else latest[1]
