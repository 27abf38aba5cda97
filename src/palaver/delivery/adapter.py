"""The interface of a platform adapter: one account on one platform.

An adapter does four things. `probe` signs in and says what is missing. `run` receives: it passes every update to
`AccountLink.accept`, and acknowledges an update to the platform only after that call has returned. `render` turns an
answer into messages of the platform. `send`, `edit` and the others call the platform, and report the outcome honestly:
they return the platform's id of the message, or raise a `DeliveryError`. Everything else is common code: who may speak,
what a group message means, streaming, typing, pace, retries, order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from palaver.core.dataclass import dataclass
from palaver.delivery.model import Capabilities, LinkingPrompt
from palaver.sessions.delivery import Address, Button as Button, DeliveryKind  # noqa: PLC0414  (adapters import it from here)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from palaver.core.errors import SendRejected
    from palaver.core.source import Platform
    from palaver.sessions.inbound import AnyUpdate, Cursor, Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountInfo:
    """Our account, as the platform describes it after signing in."""

    user_id: str | None = None  # our account's own id there
    name: str | None = None  # as people see it, such as @palaver_bot
    warnings: tuple[str, ...] = ()  # what is missing: an intent, a scope, a switch, a version; in words, with the fix
    details: tuple[str, ...] = ()  # what an operator may want to know: a version, the age of a linked device
    is_linked: bool = True  # False: it waits until an owner links it with a phone, and `run` shows how


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file to send."""

    name: str
    media_type: str
    size: int
    read: Callable[[], AsyncIterator[bytes]] = field(compare=False, repr=False)  # its bytes, in chunks


async def _mark_nothing() -> None:
    """Previews have keys, or are found by them: they need no mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """One message to send: a part of a delivery, or the preview of an answer that is being written."""

    key: str  # the same in every attempt; at most 25 characters
    address: Address
    body: str  # one of the messages that `render` has returned; empty for a file
    file: OutgoingFile | None = None
    kind: DeliveryKind = DeliveryKind.ANSWER
    reply_to: str | None = None  # the platform's id of the message that it answers
    buttons: Sequence[Button] = ()
    attempt: int = 1
    is_preview: bool = False  # it grows until the answer is complete
    # See `Adapter.marks_sending`.
    mark_sending: Callable[[], Awaitable[None]] = field(default=_mark_nothing, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """An HTTP request that a platform sends to us. Nothing about it is trusted until the adapter has verified it."""

    method: str
    headers: Mapping[str, str]  # names in lower case
    query: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookResponse:
    """The answer to such a request."""

    status: int = 200
    body: bytes = b""
    media_type: str = "text/plain; charset=utf-8"
    retry_after: int | None = None  # seconds after which the platform or program should send the request again


class AccountLink(Protocol):
    """The gateway, as an adapter reaches it. It is valid until `run` returns or is canceled."""

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        """Store an update durably, together with the cursor after it.

        What can never be accepted, such as a message that is too long, is passed over. Raises LeaseLost if another
        process runs this account now: then `run` has to end. A message with files is accepted when they are
        downloaded: an adapter that receives the updates of several chats one after the other uses `Intake`, so that
        no person waits for another person's file.
        """

    async def load_cursor(self, name: str = "") -> str | None:
        """Return the cursor that was stored last; None at the first start."""

    async def save_cursor(self, cursor: Cursor) -> None:
        """Store a cursor for updates that contained nothing to accept. Raises LeaseLost like `accept`."""

    async def confirm(self, key: str, message_id: str) -> None:
        """Report that a message of ours has arrived, because its echo or receipt came: it is no longer uncertain."""

    async def report_failed(self, key: str, error: SendRejected) -> bool:
        """Report that a message of ours has not arrived, because the platform said so after it had taken it.

        Return False while that message is still being sent: then report it again later.
        """

    def report_connected(self) -> None:
        """Report that the account receives: a poll was answered, the platform has greeted us, a pong came.

        Without it for longer than the adapter's `silence_seconds`, the account is unresponsive and connected again.
        """

    def report_linking(self, prompt: LinkingPrompt) -> None:
        """Report what an owner has to do on their phone to link this account; again whenever the code changes.

        It counts as progress like `report_connected`, which ends it.
        """


class Adapter(ABC):
    """One account on one platform. Subclasses set `platform` and `capabilities`."""

    platform: Platform
    account: str = ""  # its name in config.yaml; empty for the only one
    capabilities: Capabilities = Capabilities()
    silence_seconds: float = 120.0  # how long `run` may go without `report_connected`
    # `send` awaits `message.mark_sending()` right before the first request that can deliver the message: after it has
    # connected, signed in, waited and uploaded. If the process dies before that, the message is sent again; after it,
    # it may have arrived. When the mark raises, nothing may be sent. False: it is marked before `send` is called.
    marks_sending: bool = False
    max_webhook_bytes: int = 0  # of the body of a request to its webhook; 0: it has none

    async def probe(self) -> AccountInfo:
        """Sign in, and find out what is missing. Raises AccountRefused or ConnectionLost.

        It is called before `run`, and again while `run` runs when an owner tests the connection.
        """
        return AccountInfo()

    @abstractmethod
    async def run(self, link: AccountLink) -> None:
        """Receive updates until canceled.

        Raises AccountRefused when connecting again does not help. After any other error, or when it returns, the
        account is connected again after a pause.
        """

    async def handle_webhook(self, link: AccountLink, request: WebhookRequest) -> WebhookResponse:
        """Answer a request to this account's webhook, `/hooks/<platform>/<account>`. It is called while `run` runs.

        Where people send files, `WebhookIntake` accepts what is in it, and answers in time.
        """
        raise NotImplementedError

    async def close(self) -> None:  # noqa: B027  (an adapter without connections has nothing to close)
        """Close every connection. The platform sends again what was received but not accepted."""

    def render(self, markdown: str) -> list[str]:
        """Return the messages that a text becomes, each short enough for the platform.

        Pure and repeatable. The messages are stored, and passed to `send` and `edit` as `body`: they may have any form
        that this adapter reads, such as JSON with a text and its formats.
        """
        from palaver.delivery.splitting import split_markdown

        return split_markdown(markdown, self.capabilities)

    @abstractmethod
    async def send(self, message: OutgoingMessage) -> str | None:
        """Send a message and return the platform's id of it.

        Raises SendRetryable or SendRejected when it was certainly not sent, TargetUnreachable when the address no
        longer exists, ChatMovedAway when it has another address now, and SendUncertain when it may have arrived. Any
        other error counts as uncertain.
        """

    async def find_sent(self, message: OutgoingMessage, sent_at: datetime) -> str | None:
        """Return the platform's id of a message that may have been sent then; None if it was certainly not sent.

        Raises SendUncertain while that is not known: then it is called again later, and not for ever.
        """
        raise NotImplementedError

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        """Replace a message that was sent. An unchanged message is no error. Raises like `send`.

        It is called only if the capabilities say so, like all methods below.
        """
        raise NotImplementedError

    async def delete(self, address: Address, message_id: str) -> None:
        """Delete a message that was sent; one that no longer exists is no error. Raises like `send`."""
        raise NotImplementedError

    async def show_typing(self, address: Address) -> None:
        """Show people in a chat that the agent is working. It is called again while that is so.

        Raises SendRejected where this chat has no such sign: then 👀 is shown on the message, if the platform reacts.
        """
        raise NotImplementedError

    async def show_typing_for(self, address: Address, message_id: str | None) -> None:
        """Show it while this message is being answered; for platforms that show it on a message."""
        await self.show_typing(address)

    async def stop_typing(self, address: Address) -> None:  # noqa: B027  (on most platforms the sign ends by itself)
        """Take the sign back, where it does not end by itself."""

    async def show_draft(self, address: Address, key: str, body: str) -> bool:
        """Show a growing text with the platform's own means; return False where this chat does not support it."""
        raise NotImplementedError

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """React to a message; an empty emoji takes the reaction back."""
        raise NotImplementedError

    async def answer_press(self, press_id: str, text: str | None) -> None:  # noqa: B027
        """Tell the person who pressed a button what happened, where the platform waits for that."""
