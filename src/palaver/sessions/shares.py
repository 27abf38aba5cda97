"""Sharing a conversation with people who have no account: a copy of it, opened with a secret link.

Always true: a copy never changes, whatever happens in its conversation; it is deleted with the conversation, when its
creator is removed, when it is revoked, or some days after it has expired. From its expiry on, the secret opens nothing.
Messages of several people are shared by owners only, however often they were copied to another conversation. Only the
creator and the owners can see the secret again. `sessions/share.py` decides what a copy contains.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import LimitReached, NotAllowed, OwnerRequired
from palaver.core.fair_slots import FairSlots
from palaver.core.operation import Page, check_count
from palaver.core.texts import say
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
    from collections.abc import Iterator, Sequence
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


class Shares:
    """Creates, opens and revokes shared copies."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._engine = store.engine
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
        now = to_micros(self._store.clock.now())
        expiry = self._check_expiry(expires_at)

        def get_session_row(tx: Transaction) -> SessionRow:
            row = sessions.get_visible(tx, session_id, person_id)
            _check_may_share(tx, principal, row)
            return row

        def collect(tx: Transaction) -> _CopySource:
            row = get_session_row(tx)
            log = list(_read_log(tx, row.no))
            if principal.role is not Role.OWNER and _has_messages_of_others(log, principal.person_id):
                raise OwnerRequired(_GROUP_CONTENT)
            name = people.load_names(tx, [principal.person_id]).get(principal.person_id, "")
            sharer = Sharer(principal.person_id, name)
            return _CopySource(row.session.shown_title, log, _list_names(tx, row.session, log), sharer)

        async with self._slots.hold(principal.person_id):
            source = await self._engine.arun(Read(collect))
            # Not in a transaction: a long conversation takes a while, and other writers would wait.
            body = await asyncio.to_thread(build_shared_copy, source.title, source.log, source.names, source.sharer)

        def add(tx: Transaction) -> Share:
            row = get_session_row(tx)  # again: meanwhile it may have been deleted
            return shares.add(tx, principal.person_id, row.no, secret, body, now, expiry)

        return await self._engine.arun(Write(add))

    async def get(self, principal: Principal, share_id: str, *, everything: bool = False) -> Share:
        """Return one of the shares that `list` lists."""
        person_id = _find_owner(principal, everything=everything)
        return await self._engine.arun(Read(lambda tx: shares.get(tx, share_id, person_id)))

    async def list(
        self,
        principal: Principal,
        *,
        everything: bool = False,
        limit: int = shares.MAX_SHARES_PER_PAGE,
        cursor: str | None = None,
    ) -> Page[Share]:
        """List what this principal shares, or with `everything` what all people share, newest first."""
        check_count("limit", limit, maximum=shares.MAX_SHARES_PER_PAGE)
        person_id = _find_owner(principal, everything=everything)
        return await self._engine.arun(Read(lambda tx: shares.list_shares(tx, person_id, limit, cursor)))

    async def set_expiry(
        self, principal: Principal, share_id: str, expires_at: datetime | None, *, everything: bool = False
    ) -> Share:
        """Change when a link expires; None: never. A link that has expired works again until then."""
        person_id = _find_owner(principal, everything=everything)
        expiry = self._check_expiry(expires_at)
        return await self._engine.arun(Write(lambda tx: shares.set_expiry(tx, share_id, person_id, expiry)))

    def _check_expiry(self, expires_at: datetime | None) -> int | None:
        checked = check_expiry(expires_at, self._store.clock.now())
        return None if checked is None else to_micros(checked)

    async def revoke(self, principal: Principal, share_id: str, *, everything: bool = False) -> None:
        """Delete a copy; its secret no longer works."""
        person_id = _find_owner(principal, everything=everything)
        await self._engine.arun(Write(lambda tx: shares.revoke(tx, share_id, person_id)))

    async def open(self, secret: str) -> dict[str, Any]:
        """Return the copy that a secret opens; everyone who has the secret may, until it expires."""
        now = to_micros(self._store.clock.now())
        return await self._engine.arun(Read(lambda tx: shares.open_share(tx, secret, now)))


_GROUP_CONTENT = "Only an owner can share a conversation of several people, or a copy of one."


@dataclass(frozen=True, slots=True)
class _CopySource:
    title: str | None
    log: Sequence[Event]
    names: Sequence[str]
    sharer: Sharer


def _find_owner(principal: Principal, *, everything: bool) -> PersonId | None:
    """Return the person whose shares are meant; None: everybody's, which only an owner may ask for."""
    if everything:
        check_can_view_all(principal)
        return None
    return principal.person_id


def _check_may_share(tx: Transaction, principal: Principal, row: SessionRow) -> None:
    if principal.role is Role.GUEST:
        raise NotAllowed(say("share.no_guests", "Guests can't share conversations."))
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
