"""Channels and live clients.

A channel follows one conversation for all clients that are interested in it, so that every change is read once. It
remembers the open turns, drafts and recent deliveries of its conversation, so that it can send them to a client that
joins. A client takes its items at its own pace, from a queue of limited length.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from dataclasses import field
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read
from palaver.core.errors import SessionNotFound, StoreError
from palaver.core.ids import PersonId, TurnId
from palaver.core.recent_entries import RecentEntries
from palaver.live.feed_events import (
    AnswerAssembly,
    DeliveryChanged,
    DraftGrew,
    EventAppended,
    FeedItem,
    NoticeSent,
    TurnChanged,
)
from palaver.people import table as people
from palaver.people.model import Principal, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.live.feed import Feed
    from palaver.sessions.delivery import DeliveryStatus
    from palaver.sessions.model import SessionSummary
    from palaver.sessions.store import SessionStore
    from palaver.sessions.turn import Turn

MAX_QUEUED_ITEMS: Final = 2000  # of one client; a client that falls further behind is closed
MAX_TAKEN_ITEMS: Final = 20  # at once
PAGE_SIZE: Final = 200  # events in one read
_MAX_REMEMBERED = 100  # ended turns, and deliveries, of one channel
# A channel reads for several people, each of whom has been checked.
_GATEWAY_PRINCIPAL = Principal(PersonId(""), Role.OWNER)

# Pauses between two pieces of a draft: the more clients follow it, the more text goes into each piece.
DRAFT_PAUSE_PER_CLIENT_SECONDS = 0.0004
MAX_DRAFT_PAUSE_SECONDS = 0.2

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class SessionChanged:
    """A session that this client may see is new or has changed."""

    summary: SessionSummary


@dataclass(frozen=True, slots=True, eq=False)
class SessionRemoved:
    """A session was deleted, or this client may no longer see it."""

    session_id: str


@dataclass(frozen=True, slots=True, eq=False)
class ListsChanged:
    """Some sessions may have changed, and it is not known which."""


@dataclass(frozen=True, slots=True, eq=False)
class FollowedItem:
    session_id: str
    item: FeedItem
    person_names: Mapping[PersonId, str] = field(default_factory=dict)  # of the people who made the change


@dataclass(frozen=True, slots=True, eq=False)
class FollowCursor:
    """This client follows a conversation from here on. There is nothing to show, but it can resume from here."""

    session_id: str
    seq: int


LiveItem = SessionChanged | SessionRemoved | ListsChanged | FollowedItem | FollowCursor


class LiveClient:
    """An open page: the queue of items that it has not taken yet."""

    def __init__(self, principal: Principal, *, everything: bool) -> None:
        self.principal = principal
        self.everything = everything  # it sees the sessions of all people
        self._queue: list[LiveItem] = []  # not a deque, of which an empty one takes 600 bytes; so does an event
        self._change = asyncio.Event()  # of the queue
        self._is_closed = False

    def can_see(self, members: frozenset[PersonId]) -> bool:
        """Return whether the client may see a session whose audience has these members."""
        return self.everything or self.principal.person_id in members

    def send(self, item: LiveItem) -> None:
        """Queue an item. A client whose queue is full is closed."""
        if len(self._queue) >= MAX_QUEUED_ITEMS:
            self.close()
        if not self._is_closed:
            self._queue.append(item)
            self._change.set()

    async def wait_for_room(self) -> None:
        """Wait until the client has taken most of its items."""
        while len(self._queue) > PAGE_SIZE:
            self._change.clear()
            await self._change.wait()

    def close(self) -> None:
        self._is_closed = True
        self._queue.clear()
        self._change.set()

    async def take_items(self) -> list[LiveItem]:
        """Wait for items and return some that have come; none once the client is closed or the server stops."""
        while not self._queue and not self._is_closed:
            self._change.clear()
            await self._change.wait()
        items = self._queue[:MAX_TAKEN_ITEMS]
        del self._queue[:MAX_TAKEN_ITEMS]
        self._change.set()
        return items


class _Subscription:
    """A client in a channel, and how far it has read the log."""

    def __init__(self, client: LiveClient, seq: int, ended_turn_ids: frozenset[str]) -> None:
        self.client = client
        self._seq = seq
        self._ended_turn_ids = ended_turn_ids  # the client already knows that they ended; the channel may not yet

    def send(self, followed: FollowedItem) -> None:
        """Send an item, unless the client already has it."""
        item = followed.item
        if isinstance(item, EventAppended):
            if item.event.seq <= self._seq:
                return
            self._seq = item.event.seq
        elif not isinstance(item, DeliveryChanged) and _get_turn_id(item) in self._ended_turn_ids:
            return
        self.client.send(followed)


def _get_turn_id(item: TurnChanged | DraftGrew | NoticeSent) -> str:
    return item.turn.id if isinstance(item, TurnChanged) else item.turn_id


class Channel:
    """Follows one conversation for all clients that follow it."""

    def __init__(self, session_id: str, seq: int, oldest_open_seq: int | None, feed: Feed, store: SessionStore) -> None:
        self.session_id = session_id
        self.seq = seq  # of the last event that was sent
        # The channel reads from before the message of the oldest open turn: a later turn may already have ended.
        self._after = seq if oldest_open_seq is None else min(seq, oldest_open_seq - 1)
        self.subscriptions: dict[LiveClient, _Subscription] = {}
        self._feed = feed
        self._store = store
        self._open_turns: dict[str, Turn] = {}
        self._ended_turns: RecentEntries[str, Turn] = RecentEntries(_MAX_REMEMBERED)
        self._answers: dict[TurnId, AnswerAssembly] = {}  # of the open turns that have a draft
        self._deliveries: OrderedDict[str, DeliveryStatus] = OrderedDict()  # a changed one keeps its place
        self._on_end: Callable[[Channel], None] = lambda _: None
        self._task: asyncio.Task[None] | None = None

    def start(self, on_end: Callable[[Channel], None]) -> None:
        """Start to follow the conversation; call `on_end` when that ends."""
        self._on_end = on_end
        self._task = asyncio.create_task(self._follow(), name=f"palaver-live-{self.session_id}")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        try:
            followed = self._feed.follow(
                _GATEWAY_PRINCIPAL,
                self.session_id,
                after=self._after,
                everything=True,
                recent_deliveries=_MAX_REMEMBERED,
                get_draft_pause=self._get_draft_pause,
            )
            async with contextlib.aclosing(followed) as items:
                async for item in items:
                    await self._handle(item)
        except SessionNotFound:  # `LiveClients` tells the clients when it finds that the session was deleted
            log.debug("live_session_deleted", extra={"session": self.session_id})
        except StoreError as error:
            log.warning("live_channel_failed", extra={"session": self.session_id, "error": str(error)})
            self._close_clients()
        except Exception:  # whatever it is, no page may be left open without updates
            log.exception("live_channel_failed", extra={"session": self.session_id})
            self._close_clients()
        finally:
            self._on_end(self)

    def _get_draft_pause(self) -> float:
        return min(len(self.subscriptions) * DRAFT_PAUSE_PER_CLIENT_SECONDS, MAX_DRAFT_PAUSE_SECONDS)

    def _close_clients(self) -> None:
        """Close all clients: they come back with their cursors and get what they missed."""
        for client in self.subscriptions:
            client.close()

    async def _handle(self, item: FeedItem) -> None:
        """Remember an item for later clients, and send it to the current ones."""
        names: Mapping[PersonId, str] = {}
        match item:
            case EventAppended(event):
                if (person_id := event.person_id) is not None:  # the current name: people rename themselves
                    names = await self._store.engine.arun(
                        Read(lambda tx: people.load_names(tx, [person_id]), is_quick=True)
                    )
                self.seq = max(self.seq, event.seq)
            case TurnChanged(turn):
                self._remember_turn(turn)
            case DraftGrew(turn_id):
                self._answers.setdefault(turn_id, AnswerAssembly(turn_id)).grow_draft(item)
            case DeliveryChanged(delivery):
                self._deliveries[delivery.id] = delivery
                while len(self._deliveries) > _MAX_REMEMBERED:
                    self._deliveries.popitem(last=False)
        followed = FollowedItem(self.session_id, item, names)
        for subscription in list(self.subscriptions.values()):
            subscription.send(followed)

    def _remember_turn(self, turn: Turn) -> None:
        if not turn.state.has_ended:
            self._open_turns[turn.id] = turn
            return
        self._open_turns.pop(turn.id, None)
        self._answers.pop(turn.id, None)
        self._ended_turns.remember(turn.id, turn)

    def join(self, client: LiveClient, seq: int, known_turns: Sequence[Turn]) -> None:
        """Send the current state to a client, and everything that follows.

        The client has read the log up to `seq`, which is not before the channel's own. It knows some turns from before
        it was cut off; `known_turns` holds their state in the store when the client last read it.
        """
        newest = (self._ended_turns.get(turn.id, turn) for turn in known_turns if turn.id not in self._open_turns)
        ended = [turn for turn in newest if turn.state.has_ended]
        items: list[FeedItem] = [TurnChanged(turn) for turn in (*ended, *self._open_turns.values())]
        for turn_id, answer in self._answers.items():
            items.append(DraftGrew(turn_id, tuple(answer.draft.pieces), replaces_draft=True))
        items += map(DeliveryChanged, self._deliveries.values())
        for item in items:
            client.send(FollowedItem(self.session_id, item))
        self.subscriptions[client] = _Subscription(client, seq, frozenset(turn.id for turn in ended))
