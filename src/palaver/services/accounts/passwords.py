"""Passwords: hashed and verified on threads, off the event loop.

Argon2id takes time and memory on purpose, so only a few run at once. Always true: verifying without a hash takes as
long as verifying with one, so the time does not reveal whether a name exists.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from palaver.domain.account import normalize_password

if TYPE_CHECKING:
    from argon2 import PasswordHasher

MAX_CONCURRENT_HASHES = 2  # 64 MiB each

# The hash of a random password that was not kept, made with the same cost parameters as all others.
DUMMY_HASH = "$argon2id$v=19$m=65536,t=3,p=4$vJM6CujXHFkM+qn75sS9IA$oMG3bpeddCjYTRdXM/42+X0ufmoXL2Vfc7zW4kBoN4o"


class Passwords:
    """Hashes and verifies passwords."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_HASHES)

    async def hash(self, password: str) -> str:
        async with self._slots:
            return await asyncio.to_thread(_hash, password)

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Return whether this password has this hash; False after the same time if there is no hash."""
        async with self._slots:
            is_match = await asyncio.to_thread(_verify, hashed or DUMMY_HASH, password)
        return is_match and hashed is not None


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
