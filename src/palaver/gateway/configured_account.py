"""An account on a platform that the operator has set up, before it is connected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from palaver.delivery.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from palaver.core.source import Platform
    from palaver.delivery.adapter import Adapter
    from palaver.sessions.delivery import AccountKey

HIDDEN = "…"
_MIN_SECRET_CHARS = 4  # a shorter one would hide parts of ordinary words


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfiguredAccount:
    """An account, and how its adapter is created: a new one for every connection."""

    platform: Platform
    account: str  # its name in config.yaml; empty for the only one
    create: Callable[[], Awaitable[Adapter]] = field(repr=False)  # raises AccountRefused if its settings do not work
    capabilities: Capabilities = field(default_factory=Capabilities, repr=False)  # before the platform has said more
    problem: str | None = None  # why it can't be connected with these settings, in words
    secrets: tuple[str, ...] = field(default=(), repr=False)  # of its settings: no error or log line shows them
    fingerprint: str = field(default="", repr=False)  # of its settings: if it differs, it has to be connected again

    @property
    def key(self) -> AccountKey:
        return self.platform, self.account

    @classmethod
    def from_adapter(cls, adapter: Adapter) -> Self:
        """Describe an account whose adapter exists: every connection uses the same one."""

        async def create() -> Adapter:
            return adapter

        return cls(platform=adapter.platform, account=adapter.account, create=create, capabilities=adapter.capabilities)

    def hide_secrets(self, text: str) -> str:
        """Return a text, such as the error of an SDK, without the secrets of this account."""
        return hide_values(text, self.secrets)


def hide_values(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these secrets."""
    for secret in sorted(secrets, key=len, reverse=True):  # one may be part of another
        if len(secret) >= _MIN_SECRET_CHARS:
            text = text.replace(secret, HIDDEN)
    return text
