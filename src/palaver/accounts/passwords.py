"""Passwords: hashed and verified on threads, off the event loop.

Argon2id takes time and memory on purpose, so only a few run at once. Always true: verifying without a hash takes as
long as verifying with one, so the time does not reveal whether a name exists. One address never has all places, and
those who wait take turns: guesses from one address keep nobody else from signing in. Hashing threads have a lower
priority than the rest of the server, and a refusal comes late: refusing at once would let one address send hundreds of
guesses a second.
"""

from __future__ import annotations

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NoReturn, TypeVar

from palaver.core.errors import TooManyAttempts
from palaver.core.fair_slots import FairSlots, QueueFull
from palaver.people.account import normalize_password

if TYPE_CHECKING:
    from collections.abc import Callable

    from argon2 import PasswordHasher

MAX_CONCURRENT_HASHES = 2  # 64 MiB each
MAX_CONCURRENT_HASHES_PER_KEY = 1
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
    message = f"Too many attempts. Try again in {int(wait_seconds) + 1} seconds."
    raise TooManyAttempts(message, retry_after=wait_seconds) from None


class Passwords:
    """Hashes and verifies passwords."""

    def __init__(self) -> None:
        self._slots = FairSlots(
            MAX_CONCURRENT_HASHES, per_key=MAX_CONCURRENT_HASHES_PER_KEY, max_waiting_per_key=MAX_WAITING_PER_KEY
        )
        self._threads: ThreadPoolExecutor | None = None

    async def hash(self, password: str, key: str) -> str:
        """Return the hash of a password. `key` is whose place this takes. Raises TooManyAttempts."""
        return await self._run(key, lambda: _hash(password))

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


def _hash(password: str) -> str:
    return _create_hasher().hash(_encode(password))


def _verify(hashed: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _create_hasher().verify(hashed, _encode(password))
    except (VerificationError, InvalidHashError):
        return False
