"""What every way of signing in shares: the visitor, the count of attempts, and the sign-in itself.

Always true: an attempt is counted before it is looked at, and taken back only when it was good.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from palaver.domain.account import CHALLENGES, PER_ADDRESS, PER_NAME, address_group, device_name, digest, name_key
from palaver.domain.errors import TooManyAttempts
from palaver.domain.text import storable
from palaver.storage import accounts, attempts
from palaver.storage.engines.base import Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from palaver.domain.account import Limit
    from palaver.domain.clock import Clock
    from palaver.domain.person import Person
    from palaver.storage.engines.base import Engine, Transaction

Way = Literal["link", "password", "passkey"]
Limits = dict[str, "Limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A browser that wants to sign in."""

    address: str  # where it really comes from
    user_agent: str = ""
    cookie: str = ""  # what it is signed in with now; that sign-in ends with the next


def by_address(visitor: Visitor) -> Limits:
    """What an attempt without a name counts against."""
    return {f"address {address_group(visitor.address)}": PER_ADDRESS}


def by_name(name: str) -> Limits:
    """What an attempt at a name counts against. People type passwords into the wrong field: the name is hashed."""
    return {f"name {hashlib.sha256(name_key(storable(name)).encode()).hexdigest()}": PER_NAME}


def by_challenge(visitor: Visitor) -> Limits:
    """What asking for a challenge counts against."""
    return {f"challenge {address_group(visitor.address)}": CHALLENGES}


async def count(engine: Engine, clock: Clock, limits: Limits) -> None:
    """Count an attempt, or refuse it when there were too many."""
    now = to_micros(clock.now())
    wait = await engine.arun(Write(lambda tx: attempts.count(tx, limits, now)))
    if wait:
        raise TooManyAttempts(f"too many attempts; try again in {int(wait) + 1} seconds", retry_after=wait)


def begin(tx: Transaction, person: Person, way: Way, visitor: Visitor, secret: str, now: int) -> None:
    """Sign somebody in; the sign-in that the same browser had before ends."""
    accounts.check_exists(tx, person.id)
    if visitor.cookie:
        accounts.forget(tx, digest(visitor.cookie))
    browser = accounts.Browser(device=device_name(storable(visitor.user_agent)), address=visitor.address)
    accounts.sign_in(tx, person.id, digest(secret), way, browser, now)
