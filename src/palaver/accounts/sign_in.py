"""The parts that all sign-in methods share: the visitor, the rate limits, and the sign-in itself.

Always true: an attempt is counted before it is checked, and uncounted only if it succeeds. Guesses of strangers count
neither against a browser in which the person has signed in before nor against a person who is signed in.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar

from palaver.core.clock import Clock, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Engine, Read, Transaction, Write
from palaver.core.errors import TooManyAttempts
from palaver.core.fair_slots import FairSlots, QueueFull
from palaver.core.operation import AsyncRunner, Operations
from palaver.core.text import make_storable
from palaver.core.texts import say
from palaver.people import account_table as accounts, sign_in_table as passkeys
from palaver.people.model import (
    ATTEMPTS_PER_ADDRESS,
    ATTEMPTS_PER_DEVICE,
    ATTEMPTS_PER_NAME,
    ATTEMPTS_PER_NAME_AND_ADDRESS,
    NewSecret,
    Person,
    RateLimit,
    describe_device,
    generate_secret,
    group_ip_address,
    hash_secret,
    normalize_name,
    normalize_password,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from argon2 import PasswordHasher


MAX_CONCURRENT_HASHES = 2  # 64 MiB each
MAX_WAITING_PER_KEY = 10
RETRY_SECONDS = 5
REFUSAL_DELAY_SECONDS = 1.0
NICENESS = 10

_T = TypeVar("_T")

# The hash of a random password that was not kept, made with the same cost parameters as all others.
DUMMY_HASH = "$argon2id$v=19$m=65536,t=3,p=4$vJM6CujXHFkM+qn75sS9IA$oMG3bpeddCjYTRdXM/42+X0ufmoXL2Vfc7zW4kBoN4o"


async def refuse_attempt(wait_seconds: float) -> NoReturn:
    """Raise `TooManyAttempts`, after a while: an address has few connections, so it can't send many more attempts."""
    await asyncio.sleep(REFUSAL_DELAY_SECONDS)
    message = say(
        "accounts.too_many_attempts",
        "Too many attempts. Try again in {seconds} seconds.",
        seconds=int(wait_seconds) + 1,
    )
    raise TooManyAttempts(message, retry_after=wait_seconds) from None


class Passwords:
    def __init__(self) -> None:
        self._slots = FairSlots(MAX_CONCURRENT_HASHES, per_key=1, max_waiting_per_key=MAX_WAITING_PER_KEY)
        self._threads: ThreadPoolExecutor | None = None

    async def hash(self, password: str, key: str) -> str:
        """Return the hash of a password. `key` is whose place this takes. Raises TooManyAttempts."""
        return await self._run(key, lambda: _create_hasher().hash(_encode(password)))

    async def verify(self, hashed: str | None, password: str, key: str) -> bool:
        """Return whether this password has this hash; False after the same time if there is no hash.

        `key` is whose place this takes: an address, a known browser or a sign-in. Raises TooManyAttempts.
        """
        is_match = await self._run(key, lambda: _verify(hashed or DUMMY_HASH, password))
        return is_match and hashed is not None

    async def _run(self, key: str, work: Callable[[], _T]) -> _T:
        try:
            async with self._slots.hold(key):
                return await asyncio.get_running_loop().run_in_executor(self._get_threads(), work)
        except QueueFull:
            await refuse_attempt(RETRY_SECONDS - 1)

    def _get_threads(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MAX_CONCURRENT_HASHES, "palaver-password", _lower_priority)
        return self._threads


def _lower_priority() -> None:
    """Let this thread, and those that Argon2 starts from it, wait for all others.

    Only Linux has priorities of threads. Argon2 does not hold the interpreter lock, so no other thread waits for it.
    """
    if sys.platform == "linux":
        os.nice(NICENESS)


def _create_hasher() -> PasswordHasher:
    from argon2 import PasswordHasher
    from argon2.profiles import RFC_9106_LOW_MEMORY

    return PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)


def _encode(password: str) -> bytes:
    return normalize_password(password).encode("utf-8", "surrogatepass")


def _verify(hashed: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _create_hasher().verify(hashed, _encode(password))
    except (VerificationError, InvalidHashError):
        return False


Limits = dict[str, "RateLimit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A browser that wants to sign in."""

    address: str  # its real IP address, behind any proxies
    user_agent: str = ""
    cookie: str = ""  # of its current sign-in, which ends with the next one
    device_cookie: str = ""  # proves that people have signed in with it before
    new_device_cookie: str = field(default_factory=generate_secret)  # replaces it with the next sign-in

    @property
    def limits(self) -> Limits:
        """The limit that an attempt with a link or a passkey counts against."""
        return {f"address {group_ip_address(self.address)}": ATTEMPTS_PER_ADDRESS}


class SignIns(Operations[AsyncRunner]):
    """Counts attempts, and signs people in: the base of what each method of signing in needs."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        super().__init__(AsyncRunner(engine))
        self._engine = engine
        self._clock = clock

    def _now(self) -> int:
        return to_micros(self._clock.now())

    async def _get_password_limits(self, name: str, visitor: Visitor) -> Limits:
        """Return the limits that an attempt with a name and a password counts against."""
        digest, now, clean_name = hash_secret(visitor.device_cookie), self._now(), make_storable(name)
        is_known = Read(lambda tx: passkeys.is_known(tx, digest, clean_name, now), is_quick=True)
        if await self._engine.arun(is_known):
            return {f"device {digest}": ATTEMPTS_PER_DEVICE}
        # The name is hashed, because people sometimes type their password into the wrong field.
        name_digest = hashlib.sha256(normalize_name(clean_name).encode()).hexdigest()
        return visitor.limits | {
            f"name {name_digest} {group_ip_address(visitor.address)}": ATTEMPTS_PER_NAME_AND_ADDRESS,
            f"name {name_digest}": ATTEMPTS_PER_NAME,
        }

    async def _count_attempt(self, limits: Limits) -> None:
        """Count an attempt; raises `TooManyAttempts` if a limit is reached."""
        now = self._now()
        wait = await self._engine.arun(Write(lambda tx: passkeys.count_attempt(tx, limits, now)))
        if wait:
            await refuse_attempt(wait)

    async def _finish_sign_in(
        self,
        method: Literal["link", "password", "passkey"],
        visitor: Visitor,
        limits: Limits,
        prove: Callable[[Transaction, int], Person],
    ) -> NewSecret[Person]:
        """Sign in the person whom `prove` returns, in the same transaction, and uncount the attempt.

        The secret is for the cookie. The earlier sign-in of the same browser ends.
        """
        secret, now = generate_secret(), self._now()
        device = describe_device(make_storable(visitor.user_agent))

        def run(tx: Transaction) -> Person:
            person = prove(tx, now)
            accounts.check_exists(tx, person.id)
            if visitor.cookie:
                accounts.end_sign_in(tx, hash_secret(visitor.cookie))
            accounts.sign_in(tx, person.id, hash_secret(secret), method, device, visitor.address, now)
            known, new = hash_secret(visitor.device_cookie), hash_secret(visitor.new_device_cookie)
            passkeys.remember(tx, person.id, known, new, now)
            passkeys.uncount_attempt(tx, limits)
            return person

        return NewSecret(await self._engine.arun(Write(run)), secret)
