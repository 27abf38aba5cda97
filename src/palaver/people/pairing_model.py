"""Codes with which people get access and link their accounts, and the limits of them.

Always true: a code has 8 characters without look-alikes (no I, L, O, 0 or 1), about 40 random bits; only its digest is
stored. So few attempts are allowed, and a code is valid for so short a time, that it cannot be guessed.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from palaver.people.account import RateLimit

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.source import Platform, SessionSource

CODE_ALPHABET: Final = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
CODE_CHARS: Final = 8

PAIRING_CODE_LIFETIME: Final = timedelta(hours=1)
NEW_CODE_INTERVAL: Final = timedelta(minutes=10)  # a stranger who has lost the code gets another one after this
LINK_CODE_LIFETIME: Final = timedelta(minutes=15)
MAX_PENDING_REQUESTS: Final = 20

# Attempts to use a code: of one account, and of all strangers together.
CODE_ATTEMPTS_PER_ACCOUNT: Final = RateLimit(10, timedelta(minutes=1))
CODE_ATTEMPTS_OF_STRANGERS: Final = RateLimit(60, timedelta(seconds=5))
REPLIES_PER_STRANGER: Final = RateLimit(5, timedelta(minutes=1))  # after that, a stranger gets no reply


class Grant(StrEnum):
    """What the approval of a request gives to the account that asked."""

    MEMBER = "member"  # may talk to the agent in direct messages and in groups
    GUEST = "guest"  # may talk to the agent in these direct messages only
    ME = "me"  # is another account of the person who approves


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingRequest:
    """A stranger who has asked for access."""

    id: str
    platform: Platform
    account: str  # the platform's own id of the stranger, which never changes
    name: str  # as the platform shows it; the stranger chose it
    source: SessionSource
    created_at: datetime
    expires_at: datetime
    is_denied: bool = False


def generate_code() -> str:
    """Return a new code as people see it: `ABCD-EFGH`."""
    code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARS))
    return f"{code[:4]}-{code[4:]}"


_SEPARATORS = re.compile(r"[\s-]+")
_CODE_CHAR = f"[{CODE_ALPHABET}]"
_CODE = re.compile(f"{_CODE_CHAR}{{{CODE_CHARS}}}")


def parse_code(text: str) -> str | None:
    """Return a typed code as `ABCD-EFGH`; letter case, spaces and hyphens don't count. None if it can't be one."""
    if len(text) > 40:
        return None
    code = _SEPARATORS.sub("", text).upper()
    return f"{code[:4]}-{code[4:]}" if _CODE.fullmatch(code) else None


_SHOWN_CODE = re.compile(rf"(?<![A-Za-z0-9]){_CODE_CHAR}{{4}}-{_CODE_CHAR}{{4}}(?![A-Za-z0-9])")


def hide_codes(text: str) -> str:
    """Return one of our own texts without the code that it contains: what is stored is read by programs, too."""
    return _SHOWN_CODE.sub("…", text)
