"""Sharing a conversation with people who have no account: a copy as it is now, opened by a secret of its own.

Always true: a copy never changes, whatever happens in its conversation, and is gone with it or when it is taken back.
The secret is told once; only its hash is stored. What is in a copy is decided in `domain/share.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.domain.account import Fresh, digest, new_secret
from palaver.domain.errors import LimitReached, NotAllowed, OwnerOnly
from palaver.domain.person import Role, check_sees_everything
from palaver.domain.share import MOST_SHARES, Share, copied
from palaver.storage import events, sessions, shares, transcript_queries
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from palaver.domain.events import Event
    from palaver.domain.person import Principal
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction
    from palaver.storage.session_rows import SessionRow


class Shares:
    """Makes copies, opens them and takes them back."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._engine = store.engine

    async def make(self, principal: Principal, session_id: str, *, everything: bool = False) -> Fresh[Share]:
        """A copy of a conversation as it is now, and the secret that opens it."""
        if everything:
            check_sees_everything(principal)
        person = None if everything else principal.person_id
        secret = new_secret()
        now = to_micros(self._store.clock.now())

        def run(tx: Transaction) -> Share:
            found = sessions.seen(tx, session_id, person)
            _check_may_share(principal, found)
            if shares.count(tx, principal.person_id) >= MOST_SHARES:
                raise LimitReached(
                    f"you share {MOST_SHARES} conversations already; take one back first",
                    what="shares",
                    limit=MOST_SHARES,
                )
            log = list(_whole(tx, found))
            body = copied(found.session.title, log, _names(tx, found, log))
            return shares.add(tx, principal.person_id, found.no, digest(secret), body, now)

        return Fresh(await self._engine.arun(Write(run)), secret)

    async def of(self, principal: Principal) -> Sequence[Share]:
        """What somebody shares, newest first."""
        return await self._engine.arun(Read(lambda tx: shares.listed(tx, principal.person_id)))

    async def revoke(self, principal: Principal, share_id: str, *, everything: bool = False) -> None:
        """Take a copy back: its secret opens nothing any more."""
        if everything:
            check_sees_everything(principal)
        person = None if everything else principal.person_id
        await self._engine.arun(Write(lambda tx: shares.revoke(tx, share_id, person)))

    async def opened(self, secret: str) -> dict[str, Any]:
        """The copy that a secret opens, for whoever has it."""
        return await self._engine.arun(Read(lambda tx: shares.opened(tx, digest(secret))))


def _check_may_share(principal: Principal, found: SessionRow) -> None:
    if found.session.shared and principal.role is not Role.OWNER:
        raise OwnerOnly("only the owner of this gateway may share a conversation that several people speak in")
    if principal.role is Role.GUEST:
        raise NotAllowed("as a guest you may not share conversations")


def _whole(tx: Transaction, found: SessionRow) -> Iterator[Event]:
    after = 0
    while batch := events.log(tx, found.no, after=after, limit=1000):
        yield from batch
        after = batch[-1].seq


def _names(tx: Transaction, found: SessionRow, log: Sequence[Event]) -> list[str]:
    """How the people in a conversation are called, wherever that is known."""
    known = transcript_queries.names(tx, (event.person_id for event in log if event.person_id is not None))
    authors = [event.message.author.name for event in log if event.message is not None and event.message.author]
    place = found.session.origin
    owners = [found.session.origin.user_name, place.chat_name]
    return [*known.values(), *authors, *(name for name in owners if name)]
