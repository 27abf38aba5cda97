"""Passkeys: keys that people keep in their devices, and signing in with them (WebAuthn).

A passkey belongs to one host and is found by the device itself, so nobody has to say who they are first. Always true:
a challenge is answered once and soon, by whoever was asked; the device has made sure of the human (by a PIN, a finger,
a face), because the key stands for the password too.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import secrets
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from palaver.domain.account import Fresh, Passkey, clean_name, digest, new_secret
from palaver.domain.errors import InvalidInput, LimitReached, NotFound, SignInRefused, WrongPasskey
from palaver.domain.text import is_storable, storable
from palaver.services.accounts import sign_in
from palaver.services.operation import Awaiting, operation
from palaver.storage import accounts, attempts, passkeys
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import from_micros, to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.domain.clock import Clock
    from palaver.domain.ids import PersonId
    from palaver.domain.person import Person
    from palaver.services.accounts.sign_in import Visitor
    from palaver.storage.engines.base import Engine, Transaction, Work

    Credential = Mapping[str, Any]

T = TypeVar("T")

MOST_PASSKEYS = 50  # of one person
_TIMEOUT = 5 * 60 * 1000  # milliseconds, as long as a challenge lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where the browser believes to be."""

    host: str  # without a port: what a passkey belongs to
    origin: str  # scheme, host and port


class Passkeys(Awaiting):
    """Everybody's passkeys."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    # -- one's own -----------------------------------------------------------------------------------------

    @operation
    def list(self, person_id: PersonId) -> Work[Sequence[Passkey]]:
        """Somebody's passkeys, the latest first."""
        return Read(lambda tx: passkeys.listed(tx, person_id))

    @operation
    def remove(self, person_id: PersonId, passkey_id: str) -> Work[None]:
        """Forget a passkey; from now on it is worthless."""

        def run(tx: Transaction) -> None:
            if not passkeys.remove(tx, person_id, storable(passkey_id)):
                raise NotFound(f"there is no passkey {passkey_id}")

        return Write(run)

    async def registration_options(self, person: Person, site: Site) -> dict[str, Any]:
        """What the browser is to ask of an authenticator to make a passkey."""
        _check_name(site)
        challenge = secrets.token_bytes(32)
        now = to_micros(self._clock.now())

        def run(tx: Transaction) -> Sequence[str]:
            accounts.check_exists(tx, person.id)
            passkeys.challenge(tx, _digest(challenge), person.id, now)
            return passkeys.credentials_of(tx, person.id, site.host)

        known = await self._engine.arun(Write(run))
        return await asyncio.to_thread(_registration, person, site, challenge, known)

    async def register(self, person: Person, site: Site, credential: Credential, name: str) -> Passkey:
        """Keep the passkey that an authenticator has made."""
        clean = clean_name(name)
        challenge = _challenge_in(credential)
        now = to_micros(self._clock.now())
        if not await self._answered(challenge, person.id, now):
            raise WrongPasskey("this was asked too long ago, or was answered already; begin again")
        made = await asyncio.to_thread(_checked, lambda: _verified_registration(credential, site, challenge))
        passkey = Passkey(
            id=f"key_{secrets.token_hex(6)}", name=clean, site=site.host, created_at=from_micros(now), used_at=None
        )

        def run(tx: Transaction) -> Passkey:
            accounts.check_exists(tx, person.id)
            if len(passkeys.listed(tx, person.id)) >= MOST_PASSKEYS:
                raise LimitReached(
                    f"you have {MOST_PASSKEYS} passkeys already; remove one first", what="passkeys", limit=MOST_PASSKEYS
                )
            if not passkeys.add(tx, person.id, passkey, made.credential, made.public_key, made.sign_count, now):
                raise InvalidInput("this passkey is known already")
            return passkey

        return await self._engine.arun(Write(run))

    # -- signing in ----------------------------------------------------------------------------------------

    async def sign_in_options(self, site: Site, visitor: Visitor) -> dict[str, Any]:
        """What the browser is to ask of whatever authenticator has a passkey for this host."""
        _check_name(site)
        await sign_in.count(self._engine, self._clock, sign_in.by_challenge(visitor))
        challenge = secrets.token_bytes(32)
        now = to_micros(self._clock.now())
        await self._engine.arun(Write(lambda tx: passkeys.challenge(tx, _digest(challenge), None, now)))
        return await asyncio.to_thread(_authentication, site, challenge)

    async def sign_in(self, site: Site, credential: Credential, visitor: Visitor) -> Fresh[Person]:
        """Sign in whoever has signed the challenge; the secret is for the cookie."""
        limits = sign_in.by_address(visitor)
        await sign_in.count(self._engine, self._clock, limits)
        now = to_micros(self._clock.now())
        try:
            key, count = await self._checked_sign_in(site, credential, now)
        except WrongPasskey as error:
            raise SignInRefused(str(error), way="passkey") from error
        secret = new_secret()

        def run(tx: Transaction) -> Person:
            if not passkeys.used(tx, key.id, count_before=key.sign_count, count=count, now=now):
                raise SignInRefused("this passkey has been used elsewhere meanwhile; try again", way="passkey")
            sign_in.begin(tx, key.person, "passkey", visitor, secret, now)
            attempts.take_back(tx, limits)
            return key.person

        return Fresh(await self._engine.arun(Write(run)), secret)

    async def _checked_sign_in(self, site: Site, credential: Credential, now: int) -> tuple[passkeys.Stored, int]:
        """The passkey that has signed the challenge, and its new count."""
        identity = credential.get("id")
        known = isinstance(identity, str) and is_storable(identity)
        stored = await self._engine.arun(Read(lambda tx: passkeys.find(tx, str(identity)))) if known else None
        challenge = _challenge_in(credential)
        if stored is None or stored.site != site.host or not await self._answered(challenge, None, now):
            raise WrongPasskey("this passkey is not known here, or was asked for too long ago")
        key = stored
        return key, await asyncio.to_thread(_checked, lambda: _verified_sign_in(credential, site, challenge, key))

    async def _answered(self, challenge: bytes, person_id: PersonId | None, now: int) -> bool:
        return await self._engine.arun(Write(lambda tx: passkeys.answer(tx, _digest(challenge), person_id, now)))


# ---- what the library does for us, on a thread: it is slow to load, and signatures take a while -------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    credential: str
    public_key: str
    sign_count: int


def _registration(person: Person, site: Site, challenge: bytes, known: Sequence[str]) -> dict[str, Any]:
    import webauthn
    from webauthn.helpers import base64url_to_bytes, structs

    options = webauthn.generate_registration_options(
        rp_id=site.host,
        rp_name="Palaver",
        user_id=person.id.encode(),
        user_name=person.name,
        challenge=challenge,
        timeout=_TIMEOUT,
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            resident_key=structs.ResidentKeyRequirement.REQUIRED,
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=[structs.PublicKeyCredentialDescriptor(id=base64url_to_bytes(each)) for each in known],
    )
    return _plain(webauthn.options_to_json(options))


def _authentication(site: Site, challenge: bytes) -> dict[str, Any]:
    import webauthn
    from webauthn.helpers import structs

    options = webauthn.generate_authentication_options(
        rp_id=site.host,
        challenge=challenge,
        timeout=_TIMEOUT,
        user_verification=structs.UserVerificationRequirement.REQUIRED,
    )
    return _plain(webauthn.options_to_json(options))


def _verified_registration(credential: Credential, site: Site, challenge: bytes) -> _Made:
    import webauthn
    from webauthn.helpers import bytes_to_base64url

    verified = webauthn.verify_registration_response(
        credential=dict(credential),
        expected_challenge=challenge,
        expected_rp_id=site.host,
        expected_origin=site.origin,
        require_user_verification=True,
    )
    return _Made(
        credential=bytes_to_base64url(verified.credential_id),
        public_key=bytes_to_base64url(verified.credential_public_key),
        sign_count=verified.sign_count,
    )


def _verified_sign_in(credential: Credential, site: Site, challenge: bytes, stored: passkeys.Stored) -> int:
    import webauthn
    from webauthn.helpers import base64url_to_bytes

    verified = webauthn.verify_authentication_response(
        credential=dict(credential),
        expected_challenge=challenge,
        expected_rp_id=site.host,
        expected_origin=site.origin,
        credential_public_key=base64url_to_bytes(stored.public_key),
        credential_current_sign_count=stored.sign_count,
        require_user_verification=True,
    )
    return verified.new_sign_count


def _checked(verify: Callable[[], T]) -> T:
    """Whatever a device has sent is refused in one way, however it is broken."""
    from webauthn.helpers.exceptions import WebAuthnException

    try:
        return verify()
    except (WebAuthnException, ValueError, TypeError, LookupError) as error:
        raise WrongPasskey(f"this passkey could not be checked: {storable(str(error))}") from error


def _plain(text: str) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(text)
    return options


# ---- shared by the above ---------------------------------------------------------------------------------


def _check_name(site: Site) -> None:
    """Refuse a host that browsers make no passkeys for."""
    try:
        ipaddress.ip_address(site.host.strip("[]"))
    except ValueError:
        return
    raise InvalidInput(
        f"passkeys need a host with a name, and {site.host} is a number;"
        " open this page as localhost, or give it a name with web.public_url"
    )


def _challenge_in(credential: Credential) -> bytes:
    """What a device says it has signed; whether it was asked to is looked up, and the signature checked."""
    response = credential.get("response")
    said = response.get("clientDataJSON") if isinstance(response, dict) else None
    try:
        challenge = json.loads(_decoded(said))["challenge"]
        return _decoded(challenge)
    except (ValueError, TypeError, LookupError) as error:
        raise WrongPasskey("credential: this is not what a browser answers") from error


def _decoded(text: object) -> bytes:
    if not isinstance(text, str):
        raise TypeError("not a text")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _digest(challenge: bytes) -> str:
    return digest(challenge.hex())
