"""A conversation that pages follow, read once for all of them, and what each of them is told.

A channel keeps what goes on in its conversation just now, so that whoever joins can be told. A client takes what it is
given at its own pace, within a bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from palaver.domain.draft import START, Draft
from palaver.domain.errors import NoSuchSession, StoreError
from palaver.domain.feed_events import DeliveryChanged, Drafted, FeedItem, Happened, Noticed, TurnChanged
from palaver.domain.ids import PersonId
from palaver.domain.person import Principal, Role
from palaver.storage import transcript_queries
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from palaver.domain.delivery import DeliveryStatus
    from palaver.domain.ids import TurnId
    from palaver.domain.session_summary import Overview
    from palaver.domain.turn import Turn
    from palaver.services.live.feed import Feed
    from palaver.services.store import SessionStore

MOST_WAITING: Final = 2000  # things a client has not taken yet
AT_ONCE: Final = 200  # events read together
_REMEMBERED = 100  # turns that have ended, and deliveries of answers
_GATEWAY = Principal(PersonId(""), Role.OWNER)  # a channel reads for several people, each of whom has been checked

PAUSE_FOR_EACH = 0.0004  # seconds between two pieces of a growing answer, for each who listens
LONGEST_PAUSE = 0.2  # seconds

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
class ListsChanged:
    """Sessions may have changed, and it is not known which."""


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


LiveItem = SessionChanged | SessionGone | ListsChanged | Followed | Placed


# ---- clients ---------------------------------------------------------------------------------------------


class Client:
    """Somebody who has a page open."""

    def __init__(self, principal: Principal, *, everything: bool) -> None:
        self.principal = principal
        self.everything = everything
        self._waiting: deque[LiveItem] = deque()
        self._woken = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._over = False

    def sees(self, members: frozenset[PersonId]) -> bool:
        """Whether a session of this audience is this client's."""
        return self.everything or self.principal.person_id in members

    def give(self, item: LiveItem) -> None:
        """Tell it something, when it takes it; one that takes nothing is cut."""
        if len(self._waiting) >= MOST_WAITING:
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
        elif not isinstance(item, DeliveryChanged) and _turn_id(item) in self._ended:
            return
        self.client.give(told)


def _turn_id(item: TurnChanged | Drafted | Noticed) -> str:
    return item.turn.id if isinstance(item, TurnChanged) else item.turn_id


# ---- channels --------------------------------------------------------------------------------------------


class Channel:
    """A conversation that clients follow, read once for all of them."""

    def __init__(self, session_id: str, seq: int, asked_at: int | None, feed: Feed, store: SessionStore) -> None:
        self.session_id = session_id
        self.seq = seq  # of the last event it has told
        # From before the oldest open turn was asked for: one that came after it may have ended already.
        self._after = seq if asked_at is None else min(seq, asked_at - 1)
        self.joined: dict[Client, _Joined] = {}
        self._feed = feed
        self._store = store
        self._open: dict[str, Turn] = {}
        self._ended: OrderedDict[str, Turn] = OrderedDict()
        self._drafts: dict[TurnId, Draft] = {}
        self._deliveries: OrderedDict[str, DeliveryStatus] = OrderedDict()
        self._over: Callable[[Channel], None] = lambda _: None
        self._task: asyncio.Task[None] | None = None

    def start(self, over: Callable[[Channel], None]) -> None:
        """Begin to read; `over` is called when it ends."""
        self._over = over
        self._task = asyncio.create_task(self._serve(), name=f"palaver-live-{self.session_id}")

    def stop(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()

    async def _serve(self) -> None:
        try:
            followed = self._feed.follow(
                _GATEWAY, self.session_id, after=self._after, everything=True, deliveries_before=_REMEMBERED
            )
            async with contextlib.aclosing(followed) as items:
                async for item in items:
                    await self._take(item)
                    if isinstance(item, Drafted):  # the more listen, the more words are told at once
                        await asyncio.sleep(min(len(self.joined) * PAUSE_FOR_EACH, LONGEST_PAUSE))
        except NoSuchSession:  # whoever looks what has gone tells of it
            log.debug("a conversation that was followed is gone")
        except StoreError as error:
            log.warning("a conversation cannot be followed: %s", error)
            self._cut()
        except Exception:  # whatever it is: nobody is left with a page that stands still
            log.exception("a conversation cannot be followed")
            self._cut()
        finally:
            self._over(self)

    def _cut(self) -> None:
        """Let clients come back by their cursors; they are told how it stands then."""
        for client in self.joined:
            client.end()

    async def _take(self, item: FeedItem) -> None:
        names: Mapping[PersonId, str] = {}
        match item:
            case Happened(event):
                if event.person_id is not None:
                    names = await self._named(event.person_id)
                self.seq = max(self.seq, event.seq)
            case TurnChanged(turn):
                self._turned(turn)
            case Drafted(turn_id, pieces, afresh):
                if afresh or turn_id not in self._drafts:
                    self._drafts[turn_id] = Draft()
                self._drafts[turn_id].extend(pieces)
            case DeliveryChanged(delivery):
                self._deliveries[delivery.id] = delivery
                while len(self._deliveries) > _REMEMBERED:
                    self._deliveries.popitem(last=False)
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
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)

    async def _named(self, person_id: PersonId) -> Mapping[PersonId, str]:
        """What somebody is called just now; people rename themselves."""
        return await self._store.engine.arun(Read(lambda tx: transcript_queries.names(tx, [person_id]), quick=True))

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
        for delivery in self._deliveries.values():
            client.give(Followed(self.session_id, DeliveryChanged(delivery)))
        self.joined[client] = _Joined(client, seq, frozenset(ended))
