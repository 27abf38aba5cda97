"""The capabilities of a platform, and the state of an account there.

Each adapter has one `Capabilities`: how long a message may be, what can be done with a message that was sent, how fast
it may send, and for how long the platform recognizes the key of a message that is sent again. Common code decides by
it, so that no adapter has to.

The states of an account:

    off ──▶ connecting ──▶ live ──▶ unresponsive      nothing was heard from the platform for too long
                 ▲          │            │
                 ├──────────┴────────────┘            after a pause
                 ├──▶ linking ──▶ live                until an owner has linked it: scanned a code with their phone
                 └──▶ refused                         by the platform, or by its settings; tried again every ten
                                                      minutes, or when an owner asks for it
"""

from __future__ import annotations

from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from palaver.core.columns import TRANSLATABLE
from palaver.core.dataclass import dataclass
from palaver.core.texts import say

if TYPE_CHECKING:
    from palaver.core.source import Platform
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.gateway_config import HomeChannel


class LengthUnit(StrEnum):
    CHARACTERS = "characters"
    UTF16 = "utf16"  # code units: an emoji counts as two
    BYTES = "bytes"  # of UTF-8


@dataclass(frozen=True, slots=True)
class Pace:
    """The rate at which something may be sent: `burst` at once, and then one every `seconds`."""

    seconds: float
    burst: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities of one account on a platform; without arguments: send texts of any length."""

    max_length: int | None = None  # of one message; None: no limit
    length_unit: LengthUnit = LengthUnit.CHARACTERS
    can_edit: bool = False  # a message that was sent
    can_delete: bool = False  # a message that was sent
    can_react: bool = False  # to a message that was received
    typing_seconds: float | None = None  # how long the sign that the agent is typing stays; None: there is no sign
    max_buttons: int = 0  # under one message
    max_file_bytes: int = 0  # of a file that is sent; 0: files cannot be sent
    has_threads: bool = False
    has_groups: bool = False  # it can take part in chats of several people
    receives_files: bool = False
    receives_voice: bool = False  # voice messages, as files
    receives_edits: bool = False  # of messages that people have sent
    reply_window: timedelta | None = None  # after a person's last message, how long we may write; None: always
    has_native_stream: bool = False  # it can show a growing text itself, at least in some chats
    pace_per_chat: Pace | None = None
    pace_per_account: Pace | None = None
    edit_pace: Pace = Pace(1.5)  # of a growing message, per chat
    draft_pace: Pace = Pace(1.0)  # of a growing text that the platform shows itself, per chat
    key_lifetime: timedelta = timedelta(0)  # how long a message that is sent again with the same key arrives once

    finds_sent: bool = False  # the adapter can find out whether a message that may have arrived was sent

    def can_resolve(self, sent_at: int, now: int) -> bool:
        """Return whether a message that may have arrived can be tried again: it is recognized, or looked for first."""
        return self.finds_sent or self.recognizes_key(sent_at, now)

    def recognizes_key(self, sent_at: int, now: int) -> bool:
        """Return whether a message that was first sent then arrives only once, if it is sent again with its key."""
        return now - sent_at < self.key_lifetime // timedelta(microseconds=1)


def measure_length(text: str, unit: LengthUnit) -> int:
    if unit is LengthUnit.CHARACTERS or text.isascii():
        return len(text)
    match unit:
        case LengthUnit.UTF16:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        case LengthUnit.BYTES:
            return len(text.encode("utf-8", "surrogatepass"))


class AccountState(StrEnum):
    OFF = "off"  # no process runs it
    CONNECTING = "connecting"
    LIVE = "live"  # it receives and sends
    LINKING = "linking"  # it waits until an owner scans a code, or types it, on their phone
    UNRESPONSIVE = "deaf"  # connected, but nothing was heard for too long; it is connected again
    REFUSED = "refused"  # by the platform, or because of its settings: the owner has to fix something


STATE_LABELS = {
    AccountState.OFF: say("account.off", "not running"),
    AccountState.CONNECTING: say("account.connecting", "connecting"),
    AccountState.LIVE: say("account.live", "connected"),
    AccountState.LINKING: say("account.linking", "waiting to be linked"),
    AccountState.UNRESPONSIVE: say("account.unresponsive", "not responding, connecting again"),
    AccountState.REFUSED: say("account.refused", "needs attention"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingPrompt:
    """The steps with which an owner links their phone with an account here. Only owners see them."""

    instructions: str = field(metadata=TRANSLATABLE)  # in words: which app, which menu
    # Everyone who knows them can link a phone of their own: no log line shows them.
    qr_text: str | None = field(default=None, repr=False, metadata=TRANSLATABLE)  # the content of a QR code to scan
    code: str | None = field(default=None, repr=False, metadata=TRANSLATABLE)  # a code to type instead
    expires_at: datetime | None = None  # a new one is shown then


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTest:
    """The result of the latest test of a connection, which an owner asked for."""

    number: int  # of the request: the tests of an account are counted
    finished_at: datetime
    seconds: float  # from the moment when the process that runs the account noticed the request
    error: str | None = field(default=None, metadata=TRANSLATABLE)  # in words; None: it works, or waits to be linked


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatus:
    state: AccountState
    since: datetime  # when it came into this state
    name: str | None = field(default=None, metadata=TRANSLATABLE)  # as people see it on the platform
    user_id: str | None = field(default=None, metadata=TRANSLATABLE)  # its own id there
    warnings: tuple[str, ...] = field(default=(), metadata=TRANSLATABLE)  # what is missing, in words
    # What an operator may want to know, such as the version of a program that it uses.
    details: tuple[str, ...] = field(default=(), metadata=TRANSLATABLE)
    linking: LinkingPrompt | None = None  # while it waits to be linked
    error: str | None = field(default=None, metadata=TRANSLATABLE)  # the last one, in words
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
        return AccountState.OFF if self.status is None else self.status.state


def format_account(platform: Platform, account: str) -> str:
    """Return the name of an account for people."""
    return f"{platform.label} ({account})" if account else platform.label
