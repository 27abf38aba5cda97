"""Live clients: open pages that get every change of their session lists and of the conversations they follow.

However many clients there are, a change is read once: a changed session is read together with its audience and sent to
the clients in that audience, and a conversation that several clients follow is followed once, in a shared channel. A
client comes with a cursor, gets what it has missed from the store, and joins the channel where that ends.

Always true: a client gets each event of a conversation that it follows once and in order, even if connections were cut
or processes killed in between. A turn that it knows is sent again, after its messages, if it has changed since; of a
turn that started and ended while the client was away, only the messages are sent. A client that does not take its items
is closed: nothing waits for it, and it comes back with its cursor.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.core.background import PollLoop
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction
from palaver.core.errors import InvalidInput, SessionNotFound, StoreError
from palaver.core.recent_entries import RecentEntries
from palaver.core.tasks import cancel_tasks
from palaver.live import follower as live_queries
from palaver.live.channels import (
    PAGE_SIZE,
    Channel,
    FollowCursor,
    FollowedItem,
    ListsChanged,
    LiveClient,
    SessionChanged,
    SessionRemoved,
)
from palaver.live.feed_events import EventAppended
from palaver.people.model import Principal, check_can_view_all

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from palaver.core.ids import PersonId
    from palaver.live.feed import Feed
    from palaver.live.follower import ChangedSession, DeletedSession
    from palaver.sessions.model import SessionSummary
    from palaver.sessions.store import SessionStore

MAX_FOLLOWED_SESSIONS: Final = 20  # by one client
IDLE_SECONDS: Final = 60.0  # between two polls when nothing changes; the feed wakes the loop after every commit
BATCH_SECONDS: Final = 0.05  # changes within this time are sent together
_MAX_REMEMBERED_SESSIONS = 100  # to recognize changes that were already sent

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """A conversation that a client wants to follow: the last event it has, and the turns that were open then."""

    session_id: str
    after: int | None = None  # None: only events from now on
    open_turn_ids: tuple[str, ...] = ()


class LiveClients:
    def __init__(self, store: SessionStore, feed: Feed) -> None:
        self._store = store
        self._feed = feed
        self._clients: set[LiveClient] = set()
        self._channels: dict[str, Channel] = {}
        # Sessions that have changed since the last update, by number or by id.
        self._changed_numbers: set[int] = set()
        self._changed_ids: set[str] = set()
        self._has_unknown_changes = False  # sessions have changed, and it is not known which
        self._last_deletion_no = 0
        self._last_sent: RecentEntries[str, ChangedSession] = RecentEntries(_MAX_REMEMBERED_SESSIONS)
        self._loop = PollLoop(self._poll, "palaver-live", log=log, failure_event="live_update_failed")
        self._remove_listener: Callable[[], None] = lambda: None

    async def start(self) -> None:
        self._last_deletion_no = await self._store.engine.arun(Read(live_queries.get_last_deletion_no))
        self._remove_listener = self._feed.add_change_listener(self._record_changes)
        self._loop.start()

    async def stop(self) -> None:
        remove_listener, self._remove_listener = self._remove_listener, lambda: None
        remove_listener()
        for client in list(self._clients):
            client.close()
        for channel in list(self._channels.values()):
            channel.stop()
        await self._loop.cancel()

    @property
    def client_count(self) -> int:
        return len(self._clients)

    def refresh_session(self, session_id: str) -> None:
        """Send a session again, because something changed that is not in its log: how far a person has read."""
        self._changed_ids.add(session_id)
        self._loop.wake()

    @contextlib.asynccontextmanager
    async def connect(
        self, principal: Principal, requests: Sequence[FollowRequest] = (), *, everything: bool = False
    ) -> AsyncGenerator[LiveClient, None]:
        """Connect a client for the duration of an `async with` block; it follows the requested conversations."""
        if everything:
            check_can_view_all(principal)
        if len(requests) > MAX_FOLLOWED_SESSIONS:
            raise InvalidInput(f"follow: the limit is {MAX_FOLLOWED_SESSIONS} conversations.")
        client = LiveClient(principal, everything=everything)
        self._clients.add(client)
        self._loop.wake()  # without clients, hardly anything is looked for
        joining = asyncio.create_task(self._join_all(client, requests), name="palaver-live-join")
        try:
            yield client
        finally:
            await cancel_tasks([joining])
            self._clients.discard(client)
            for channel in list(self._channels.values()):
                self._leave(channel, client)

    # -- joining channels ----------------------------------------------------------------------------------

    async def _join_all(self, client: LiveClient, requests: Sequence[FollowRequest]) -> None:
        for request in requests:
            await client.wait_for_room()  # all conversations together may have more to send than the queue can hold
            try:
                await self._join(client, request)
            except SessionNotFound:
                client.send(SessionRemoved(request.session_id))
            except StoreError as error:
                log.warning("live_catch_up_failed", extra={"session": request.session_id, "error": str(error)})
                client.close()

    async def _join(self, client: LiveClient, request: FollowRequest) -> None:
        """Send what the client has missed, page by page, then let it join the channel."""
        session_id = request.session_id
        person_id = None if client.everything else client.principal.person_id
        after = request.after
        while True:

            def read(tx: Transaction, after: int | None = after) -> live_queries.MissedUpdates:
                return live_queries.load_missed_updates(
                    tx, session_id, person_id, after, request.open_turn_ids, PAGE_SIZE
                )

            missed = await self._store.engine.arun(Read(read))
            if after is None:
                after = missed.last_seq
            after = min(after, missed.last_seq)  # a cursor may name an event that does not exist
            for event in missed.events:
                client.send(FollowedItem(session_id, EventAppended(event), missed.names))
                after = event.seq
            if len(missed.events) < PAGE_SIZE:
                channel = self._get_or_start_channel(session_id, after, missed.oldest_open_seq)
                if after >= channel.seq:
                    break
            await client.wait_for_room()
        client.send(FollowCursor(session_id, after))
        channel.join(client, after, missed.turns)

    def _get_or_start_channel(self, session_id: str, seq: int, oldest_open_seq: int | None) -> Channel:
        channel = self._channels.get(session_id)
        if channel is None:
            channel = self._channels[session_id] = Channel(session_id, seq, oldest_open_seq, self._feed, self._store)
            channel.start(self._forget_channel)
        return channel

    def _forget_channel(self, channel: Channel) -> None:
        if self._channels.get(channel.session_id) is channel:
            del self._channels[channel.session_id]

    def _leave(self, channel: Channel, client: LiveClient) -> None:
        channel.subscriptions.pop(client, None)
        if not channel.subscriptions:
            channel.stop()
            self._forget_channel(channel)

    # -- session lists -------------------------------------------------------------------------------------

    def _record_changes(self, numbers: frozenset[int] | None) -> None:
        if self._clients:
            self._has_unknown_changes |= numbers is None
            self._changed_numbers |= numbers or frozenset()
            self._loop.wake()

    async def _poll(self) -> float:
        await asyncio.sleep(BATCH_SECONDS)  # for changes that happen at the same time
        self._loop.clear_wake()
        await self._send_updates()
        return IDLE_SECONDS

    async def _send_updates(self) -> None:
        numbers, self._changed_numbers = self._changed_numbers, set()
        ids, self._changed_ids = self._changed_ids, set()
        if not self._clients:
            self._last_sent.clear()
        followed = list(self._channels)

        def read(
            tx: Transaction,
        ) -> tuple[list[ChangedSession], list[DeletedSession], dict[str, frozenset[PersonId]]]:
            changed = live_queries.load_changed_sessions(tx, numbers - {0}, ids) if self._clients else []
            deleted = live_queries.list_deleted_after(tx, self._last_deletion_no)
            return changed, deleted, live_queries.list_viewers(tx, followed)

        try:
            changed, deleted, viewers = await self._store.engine.arun(Read(read))
        except Exception:  # whatever it is, these changes must be sent with the next update
            self._changed_numbers |= numbers
            self._changed_ids |= ids
            raise
        if self._has_unknown_changes:
            self._has_unknown_changes = False
            for client in self._clients:
                client.send(ListsChanged())
        for changed_session in changed:
            self._send_changed(changed_session)
        for deleted_session in deleted:
            self._last_deletion_no = deleted_session.no
            viewing = [client for client in self._clients if client.can_see(deleted_session.members)]
            self._send_removed(deleted_session.session_id, viewing)
        for session_id, members in viewers.items():
            channel = self._channels.get(session_id)
            if channel is not None:
                without_access = [client for client in channel.subscriptions if not client.can_see(members)]
                self._send_removed(session_id, without_access)

    def _send_changed(self, changed: ChangedSession) -> None:
        """Send a session to the clients in its audience, unless it is the same as before."""
        session_id = changed.summary.session.id
        if self._last_sent.get(session_id) == changed:
            return
        self._last_sent.remember(session_id, changed)
        items: dict[tuple[PersonId, bool], SessionChanged] = {}  # one object for all pages of a person
        for client in self._clients:
            if client.can_see(changed.members):
                viewer = (client.principal.person_id, client.everything)
                if viewer not in items:
                    items[viewer] = SessionChanged(_build_summary(changed, *viewer))
                client.send(items[viewer])

    def _send_removed(self, session_id: str, clients: Iterable[LiveClient]) -> None:
        channel = self._channels.get(session_id)
        for client in clients:
            client.send(SessionRemoved(session_id))
            if channel is not None:
                self._leave(channel, client)


def _build_summary(changed: ChangedSession, person_id: PersonId, everything: bool) -> SessionSummary:
    """Build the summary that one person sees: how far they have read, and the owner only where all are shown."""
    summary = changed.summary
    read_seq = min(changed.read_seqs.get(person_id, 0), summary.last_seq)
    return replace(summary, read_seq=read_seq, owner_name=summary.owner_name if everything else None)
