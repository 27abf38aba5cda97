"""Ids that the agent need not know, replaced by names that say nothing.

Owns how a user or chat id is replaced, on which platforms that is done, and the way back from a replaced
target to the chat it means. A name is an HMAC-SHA-256 with a secret of this installation, never a bare hash:
phone numbers are few enough to try them all. The same id always gives the same name, so prompts stay stable;
an id gives different names as user and as chat, and as chat on different platforms.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from palaver.domain.errors import ConfigError
from palaver.domain.source import Platform

if TYPE_CHECKING:
    from collections.abc import Iterable

MIN_SECRET = 16  # bytes

# Platforms whose ids reach the agent as they are. All others, those of plugins included, are redacted.
RAW_IDS: frozenset[Platform] = frozenset(
    {
        # A mention is written with the id: without it the agent could address nobody.
        Platform.DISCORD,
        Platform.SLACK,
        Platform.MATRIX,
        # These ids are ours; no phone number or account of a person is in them.
        Platform.LOCAL,
        Platform.WEB,
        Platform.API,
        Platform.WEBHOOK,
        Platform.CRON,
    }
)

_DIGEST = re.compile(r"[0-9a-f]{12}")


def needs_raw_ids(platform: Platform | str) -> bool:
    """Whether the ids of a platform are shown as they are; an unknown platform's are not."""
    return platform.lower() in RAW_IDS


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces ids by names made with the secret of this installation."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < MIN_SECRET:
            raise ConfigError(
                f"The secret for redaction has {len(self.secret)} bytes; it needs at least {MIN_SECRET} "
                "random ones, as secrets.token_bytes(32) makes them.",
                length=len(self.secret),
            )

    def user(self, user_id: str) -> str:
        """The name of a user: `user_` and twelve hex digits."""
        return f"user_{self._digest('user', '', user_id)}"

    def chat(self, platform: Platform | str, chat_id: str) -> str:
        """The name of a chat: the platform, a colon, and twelve hex digits."""
        platform = Platform(platform)
        return f"{platform}:{self._digest('chat', platform, chat_id)}"

    def resolve(self, target: str, candidates: Iterable[tuple[Platform | str, str]]) -> str | None:
        """The id of the known chat that `platform:hex` or `platform:hex:thread` names.

        None when no candidate has that name, and when two have it: a message then goes nowhere rather than
        to the wrong chat.
        """
        name, _, rest = target.lower().partition(":")
        digest = rest.partition(":")[0]
        if not _DIGEST.fullmatch(digest):
            return None
        known = {chat_id for platform, chat_id in candidates if platform.lower() == name}
        meant = [one for one in known if hmac.compare_digest(self._digest("chat", name, one), digest)]
        return meant[0] if len(meant) == 1 else None

    def _digest(self, kind: str, platform: str, given_id: str) -> str:
        """Twelve hex digits; only the id, which comes last, may hold a NUL, so no two inputs are alike."""
        message = f"{kind}\0{platform}\0{given_id}".encode("utf-8", "surrogatepass")
        return hmac.digest(self.secret, message, "sha256").hex()[:12]
