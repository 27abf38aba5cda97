"""Memories: what the agent remembers, stored per audience.

Always true, by a unique index: no audience has the same memory twice.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.core.clock import from_micros, to_micros
from palaver.core.columns import Columns, insert_row, update_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_number, fetch_value
from palaver.core.errors import DuplicateMemory, InvalidInput, LimitReached, NotFound
from palaver.core.ids import MemoryId, PersonId, SessionId, new_memory_id
from palaver.core.operation import Page
from palaver.core.text import is_storable
from palaver.core.texts import say
from palaver.memory import learning_table as memory_turns
from palaver.memory.model import (
    MAX_MEMORIES_PER_AUDIENCE,
    Memory,
    MemoryEntry,
    MemoryOrigin,
    build_memory_key,
    clean_memory,
    find_best_matches,
    matches_query,
)
from palaver.people.person_data import ErasureStep, ExportedTable, FieldKind, PersonColumn, Stays, make_fields

if TYPE_CHECKING:
    from collections.abc import Sequence


_MEMORY_COLUMNS = Columns(Memory)
_SELECT = f"SELECT {_MEMORY_COLUMNS.format_select('m')} FROM memory m"
_SELECT_LISTED = f"""SELECT {_MEMORY_COLUMNS.format_select("m")}, p.name, m.audience_no, m.no, m.session_id
    FROM memory m LEFT JOIN person p ON p.id = m.person_id"""


MAX_OTHER_NAMES = 10
_SEARCH_ROWS_PER_READ = 200
_AFTER_ALL = 2**62
_CURSOR = re.compile(r"([0-9]{1,18})\.(m_[0-9a-f]{1,32})")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    text: str
    person_id: PersonId | None
    origin: MemoryOrigin = MemoryOrigin.PERSON
    session_id: SessionId | None = None  # the conversation that it is from
    supersedes: tuple[str, ...] = ()  # ids of memories of the same audience that it replaces
    limit: int = MAX_MEMORIES_PER_AUDIENCE  # how many memories the audience may have afterwards
    id: MemoryId | None = None  # None: a new one


def add(tx: Transaction, audience_no: int, new: NewMemory, now: int) -> Memory:
    """Add a memory to an audience, in place of those that it supersedes.

    If the audience already has this text, and nothing is superseded, return the existing one. Raises `NotFound`,
    having changed nothing, if one of the superseded memories is not there.
    """
    clean = clean_memory(new.text)
    lock(tx, audience_no)
    superseded = list_by_ids(tx, [audience_no], [memory_id for memory_id in new.supersedes if is_storable(memory_id)])
    missing = set(new.supersedes) - {memory.id for memory in superseded}
    if missing:
        raise NotFound(f"There is no memory {min(missing)!r} here that could be replaced.", memory_id=min(missing))
    row = tx.fetch_one(f"{_SELECT} WHERE m.audience_no = $1 AND m.text_key = $2", audience_no, build_memory_key(clean))
    existing = None if row is None else _MEMORY_COLUMNS.decode(row)
    if existing is not None and not superseded:
        return existing
    if existing is not None and existing not in superseded:
        raise DuplicateMemory(say("memory.exists", "Another memory already says this."), memory_id=existing.id)
    count = fetch_number(tx, "SELECT COUNT(*) FROM memory WHERE audience_no = $1", audience_no)
    if count - len(superseded) >= new.limit:
        text = say(
            "memory.too_many",
            "There are already {limit} memories here. Delete one before you add another.",
            limit=str(new.limit),
        )
        raise LimitReached(text, what="memories", limit=new.limit)
    for memory in superseded:
        tx.execute("DELETE FROM memory WHERE id = $1", memory.id)
    return _insert(tx, audience_no, new, clean, now)


def _insert(tx: Transaction, audience_no: int, new: NewMemory, clean: str, now: int) -> Memory:
    memory = Memory(
        id=new.id or new_memory_id(),
        text=clean,
        person_id=new.person_id,
        created_at=from_micros(now),
        origin=new.origin,
    )
    columns = _MEMORY_COLUMNS.encode({name: getattr(memory, name) for name in Memory.__slots__})
    keys = {"audience_no": audience_no, "text_key": build_memory_key(clean), "session_id": new.session_id}
    insert_row(tx, "memory", columns | keys)
    return memory


def lock(tx: Transaction, audience_no: int) -> None:
    """Keep other transactions from adding or editing memories of an audience until this one ends."""
    tx.lock_name(f"palaver memory {audience_no}")


def search(tx: Transaction, audiences: Sequence[int], query: str, limit: int) -> list[Memory]:
    """Return the memories of these audiences that match a query, the best first; without a query, the newest."""
    newest = f" LIMIT {int(limit)}" if not query.strip() else ""
    rows = _fetch(tx, _SELECT, audiences, f"ORDER BY m.no DESC{newest}")
    return find_best_matches((_MEMORY_COLUMNS.decode(row) for row in rows), query, limit)


def list_by_ids(tx: Transaction, audiences: Sequence[int], ids: Sequence[str]) -> list[Memory]:
    """Return those of these memories that still exist in these audiences, in the given order."""
    rows = _fetch(tx, _SELECT, audiences, f"AND m.id IN ({build_placeholders(len(ids))})", *ids) if ids else []
    found: dict[str, Memory] = {memory.id: memory for memory in map(_MEMORY_COLUMNS.decode, rows)}
    return [found[memory_id] for memory_id in ids if memory_id in found]


def update_text(
    tx: Transaction, audience_no: int, memory_id: MemoryId, person_id: PersonId, text: str, now: int
) -> None:
    """Change the text of a memory for a person; refuse a text that another memory of the audience already has."""
    clean = clean_memory(text)
    lock(tx, audience_no)
    sql = "SELECT id FROM memory WHERE audience_no = $1 AND text_key = $2 AND id <> $3"
    duplicate = tx.fetch_one(sql, audience_no, build_memory_key(clean), memory_id)
    if duplicate is not None:
        raise DuplicateMemory(
            say("memory.same_as", "Another memory already says this. Delete one of the two."), memory_id=duplicate[0]
        )
    columns = {"text": clean, "text_key": build_memory_key(clean), "person_id": person_id, "created_at": now}
    update_row(tx, "memory", "id", memory_id, columns | {"origin": MemoryOrigin.PERSON.value})


def forget(tx: Transaction, memory_id: MemoryId, now: int) -> None:
    """Delete a memory, and don't let the agent learn it again from the conversation that it is from."""
    session_id: str | None = fetch_value(tx, "SELECT session_id FROM memory WHERE id = $1", memory_id)
    if session_id is not None:
        memory_turns.mark_read(tx, session_id, now)  # first, as the end of a memory turn locks them
    tx.execute("DELETE FROM memory WHERE id = $1", memory_id)


def list_matching(tx: Transaction, audiences: Sequence[int], id_or_text: str) -> list[Memory]:
    if not is_storable(id_or_text):
        return []
    params = id_or_text.strip(), build_memory_key(id_or_text)
    rows = _fetch(tx, _SELECT, audiences, "AND (m.id = $1 OR m.text_key = $2) ORDER BY m.no DESC", *params)
    return [_MEMORY_COLUMNS.decode(row) for row in rows]


def _fetch(tx: Transaction, select: str, audiences: Sequence[int], rest: str, *params: object) -> list[Row]:
    """Return the rows of memories of these audiences; `rest` is what follows this condition."""
    if not audiences:
        return []
    is_visible = f"m.audience_no IN ({build_placeholders(len(audiences), first=len(params) + 1)})"
    return tx.fetch_all(f"{select} WHERE {is_visible} {rest}", *params, *audiences)


# ---- memories in the instructions of a session ------------------------------------------------------------------
# Which memories the agent is told of in the instructions of a session.
#
# Always true: only ids are kept, so a memory that is forgotten or edited, or whose audience the reader has left, is
# gone or changed in every session at once.


def find_current(tx: Transaction, session_no: int) -> list[str] | None:
    """Return the ids that were chosen for a session; None if that has to be done, for the first time or again.

    It has to be done again after a compaction.
    """
    sql = """SELECT b.memory_ids FROM memory_block b JOIN session s ON s.no = b.session_no
        WHERE b.session_no = $1 AND b.seq >= COALESCE(s.compaction_seq, 0)"""
    ids: str | None = fetch_value(tx, sql, session_no)
    return None if ids is None else list(json.loads(ids))


def store(tx: Transaction, session_no: int, ids: Sequence[str], now: int) -> None:
    """Store the ids that were chosen for a session, as it is now."""
    sql = """INSERT INTO memory_block (session_no, memory_ids, seq, created_at)
        SELECT no, $2, COALESCE(compaction_seq, 0), $3 FROM session WHERE no = $1
        ON CONFLICT (session_no) DO UPDATE SET memory_ids = excluded.memory_ids, seq = excluded.seq,
        created_at = excluded.created_at"""
    tx.execute(sql, session_no, json.dumps(list(ids)), now)


# ---- lists ------------------------------------------------------------------------------------------------------
# Lists memories as a person sees them: with the author, and the other people who can see them.
#
# Newest first, page by page. The cost of a page depends on what its reader can see, not on how much others have
# stored.


class _Listed(NamedTuple):
    """A memory, and the columns that are selected after its own."""

    memory: Memory
    author_name: str | None
    audience_no: int
    no: int
    session_id: str | None


# The first members of each audience, how many there are, and whether the audience is one person's own.
_SELECT_MEMBERS = """SELECT audience_no, id, name, member_count, is_own FROM (
    SELECT m.audience_no, p.id, p.name,
        COUNT(*) OVER (PARTITION BY m.audience_no) AS member_count,
        CASE WHEN EXISTS (SELECT 1 FROM person o WHERE o.audience_no = m.audience_no) THEN 1 ELSE 0 END AS is_own,
        ROW_NUMBER() OVER (PARTITION BY m.audience_no ORDER BY m.joined_at, p.name, p.id) AS place
    FROM audience_member m JOIN person p ON p.id = m.person_id WHERE m.audience_no IN ({audiences})
    ) AS member WHERE place <= {limit} ORDER BY audience_no, place"""


@dataclass(slots=True)
class _Audience:
    """The people who can see a memory beside its reader."""

    other_names: list[str]  # the first of them
    other_count: int
    shared: bool


def list_memories(
    tx: Transaction,
    audiences: Sequence[int],
    reader: PersonId,
    query: str,
    limit: int,
    cursor: str | None,
    *,
    origin: MemoryOrigin | None = None,
) -> Page[MemoryEntry]:
    """Return a page of the memories of these audiences, newest first; with a query or origin, those that match it."""
    before = _find_cursor(tx, audiences, cursor)
    rows_per_read = _SEARCH_ROWS_PER_READ if query.strip() or origin is not None else limit
    found: list[_Listed] = []
    page = "AND m.no < $1 ORDER BY m.no DESC LIMIT $2"
    while len(found) < limit and (rows := _fetch(tx, _SELECT_LISTED, audiences, page, before, rows_per_read)):
        batch = [_read_listed(row) for row in rows]
        found += [
            each for each in batch if origin in {None, each.memory.origin} and matches_query(each.memory.text, query)
        ]
        before = batch[-1].no
    del found[limit:]
    entries = [entry for entry, _ in _make_entries(tx, found, reader)]
    if len(entries) < limit or not entries:
        return Page(entries, None)
    memory = entries[-1].memory
    return Page(entries, f"{to_micros(memory.created_at)}.{memory.id}")


def find_memory(
    tx: Transaction, audiences: Sequence[int], reader: PersonId, memory_id: str
) -> tuple[MemoryEntry, int] | None:
    """Find a memory, and the number of its audience."""
    rows = _fetch(tx, _SELECT_LISTED, audiences, "AND m.id = $1", memory_id) if is_storable(memory_id) else []
    return next(iter(_make_entries(tx, [_read_listed(row) for row in rows], reader)), None)


def _find_cursor(tx: Transaction, audiences: Sequence[int], cursor: str | None) -> int:
    """Return the number of the last memory of the page before.

    A cursor contains its id, and its time in case it was deleted since: the number would tell how many memories others
    have.
    """
    if cursor is None:
        return _AFTER_ALL
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.")
    found = _fetch(tx, "SELECT m.no FROM memory m", audiences, "AND m.id = $1", match[2]) or _fetch(
        tx, "SELECT MAX(m.no) + 1 FROM memory m", audiences, "AND m.created_at <= $1", int(match[1])
    )
    return int(found[0][0] or 0) if found else 0


def _read_listed(row: Row) -> _Listed:
    return _Listed(_MEMORY_COLUMNS.decode(row), *row[len(_MEMORY_COLUMNS) :])


def _make_entries(tx: Transaction, found: Sequence[_Listed], reader: PersonId) -> list[tuple[MemoryEntry, int]]:
    audiences = _load_audiences(tx, sorted({each.audience_no for each in found}), reader)
    session_ids = sorted({each.session_id for each in found if each.session_id is not None})
    visible_ids = _list_visible_sessions(tx, session_ids, reader)

    def make_entry(listed: _Listed) -> MemoryEntry:
        audience = audiences[listed.audience_no]
        return MemoryEntry(
            memory=listed.memory,
            author_name=listed.author_name,
            is_author=listed.memory.person_id == reader,
            shared=audience.shared,
            other_names=tuple(audience.other_names[:MAX_OTHER_NAMES]),
            other_count=audience.other_count,
            session_id=SessionId(listed.session_id) if listed.session_id in visible_ids else None,
        )

    return [(make_entry(each), each.audience_no) for each in found]


def _list_visible_sessions(tx: Transaction, session_ids: Sequence[str], reader: PersonId) -> set[SessionId]:
    """List those of these sessions that still exist and that the reader may see."""
    if not session_ids:
        return set()
    sql = f"""SELECT s.id FROM session s WHERE s.id IN ({build_placeholders(len(session_ids))}) AND EXISTS
        (SELECT 1 FROM audience_member m WHERE m.audience_no = s.audience_no
        AND m.person_id = ${len(session_ids) + 1})"""
    rows = tx.fetch_all(sql, *session_ids, reader)
    return {SessionId(session_id) for (session_id,) in rows}


def _load_audiences(tx: Transaction, audience_nos: Sequence[int], reader: PersonId) -> dict[int, _Audience]:
    """Load the other members of these audiences; the reader is a member of each of them."""
    if not audience_nos:
        return {}
    audiences: dict[int, _Audience] = {}
    statement = _SELECT_MEMBERS.format(audiences=build_placeholders(len(audience_nos)), limit=MAX_OTHER_NAMES + 1)
    for audience_no, person_id, name, member_count, is_own in tx.fetch_all(statement, *audience_nos):
        audience = audiences.setdefault(audience_no, _Audience([], member_count - 1, shared=not is_own))
        if person_id != reader:
            audience.other_names.append(name)
    return audiences


PERSON_DATA: Final = (
    PersonColumn(
        "memory", "audience_no", merge=Stays("belongs to an audience"), erase=ErasureStep.MEMORIES, count="memories"
    ),
    PersonColumn("memory", merge=Stays("says who asked for it; it belongs to an audience"), erase=ErasureStep.MEMORIES),
)
EXPORT: Final = ExportedTable(
    table="memory",
    fields=(
        *make_fields("id! person_id text!"),
        *make_fields("created_at!", FieldKind.TIME),
        *make_fields("origin!", choices=MemoryOrigin),
        *make_fields("session_id"),
    ),
    references={"audience": "t.audience_no"},
    needs_audience=True,
    unique=("audience_no", "text_key"),
    report_kind="memories",
)
