"""The feed: what happened in a conversation after a given event, then what happens, live.

A follower keeps its own place, reads when it is woken, and takes everything that has accumulated since. It never blocks
a writer, however slow it is. Drafts of turns that run in this process are read from memory, those of other processes
from the store.

Always true: every event comes once and in order; the messages of a turn come before its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from palaver.core.background import PollLoop
from palaver.core.engines import sqlite_watch as sqlite_changes
from palaver.core.engines.base import ACCESS_CHANGE, SETTINGS_CHANGE, WORK_CHANGE, Read, Transaction, Watch
from palaver.core.errors import StoreError
from palaver.core.operation import check_count
from palaver.live.follower import Follower
from palaver.people.model import Principal, check_can_view_all
from palaver.sessions import table as sessions, turns_table as turns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from palaver.live.feed_events import FeedItem, LiveRun
    from palaver.sessions.store import SessionStore

    ChangeListener = Callable[[frozenset[int] | None], None]


class AccessChanges:
    """Changes of what people may see: sign-outs, revoked tokens, other roles, ended memberships."""

    def __init__(self) -> None:
        self._next_change = asyncio.Event()

    def get_next(self) -> asyncio.Event:
        """Return an event that is set at the next change. Get it before you read what the change could affect."""
        return self._next_change

    def notify(self) -> None:
        change, self._next_change = self._next_change, asyncio.Event()
        change.set()


IDLE_SECONDS = 60.0  # between two polls when nothing changes; every change wakes the feed
RETRY_SECONDS = 1.0  # pause before changes that could not be read are read again
# After a commit of which the engine does not report everything, all followers read the store, spread over this time.
CATCH_UP_SECONDS = 1.0
MAX_QUIET_SECONDS = 86_400.0  # then they read it without a commit, too

_NO_SESSIONS = frozenset({ACCESS_CHANGE, SETTINGS_CHANGE, WORK_CHANGE})

log = logging.getLogger(__name__)


class Feed:
    """Notifies followers and listeners of changes in the store."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self.access_changes = AccessChanges()
        self._live_runs: dict[int, LiveRun] = {}  # by session number
        self._followers: dict[int, set[Follower]] = {}  # by session number
        self._change_listeners: list[ChangeListener] = []
        self._work_listeners: list[Callable[[], None]] = []
        self._settings_listeners: list[Callable[[], None]] = []
        self._change_marks: sqlite_changes.ChangeMarks | None = None
        self._has_unknown_changes = False  # something has changed, and it is not known what
        self._notify_loop = PollLoop(self._notify, "palaver-feed", log=log, failure_event="feed_notify_failed")
        self._catch_up_loop = PollLoop(
            self._catch_up, "palaver-feed-catch-up", log=log, failure_event="feed_catch_up_failed"
        )
        self._wake_count = 0  # changes with everything that followers are woken for
        self._last_commit_at = 0.0  # event loop time; of a commit that may concern any session
        self._watch: Watch | None = None

    async def start(self) -> None:
        engine = self._store.engine
        if engine.name == "sqlite":
            self._change_marks, _ = await engine.arun(Read(lambda tx: sqlite_changes.find_changed_sessions(tx, None)))
        loop = asyncio.get_running_loop()

        def on_change(session_numbers: frozenset[int] | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for changes any more
                loop.call_soon_threadsafe(self._record_changes, session_numbers)

        self._watch = engine.watch(on_change)
        self._notify_loop.start()
        self._catch_up_loop.start()

    async def stop(self) -> None:
        """Stop watching the store, and close all followers."""
        if self._watch is not None:
            await asyncio.to_thread(self._watch.close)
        await self._notify_loop.cancel()
        await self._catch_up_loop.cancel()
        for followers in self._followers.values():
            for follower in followers:
                follower.close()

    def add_change_listener(self, listener: ChangeListener) -> Callable[[], None]:
        """Call `listener` with the numbers of changed sessions, or with None when they are unknown.

        An empty set means that something else may have changed. Returns a function that removes the listener.
        """
        self._change_listeners.append(listener)
        return lambda: self._change_listeners.remove(listener)

    def add_work_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` when a turn was queued, started or asked to stop, or a delivery was added or became due."""
        self._work_listeners.append(listener)

    def add_settings_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` when settings may have changed, in this process or in another one on the same store."""
        self._settings_listeners.append(listener)

    # -- runs in this process ------------------------------------------------------------------------------

    def start_run(self, live: LiveRun) -> None:
        """Let followers read the draft of a run from memory."""
        self._live_runs[live.session_no] = live

    def notify_progress(self, live: LiveRun) -> None:
        """Wake the followers of a run: its draft has grown, or it has a new notice."""
        for follower in self._followers.get(live.session_no, ()):
            follower.wake(should_read=False)

    def end_run(self, live: LiveRun) -> None:
        """Forget a run whose answer is stored, and let its followers read the store."""
        if self._live_runs.get(live.session_no) is live:
            del self._live_runs[live.session_no]
        if self._change_marks is None:  # a notification of PostgreSQL comes later
            self._notify_changes(frozenset({live.session_no}))

    # -- following -----------------------------------------------------------------------------------------

    async def follow(
        self,
        principal: Principal,
        session_id: str,
        *,
        after: int | None = None,
        everything: bool = False,
        recent_deliveries: int = 0,
        get_draft_pause: Callable[[], float] = lambda: 0.0,
    ) -> AsyncGenerator[FeedItem, None]:
        """Yield everything that happened in a conversation after event `after` (None: from now on), then what happens.

        That includes the turns that answer messages after it, also those that have already ended. Changes of deliveries
        are sent from now on; before them, the state of the last `recent_deliveries`. After each piece of a draft there
        is a pause of so many seconds, which everything else ends.

        Raises SessionNotFound when the principal may not see the session, also when they lose access later.
        """
        check_count("after", after, minimum=0)
        if everything:
            check_can_view_all(principal)
        person_id = None if everything else principal.person_id

        started_at, wake_count = asyncio.get_running_loop().time(), self._wake_count

        def start(tx: Transaction) -> tuple[Follower, list[FeedItem], bool]:
            ends = sessions.get_visible_ends(tx, session_id, person_id)
            session_no, seq = ends.session_no, ends.seq if after is None else after
            turn_no = turns.find_last_ended(tx, session_no, seq)
            new = Follower(session_no, seq, turn_no, recent_deliveries, read_at=started_at)
            return new, *new.read_store(tx, ends, self._live_runs.get(session_no))

        follower, items, has_more = await self._store.engine.arun(Read(start, is_quick=True))
        session_no = follower.session_no
        follower.should_read = has_more or self._wake_count != wake_count  # a change that it was not woken for

        def read_store(tx: Transaction) -> tuple[list[FeedItem], bool]:
            ends = sessions.get_visible_ends(tx, session_id, person_id)
            return follower.read_store(tx, ends, self._live_runs.get(session_no))

        self._followers.setdefault(session_no, set()).add(follower)
        try:
            while not follower.is_closed:
                if follower.should_read:
                    follower.start_read()
                    more_items, has_more = await self._store.engine.arun(Read(read_store, is_quick=True))
                    items += more_items
                    follower.should_read |= has_more
                for item in items:
                    yield item
                items = []
                pause_seconds = 0.0
                for item in follower.read_live(self._live_runs.get(session_no)):
                    yield item
                    pause_seconds = get_draft_pause()
                await follower.wait(pause_seconds)
        finally:
            self._followers[session_no].discard(follower)
            if not self._followers[session_no]:
                del self._followers[session_no]

    # -- watching the store --------------------------------------------------------------------------------

    def _record_changes(self, session_numbers: frozenset[int] | None) -> None:
        if session_numbers is None:
            self._has_unknown_changes = True
            self._notify_loop.wake()
        elif session_numbers:
            self._notify_changes(session_numbers)
            if self._change_marks is None or WORK_CHANGE in session_numbers:  # PostgreSQL does not tell which is which
                self._notify_work_listeners()
        if not session_numbers:
            self._wake_count += 1
            self._last_commit_at = asyncio.get_running_loop().time()
            self._catch_up_loop.wake()

    async def _notify(self) -> float:
        """Find out what has changed, and notify followers and listeners; return the seconds until the next poll."""
        has_unknown, self._has_unknown_changes = self._has_unknown_changes, False
        if not has_unknown:
            return IDLE_SECONDS
        last = self._change_marks
        if last is None:  # the connection to the server was lost for a while
            self._notify_changes(None)
            self._notify_work_listeners()
            return IDLE_SECONDS
        find_changed = Read(lambda tx: sqlite_changes.find_changed_sessions(tx, last), is_quick=True)
        try:
            marks, changed = await self._store.engine.arun(find_changed)
        except StoreError:  # followers read the store after every commit, and get the error
            self._has_unknown_changes = True
            return RETRY_SECONDS
        self._change_marks = marks
        if changed:
            self._notify_changes(changed)
        if marks.has_more_work_than(last):
            self._notify_work_listeners()
        return IDLE_SECONDS

    def _notify_work_listeners(self) -> None:
        for listener in self._work_listeners:
            listener()

    async def _catch_up(self) -> float:
        """Let followers find what is not reported: a lost notification, or a change that nothing notifies of.

        While there are no commits, nothing is read, however many followers there are.
        """
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        for listener in self._change_listeners:
            listener(frozenset())
        followers = [follower for group in self._followers.values() for follower in group]
        for count, follower in enumerate(followers, 1):
            if not follower.has_read_since(self._last_commit_at):
                follower.wake(should_read=True)
            await asyncio.sleep(started_at + CATCH_UP_SECONDS * count / len(followers) - loop.time())
        await asyncio.sleep(started_at + CATCH_UP_SECONDS - loop.time())
        return MAX_QUIET_SECONDS

    def _notify_changes(self, changed: frozenset[int] | None) -> None:
        """Wake the followers of changed sessions (None: of all sessions) and call the change listeners.

        After a change of access all followers read the store, which tells them whether they may go on.
        """
        self._wake_count += 1
        has_access_change = changed is None or ACCESS_CHANGE in changed
        if has_access_change:
            self.access_changes.notify()
        if changed is None or SETTINGS_CHANGE in changed:
            for notify in self._settings_listeners:
                notify()
        woken = self._followers.keys() if changed is None or has_access_change else changed & self._followers.keys()
        for session_no in woken:
            for follower in self._followers[session_no]:
                follower.wake(should_read=True)
        session_numbers = None if changed is None else changed - _NO_SESSIONS
        for listener in self._change_listeners:
            listener(session_numbers)
