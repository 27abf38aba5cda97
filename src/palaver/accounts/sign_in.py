"""What all sign-in methods share: the visitor, the rate limits, and the sign-in itself.

Always true: an attempt is counted before it is checked, and uncounted only if it succeeds. Guesses of strangers count
neither against a browser in which the person has signed in before nor against a person who is signed in.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from palaver.accounts.passwords import refuse_attempt
from palaver.core.engines.base import Read, Write
from palaver.core.text import make_storable
from palaver.core.timestamps import to_micros
from palaver.people import account_table as accounts, known_devices, sign_in_attempts
from palaver.people.account import (
    ATTEMPTS_PER_ADDRESS,
    ATTEMPTS_PER_DEVICE,
    ATTEMPTS_PER_NAME,
    ATTEMPTS_PER_NAME_AND_ADDRESS,
    CHALLENGES_PER_ADDRESS,
    describe_device,
    generate_secret,
    group_ip_address,
    hash_secret,
    normalize_name,
)

if TYPE_CHECKING:
    from palaver.core.clock import Clock
    from palaver.core.engines.base import Engine, Transaction
    from palaver.people.account import RateLimit, SignedInPerson
    from palaver.people.model import Person

SignInMethod = Literal["link", "password", "passkey"]
Limits = dict[str, "RateLimit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A browser that wants to sign in."""

    address: str  # its real IP address, behind any proxies
    user_agent: str = ""
    cookie: str = ""  # of its current sign-in, which ends with the next one
    device_cookie: str = ""  # proves that people have signed in with it before
    new_device_cookie: str = field(default_factory=generate_secret)  # replaces it with the next sign-in


def get_address_limit(visitor: Visitor) -> Limits:
    """Return the limit that an attempt with a link or a passkey counts against."""
    return {f"address {group_ip_address(visitor.address)}": ATTEMPTS_PER_ADDRESS}


async def get_password_limits(engine: Engine, clock: Clock, name: str, visitor: Visitor) -> Limits:
    """Return the limits that an attempt with a name and a password counts against."""
    digest, now = hash_secret(visitor.device_cookie), to_micros(clock.now())
    clean_name = make_storable(name)
    is_known = await engine.arun(Read(lambda tx: known_devices.is_known(tx, digest, clean_name, now), is_quick=True))
    if is_known:
        return {f"device {digest}": ATTEMPTS_PER_DEVICE}
    # The name is hashed, because people sometimes type their password into the wrong field.
    name_digest = hashlib.sha256(normalize_name(clean_name).encode()).hexdigest()
    return get_address_limit(visitor) | {
        f"name {name_digest} {group_ip_address(visitor.address)}": ATTEMPTS_PER_NAME_AND_ADDRESS,
        f"name {name_digest}": ATTEMPTS_PER_NAME,
    }


def get_password_change_limit(signed_in: SignedInPerson) -> Limits:
    """Return the limit that a signed-in person's attempts to change their password count against."""
    return {f"sign-in {signed_in.credential_id}": ATTEMPTS_PER_DEVICE}


def get_challenge_limit(visitor: Visitor) -> Limits:
    """Return the limit that a request for a passkey challenge counts against."""
    return {f"challenge {group_ip_address(visitor.address)}": CHALLENGES_PER_ADDRESS}


async def count_attempt(engine: Engine, clock: Clock, limits: Limits) -> None:
    """Count an attempt; raises `TooManyAttempts` if a limit is reached."""
    now = to_micros(clock.now())
    wait = await engine.arun(Write(lambda tx: sign_in_attempts.count_attempt(tx, limits, now)))
    if wait:
        await refuse_attempt(wait)


def start_sign_in(
    tx: Transaction, person: Person, method: SignInMethod, visitor: Visitor, secret: str, now: int
) -> None:
    """Sign a person in; the earlier sign-in of the same browser ends."""
    accounts.check_exists(tx, person.id)
    if visitor.cookie:
        accounts.end_sign_in(tx, hash_secret(visitor.cookie))
    browser = accounts.Browser(device=describe_device(make_storable(visitor.user_agent)), ip_address=visitor.address)
    accounts.sign_in(tx, person.id, hash_secret(secret), method, browser, now)
    known_devices.remember(
        tx, person.id, hash_secret(visitor.device_cookie), hash_secret(visitor.new_device_cookie), now
    )
