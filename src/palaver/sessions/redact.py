"""Redaction: ids that the agent does not need are replaced by pseudonyms.

Owns how user and chat ids are replaced, on which platforms, and how a replaced target is resolved to its chat. A
pseudonym is an HMAC-SHA-256 with the install secret, never a bare hash: there are few enough phone numbers to try
them all. The same id always gives the same pseudonym, so prompts stay stable; the pseudonyms of an id differ
between user and chat, and between chats on different platforms.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from palaver.core.errors import ConfigError
from palaver.core.source import Platform

if TYPE_CHECKING:
    from collections.abc import Iterable

MIN_SECRET_BYTES = 16  # bytes

# Platforms whose ids the agent sees unchanged. The ids of all others, also of plugins, are redacted.
RAW_ID_PLATFORMS: frozenset[Platform] = frozenset(
    {
        # A mention contains the id: without it the agent could not mention anyone.
        Platform.DISCORD,
        Platform.SLACK,
        Platform.MATRIX,
        # These ids are our own; they contain no phone number or account of a person.
        Platform.LOCAL,
        Platform.WEB,
        Platform.API,
        Platform.WEBHOOK,
        Platform.CRON,
    }
)

_PSEUDONYM = re.compile(r"[0-9a-f]{12}")


def needs_raw_ids(platform: Platform | str) -> bool:
    """Whether the agent sees the ids of a platform unchanged; on an unknown platform it does not."""
    return platform.lower() in RAW_ID_PLATFORMS


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces ids with pseudonyms, using the install secret."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < MIN_SECRET_BYTES:
            raise ConfigError(
                f"The secret for redaction has {len(self.secret)} bytes; it needs at least {MIN_SECRET_BYTES} "
                "random bytes. Create one with secrets.token_bytes(32).",
                length=len(self.secret),
            )

    def redact_user(self, user_id: str) -> str:
        """Return `user_` and twelve hex digits."""
        return f"user_{self._compute_pseudonym('user', '', user_id)}"

    def redact_chat(self, platform: Platform | str, chat_id: str) -> str:
        """Return the platform, a colon, and twelve hex digits."""
        platform = Platform(platform)
        return f"{platform}:{self._compute_pseudonym('chat', platform, chat_id)}"

    def resolve_chat(self, target: str, candidates: Iterable[tuple[Platform | str, str]]) -> str | None:
        """Return the id of the candidate chat that `platform:hex` or `platform:hex:thread` names.

        Returns None when no candidate matches, and when two match: it is better to send nowhere than to the
        wrong chat.
        """
        platform_name, _, rest = target.lower().partition(":")
        pseudonym = rest.partition(":")[0]
        if not _PSEUDONYM.fullmatch(pseudonym):
            return None
        chat_ids = {chat_id for platform, chat_id in candidates if platform.lower() == platform_name}
        matches = [
            chat_id
            for chat_id in chat_ids
            if hmac.compare_digest(self._compute_pseudonym("chat", platform_name, chat_id), pseudonym)
        ]
        return matches[0] if len(matches) == 1 else None

    def _compute_pseudonym(self, kind: str, platform: str, raw_id: str) -> str:
        # Only the id, which comes last, may contain NUL, so no two inputs give the same message.
        message = f"{kind}\0{platform}\0{raw_id}".encode("utf-8", "surrogatepass")
        return hmac.digest(self.secret, message, "sha256").hex()[:12]
