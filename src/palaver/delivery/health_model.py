"""How an account on a platform is doing: for the operator, and for everything that lists what is connected.

off ──▶ connecting ──▶ live ──▶ deaf      nothing was heard from the platform for too long
             ▲          │        │
             ├──────────┴────────┘        after a pause
             ├──▶ linking ──▶ live        until an owner has linked it: scanned a code with their phone
             └──▶ refused                 by the platform, or by its settings; tried again every ten minutes, or when
                                          an owner asks for it
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from palaver.sessions.json import format_optional_time, format_time

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.source import Platform
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.gateway_config import HomeChannel


class AccountState(StrEnum):
    """What an account does at the moment."""

    OFF = "off"  # no process runs it
    CONNECTING = "connecting"
    LIVE = "live"  # it receives and sends
    LINKING = "linking"  # it waits until an owner scans a code, or types it, on their phone
    DEAF = "deaf"  # connected, but nothing was heard for too long; it is connected again
    REFUSED = "refused"  # by the platform, or because of its settings: the owner has to fix something


STATE_WORDS = {
    AccountState.OFF: "not running",
    AccountState.CONNECTING: "connecting",
    AccountState.LIVE: "connected",
    AccountState.LINKING: "waiting to be linked",
    AccountState.DEAF: "not responding, connecting again",
    AccountState.REFUSED: "needs attention",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingPrompt:
    """What an owner does on their phone to link it with an account here. Only owners see it."""

    instructions: str  # in words: which app, which menu
    # Everyone who knows them can link a phone of their own: no log line shows them.
    qr_text: str | None = field(default=None, repr=False)  # the content of a QR code to scan
    code: str | None = field(default=None, repr=False)  # a code to type instead
    expires_at: datetime | None = None  # a new one is shown then


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTest:
    """How the latest test of a connection, which an owner asked for, has ended."""

    number: int  # of the request: the tests of an account are counted
    finished_at: datetime
    seconds: float  # from the moment when the process that runs the account noticed the request
    error: str | None = None  # in words; None: it works, or waits to be linked

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready fields."""
        return {"finished_at": format_time(self.finished_at), "seconds": self.seconds, "error": self.error}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatus:
    """The state of an account, and what is known about it."""

    state: AccountState
    since: datetime  # when it came into this state
    name: str | None = None  # as people see it on the platform
    user_id: str | None = None  # its own id there
    warnings: tuple[str, ...] = ()  # what is missing, in words
    details: tuple[str, ...] = ()  # what an operator may want to know, such as the version of a program that it uses
    linking: LinkingPrompt | None = None  # while it waits to be linked
    error: str | None = None  # the last one, in words
    error_at: datetime | None = None
    last_message_at: datetime | None = None  # received
    last_test: ConnectionTest | None = None


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
    def key(self) -> AccountKey:
        return self.platform, self.account

    @property
    def short_name(self) -> str:
        """Its name for commands: `telegram`, or `telegram@work`."""
        return f"{self.platform}@{self.account}" if self.account else str(self.platform)

    @property
    def state(self) -> AccountState:
        """Its state; off if it has never run."""
        return AccountState.OFF if self.status is None else self.status.state

    def to_dict(self) -> dict[str, Any]:
        """Return it as fields for JSON, without what links a phone: the answer to a command may be read in a group."""
        status = self.status
        return {
            "platform": str(self.platform),
            "account": self.account,
            "configured": self.is_configured,
            "state": self.state.value,
            "since": format_optional_time(status.since if status else None),
            "name": status.name if status else None,
            "warnings": list(status.warnings) if status else [],
            "details": list(status.details) if status else [],
            "last_message_at": format_optional_time(status.last_message_at if status else None),
            "error": status.error if status else None,
            "error_at": format_optional_time(status.error_at if status else None),
            "last_test": status.last_test.to_dict() if status and status.last_test else None,
            "waiting": self.waiting,
            "uncertain": self.uncertain,
            "failed": self.failed,
            "delivery_error": self.delivery_error,
            "delivery_error_at": format_optional_time(self.delivery_error_at),
            "home_channel": self.home_channel.target if self.home_channel else None,
        }


def format_account(platform: Platform, account: str) -> str:
    """Return the name of an account for people."""
    return f"{platform.label} ({account})" if account else platform.label
