"""Passkeys: registering them and signing in with them (WebAuthn).

A passkey belongs to one host. The device finds it by itself, so the person does not have to say who they are first.
Always true: a challenge can be answered once, soon, and only by the person it was made for; the device has verified the
person (by PIN, fingerprint or face), because a passkey replaces the password.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from base64 import urlsafe_b64decode
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from palaver.accounts.sign_in import SignIns
from palaver.core.clock import from_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import InvalidInput, LimitReached, NotFound, SignInFailed, WrongPasskey
from palaver.core.operation import read_operation, write_operation
from palaver.core.text import is_storable, make_storable
from palaver.people import account_table as accounts, sign_in_table as passkeys
from palaver.people.model import (
    CHALLENGES_PER_ADDRESS,
    NewSecret,
    Passkey,
    Person,
    clean_person_name,
    group_ip_address,
    hash_secret,
    parse_ip_address,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.accounts.sign_in import Visitor
    from palaver.core.ids import PersonId

    Credential = Mapping[str, Any]

T = TypeVar("T")

MAX_PASSKEYS_PER_PERSON = 50
_TIMEOUT_MILLISECONDS = 5 * 60 * 1000  # the lifetime of a challenge


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The address that the browser shows."""

    host: str  # without a port; a passkey belongs to a host
    origin: str  # scheme, host and port


class Passkeys(SignIns):
    """Registers passkeys and signs people in with them."""

    @read_operation
    def list(self, tx: Transaction, person_id: PersonId) -> Sequence[Passkey]:
        return passkeys.list_passkeys(tx, person_id)

    @write_operation
    def remove(self, tx: Transaction, person_id: PersonId, passkey_id: str) -> None:
        if not passkeys.delete(tx, person_id, make_storable(passkey_id)):
            raise NotFound(f"There is no passkey {passkey_id}.")

    async def create_registration_options(self, person: Person, site: Site) -> dict[str, Any]:
        """Create a challenge and the options with which the browser asks an authenticator for a new passkey."""
        _check_host_has_name(site)
        challenge = secrets.token_bytes(32)
        now = self._now()

        def run(tx: Transaction) -> Sequence[str]:
            accounts.check_exists(tx, person.id)
            passkeys.add_challenge(tx, _hash_challenge(challenge), person.id, now)
            return passkeys.list_credentials(tx, person.id, site.host)

        existing = await self._engine.arun(Write(run))
        return await asyncio.to_thread(_build_registration_options, person, site, challenge, existing)

    async def register(self, person: Person, site: Site, credential: Credential, name: str) -> Passkey:
        clean = clean_person_name(name)
        challenge = _extract_challenge(credential)
        now = self._now()
        if not await self._consume_challenge(challenge, person.id, now):
            raise WrongPasskey("This request has expired or was already used. Start again.")
        registration = await asyncio.to_thread(_verify_or_refuse, _verify_registration, credential, site, challenge)
        passkey = Passkey(
            id=f"key_{secrets.token_hex(6)}", name=clean, site=site.host, created_at=from_micros(now), last_used_at=None
        )

        def run(tx: Transaction) -> Passkey:
            accounts.check_exists(tx, person.id)
            if len(passkeys.list_passkeys(tx, person.id)) >= MAX_PASSKEYS_PER_PERSON:
                raise LimitReached(
                    f"You already have {MAX_PASSKEYS_PER_PERSON} passkeys. Remove one first.",
                    what="passkeys",
                    limit=MAX_PASSKEYS_PER_PERSON,
                )
            if not passkeys.add(tx, person.id, passkey, registration, now):
                raise InvalidInput.say("accounts.passkey_already_registered", "This passkey is already registered.")
            return passkey

        return await self._engine.arun(Write(run))

    async def create_sign_in_options(self, site: Site, visitor: Visitor) -> dict[str, Any]:
        """Create a challenge and the options with which the browser asks an authenticator to sign it."""
        _check_host_has_name(site)
        await self._count_attempt({f"challenge {group_ip_address(visitor.address)}": CHALLENGES_PER_ADDRESS})
        challenge = secrets.token_bytes(32)
        now = self._now()
        await self._engine.arun(Write(lambda tx: passkeys.add_challenge(tx, _hash_challenge(challenge), None, now)))
        return await asyncio.to_thread(_build_authentication_options, site, challenge)

    async def sign_in(self, site: Site, credential: Credential, visitor: Visitor) -> NewSecret[Person]:
        """Sign in the person whose passkey has signed the challenge."""
        await self._count_attempt(visitor.limits)
        try:
            key, count = await self._verify_sign_in(site, credential)
        except WrongPasskey as error:
            raise SignInFailed(error.text, method="passkey") from error

        def record_use(tx: Transaction, now: int) -> Person:
            if not passkeys.record_use(tx, key.id, count_before=key.sign_count, count=count, now=now):
                raise SignInFailed("This passkey was used elsewhere at the same time. Try again.", method="passkey")
            return key.person

        return await self._finish_sign_in("passkey", visitor, visitor.limits, record_use)

    async def _verify_sign_in(self, site: Site, credential: Credential) -> tuple[passkeys.StoredPasskey, int]:
        """Return the passkey that has signed the challenge, and its new sign count."""
        stored = await self._find_passkey(credential.get("id"))
        challenge = _extract_challenge(credential)
        if (
            stored is None
            or stored.site != site.host
            or not await self._consume_challenge(challenge, None, self._now())
        ):
            raise WrongPasskey("This passkey is not registered here, or the request has expired.")
        verify = partial(_verify_authentication, stored)
        return stored, await asyncio.to_thread(_verify_or_refuse, verify, credential, site, challenge)

    async def _find_passkey(self, credential_id: object) -> passkeys.StoredPasskey | None:
        if not isinstance(credential_id, str) or not is_storable(credential_id):
            return None
        return await self._engine.arun(Read(lambda tx: passkeys.find_by_credential(tx, credential_id)))

    async def _consume_challenge(self, challenge: bytes, person_id: PersonId | None, now: int) -> bool:
        digest = _hash_challenge(challenge)
        return await self._engine.arun(Write(lambda tx: passkeys.use_challenge(tx, digest, person_id, now)))


# ---- calls of the webauthn library: they run on a thread, because it loads slowly and signatures take time ------


def _build_registration_options(
    person: Person, site: Site, challenge: bytes, existing: Sequence[str]
) -> dict[str, Any]:
    import webauthn
    from webauthn.helpers import base64url_to_bytes, structs

    options = webauthn.generate_registration_options(
        rp_id=site.host,
        rp_name="Palaver",
        user_id=person.id.encode(),
        user_name=person.name,
        challenge=challenge,
        timeout=_TIMEOUT_MILLISECONDS,
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            resident_key=structs.ResidentKeyRequirement.REQUIRED,
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=[structs.PublicKeyCredentialDescriptor(id=base64url_to_bytes(each)) for each in existing],
    )
    return dict(json.loads(webauthn.options_to_json(options)))


def _build_authentication_options(site: Site, challenge: bytes) -> dict[str, Any]:
    import webauthn
    from webauthn.helpers import structs

    options = webauthn.generate_authentication_options(
        rp_id=site.host,
        challenge=challenge,
        timeout=_TIMEOUT_MILLISECONDS,
        user_verification=structs.UserVerificationRequirement.REQUIRED,
    )
    return dict(json.loads(webauthn.options_to_json(options)))


def _verify_registration(credential: Credential, site: Site, challenge: bytes) -> passkeys.Registration:
    import webauthn
    from webauthn.helpers import bytes_to_base64url

    verified = webauthn.verify_registration_response(
        credential=dict(credential),
        expected_challenge=challenge,
        expected_rp_id=site.host,
        expected_origin=site.origin,
        require_user_verification=True,
    )
    return passkeys.Registration(
        credential_id=bytes_to_base64url(verified.credential_id),
        public_key=bytes_to_base64url(verified.credential_public_key),
        sign_count=verified.sign_count,
    )


def _verify_authentication(stored: passkeys.StoredPasskey, credential: Credential, site: Site, challenge: bytes) -> int:
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


def _verify_or_refuse(
    verify: Callable[[Credential, Site, bytes], T], credential: Credential, site: Site, challenge: bytes
) -> T:
    """Verify what a device sent; raises `WrongPasskey`, whatever is wrong with it."""
    from webauthn.helpers.exceptions import WebAuthnException

    try:
        return verify(credential, site, challenge)
    except (WebAuthnException, ValueError, TypeError, LookupError) as error:
        raise WrongPasskey(f"Could not verify this passkey: {make_storable(str(error))}") from error


def _check_host_has_name(site: Site) -> None:
    """Refuse an IP address: browsers create passkeys only for hosts with a name."""
    if parse_ip_address(site.host) is None:
        return
    raise InvalidInput.say(
        "accounts.passkeys_need_host",
        "Passkeys need a host name, and {host} is an IP address. Open this page as localhost, or set"
        " a name with web.public_url.",
        host=site.host,
    )


def _extract_challenge(credential: Credential) -> bytes:
    """Return the challenge that a device claims to have signed. The callers look it up and verify the signature."""
    response = credential.get("response")
    client_data = response.get("clientDataJSON") if isinstance(response, dict) else None
    try:
        challenge = json.loads(_decode_base64url(client_data))["challenge"]
        return _decode_base64url(challenge)
    except (ValueError, TypeError, LookupError) as error:
        raise WrongPasskey("credential: not a valid response of a browser.") from error


def _decode_base64url(text: object) -> bytes:
    if not isinstance(text, str):
        raise TypeError("not a string")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _hash_challenge(challenge: bytes) -> str:
    return hash_secret(challenge.hex())
