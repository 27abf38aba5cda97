"""A follower of one conversation, and what open pages read: changed and deleted sessions, and what a page missed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Transaction, build_placeholders, fetch_number
from palaver.core.ids import PersonId, SessionId, TurnId
from palaver.core.tasks import wait_for_event
from palaver.live.feed_events import (
    DeliveryChanged,
    DraftGrew,
    EventAppended,
    FeedItem,
    LiveRun,
    NoticeSent,
    TurnChanged,
)
from palaver.people import table as people
from palaver.sessions import (
    delivery_queries,
    hidden_ranges as read_marks,
    list_table as session_summaries,
    log_table as events,
    table as sessions,
    turn_leases,
    turns_table as turns,
)
from palaver.sessions.delivery import DeliveryState, DeliveryStatus
from palaver.sessions.draft import START_POSITION, Piece, Position
from palaver.sessions.turn import Turn, TurnState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from palaver.sessions.events import Event
    from palaver.sessions.model import SessionSummary
    from palaver.sessions.table import SessionEnds


PAGE_SIZE = 50  # events, or turns, in one read
MAX_TRACKED_DELIVERIES = 100  # the newest that have not arrived: a person may ask to send one of them again
MAX_TRACKED_SENT = 5  # the newest that the platform has taken: it may report later that one has not arrived
IN_MEMORY = -1  # stands for the first row of a draft that is in the memory of this process
_MAX_SESSIONS_PER_STATEMENT = 100


class Follower:
    """Reads what is new in one conversation since the last read: of the log, the turns, the drafts, the deliveries."""

    def __init__(
        self, session_no: int, after: int, turn_no: int, recent_deliveries: int, *, read_at: float = 0.0
    ) -> None:
        self.session_no = session_no
        self.should_read = True  # the store may hold something that the follower has not read
        self.is_closed = False
        self._after = after
        self._last_turn_no = turn_no  # the newest turn that was sent
        self._open_turns: dict[int, Turn] = {}  # turns that were sent and have not ended
        self._recent_deliveries = recent_deliveries
        self._last_delivery_no: int | None = None  # the newest known delivery; None before the first read
        self._tracked: dict[int, DeliveryStatus] = {}  # known deliveries that may change
        self._draft_reader = _DraftReader()
        self._wake_event = asyncio.Event()
        self._is_paused = False
        self._read_at = read_at  # event loop time of the last read

    def start_read(self) -> None:
        """Read the store now: a change from here on causes another read."""
        self.should_read = False
        self._read_at = asyncio.get_running_loop().time()

    def has_read_since(self, moment: float) -> bool:
        """Return whether the last read started after this event loop time."""
        return self._read_at > moment

    def wake(self, *, should_read: bool) -> None:
        """Continue: with what is in memory, and with a read of the store if `should_read`."""
        self.should_read |= should_read
        if should_read or not self._is_paused:
            self._wake_event.set()

    def close(self) -> None:
        self.is_closed = True
        self._wake_event.set()

    async def wait(self, pause_seconds: float = 0.0) -> None:
        """Wait until it is woken. During a pause only what the store holds wakes it, and no progress of a draft."""
        if self.should_read:
            await asyncio.sleep(0)
        elif pause_seconds:
            self._wake_event.clear()
            self._is_paused = True
            await wait_for_event(self._wake_event, pause_seconds)
            self._is_paused = False
        else:
            await self._wake_event.wait()
        self._wake_event.clear()

    def read_store(self, tx: Transaction, ends: SessionEnds, live: LiveRun | None) -> tuple[list[FeedItem], bool]:
        """Read what was stored since the last read, as one consistent state; also return whether there is more."""
        items: list[FeedItem] = []
        if ends.seq > self._after:
            new_events = events.list_events(tx, ends.session_no, after=self._after, limit=PAGE_SIZE)
            items += map(EventAppended, new_events)
            self._after = new_events[-1].seq if new_events else ends.seq
            if len(new_events) == PAGE_SIZE:
                return items, True
        changed_turns, has_more = self._read_turns(tx, ends)
        for no, turn in changed_turns:
            if turn.state is TurnState.RUNNING:
                items += self._read_stored_draft(tx, no, turn, live)
            items.append(TurnChanged(turn))
            self._last_turn_no = max(self._last_turn_no, no)
            if turn.state.has_ended:
                self._open_turns.pop(no, None)
            else:
                self._open_turns[no] = turn
        changed_nos = {no for no, _ in changed_turns}
        for no, turn in self._open_turns.items():
            if turn.state is TurnState.RUNNING and no not in changed_nos:
                items += self._read_stored_draft(tx, no, turn, live)
        items += self._read_deliveries(tx, ends)
        return items, has_more

    def _read_turns(self, tx: Transaction, ends: SessionEnds) -> tuple[list[tuple[int, Turn]], bool]:
        """Read the known turns that have changed, and new ones; also return whether there are more."""
        known: list[tuple[int, Turn]] = []
        if self._open_turns:
            known = turns.list_between(tx, ends.session_no, min(self._open_turns), max(self._open_turns))
        changed = [(no, turn) for no, turn in known if self._open_turns.get(no, turn) != turn]
        if ends.turn_no <= self._last_turn_no:
            return changed, False
        new = turns.list_after(tx, ends.session_no, self._last_turn_no, PAGE_SIZE)
        return changed + new, len(new) == PAGE_SIZE

    def _read_deliveries(self, tx: Transaction, ends: SessionEnds) -> list[FeedItem]:
        last_no, self._last_delivery_no = self._last_delivery_no, ends.delivery_no
        found: list[tuple[int, DeliveryStatus]] = []
        if last_no is None and self._recent_deliveries and ends.delivery_no:
            found = delivery_queries.list_latest_statuses(tx, ends.session_no, self._recent_deliveries)
        elif last_no is not None:
            known = delivery_queries.list_statuses(tx, list(self._tracked))
            found = [(no, status) for no, status in known if self._tracked[no] != status]
            if ends.delivery_no > last_no:
                found += delivery_queries.list_statuses_after(tx, ends.session_no, last_no)
        self._tracked.update(found)
        self._forget_old_deliveries()
        return [DeliveryChanged(status) for _, status in found]

    def _forget_old_deliveries(self) -> None:
        numbers = sorted(self._tracked, reverse=True)
        sent = [no for no in numbers if self._tracked[no].state is DeliveryState.SENT]
        unsent = [no for no in numbers if self._tracked[no].state is not DeliveryState.SENT]
        for no in sent[MAX_TRACKED_SENT:] + unsent[MAX_TRACKED_DELIVERIES:]:
            del self._tracked[no]

    def _read_stored_draft(self, tx: Transaction, turn_no: int, turn: Turn, live: LiveRun | None) -> list[FeedItem]:
        """Read more of the draft of a turn that another process runs."""
        if live is not None and (live.turn_no, live.attempt) == (turn_no, turn.attempt):
            return []
        reader = self._draft_reader
        reader.select_run(turn_no, turn.attempt, turn_leases.find_first_piece_row(tx, turn_no, turn.attempt))
        pieces, reader.row = turn_leases.list_pieces_after(tx, turn_no, turn.attempt, reader.row)
        return reader.build_items(turn.id, pieces)

    def read_live(self, live: LiveRun | None) -> list[FeedItem]:
        """Read more of the draft and the notices of a turn that this process runs."""
        if live is None:
            return []
        if live.turn_no not in self._open_turns:
            self.should_read |= live.turn_no > self._last_turn_no
            return []
        reader = self._draft_reader
        reader.select_run(live.turn_no, live.attempt, IN_MEMORY)
        items: list[FeedItem] = [
            NoticeSent(live.turn_id, notice.text, notice.code, notice.facts)
            for notice in live.notices[reader.notice_count :]
        ]
        reader.notice_count = len(live.notices)
        pieces = live.draft.get_pieces_since(reader.position)
        reader.position = live.draft.position
        return items + reader.build_items(live.turn_id, pieces)


@dataclass(slots=True)
class _DraftReader:
    run: tuple[int, int, int] = (0, 0, 0)  # turn number, attempt, first row of the draft
    position: Position = START_POSITION  # in a draft in memory
    row: int = 0  # of a draft in the store
    notice_count: int = 0
    is_first: bool = True  # nothing of this run was sent yet
    has_sent_draft: bool = False  # something of this turn was sent, by this run or by the one before

    def select_run(self, turn_no: int, attempt: int, first_row: int) -> None:
        """Start at the beginning if this is another run than before. A released turn runs again as the same attempt."""
        run = (turn_no, attempt, first_row)
        if self.run != run:
            self.has_sent_draft = self.has_sent_draft and self.run[0] == turn_no
            self.run, self.position, self.row, self.notice_count, self.is_first = run, START_POSITION, 0, 0, True

    def build_items(self, turn_id: TurnId, pieces: Sequence[Piece]) -> list[FeedItem]:
        """Build the item for new pieces; the first item of a run replaces what the run before it had drafted."""
        if not pieces and not (self.is_first and self.has_sent_draft):
            return []
        item = DraftGrew(turn_id, pieces, self.is_first)
        self.has_sent_draft, self.is_first = bool(pieces), False
        return [item]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSession:
    """A session as it is now, the people who may see it, and how far each of them has read."""

    summary: SessionSummary  # its `read_seq` is not set: it differs for each person
    members: frozenset[PersonId]
    read_seqs: Mapping[PersonId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedSession:
    no: int  # of the deletion, not of the session
    session_id: SessionId
    members: frozenset[PersonId]


def load_changed_sessions(
    tx: Transaction, session_nos: Iterable[int], session_ids: Iterable[str] = ()
) -> list[ChangedSession]:
    """Return sessions by number or id; deleted ones are left out."""
    found = [sessions.find_by_no(tx, no) for no in session_nos]
    found += [sessions.find(tx, session_id) for session_id in session_ids]
    session_rows = [row for row in found if row is not None]
    changed: list[ChangedSession] = []
    for start in range(0, len(session_rows), _MAX_SESSIONS_PER_STATEMENT):
        batch = session_rows[start : start + _MAX_SESSIONS_PER_STATEMENT]
        summaries = {
            summary.session.id: summary
            for summary in session_summaries.load_summaries(tx, [row.session for row in batch], PersonId(""))
        }
        changed += [
            ChangedSession(
                summary=summaries[row.session.id],
                members=_load_members(tx, row.audience_no),
                read_seqs=read_marks.list_read_seqs(tx, row.no),
            )
            for row in batch
        ]
    return changed


def get_last_deletion_no(tx: Transaction) -> int:
    """Return the number of the last deletion, from which `list_deleted_after` counts."""
    return fetch_number(tx, "SELECT MAX(no) FROM deleted_session")


def list_deleted_after(tx: Transaction, after: int) -> list[DeletedSession]:
    rows = tx.fetch_all("SELECT no, session_id, audience_no FROM deleted_session WHERE no > $1 ORDER BY no", after)
    return [
        DeletedSession(no=no, session_id=SessionId(session_id), members=_load_members(tx, audience_no))
        for no, session_id, audience_no in rows
    ]


def list_viewers(tx: Transaction, session_ids: Sequence[str]) -> dict[str, frozenset[PersonId]]:
    """Return the people who may see each of these sessions; deleted sessions are left out."""
    viewers: dict[str, set[PersonId]] = {}
    for start in range(0, len(session_ids), _MAX_SESSIONS_PER_STATEMENT):
        batch = session_ids[start : start + _MAX_SESSIONS_PER_STATEMENT]
        sql = f"""SELECT s.id, m.person_id FROM session s LEFT JOIN audience_member m ON m.audience_no = s.audience_no
            WHERE s.id IN ({build_placeholders(len(batch))})"""
        rows = tx.fetch_all(sql, *batch)
        for session_id, person_id in rows:
            viewers.setdefault(session_id, set()).add(PersonId(person_id or ""))
    return {session_id: frozenset(person_ids) for session_id, person_ids in viewers.items()}


def _load_members(tx: Transaction, audience_no: int) -> frozenset[PersonId]:
    rows = tx.fetch_all("SELECT person_id FROM audience_member WHERE audience_no = $1", audience_no)
    return frozenset(PersonId(person_id) for (person_id,) in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedUpdates:
    """The updates of a session that a page has missed, all read from one state of the database."""

    last_seq: int
    events: Sequence[Event]
    names: Mapping[PersonId, str]
    turns: Sequence[Turn]  # the current state of the turns that the page knows
    oldest_open_seq: int | None  # the message that the oldest open turn answers


def load_missed_updates(
    tx: Transaction,
    session_id: str,
    person_id: PersonId | None,
    after: int | None,
    known_turn_ids: Iterable[str],
    limit: int,
) -> MissedUpdates:
    """Return what follows event `after`, if this person may see the session (None: the asker may see everything)."""
    no = sessions.get_visible(tx, session_id, person_id).no
    last_seq = events.get_last_seq(tx, no)
    missed_events = [] if after is None else events.list_events(tx, no, after=after, limit=limit)
    known_turns = [
        turn
        for turn_id in known_turn_ids
        if (turn := turns.find(tx, turn_id)) is not None and turn.session_id == session_id
    ]
    return MissedUpdates(
        last_seq=last_seq,
        events=missed_events,
        names=people.load_names(tx, (event.person_id for event in missed_events if event.person_id is not None)),
        turns=known_turns,
        oldest_open_seq=min((turn.input_seq for _, turn in turns.list_open(tx, no)), default=None),
    )
