"""What those who have a page open are told, live: their lists, and the conversations they follow.

However many clients there are, a change is read once: a session that has changed is read with its audience and handed
to the clients among it, and a conversation that several follow is followed once, in a channel that they share. A client
comes with a cursor, is given what it has missed from the store, and joins the channel where that ends.

Always true: of every conversation a client follows it gets each event of the log once and in order, whatever was cut or
killed in between. A turn it was told of is told again when it has changed meanwhile, after its messages; one that began
and ended while nobody listened is known by its messages alone. A client that does not take what it is given is cut:
nobody waits for it, and its cursor brings it back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from palaver.domain.errors import InvalidInput, NoSuchSession, StoreError
from palaver.domain.feed_events import Happened
from palaver.domain.person import check_sees_everything
from palaver.services.live.channels import (
    AT_ONCE,
    Channel,
    Client,
    Followed,
    ListsChanged,
    Placed,
    SessionChanged,
    SessionGone,
)
from palaver.services.poll_loop import keep_looking
from palaver.storage import live_queries
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from palaver.domain.ids import PersonId
    from palaver.domain.person import Principal
    from palaver.domain.session_summary import Overview
    from palaver.services.live.feed import Feed
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction

MOST_FOLLOWED: Final = 20  # conversations by one client
ANYWAY: Final = 1.0  # seconds after which it is looked what has gone, though nobody said so
TOGETHER: Final = 0.05  # seconds in which changes of sessions are gathered
_REMEMBERED = 1000  # sessions, as they were last told

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client is in a conversation: what it has seen, and the turns it believes to be open."""

    session_id: str
    after: int | None = None  # None: from now on
    turns: tuple[str, ...] = ()


class Live:
    """Everybody who has a page open, in this process."""

    def __init__(self, store: SessionStore, feed: Feed) -> None:
        self._store = store
        self._feed = feed
        self._clients: set[Client] = set()
        self._channels: dict[str, Channel] = {}
        self._numbers: set[int] = set()
        self._ids: set[str] = set()
        self._unknown = False  # sessions have changed, and it is not known which
        self._departed = 0
        self._told: OrderedDict[str, live_queries.Changed] = OrderedDict()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unlisten: Callable[[], None] = lambda: None

    async def start(self) -> None:
        """Begin to tell."""
        self._departed = await self._store.engine.arun(Read(live_queries.last_departed))
        self._unlisten = self._feed.listen(self._changed)
        self._task = asyncio.create_task(self._serve(), name="palaver-live")

    async def stop(self) -> None:
        """Tell nothing more; clients end."""
        unlisten, self._unlisten = self._unlisten, lambda: None
        unlisten()
        for client in list(self._clients):
            client.end()
        for channel in list(self._channels.values()):
            channel.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def clients(self) -> int:
        """How many have a page open."""
        return len(self._clients)

    def touch(self, session_id: str) -> None:
        """Something about a session has changed that is not in its log: how far somebody has read."""
        self._ids.add(session_id)
        self._woken.set()

    @contextlib.asynccontextmanager
    async def client(
        self, principal: Principal, places: Sequence[Place] = (), *, everything: bool = False
    ) -> AsyncGenerator[Client, None]:
        """A client, as long as it stays, that follows these conversations."""
        if everything:
            check_sees_everything(principal)
        if len(places) > MOST_FOLLOWED:
            raise InvalidInput(f"follow: at most {MOST_FOLLOWED} conversations at once")
        client = Client(principal, everything=everything)
        self._clients.add(client)
        joining = asyncio.create_task(self._join_all(client, places), name="palaver-live-join")
        try:
            yield client
        finally:
            joining.cancel()
            await asyncio.gather(joining, return_exceptions=True)
            self._clients.discard(client)
            for channel in list(self._channels.values()):
                self._leave(channel, client)

    # -- joining -------------------------------------------------------------------------------------------

    async def _join_all(self, client: Client, places: Sequence[Place]) -> None:
        for place in places:
            await client.room()  # however much was missed in all of them together
            try:
                await self._join(client, place)
            except NoSuchSession:
                client.give(SessionGone(place.session_id))
            except StoreError as error:
                log.warning("a client cannot be told what it missed: %s", error)
                client.end()

    async def _join(self, client: Client, place: Place) -> None:
        person = None if client.everything else client.principal.person_id
        after = place.after
        while True:

            def read(tx: Transaction, after: int | None = after) -> live_queries.Missed:
                return live_queries.missed(tx, place.session_id, person, after, place.turns, AT_ONCE)

            missed = await self._store.engine.arun(Read(read))
            if after is None:
                after = missed.last_seq
            after = min(after, missed.last_seq)  # a place that was never there
            for event in missed.events:
                client.give(Followed(place.session_id, Happened(event), missed.names))
                after = event.seq
            if len(missed.events) < AT_ONCE:
                channel = self._channel(place.session_id, after, missed.asked_at)
                if after >= channel.seq:
                    break
            await client.room()
        client.give(Placed(place.session_id, after))
        channel.join(client, after, missed.turns)

    def _channel(self, session_id: str, seq: int, asked_at: int | None) -> Channel:
        channel = self._channels.get(session_id)
        if channel is None:
            channel = self._channels[session_id] = Channel(session_id, seq, asked_at, self._feed, self._store)
            channel.start(self._ended)
        return channel

    def _ended(self, channel: Channel) -> None:
        if self._channels.get(channel.session_id) is channel:
            del self._channels[channel.session_id]

    def _leave(self, channel: Channel, client: Client) -> None:
        channel.joined.pop(client, None)
        if not channel.joined:
            channel.stop()
            self._ended(channel)

    # -- lists ---------------------------------------------------------------------------------------------

    def _changed(self, numbers: frozenset[int] | None) -> None:
        if self._clients:
            self._unknown |= numbers is None
            self._numbers |= numbers or frozenset()
            self._woken.set()

    async def _serve(self) -> None:
        trouble = "clients cannot be told of changes"
        await keep_looking(self._look, self._woken, is_over=lambda: False, log=log, trouble=trouble)

    async def _look(self) -> float:
        await asyncio.sleep(TOGETHER)  # for what changes at the same time
        self._woken.clear()
        await self._tell()
        return ANYWAY

    async def _tell(self) -> None:
        numbers, self._numbers = self._numbers, set()
        ids, self._ids = self._ids, set()
        if not self._clients:
            self._told.clear()
        followed = list(self._channels)

        def read(
            tx: Transaction,
        ) -> tuple[list[live_queries.Changed], list[live_queries.Departed], dict[str, frozenset[PersonId]]]:
            changed = live_queries.changed(tx, numbers - {0}, ids) if self._clients else []
            return changed, live_queries.departed(tx, self._departed), live_queries.still_seen(tx, followed)

        try:
            changed, departed, seen = await self._store.engine.arun(Read(read))
        except Exception:  # it is told the next time
            self._numbers |= numbers
            self._ids |= ids
            raise
        if self._unknown:
            self._unknown = False
            for client in self._clients:
                client.give(ListsChanged())
        for each in changed:
            self._tell_changed(each)
        for gone in departed:
            self._departed = gone.no
            self._give_gone(gone.session_id, [client for client in self._clients if client.sees(gone.members)])
        for session_id, members in seen.items():
            channel = self._channels.get(session_id)
            if channel is not None:
                strangers = [client for client in channel.joined if not client.sees(members)]
                self._give_gone(session_id, strangers)

    def _tell_changed(self, changed: live_queries.Changed) -> None:
        session_id = changed.overview.session.id
        if self._told.get(session_id) == changed:
            return
        self._told[session_id] = changed
        self._told.move_to_end(session_id)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        items: dict[tuple[PersonId, bool], SessionChanged] = {}  # one for all pages of a person
        for client in self._clients:
            if client.sees(changed.members):
                who = (client.principal.person_id, client.everything)
                if who not in items:
                    items[who] = SessionChanged(_for(changed, *who))
                client.give(items[who])

    def _give_gone(self, session_id: str, clients: Sequence[Client]) -> None:
        channel = self._channels.get(session_id)
        for client in clients:
            client.give(SessionGone(session_id))
            if channel is not None:
                self._leave(channel, client)


def _for(changed: live_queries.Changed, person_id: PersonId, everything: bool) -> Overview:
    overview = changed.overview
    read = min(changed.marks.get(person_id, 0), overview.last_seq)
    return replace(overview, read_seq=read, owner=overview.owner if everything else None)
