"""What those who have a page open are told, live: their lists, and the conversations they follow.

However many clients there are, a change is read once: a session that has changed is read with its audience and handed
to the clients among it, and a conversation that several follow is followed once, in a channel that they share. A client
comes with a cursor, is given what it has missed from the store, and joins the channel where that ends.

Always true: of every conversation a client follows it gets each event of the log once and in order, whatever was cut or
killed in between. A turn it was told of is told again when it has changed meanwhile, after its messages. A client
that does not take what it is given is cut; nobody waits for it, and its cursor brings it back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from palaver.domain.draft import START, Draft
from palaver.domain.errors import InvalidInput, NoSuchSession, StoreError
from palaver.domain.feed import Drafted, FeedItem, Happened, Noticed, TurnChanged
from palaver.domain.ids import PersonId
from palaver.domain.person import Principal, Role, check_sees_everything
from palaver.storage import live, reading
from palaver.storage.engine import Read

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from palaver.domain.ids import TurnId
    from palaver.domain.overview import Overview
    from palaver.domain.turn import Turn
    from palaver.services.feed import Feed
    from palaver.services.store import SessionStore
    from palaver.storage.engine import Transaction

MOST_FOLLOWED: Final = 20  # conversations by one client
MOST_WAITING: Final = 2000  # things a client has not taken yet
ANYWAY: Final = 1.0  # seconds after which it is looked what has gone, though nobody said so
TOGETHER: Final = 0.05  # seconds in which changes of sessions are gathered
AT_ONCE: Final = 200  # events read together
_REMEMBERED = 1000  # sessions, as they were last told
_GATEWAY = Principal(PersonId(""), Role.OWNER)  # a channel reads for several people, each of whom has been checked

log = logging.getLogger(__name__)


# ---- what clients are told -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class SessionChanged:
    """A session that this client may see is new, or has changed."""

    overview: Overview


@dataclass(frozen=True, slots=True, eq=False)
class SessionGone:
    """A session was deleted, or is no longer to be seen."""

    session_id: str


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """Something in a conversation that this client follows."""

    session_id: str
    item: FeedItem
    names: Mapping[PersonId, str] = field(default_factory=dict)  # of whoever did it


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A conversation is followed from here on; nothing to show, but a place to come back to."""

    session_id: str
    seq: int


LiveItem = SessionChanged | SessionGone | Followed | Placed


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client is in a conversation: what it has seen, and the turns it believes to be open."""

    session_id: str
    after: int | None = None  # None: from now on
    turns: tuple[str, ...] = ()


# ---- clients ---------------------------------------------------------------------------------------------


class Client:
    """Somebody who has a page open."""

    def __init__(self, principal: Principal, *, everything: bool) -> None:
        self.principal = principal
        self.everything = everything
        self.cut = False  # it has not taken what it was given
        self._waiting: deque[LiveItem] = deque()
        self._woken = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._over = False

    def sees(self, members: frozenset[PersonId]) -> bool:
        """Whether a session of this audience is this client's."""
        return self.everything or self.principal.person_id in members

    def give(self, item: LiveItem) -> None:
        """Tell it something, when it takes it."""
        if len(self._waiting) >= MOST_WAITING:
            self.cut = True
            self.end()
        if not self._over:
            self._waiting.append(item)
            self._woken.set()
            if len(self._waiting) > AT_ONCE:
                self._room.clear()

    async def room(self) -> None:
        """Wait until it has taken most of what it was given."""
        await self._room.wait()

    def end(self) -> None:
        """Tell it nothing more."""
        self._over = True
        self._waiting.clear()
        self._woken.set()
        self._room.set()

    async def items(self) -> AsyncGenerator[LiveItem, None]:
        """What it is told, as it comes; ends when it is cut, or the server stops."""
        while not self._over:
            while self._waiting:
                yield self._waiting.popleft()
                if len(self._waiting) <= AT_ONCE:
                    self._room.set()
            self._woken.clear()
            if not self._waiting and not self._over:
                await self._woken.wait()


class _Joined:
    """A client's place in a channel."""

    def __init__(self, client: Client, seq: int, ended: frozenset[str]) -> None:
        self.client = client
        self._seq = seq
        self._ended = ended  # turns of which it has been told that they are over, before the channel knew

    def tell(self, told: Followed) -> None:
        item = told.item
        if isinstance(item, Happened):
            if item.event.seq <= self._seq:
                return
            self._seq = item.event.seq
        elif _turn_id(item) in self._ended:
            return
        self.client.give(told)


def _turn_id(item: TurnChanged | Drafted | Noticed) -> str:
    return item.turn.id if isinstance(item, TurnChanged) else item.turn_id


# ---- channels --------------------------------------------------------------------------------------------


class _Channel:
    """A conversation that clients follow, read once for all of them."""

    def __init__(self, session_id: str, seq: int, feed: Feed, store: SessionStore) -> None:
        self.session_id = session_id
        self.seq = seq  # of the last event it has told
        self.joined: dict[Client, _Joined] = {}
        self._feed = feed
        self._store = store
        self._open: dict[str, Turn] = {}
        self._ended: OrderedDict[str, Turn] = OrderedDict()
        self._drafts: dict[TurnId, Draft] = {}
        self._names: dict[PersonId, str] = {}
        self._over: Callable[[_Channel], None] = lambda _: None
        self._task: asyncio.Task[None] | None = None

    def start(self, over: Callable[[_Channel], None]) -> None:
        self._over = over
        self._task = asyncio.create_task(self._serve(), name=f"palaver-live-{self.session_id}")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _serve(self) -> None:
        try:
            followed = self._feed.follow(_GATEWAY, self.session_id, after=self.seq, everything=True)
            async with contextlib.aclosing(followed) as items:
                async for item in items:
                    await self._take(item)
        except NoSuchSession:  # whoever looks what has gone tells of it
            log.debug("a conversation that was followed is gone")
        except StoreError as error:  # clients come back by their cursor, and are told how it stands then
            log.warning("a conversation cannot be followed: %s", error)
            for client in self.joined:
                client.end()
        finally:
            self._over(self)

    async def _take(self, item: FeedItem) -> None:
        names: dict[PersonId, str] = {}
        match item:
            case Happened(event):
                if event.person_id is not None:
                    names = {event.person_id: await self._name(event.person_id)}
                self.seq = event.seq
            case TurnChanged(turn):
                self._turned(turn)
            case Drafted(turn_id, pieces, afresh):
                if afresh or turn_id not in self._drafts:
                    self._drafts[turn_id] = Draft()
                self._drafts[turn_id].extend(pieces)
        told = Followed(self.session_id, item, names)
        for joined in list(self.joined.values()):
            joined.tell(told)

    def _turned(self, turn: Turn) -> None:
        if not turn.state.ended:
            self._open[turn.id] = turn
            return
        self._open.pop(turn.id, None)
        self._drafts.pop(turn.id, None)
        self._ended[turn.id] = turn
        while len(self._ended) > 100:
            self._ended.popitem(last=False)

    async def _name(self, person_id: PersonId) -> str:
        if person_id not in self._names:
            found = await self._store.engine.arun(Read(lambda tx: reading.names(tx, [person_id])))
            self._names[person_id] = found.get(person_id, "")
        return self._names[person_id]

    def join(self, client: Client, seq: int, told: Sequence[Turn]) -> None:
        """From now on this client hears everything; what goes on just now it is told first.

        It has seen the log up to `seq`, which is not before ours, and had been told of some turns, which stood like
        this when it was there.
        """
        ended = []
        for turn in told:
            known = self._ended.get(turn.id, turn)
            if turn.id not in self._open and known.state.ended:
                ended.append(turn.id)
                client.give(Followed(self.session_id, TurnChanged(known)))
        for turn in self._open.values():
            client.give(Followed(self.session_id, TurnChanged(turn)))
        for turn_id, draft in self._drafts.items():
            pieces = tuple(draft.since(START))
            client.give(Followed(self.session_id, Drafted(turn_id, pieces, afresh=True)))
        self.joined[client] = _Joined(client, seq, frozenset(ended))


# ---- all of it -------------------------------------------------------------------------------------------


class Live:
    """Everybody who has a page open, in this process."""

    def __init__(self, store: SessionStore, feed: Feed) -> None:
        self._store = store
        self._feed = feed
        self._clients: set[Client] = set()
        self._channels: dict[str, _Channel] = {}
        self._numbers: set[int] = set()
        self._ids: set[str] = set()
        self._departed = 0
        self._told: OrderedDict[str, live.Changed] = OrderedDict()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unlisten: Callable[[], None] = lambda: None

    async def start(self) -> None:
        """Begin to tell."""
        self._departed = await self._store.engine.arun(Read(live.last_departed))
        self._unlisten = self._feed.listen(self._changed)
        self._task = asyncio.create_task(self._serve(), name="palaver-live")

    async def stop(self) -> None:
        """Tell nothing more; clients end."""
        self._unlisten()
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

            def read(tx: Transaction, after: int | None = after) -> live.Missed:
                return live.missed(tx, place.session_id, person, after, place.turns, AT_ONCE)

            missed = await self._store.engine.arun(Read(read))
            if after is None:
                after = missed.last_seq
            after = min(after, missed.last_seq)  # a place that was never there
            for event in missed.events:
                client.give(Followed(place.session_id, Happened(event), missed.names))
                after = event.seq
            if len(missed.events) < AT_ONCE:
                channel = self._channel(place.session_id, after)
                if after >= channel.seq:
                    break
            await client.room()
        client.give(Placed(place.session_id, after))
        channel.join(client, after, missed.turns)

    def _channel(self, session_id: str, seq: int) -> _Channel:
        channel = self._channels.get(session_id)
        if channel is None:
            channel = self._channels[session_id] = _Channel(session_id, seq, self._feed, self._store)
            channel.start(self._ended)
        return channel

    def _ended(self, channel: _Channel) -> None:
        if self._channels.get(channel.session_id) is channel:
            del self._channels[channel.session_id]

    def _leave(self, channel: _Channel, client: Client) -> None:
        channel.joined.pop(client, None)
        if not channel.joined:
            channel.stop()
            self._ended(channel)

    # -- lists ---------------------------------------------------------------------------------------------

    def _changed(self, numbers: frozenset[int]) -> None:
        if self._clients:
            self._numbers |= numbers
            self._woken.set()

    async def _serve(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ANYWAY):
                    await self._woken.wait()
                await asyncio.sleep(TOGETHER)
            self._woken.clear()
            try:
                await self._tell()
            except StoreError as error:
                log.warning("clients cannot be told of changes: %s", error)
                await asyncio.sleep(ANYWAY)

    async def _tell(self) -> None:
        numbers, self._numbers = self._numbers, set()
        ids, self._ids = self._ids, set()
        if not self._clients:
            self._told.clear()
        followed = list(self._channels)

        def read(
            tx: Transaction,
        ) -> tuple[list[live.Changed], list[live.Departed], dict[str, frozenset[PersonId]]]:
            changed = live.changed(tx, numbers - {0}, ids) if self._clients else []
            return changed, live.departed(tx, self._departed), live.still_seen(tx, followed)

        changed, departed, seen = await self._store.engine.arun(Read(read))
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

    def _tell_changed(self, changed: live.Changed) -> None:
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


def _for(changed: live.Changed, person_id: PersonId, everything: bool) -> Overview:
    overview = changed.overview
    read = min(changed.marks.get(person_id, 0), overview.last_seq)
    return replace(overview, read_seq=read, owner=overview.owner if everything else None)
