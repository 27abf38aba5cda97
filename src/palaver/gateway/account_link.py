"""An account that is set up, and the link of its connected adapter to the gateway, with the account and its fence."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Self

from palaver.core.dataclass import dataclass
from palaver.core.errors import LeaseLost
from palaver.core.texts import edit_text
from palaver.delivery.model import Capabilities, LinkingPrompt
from palaver.sessions.inbound import AnyUpdate, Cursor, Inbound, Receipt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime

    from palaver.core.clock import Clock
    from palaver.core.errors import SendRejected
    from palaver.core.source import Platform
    from palaver.delivery.accounts_table import Fence
    from palaver.delivery.adapter import Adapter
    from palaver.delivery.outbox import Outbox
    from palaver.inbox import Inbox
    from palaver.sessions.delivery import AccountKey


HIDDEN = "…"
_MIN_SECRET_CHARS = 4  # a shorter one would hide parts of ordinary words


class ConnectionLink:
    """The `AccountLink` of one connection. After it has ended, everything that is still sent through it is refused."""

    def __init__(
        self,
        adapter: Adapter,
        fence: Fence,
        inbox: Inbox,
        outbox: Outbox,
        clock: Clock,
        *,
        on_connected: Callable[[], None],
        on_linking: Callable[[LinkingPrompt], None],
        on_message: Callable[[], None],  # a message was accepted
    ) -> None:
        self.adapter = adapter
        self._fence = fence
        self._key = (fence.platform, fence.account)
        self._inbox = inbox
        self._outbox = outbox
        self._on_connected = on_connected
        self._on_linking = on_linking
        self._on_message = on_message
        self._is_open = True
        self._clock = clock
        self._receiving_since: datetime | None = None  # what was sent before waited for us

    def close(self) -> None:
        self._is_open = False

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        self._check_open()
        update = replace(update, source=replace(update.source, account=self._fence.account))
        if isinstance(update, Inbound):
            now = self._clock.now()
            update = replace(update, received_at=now, receiving_since=self._receiving_since or now)
        receipt = await self._inbox.accept(update, cursor=cursor, fence=self._fence)
        if isinstance(update, Inbound):
            self._on_message()
        return receipt

    async def load_cursor(self, name: str = "") -> str | None:
        return await self._inbox.load_cursor(self._key, name)

    async def save_cursor(self, cursor: Cursor) -> None:
        self._check_open()
        await self._inbox.save_cursor(self._key, cursor, self._fence)

    async def confirm(self, key: str, message_id: str) -> None:
        self._check_open()
        await self._outbox.confirm(self._key, key, message_id)

    async def report_failed(self, key: str, error: SendRejected) -> bool:
        self._check_open()
        return await self._outbox.report_failed(self._key, key, error)

    def report_connected(self) -> None:
        if self._is_open:
            self._receiving_since = self._receiving_since or self._clock.now()
            self._on_connected()

    def report_linking(self, prompt: LinkingPrompt) -> None:
        if self._is_open:
            self._on_linking(prompt)

    def _check_open(self) -> None:
        if not self._is_open:
            raise LeaseLost("This connection has ended. The platform sends the update again to the next one.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfiguredAccount:
    """An account, and how its adapter is created: a new one for every connection."""

    platform: Platform
    account: str  # its name in config.yaml; empty for the only one
    create: Callable[[], Awaitable[Adapter]] = field(repr=False)  # raises AccountRefused if its settings do not work
    capabilities: Capabilities = field(default_factory=Capabilities, repr=False)  # before the platform has said more
    problem: str | None = None  # why it can't be connected with these settings, in words
    problem_path: tuple[str, ...] = field(default=(), repr=False)  # of the setting that is wrong, if it is one
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
    shown = [each for each in sorted(secrets, key=len, reverse=True) if len(each) >= _MIN_SECRET_CHARS]

    def hide(words: str) -> str:
        for secret in shown:  # one may be part of another
            words = words.replace(secret, HIDDEN)
        return words

    return edit_text(text, hide)
