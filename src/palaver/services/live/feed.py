"""The feed: what happened in a conversation after a place in its log, then what happens, live.

A follower keeps its own place, looks when it is woken, and takes whatever has gathered meanwhile; it never holds up
whoever writes, however slow it is. Turns that run in this process are read from memory, as they grow; those of other
processes from the drafts they keep.

Always true: every event comes once and in order; the messages of a turn come before its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from palaver.domain.delivery import DeliveryState
from palaver.domain.draft import START, Draft, Position
from palaver.domain.errors import StoreError
from palaver.domain.feed_events import DeliveryChanged, Drafted, FeedItem, Happened, Noticed, TurnChanged
from palaver.domain.person import check_sees_everything
from palaver.domain.turn import TurnState
from palaver.services.argument_checks import check_count
from palaver.services.poll_loop import keep_looking
from palaver.storage import deliveries, drafts, events, sessions, turns
from palaver.storage.engines import sqlite_changes
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from palaver.domain.delivery import DeliveryStatus
    from palaver.domain.draft import Piece
    from palaver.domain.events import Event
    from palaver.domain.ids import PersonId, TurnId
    from palaver.domain.person import Principal
    from palaver.domain.turn import Turn
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction, Watch

log = logging.getLogger(__name__)

AT_ONCE = 50  # events, or turns, read together
WATCHED = 100  # deliveries that have not arrived, the last of them: somebody may want them to be sent again
HERE = -1  # where a draft begins that is in the memory of this process
ANYWAY = 1.0  # seconds after which a follower looks without having been woken
RESTING = 60.0  # seconds, when nothing has changed; whoever changes something wakes us


@dataclass(slots=True)
class Live:
    """A turn that runs in this process."""

    turn_no: int
    turn_id: TurnId
    session_no: int
    attempt: int
    draft: Draft = field(default_factory=Draft)
    notices: list[str] = field(default_factory=list)


class Feed:
    """Tells followers what happens."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._live: dict[int, Live] = {}  # by session
        self._followers: dict[int, set[_Follower]] = {}
        self._listeners: list[Callable[[frozenset[int] | None], None]] = []
        self._workers: list[Callable[[], None]] = []
        self._marks: sqlite_changes.Marks | None = None
        self._changed: set[int] = set()
        self._unknown = False  # something has changed, and it is not known what
        self._woken = asyncio.Event()
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to watch the store."""
        engine = self._store.engine
        if engine.name == "sqlite":
            self._marks = await engine.arun(Read(sqlite_changes.start))
        loop = asyncio.get_running_loop()

        def on_change(sessions: frozenset[int] | None) -> None:
            loop.call_soon_threadsafe(self._note, sessions)

        self._watch = engine.watch(on_change)
        self._task = asyncio.create_task(self._serve(), name="palaver-feed")

    async def stop(self) -> None:
        """Stop watching; followers end."""
        if self._watch is not None:
            await asyncio.to_thread(self._watch.close)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for followers in self._followers.values():
            for follower in followers:
                follower.end()

    def listen(self, listener: Callable[[frozenset[int] | None], None]) -> Callable[[], None]:
        """Call `listener` with the numbers of the sessions that have changed, or None when it is not known which;
        returns what ends it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def on_work(self, listener: Callable[[], None]) -> None:
        """Call `listener` when a turn has begun to wait, to run, or to be unwanted, or something is to be sent."""
        self._workers.append(listener)

    # -- turns that run here -------------------------------------------------------------------------------

    def began(self, live: Live) -> None:
        """A turn begins to run in this process."""
        self._live[live.session_no] = live

    def grew(self, live: Live) -> None:
        """It has said more."""
        for follower in self._followers.get(live.session_no, ()):
            follower.wake(stored=False)

    def ended(self, live: Live) -> None:
        """It is over, and stored."""
        if self._live.get(live.session_no) is live:
            del self._live[live.session_no]
        self._wake({live.session_no})

    # -- following -----------------------------------------------------------------------------------------

    async def follow(
        self,
        principal: Principal,
        session_id: str,
        *,
        after: int | None = None,
        everything: bool = False,
        deliveries_before: int = 0,
    ) -> AsyncGenerator[FeedItem, None]:
        """What happened after number `after` in the log (None: from now on), then what happens.

        That includes the turns that answer what was said after it, also when they have ended already. How deliveries
        stand is told from now on, and first of so many before.

        Raises NoSuchSession when this principal may not see the session, also when that changes meanwhile.
        """
        check_count("after", after, least=0)
        if everything:
            check_sees_everything(principal)
        person = None if everything else principal.person_id

        def place(tx: Transaction) -> tuple[int, int, int]:
            no = sessions.number_seen(tx, session_id, person)
            seq = events.last_seq(tx, no) if after is None else after
            return no, seq, turns.settled_before(tx, no, seq)

        session_no, seq, turn_no = await self._store.engine.arun(Read(place, quick=True))
        follower = _Follower(session_no, seq, turn_no, deliveries_before)
        self._followers.setdefault(session_no, set()).add(follower)
        try:
            while not follower.over:
                if follower.stored:
                    follower.begin_to_look()
                    items, more = await self._store.engine.arun(
                        Read(lambda tx: follower.look(tx, session_id, person, self._live.get(session_no)), quick=True)
                    )
                    follower.stored |= more
                    for item in items:
                        yield item
                for item in follower.listen(self._live.get(session_no)):
                    yield item
                await follower.wait()
        finally:
            self._followers[session_no].discard(follower)
            if not self._followers[session_no]:
                del self._followers[session_no]

    # -- watching ------------------------------------------------------------------------------------------

    def _note(self, changed: frozenset[int] | None) -> None:
        if changed is None:
            self._unknown = True
        else:
            self._changed |= changed
        self._woken.set()

    async def _serve(self) -> None:
        await keep_looking(self._tell, self._woken, is_over=lambda: False, log=log, trouble="changes could not be told")

    async def _tell(self) -> float:
        changed, self._changed = self._changed, set()
        unknown, self._unknown = self._unknown, False
        work = True
        if unknown and self._marks is not None:
            try:
                marks, found = await self._store.engine.arun(Read(self._since, quick=True))
            except StoreError:  # followers look by themselves meanwhile, and are told
                self._changed |= changed
                self._unknown = True
                return ANYWAY
            changed |= found
            work = marks.work != self._marks.work
            self._marks = marks
        elif unknown:  # after the server was away
            self._wake(None)
        if changed:
            self._wake(changed)
        if work:
            for listener in self._workers:
                listener()
        return RESTING

    def _since(self, tx: Transaction) -> tuple[sqlite_changes.Marks, frozenset[int]]:
        return sqlite_changes.since(tx, self._marks)

    def _wake(self, changed: set[int] | None) -> None:
        for session_no in self._followers.keys() if changed is None else changed & self._followers.keys():
            for follower in self._followers[session_no]:
                follower.wake(stored=True)
        told = None if changed is None else frozenset(changed)
        for listener in self._listeners:
            listener(told)


class _Follower:
    """Somebody's place in a conversation."""

    def __init__(self, session_no: int, after: int, turn_no: int, deliveries_before: int) -> None:
        self.session_no = session_no
        self.stored = True  # something may have been stored that it has not seen
        self.over = False
        self._after = after
        self._turn_no = turn_no  # the newest turn it has been told of
        self._open: dict[int, Turn] = {}  # those it has been told of that have not ended
        self._deliveries_before = deliveries_before
        self._delivery_no: int | None = None  # the newest delivery it knows of; None: it has not looked yet
        self._unsent: dict[int, DeliveryStatus] = {}  # those it has been told of that have not arrived
        self._place = _DraftPlace()
        self._woken = asyncio.Event()
        self._looked = 0.0

    def begin_to_look(self) -> None:
        self.stored = False
        self._looked = asyncio.get_running_loop().time()

    def wake(self, *, stored: bool) -> None:
        self.stored |= stored
        self._woken.set()

    def end(self) -> None:
        self.over = True
        self._woken.set()

    async def wait(self) -> None:
        if self.stored:
            await asyncio.sleep(0)
            return
        look_at = self._looked + ANYWAY  # also while an answer grows: what they may see can change meanwhile
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(look_at):
                await self._woken.wait()
        self._woken.clear()
        self.stored |= asyncio.get_running_loop().time() >= look_at

    def look(
        self, tx: Transaction, session_id: str, person: PersonId | None, live: Live | None
    ) -> tuple[list[FeedItem], bool]:
        """What has been stored since the last look, and whether there is more. All of it is one state of the store."""
        session_no = sessions.number_seen(tx, session_id, person)
        new: list[Event] = events.log(tx, session_no, after=self._after, limit=AT_ONCE)
        items: list[FeedItem] = [Happened(event) for event in new]
        if new:
            self._after = new[-1].seq
        if len(new) == AT_ONCE:
            return items, True
        begun = turns.newer(tx, session_no, self._turn_no, AT_ONCE)
        for no, turn in turns.by_numbers(tx, list(self._open)) + begun:
            if self._open.get(no) == turn:
                continue
            if turn.state is TurnState.RUNNING:
                items += self._draft_of(tx, no, turn, live)
            items.append(TurnChanged(turn))
            self._turn_no = max(self._turn_no, no)
            if turn.state.ended:
                self._open.pop(no, None)
            else:
                self._open[no] = turn
        for no, turn in self._open.items():
            if turn.state is TurnState.RUNNING:
                items += self._draft_of(tx, no, turn, live)
        items += self._deliveries(tx, session_no)
        return items, len(begun) == AT_ONCE

    def _deliveries(self, tx: Transaction, session_no: int) -> list[FeedItem]:
        """How answers that are sent somewhere stand, where that has changed."""
        if self._delivery_no is None:
            newest = deliveries.latest(tx, session_no, max(self._deliveries_before, 1))
            self._delivery_no = newest[-1][0] if newest else 0
            found = newest[: self._deliveries_before]
        else:
            known = deliveries.by_numbers(tx, list(self._unsent))
            changed = [(no, status) for no, status in known if self._unsent[no] != status]
            found = changed + deliveries.newer(tx, session_no, self._delivery_no)
        for no, status in found:
            if status.state is DeliveryState.SENT:
                self._unsent.pop(no, None)
            else:
                self._unsent[no] = status
        while len(self._unsent) > WATCHED:
            del self._unsent[min(self._unsent)]
        self._delivery_no = max([self._delivery_no, *(no for no, _ in found)])
        return [DeliveryChanged(status) for _, status in found]

    def _draft_of(self, tx: Transaction, no: int, turn: Turn, live: Live | None) -> list[FeedItem]:
        """More of an answer that grows in another process."""
        if live is not None and (live.turn_no, live.attempt) == (no, turn.attempt):
            return []
        self._place.enter(no, turn.attempt, drafts.begins(tx, no, turn.attempt))
        pieces, self._place.row = drafts.since(tx, no, turn.attempt, self._place.row)
        return self._place.told(turn.id, pieces)

    def listen(self, live: Live | None) -> list[FeedItem]:
        """More of an answer that grows in this process."""
        if live is None:
            return []
        if live.turn_no not in self._open:
            self.stored |= live.turn_no > self._turn_no
            return []
        self._place.enter(live.turn_no, live.attempt, HERE)
        items: list[FeedItem] = [Noticed(live.turn_id, text) for text in live.notices[self._place.notices :]]
        self._place.notices = len(live.notices)
        pieces = live.draft.since(self._place.position)
        self._place.position = live.draft.position
        return items + self._place.told(live.turn_id, pieces)


@dataclass(slots=True)
class _DraftPlace:
    """How far somebody has read a growing answer."""

    run: tuple[int, int, int] = (0, 0, 0)  # which turn, which attempt, and where its draft begins
    position: Position = START  # in this process
    row: int = 0  # in the store
    notices: int = 0
    afresh: bool = True  # nothing of this run has been told
    shown: bool = False  # something of this turn has been told, by this run or the one before

    def enter(self, turn_no: int, attempt: int, begins: int) -> None:
        """Read another run than before from its beginning. One that was given back has the same number again."""
        run = (turn_no, attempt, begins)
        if self.run != run:
            self.shown = self.shown and self.run[0] == turn_no
            self.run, self.position, self.row, self.notices, self.afresh = run, START, 0, 0, True

    def told(self, turn_id: TurnId, pieces: Sequence[Piece]) -> list[FeedItem]:
        """What a follower is told of these pieces; the first of a run let it forget the run before."""
        if not pieces and not (self.afresh and self.shown):
            return []
        item = Drafted(turn_id, pieces, self.afresh)
        self.shown, self.afresh = bool(pieces), False
        return [item]
