"""Accounts: who can sign in, with what, and where they are signed in.

The web passes on what a visitor sends; this module decides. Always true: a wrong name, a wrong password and an account
without a password get the same answer after the same time; only hashes of secrets are stored, and a new secret is shown
once.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from palaver.accounts import link_requests, linking, pairing
from palaver.accounts.passkeys import Passkeys
from palaver.accounts.people import People, check_can_sign_in
from palaver.accounts.sign_in import Passwords, SignIns, Visitor
from palaver.accounts.wire import LinkedAccountJson
from palaver.core.clock import check_timezone
from palaver.core.engines.base import Conflict, Engine, Read, Transaction, Work, Write
from palaver.core.errors import LimitReached, NotFound, SignInFailed, StoreError, WrongPassword
from palaver.core.operation import AsyncRunner, check_count, operation, read_operation, write_operation
from palaver.core.text import make_storable
from palaver.people import account_table as accounts, linked_rows, sign_in_table as passkeys, table as people
from palaver.people.model import (
    ATTEMPTS_PER_DEVICE,
    SIGN_IN_LINK_LIFETIME,
    TOKEN_PREFIX,
    ApiToken,
    Device,
    NewSecret,
    Person,
    Principal,
    SetupStep,
    SignedInPerson,
    check_password,
    clean_person_name,
    generate_secret,
    hash_secret,
    is_loopback,
    parse_scopes,
)
from palaver.people.pairing_table import LINK_CODE_LIFETIME
from palaver.sessions.conversations import build_person_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from palaver.accounts.link_requests import LinkResult
    from palaver.accounts.wire import PendingLinkJson
    from palaver.core.ids import PersonId
    from palaver.people.account_table import AccountProgress
    from palaver.sessions.store import SessionStore

    Find = Callable[[Transaction, str, int], tuple[SignedInPerson, bool] | None]  # by the digest of a credential
    Mark = Callable[[Transaction, str, int], None]  # writes when a credential was used

MAX_TOKENS_PER_PERSON: Final = 100
MAX_TOKEN_DAYS: Final = 3650
RETRY_SECONDS: Final = 5.0  # after uses could not be stored; those that come meanwhile are written together
_MAX_PENDING_USES: Final = 10_000

log = logging.getLogger(__name__)


class LastUses:
    """Stores when sign-ins and tokens were last used, behind the requests: none of them waits for it or fails with it.

    The uses that are not stored yet, one for each credential, are written in one transaction at a time.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pending: dict[tuple[Mark, str], int] = {}
        self._task: asyncio.Task[None] | None = None

    def record(self, mark: Mark, credential_id: str, used_at: int) -> None:
        if len(self._pending) < _MAX_PENDING_USES:
            self._pending[mark, credential_id] = used_at
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write(), name="palaver-last-uses")

    async def _write(self) -> None:
        while self._pending:
            uses, self._pending = self._pending, {}
            try:
                await self._engine.arun(Write(partial(_mark_all, uses)))
            except StoreError as error:  # the disk is full, or the database is locked: a later use is written
                log.info("last_uses_not_written", extra={"count": len(uses), "error": error.code})
                await asyncio.sleep(RETRY_SECONDS)


def _mark_all(uses: dict[tuple[Mark, str], int], tx: Transaction) -> None:
    for (mark, credential_id), used_at in uses.items():
        mark(tx, credential_id, used_at)


class Accounts(SignIns):
    """Signing in, credentials and tokens. Passkeys and the administration of people have classes of their own."""

    def __init__(self, store: SessionStore) -> None:
        super().__init__(store.engine, store.clock)
        self._store = store
        self._last_uses = LastUses(store.engine)
        self._passwords = Passwords()
        self.passkeys = Passkeys(store.engine, store.clock)

    def open_people(self, principal: Principal) -> People[AsyncRunner]:
        """Open the administration of people; refused to anyone but an owner."""
        return People(self._runner, self._store, principal)

    # -- the owner -----------------------------------------------------------------------------------------

    async def create_owner_link(self) -> str:
        """Create a link that signs the owner in once and expires soon; returns its secret, for the terminal."""
        owner = await self._store.aio.get_owner()
        secret = generate_secret()
        now = self._now()

        def run(tx: Transaction) -> None:
            accounts.open_account(tx, owner, now)
            accounts.add_sign_in_link(tx, owner.id, hash_secret(secret), now, SIGN_IN_LINK_LIFETIME)

        await self._engine.arun(Write(run))
        return secret

    @read_operation
    def can_owner_sign_in(self, tx: Transaction) -> bool:
        return accounts.can_owner_sign_in_without_link(tx)

    async def can_listen_on(self, host: str) -> bool:
        """Return whether a server may listen on a host: beyond this machine only if an owner can sign in."""
        return is_loopback(host) or await self.can_owner_sign_in()

    @read_operation
    def get_sign_in_options(self, tx: Transaction, site: str) -> tuple[bool, bool]:
        """Return whether anyone has a password, and whether anyone has a passkey for this host."""
        return accounts.has_any_password(tx), passkeys.has_any(tx, make_storable(site))

    # -- signing in ----------------------------------------------------------------------------------------

    async def sign_in_by_link(self, link: str, visitor: Visitor) -> NewSecret[Person]:
        """Sign in with a link, which then no longer works."""
        await self._count_attempt(visitor.limits)

        def use_link(tx: Transaction, now: int) -> Person:
            person = accounts.use_sign_in_link(tx, hash_secret(link), now)
            if person is None:
                raise SignInFailed("This link was already used or has expired. Ask for a new one.", method="link")
            return person

        return await self._finish_sign_in("link", visitor, visitor.limits, use_link)

    async def sign_in_by_password(self, name: str, password: str, visitor: Visitor) -> NewSecret[Person]:
        limits = await self._get_password_limits(name, visitor)
        await self._count_attempt(limits)
        found, hashed = await self._engine.arun(Read(lambda tx: accounts.find_credentials(tx, make_storable(name))))
        if not await self._passwords.verify(hashed, password, next(iter(limits))) or found is None:
            raise SignInFailed("Wrong name or password.", method="password")
        person = found

        def check_is_current(tx: Transaction, _now: int) -> Person:
            if accounts.find_password_hash(tx, person.id) != hashed:  # changed while it was being verified
                raise SignInFailed("Wrong name or password.", method="password")
            return person

        return await self._finish_sign_in("password", visitor, limits, check_is_current)

    # -- authentication ------------------------------------------------------------------------------------

    async def find_by_cookie(self, secret: str) -> SignedInPerson | None:
        return await self._find(secret, accounts.find_sign_in, accounts.mark_sign_in_seen) if secret else None

    async def find_by_token(self, secret: str) -> SignedInPerson | None:
        is_token = secret.startswith(TOKEN_PREFIX)
        return await self._find(secret, accounts.find_token, accounts.mark_token_used) if is_token else None

    async def _find(self, secret: str, find: Find, mark: Mark) -> SignedInPerson | None:
        now = self._now()
        match = await self._engine.arun(Read(lambda tx: find(tx, hash_secret(secret), now), is_quick=True))
        if match is None:
            return None
        signed_in, is_due = match
        if is_due:
            self._last_uses.record(mark, signed_in.credential_id, now)
        return signed_in

    @operation
    def is_still_signed_in(self, signed_in: SignedInPerson) -> Work[bool]:
        """Return whether a sign-in or token is still valid; long-lived connections ask from time to time."""
        return Read(lambda tx: accounts.is_still_signed_in(tx, signed_in, self._now()), is_quick=True)

    # -- a person's own account ----------------------------------------------------------------------------

    @read_operation
    def load_progress(self, tx: Transaction, person_id: PersonId) -> AccountProgress:
        return accounts.load_progress(tx, person_id)

    @write_operation
    def finish_welcome(self, tx: Transaction, person_id: PersonId) -> None:
        """Don't offer it again, whether the person has chosen something or not."""
        accounts.mark_welcomed(tx, person_id)

    @write_operation
    def set_step_skipped(self, tx: Transaction, person_id: PersonId, step: SetupStep, *, is_skipped: bool) -> None:
        accounts.set_step_skipped(tx, person_id, step, is_skipped=is_skipped)

    @write_operation
    def rename(self, tx: Transaction, person_id: PersonId, name: str) -> Person:
        """Change a person's name, which is also the name they sign in with."""
        clean = clean_person_name(name)
        accounts.check_exists(tx, person_id)
        accounts.rename_person(tx, person_id, clean)
        return people.get_person(tx, person_id)

    @write_operation
    def set_timezone(self, tx: Transaction, person_id: PersonId, timezone: str | None) -> Person:
        """Set a person's time zone by its IANA name; None: the gateway's."""
        people.set_timezone(tx, person_id, None if timezone is None else check_timezone(timezone))
        return people.get_person(tx, person_id)

    async def change_password(self, signed_in: SignedInPerson, current: str | None, new: str) -> None:
        """Set the person's own password and sign them out everywhere else.

        If they have a password already, they must give it.
        """
        person = signed_in.person
        check_password(new, person.name)
        old_hash = await self._engine.arun(Read(lambda tx: accounts.find_password_hash(tx, person.id)))
        key = f"sign-in {signed_in.credential_id}"
        limits = {key: ATTEMPTS_PER_DEVICE}
        if old_hash is not None:
            await self._count_attempt(limits)
            if not await self._passwords.verify(old_hash, current or "", key):
                raise WrongPassword("current: wrong password.")
        hashed = await self._passwords.hash(new, key)

        def run(tx: Transaction) -> None:
            if not accounts.set_password(tx, person.id, hashed, expected_hash=old_hash):
                raise WrongPassword("current: your password was changed in the meantime. Try again.")
            accounts.sign_out_everywhere(tx, person.id, except_id=signed_in.credential_id)
            if old_hash is not None:
                passkeys.uncount_attempt(tx, limits)

        await self._engine.arun(Write(run))

    async def set_password(self, person_id: PersonId, new: str) -> None:
        """Set another person's password and sign them out everywhere.

        Only the terminal offers this; on the page, not even an owner can set another person's password.
        """
        person = await self._engine.arun(Read(lambda tx: _get_person_who_can_sign_in(tx, person_id)))
        check_password(new, person.name)
        hashed = await self._passwords.hash(new, f"person {person_id}")
        now = self._now()

        def run(tx: Transaction) -> None:
            accounts.open_account(tx, _get_person_who_can_sign_in(tx, person_id), now)
            old_hash = accounts.find_password_hash(tx, person_id)
            if not accounts.set_password(tx, person_id, hashed, expected_hash=old_hash):
                raise Conflict  # the person changed it at the same time
            accounts.sign_out_everywhere(tx, person_id)

        await self._engine.arun(Write(run))

    @read_operation
    def list_devices(self, tx: Transaction, person_id: PersonId) -> Sequence[Device]:
        return accounts.list_devices(tx, person_id, self._now())

    @write_operation
    def sign_out(self, tx: Transaction, person_id: PersonId, device_id: str, *, keeps_links: bool = False) -> None:
        """Sign a person out on one device; sign-in links that it got stop working, unless they are kept."""
        if not accounts.sign_out(tx, person_id, make_storable(device_id), keeps_links=keeps_links):
            raise NotFound(f"There is no device {device_id}.")

    @write_operation
    def sign_out_everywhere(self, tx: Transaction, person_id: PersonId) -> None:
        """Sign a person out on every device. Their API tokens stay valid; `revoke_token` ends one."""
        accounts.sign_out_everywhere(tx, person_id)

    # -- linked accounts -----------------------------------------------------------------------------------

    @read_operation
    def load_links(self, tx: Transaction, person: Person) -> tuple[list[LinkedAccountJson], PendingLinkJson | None]:
        chat_accounts = [
            LinkedAccountJson(
                platform=str(each.platform),
                account=each.account,
                is_linked=linked_rows.find_origin(tx, each.platform, each.account) is not None,
            )
            for each in people.list_chat_accounts(tx, person.id)
        ]
        return chat_accounts, link_requests.find_pending(tx, build_person_source(person), person, self._clock.now())

    @write_operation
    def create_link_code(self, tx: Transaction, caller: SignedInPerson) -> tuple[str, datetime]:
        """Create a code to send from another account, and return until when it works; the one before ends now, and it
        ends with the sign-in.
        """
        now = self._clock.now()
        current = people.get_person(tx, caller.person.id)
        source = build_person_source(current)
        code = link_requests.create_link_code(tx, current.id, source, now, issued_by=caller.credential_id)
        return code, now + LINK_CODE_LIFETIME

    @write_operation
    def use_link_code(self, tx: Transaction, person: Person, text: str) -> LinkResult:
        """Use a code of another account, or `confirm` or `cancel` the link that waits."""
        current = people.get_person(tx, person.id)
        source = build_person_source(current)
        return pairing.use_code(tx, text, source, current, self._store.config, self._clock.now())

    @write_operation
    def unlink_account(self, tx: Transaction, person: Person, account: str) -> None:
        """Take a chat account, `platform` or `platform:id`, out of the person. It gets back what it had."""
        current = people.get_person(tx, person.id)
        identity = linking.find_linked_account(tx, current.id, account)
        linking.unlink_account(tx, current, identity, self._store.config, self._clock.now())

    # -- tokens --------------------------------------------------------------------------------------------

    @read_operation
    def list_tokens(self, tx: Transaction, person_id: PersonId) -> Sequence[ApiToken]:
        return accounts.list_tokens(tx, person_id)

    @write_operation
    def create_token(
        self, tx: Transaction, person: Person, name: str, scopes: Iterable[str], days: int | None = None
    ) -> NewSecret[ApiToken]:
        """Create an API token, valid for some days or until it is revoked. Only this call returns its secret."""
        check_count("expires_in_days", days, maximum=MAX_TOKEN_DAYS)
        now = self._clock.now()
        token = ApiToken(
            id=f"tok_{secrets.token_hex(6)}",
            name=clean_person_name(name),
            scopes=parse_scopes(scopes, person.role),
            created_at=now,
            last_used_at=None,
            expires_at=None if days is None else now + timedelta(days=days),
        )
        secret = TOKEN_PREFIX + generate_secret()
        accounts.check_exists(tx, person.id)
        if len(accounts.list_tokens(tx, person.id)) >= MAX_TOKENS_PER_PERSON:
            raise LimitReached(
                f"You already have {MAX_TOKENS_PER_PERSON} tokens. Revoke one first.",
                what="tokens",
                limit=MAX_TOKENS_PER_PERSON,
            )
        accounts.add_token(tx, person.id, token, hash_secret(secret))
        return NewSecret(token, secret)

    @write_operation
    def revoke_token(self, tx: Transaction, person_id: PersonId, token_id: str) -> None:
        if not accounts.revoke_token(tx, person_id, make_storable(token_id)):
            raise NotFound(f"There is no token {token_id}.")


def _get_person_who_can_sign_in(tx: Transaction, person_id: PersonId) -> Person:
    row = people.find_by_id(tx, person_id)
    if row is None:
        raise NotFound(f"There is no person {person_id}.")
    check_can_sign_in(row.person)
    return row.person
