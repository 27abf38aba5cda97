"""Accounts: who may sign in, by what, and where they are signed in.

Edges show what a visitor brings; this decides. Always true: a wrong name, a wrong password and an account without one
are the same answer after the same time; no secret is stored, and a secret that was made is told once.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.account import (
    LINK_LASTS,
    TOKEN_PREFIX,
    ApiToken,
    Fresh,
    check_password,
    checked_scopes,
    clean_name,
    digest,
    is_loopback,
    new_secret,
)
from palaver.domain.errors import LimitReached, NotAllowed, NotFound, SignInRefused, WrongPassword
from palaver.domain.person import Role
from palaver.domain.text import storable
from palaver.services.accounts import sign_in
from palaver.services.accounts.passkeys import Passkeys
from palaver.services.accounts.passwords import Passwords
from palaver.services.accounts.people import People
from palaver.services.argument_checks import check_count
from palaver.services.operation import Awaiting, operation
from palaver.storage import accounts, attempts, passkeys, people
from palaver.storage.engines.base import Conflict, Read, Write
from palaver.storage.timestamps import from_micros, to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.domain.account import Device, Signed, Ways
    from palaver.domain.ids import PersonId
    from palaver.domain.person import Person, Principal
    from palaver.services.accounts.sign_in import Visitor
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction, Work

MOST_TOKENS = 100  # of one person
LONGEST_TOKEN_DAYS = 3650
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WaysIn:
    """How anybody at all can sign in here."""

    password: bool
    passkey: bool


class Accounts(Awaiting):
    """Everything about signing in; passkeys and people have their own rooms."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._engine = store.engine
        self._clock = store.clock
        self._passwords = Passwords()
        self.passkeys = Passkeys(store.engine, store.clock)

    def people_seen_by(self, principal: Principal) -> People:
        """Everybody, as an owner sees and changes them; refused to others."""
        return People(self._engine, self._clock, principal)

    # -- the first steps -----------------------------------------------------------------------------------

    async def owner_link(self) -> str:
        """The secret of a new link that signs the owner in, once and soon; the terminal shows it."""
        owner = await self._store.aio.owner()
        secret = new_secret()
        now = self._now()

        def run(tx: Transaction) -> None:
            accounts.open_account(tx, owner, now)
            accounts.add_link(tx, owner.id, digest(secret), now, LINK_LASTS)

        await self._engine.arun(Write(run))
        return secret

    @operation
    def owner_is_set_up(self) -> Work[bool]:
        """Whether an owner can sign in without a link: by a password or a passkey."""
        return Read(accounts.owner_has_a_way)

    async def may_bind(self, host: str) -> bool:
        """Whether a server may listen there: beyond this machine only when an owner has a password or a passkey."""
        return is_loopback(host) or await self.owner_is_set_up()

    @operation
    def ways_in(self, site: str) -> Work[WaysIn]:
        """How anybody at all can sign in at a host."""
        return Read(lambda tx: WaysIn(password=accounts.any_password(tx), passkey=passkeys.any_for(tx, storable(site))))

    # -- signing in ----------------------------------------------------------------------------------------

    async def sign_in_by_link(self, link: str, visitor: Visitor) -> Fresh[Person]:
        """Sign in whoever has this link, and use it up; the secret is for the cookie."""
        limits = sign_in.by_address(visitor)
        await sign_in.count(self._engine, self._clock, limits)
        secret = new_secret()
        now = self._now()

        def run(tx: Transaction) -> Person:
            person = accounts.use_link(tx, digest(link), now)
            if person is None:
                raise SignInRefused("this link has been used already, or has expired; ask for another", way="link")
            sign_in.begin(tx, person, "link", visitor, secret, now)
            attempts.take_back(tx, limits)
            return person

        return Fresh(await self._engine.arun(Write(run)), secret)

    async def sign_in_by_password(self, name: str, password: str, visitor: Visitor) -> Fresh[Person]:
        """Sign in by name and password; the secret is for the cookie."""
        limits = sign_in.by_address(visitor) | sign_in.by_name(name)
        await sign_in.count(self._engine, self._clock, limits)
        found = await self._engine.arun(Read(lambda tx: accounts.credentials(tx, storable(name))))
        hashed = found.password if found else None
        if not await self._passwords.matches(hashed, password) or found is None:
            raise SignInRefused("this name and this password do not go together", way="password")
        person = found.person
        secret = new_secret()
        now = self._now()

        def run(tx: Transaction) -> None:
            if accounts.password_of(tx, person.id) != hashed:  # it was changed while it was being checked
                raise SignInRefused("this name and this password do not go together", way="password")
            sign_in.begin(tx, person, "password", visitor, secret, now)
            attempts.take_back(tx, limits)

        await self._engine.arun(Write(run))
        return Fresh(person, secret)

    # -- who asks ------------------------------------------------------------------------------------------

    async def by_cookie(self, secret: str) -> Signed | None:
        """Whoever is signed in by this."""
        if not secret:
            return None
        now = self._now()
        found = await self._engine.arun(Read(lambda tx: accounts.signed_in(tx, digest(secret), now)))
        if found is None:
            return None
        signed, tell = found
        if tell:
            await self._engine.arun(Write(lambda tx: accounts.seen(tx, signed.id, now)))
        return signed

    async def by_token(self, secret: str) -> Signed | None:
        """Whose token this is."""
        if not secret.startswith(TOKEN_PREFIX):
            return None
        now = self._now()
        found = await self._engine.arun(Read(lambda tx: accounts.token_bearer(tx, digest(secret), now)))
        if found is None:
            return None
        signed, tell = found
        if tell:
            await self._engine.arun(Write(lambda tx: accounts.used(tx, signed.id, now)))
        return signed

    @operation
    def still_signed_in(self, signed: Signed) -> Work[bool]:
        """Whether a sign-in or a token that was good a while ago still is: what lasts long asks from time to time."""
        return Read(lambda tx: accounts.still_signed_in(tx, signed, self._now()))

    # -- one's own -----------------------------------------------------------------------------------------

    @operation
    def ways(self, person_id: PersonId) -> Work[Ways]:
        """How somebody can sign in."""
        return Read(lambda tx: accounts.ways(tx, person_id))

    @operation
    def rename(self, person_id: PersonId, name: str) -> Work[Person]:
        """Give yourself another name, by which you also sign in."""
        clean = clean_name(name)

        def run(tx: Transaction) -> Person:
            accounts.check_exists(tx, person_id)
            accounts.rename(tx, person_id, clean)
            return _known(tx, person_id)

        return Write(run)

    async def change_password(self, signed: Signed, current: str | None, new: str) -> None:
        """Give yourself a password; who has one must know it. You are signed out everywhere else."""
        person = signed.person
        check_password(new, person.name)
        before = await self._engine.arun(Read(lambda tx: accounts.password_of(tx, person.id)))
        limits = sign_in.by_name(person.name)
        if before is not None:
            await sign_in.count(self._engine, self._clock, limits)
            if not await self._passwords.matches(before, current or ""):
                raise WrongPassword("current: this is not your password")
        hashed = await self._passwords.hash(new)

        def run(tx: Transaction) -> None:
            if not accounts.set_password(tx, person.id, hashed, instead_of=before):
                raise WrongPassword("current: your password was changed meanwhile")
            accounts.sign_out_everywhere(tx, person.id, but=signed.id)
            if before is not None:
                attempts.take_back(tx, limits)

        await self._engine.arun(Write(run))

    async def give_password(self, person_id: PersonId, new: str) -> None:
        """Give somebody a password, as whoever runs this gateway may; they are signed out everywhere.

        The terminal alone offers this: on the page nobody sets another's password.
        """
        person = await self._engine.arun(Read(lambda tx: _may_sign_in(tx, person_id)))
        check_password(new, person.name)
        hashed = await self._passwords.hash(new)
        now = self._now()

        def run(tx: Transaction) -> None:
            accounts.open_account(tx, _may_sign_in(tx, person_id), now)
            if not accounts.set_password(tx, person_id, hashed, instead_of=accounts.password_of(tx, person_id)):
                raise Conflict  # they have just changed it themselves
            accounts.sign_out_everywhere(tx, person_id)

        await self._engine.arun(Write(run))

    @operation
    def devices(self, person_id: PersonId) -> Work[Sequence[Device]]:
        """Where somebody is signed in, the latest first."""
        return Read(lambda tx: accounts.devices(tx, person_id, self._now()))

    @operation
    def sign_out(self, person_id: PersonId, device_id: str) -> Work[None]:
        """End one of somebody's sign-ins."""
        return Write(lambda tx: _there(accounts.sign_out(tx, person_id, storable(device_id)), "device", device_id))

    @operation
    def sign_out_everywhere(self, person_id: PersonId) -> Work[None]:
        """End all of somebody's sign-ins; their tokens stay, which are taken back one by one."""
        return Write(lambda tx: accounts.sign_out_everywhere(tx, person_id))

    # -- tokens --------------------------------------------------------------------------------------------

    @operation
    def tokens(self, person_id: PersonId) -> Work[Sequence[ApiToken]]:
        """Somebody's tokens, the latest first."""
        return Read(lambda tx: accounts.tokens(tx, person_id))

    @operation
    def create_token(
        self, person: Person, name: str, scopes: Iterable[str], days: int | None = None
    ) -> Work[Fresh[ApiToken]]:
        """A token for a program, good for so many days or until it is taken back; its secret is told here only."""
        check_count("expires_in_days", days, most=LONGEST_TOKEN_DAYS)
        now = self._now()
        ends = None if days is None else now + days * _DAY
        token = ApiToken(
            id=f"tok_{secrets.token_hex(6)}",
            name=clean_name(name),
            scopes=checked_scopes(scopes, person.role),
            created_at=from_micros(now),
            used_at=None,
            expires_at=None if ends is None else from_micros(ends),
        )
        secret = TOKEN_PREFIX + new_secret()

        def run(tx: Transaction) -> Fresh[ApiToken]:
            accounts.check_exists(tx, person.id)
            if len(accounts.tokens(tx, person.id)) >= MOST_TOKENS:
                raise LimitReached(
                    f"you have {MOST_TOKENS} tokens already; take one back first", what="tokens", limit=MOST_TOKENS
                )
            accounts.add_token(tx, person.id, token, digest(secret), now, ends)
            return Fresh(token, secret)

        return Write(run)

    @operation
    def revoke_token(self, person_id: PersonId, token_id: str) -> Work[None]:
        """Take a token back; from now on it is worthless."""
        return Write(lambda tx: _there(accounts.revoke_token(tx, person_id, storable(token_id)), "token", token_id))

    # -- shared by the above -------------------------------------------------------------------------------

    def _now(self) -> int:
        return to_micros(self._clock.now())


def _known(tx: Transaction, person_id: PersonId) -> Person:
    resident = people.get(tx, person_id)
    if resident is None:
        raise NotFound("there is no such person")
    return resident.person


def _may_sign_in(tx: Transaction, person_id: PersonId) -> Person:
    person = _known(tx, person_id)
    if person.role is Role.GUEST:
        raise NotAllowed(f"{person.name} is a guest, and guests cannot sign in; make them a member first")
    return person


def _there(done: bool, what: str, identity: str) -> None:
    if not done:
        raise NotFound(f"there is no {what} {identity}")
