"""Sharing a conversation with people who have no account: a copy of it, opened with a secret link.

Always true: a copy never changes, whatever happens in its conversation; it is deleted with the conversation, when its
creator is removed, when it is revoked, or some days after it has expired. From its expiry on, the secret opens nothing.
Messages of several people are shared by owners only, however often they were copied to another conversation. Only the
creator and the owners can see the secret again. `sessions/share.py` decides what a copy contains.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import LimitReached, NotAllowed, OwnerRequired
from palaver.core.fair_slots import FairSlots
from palaver.core.operation import AsyncRunner, Operations, Page, check_count, read_operation, write_operation
from palaver.people import table as people
from palaver.people.model import Principal, Role, check_can_view_all, generate_secret
from palaver.sessions import log_table as events, shares_table as shares, table as sessions
from palaver.sessions.share import (
    MAX_SHARES_PER_PERSON,
    ConversationTooLong,
    Share,
    Sharer,
    build_shared_copy,
    check_expiry,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from palaver.core.ids import PersonId
    from palaver.sessions.events import Event
    from palaver.sessions.model import Session
    from palaver.sessions.store import SessionStore
    from palaver.sessions.table import SessionRow


MAX_SHARED_EVENTS: Final = 20_000
MAX_SHARED_BYTES: Final = 8_000_000  # of the log; calls of tools and their results, which are not shown, count too
EVENTS_PER_READ: Final = 200
MAX_CONCURRENT_COPIES: Final = 2
_GROUP_CONTENT: Final = "Only an owner can share a conversation of several people, or a copy of one."


class Shares(Operations[AsyncRunner]):
    def __init__(self, store: SessionStore) -> None:
        super().__init__(AsyncRunner(store.engine))
        self._store = store
        self._slots = FairSlots(MAX_CONCURRENT_COPIES, per_key=1, min_pause=0)

    async def create(
        self,
        principal: Principal,
        session_id: str,
        *,
        everything: bool = False,
        expires_at: datetime | None = None,
    ) -> Share:
        """Create a copy of a conversation as it is now. Without `expires_at`, its link works until it is revoked."""
        person_id = _find_owner(principal, everything=everything)
        secret = generate_secret()
        now = self._store.clock.now()
        expiry = check_expiry(expires_at, now)

        def get_session_row(tx: Transaction) -> SessionRow:
            row = sessions.get_visible(tx, session_id, person_id)
            _check_may_share(tx, principal, row)
            return row

        def collect(tx: Transaction) -> Callable[[], dict[str, Any]]:
            row = get_session_row(tx)
            log = list(_read_log(tx, row.no))
            if principal.role is not Role.OWNER and _has_messages_of_others(log, principal.person_id):
                raise OwnerRequired(_GROUP_CONTENT)
            name = people.load_names(tx, [principal.person_id]).get(principal.person_id, "")
            sharer = Sharer(principal.person_id, name)
            return partial(build_shared_copy, row.session.shown_title, log, _list_names(tx, row.session, log), sharer)

        async with self._slots.hold(principal.person_id):
            build_copy = await self._runner.run(Read(collect))
            # Not in a transaction: a long conversation takes a while, and other writers would wait.
            body = await asyncio.to_thread(build_copy)

        def add(tx: Transaction) -> Share:
            row = get_session_row(tx)  # again: meanwhile it may have been deleted
            return shares.add(tx, principal.person_id, row.no, secret, body, to_micros(now), expiry)

        return await self._runner.run(Write(add))

    @read_operation
    def get(self, tx: Transaction, principal: Principal, share_id: str, *, everything: bool = False) -> Share:
        """Return one of the shares that `list` lists."""
        return shares.get(tx, share_id, _find_owner(principal, everything=everything))

    @read_operation
    def list(
        self,
        tx: Transaction,
        principal: Principal,
        *,
        everything: bool = False,
        limit: int = shares.MAX_SHARES_PER_PAGE,
        cursor: str | None = None,
    ) -> Page[Share]:
        """List what this principal shares, or with `everything` what all people share, newest first."""
        check_count("limit", limit, maximum=shares.MAX_SHARES_PER_PAGE)
        return shares.list_shares(tx, _find_owner(principal, everything=everything), limit, cursor)

    @write_operation
    def set_expiry(
        self,
        tx: Transaction,
        principal: Principal,
        share_id: str,
        expires_at: datetime | None,
        *,
        everything: bool = False,
    ) -> Share:
        """Change when a link expires; None: never. A link that has expired works again until then."""
        person_id = _find_owner(principal, everything=everything)
        return shares.set_expiry(tx, share_id, person_id, check_expiry(expires_at, self._store.clock.now()))

    @write_operation
    def revoke(self, tx: Transaction, principal: Principal, share_id: str, *, everything: bool = False) -> None:
        """Delete a copy; its secret no longer works."""
        shares.revoke(tx, share_id, _find_owner(principal, everything=everything))

    @read_operation
    def open(self, tx: Transaction, secret: str) -> dict[str, Any]:
        """Return the copy that a secret opens; everyone who has the secret may, until it expires."""
        return shares.open_share(tx, secret, to_micros(self._store.clock.now()))


def _find_owner(principal: Principal, *, everything: bool) -> PersonId | None:
    """Return the person whose shares are meant; None: everybody's, which only an owner may ask for."""
    if everything:
        check_can_view_all(principal)
        return None
    return principal.person_id


def _check_may_share(tx: Transaction, principal: Principal, row: SessionRow) -> None:
    if principal.role is Role.GUEST:
        raise NotAllowed.say("share.no_guests", "Guests can't share conversations.")
    if principal.role is not Role.OWNER and shares.has_content_of_others(tx, row.no):
        raise OwnerRequired(_GROUP_CONTENT)
    if shares.count_shares(tx, principal.person_id) >= MAX_SHARES_PER_PERSON:
        raise LimitReached(
            f"You already share {MAX_SHARES_PER_PERSON} conversations. Stop sharing one first.",
            what="shares",
            limit=MAX_SHARES_PER_PERSON,
        )


def _has_messages_of_others(log: Sequence[Event], person_id: PersonId) -> bool:
    """Return whether others wrote here too: a person can continue their own conversation in a group."""
    return any(
        event.person_id not in {None, person_id} for event in log if event.message is not None and not event.hidden
    )


def _read_log(tx: Transaction, session_no: int) -> Iterator[Event]:
    """Return the whole log; raise `ConversationTooLong`, having read nothing, if a shared page can't be so long."""
    if events.is_larger_than(tx, session_no, 1, MAX_SHARED_EVENTS, MAX_SHARED_BYTES):
        raise ConversationTooLong(max_messages=MAX_SHARED_EVENTS, max_bytes=MAX_SHARED_BYTES)
    return events.iterate_events(tx, session_no, EVENTS_PER_READ)


def _list_names(tx: Transaction, session: Session, log: Sequence[Event]) -> list[str]:
    """List every name that is known of the people in a conversation; a shared copy must not contain them."""
    names = people.load_names(tx, (event.person_id for event in log if event.person_id is not None))
    authors = [event.message.author.name for event in log if event.message is not None and event.message.author]
    origin = session.origin
    return [*names.values(), *authors, *(name for name in (origin.user_name, origin.chat_name) if name)]
