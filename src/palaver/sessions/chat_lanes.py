"""Reads of lanes by chat: who has written in a chat, and which chats a person has written in.

Always true: each read is a range of an index, and skips the conversations on the page and in apps, where every
conversation has a lane of its own. So its cost does not grow with the number of conversations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.source import PLATFORMS_WITHOUT_CHATS
from palaver.core.sources import decode_source
from palaver.sessions.keys import list_chat_key_prefixes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.core.engines.base import Row, Transaction
    from palaver.core.ids import PersonId
    from palaver.core.source import SessionSource

MAX_LANES_PER_NETWORK: Final = 300  # that are read for a list
MAX_SHARED_LANES: Final = 300  # that are read for a list
MAX_NETWORKS: Final = 50
_COLUMNS = "l.key, l.source, l.audience_no, l.shared, l.updated_at"
_IS_MEMBER = """EXISTS (SELECT 1 FROM audience_member m WHERE m.person_id = $2 AND m.audience_no = l.audience_no)"""
_OWN_AUDIENCES = "SELECT p.audience_no FROM person p WHERE p.id = $1 OR p.merged_into = $1"


@dataclass(frozen=True, slots=True)
class ChatLane:
    """A lane in a chat."""

    key: str
    source: SessionSource
    audience_no: int
    shared: bool
    updated_at: int


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
            f"SELECT {_COLUMNS} FROM lane l WHERE {condition} ORDER BY l.key LIMIT {MAX_LANES_PER_NETWORK}", *params
        )
        found += map(_lane_from_row, rows)
    return found


def list_own_lanes(tx: Transaction, agent: str, person_id: PersonId) -> list[ChatLane]:
    """List the lanes in chats that belong to one person alone, such as their own lane in a group."""
    audiences = [int(no) for (no,) in tx.fetch_all(_OWN_AUDIENCES, person_id)]
    return [lane for no in audiences for lane in _list_lanes_by_network(tx, agent, "l.audience_no = $3", no)]


def list_shared_lanes(tx: Transaction, agent: str, person_id: PersonId) -> list[ChatLane]:
    """List the lanes that a person shares with others, the newest first."""
    rows = tx.fetch_all(
        f"SELECT {_COLUMNS} FROM (SELECT m.audience_no FROM audience_member m WHERE m.person_id = $1"
        f" AND m.audience_no NOT IN ({_OWN_AUDIENCES}) ORDER BY m.audience_no DESC LIMIT {MAX_SHARED_LANES}) a"
        " JOIN lane l ON l.audience_no = a.audience_no WHERE l.key >= $2 AND l.key < $3"
        f" ORDER BY l.updated_at DESC LIMIT {MAX_SHARED_LANES}",
        person_id,
        f"agent:{agent}:",
        f"agent:{agent};",
    )
    return [_lane_from_row(row) for row in rows]


def list_all_lanes(tx: Transaction, agent: str) -> list[ChatLane]:
    """List the lanes in chats of all people."""
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
        if _get_platform(network) not in PLATFORMS_WITHOUT_CHATS:
            rows = tx.fetch_all(
                f"SELECT {_COLUMNS} {in_range} LIMIT {MAX_LANES_PER_NETWORK}", f"{network}:", f"{network};", param
            )
            yield from map(_lane_from_row, rows)
        start = f"{network};"


def _get_platform(network: str) -> str:
    return network.split(":")[2].partition("@")[0]


def _lane_from_row(row: Row) -> ChatLane:
    key, source, audience_no, shared, updated_at = row
    return ChatLane(key, decode_source(source), int(audience_no), bool(shared), int(updated_at))
