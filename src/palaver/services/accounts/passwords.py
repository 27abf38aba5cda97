"""Passwords: hashing and checking them, off the event loop.

Argon2id takes time and memory on purpose, so only a few are worked on at once. Always true: checking against nothing
takes as long as checking against a hash, so that the time tells nobody whether a name is known.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from palaver.domain.account import folded_password

if TYPE_CHECKING:
    from argon2 import PasswordHasher

AT_ONCE = 2  # 64 MiB each

# The hash of something random that nobody knows, made with the same costs as every other.
NOBODYS = "$argon2id$v=19$m=65536,t=3,p=4$vJM6CujXHFkM+qn75sS9IA$oMG3bpeddCjYTRdXM/42+X0ufmoXL2Vfc7zW4kBoN4o"


class Passwords:
    """Hashes and checks passwords."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)

    async def hash(self, password: str) -> str:
        """What is stored of a password."""
        async with self._places:
            return await asyncio.to_thread(_hash, password)

    async def matches(self, hashed: str | None, password: str) -> bool:
        """Whether this is the password that was hashed."""
        async with self._places:
            same = await asyncio.to_thread(_matches, hashed or NOBODYS, password)
        return same and hashed is not None


def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher
    from argon2.profiles import RFC_9106_LOW_MEMORY

    return PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)


def _bytes(password: str) -> bytes:
    return folded_password(password).encode("utf-8", "surrogatepass")


def _hash(password: str) -> str:
    return _hasher().hash(_bytes(password))


def _matches(hashed: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(hashed, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False
