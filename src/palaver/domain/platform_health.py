"""How an account on a platform is doing: for the operator, and for everything that lists what is connected.

off ──▶ connecting ──▶ live ──▶ deaf      nothing was heard from the platform for too long
             ▲          │        │
             ├──────────┴────────┘        after a pause
             └──▶ refused                 by the platform, or by its settings; tried again every ten minutes
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.gateway_config import HomeChannel
    from palaver.domain.source import Platform


class AccountState(StrEnum):
    """What an account does at the moment."""

    OFF = "off"  # no process runs it
    CONNECTING = "connecting"
    LIVE = "live"  # it receives and sends
    DEAF = "deaf"  # connected, but nothing was heard for too long; it is connected again
    REFUSED = "refused"  # by the platform, or because of its settings: somebody has to do something


STATE_WORDS = {
    AccountState.OFF: "not running",
    AccountState.CONNECTING: "connecting",
    AccountState.LIVE: "connected",
    AccountState.DEAF: "not responding, connecting again",
    AccountState.REFUSED: "needs attention",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatus:
    """The state of an account, and what is known about it."""

    state: AccountState
    since: datetime  # when it came into this state
    name: str | None = None  # as people see it on the platform
    user_id: str | None = None  # its own id there
    warnings: tuple[str, ...] = ()  # what is missing, in words
    error: str | None = None  # the last one, in words
    error_at: datetime | None = None
    last_message_at: datetime | None = None  # received


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountHealth:
    """An account on a platform, its state, and its deliveries of the last 24 hours."""

    platform: Platform
    account: str  # its name in config.yaml; empty for the only one
    is_configured: bool  # the operator has set it up and enabled it
    status: AccountStatus | None  # None: it has never run
    waiting: int = 0  # deliveries that are not sent yet
    uncertain: int = 0
    failed: int = 0
    delivery_error: str | None = None  # of the latest uncertain or failed delivery
    delivery_error_at: datetime | None = None
    home_channel: HomeChannel | None = None  # of its platform, if this account sends there

    @property
    def label(self) -> str:
        """Its name for people: `Telegram`, or `Telegram (work)` where there are several."""
        return format_account(self.platform, self.account)

    @property
    def state(self) -> AccountState:
        """Its state; off if it has never run."""
        return AccountState.OFF if self.status is None else self.status.state


def format_account(platform: Platform, account: str) -> str:
    """Return the name of an account for people."""
    return f"{platform.label} ({account})" if account else platform.label
