"""The Bot API, through python-telegram-bot's `Bot`: the only module that talks to Telegram.

Always true: every failure is one of Palaver's errors, and says honestly whether Telegram may have acted; the token,
which is part of every address, is in none of them.
"""

from __future__ import annotations

import functools
import logging
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
)
from telegram.constants import ReactionEmoji
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from palaver.core.errors import AccountRefused, ConnectionLost, DeliveryError, LimitReached, SendRejected, SendRetryable
from palaver.platforms.telegram.failures import ApiRefusal, NotSentError, make_delivery_error, make_platform_error
from palaver.platforms.telegram.inbound import ALLOWED_UPDATES, GENERAL_TOPIC_ID
from palaver.platforms.telegram.outbound import MAX_PRESS_ANSWER_CHARS, MessageBody, choose_file_method

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from palaver.delivery.adapter import OutgoingFile
    from palaver.platforms.telegram.manifest import TelegramSettings
    from palaver.sessions.delivery import Address, Button

log = logging.getLogger(__name__)

MAX_DOWNLOAD_BYTES: Final = 20 * 1024 * 1024
DOWNLOAD_CHUNK_BYTES: Final = 64 * 1024
POLL_SECONDS: Final = 30
MAX_UPDATES_PER_POLL: Final = 100
BUTTONS_PER_ROW: Final = 3
CONNECT_TIMEOUT_SECONDS: Final = 10.0
ANSWER_TIMEOUT_SECONDS: Final = 30.0
PRESS_TIMEOUT_SECONDS: Final = 5.0  # other updates wait for it
UPLOAD_TIMEOUT_SECONDS: Final = 180.0

_REACTIONS: Final = frozenset(emoji.value for emoji in ReactionEmoji)

T = TypeVar("T")


class _BotRequest(HTTPXRequest):
    """The SDK's HTTP client. It tells refusals by the Bot API, and requests that never left, from the rest."""

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        try:
            status, payload = await super().do_request(*args, **kwargs)
        except TelegramError as error:
            # Only these happen before the request is written to the connection.
            if isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
                raise NotSentError(str(error)) from error.__cause__
            raise
        if status >= 300:
            raise ApiRefusal.from_response(status, payload)
        return status, payload


class _PollingBot(Bot):
    """The SDK's bot, which also returns updates as JSON, so that one it does not know cannot stop the others."""

    async def fetch_updates(self, parameters: dict[str, Any], *, read_timeout: float) -> list[dict[str, Any]]:
        updates: list[dict[str, Any]] = await self._post("getUpdates", parameters, read_timeout=read_timeout)
        return updates


class TelegramClient:
    """One bot's connection."""

    def __init__(self, settings: TelegramSettings, *, poll_seconds: int = POLL_SECONDS) -> None:
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every address, with the token
        self._token = settings.bot_token.get_secret_value()
        self._poll_seconds = poll_seconds
        self._requests = [_make_request(pool_size) for pool_size in (1, 64)]
        poll_request, request = self._requests
        self._bot = _PollingBot(
            self._token,
            base_url=f"{settings.api_url}/bot",
            base_file_url=f"{settings.api_url}/file/bot",
            request=request,
            get_updates_request=poll_request,
        )
        self._is_open = False
        self._flooded_chat: tuple[str, float] | None = None  # the chat that last had to wait, and until when

    async def open(self) -> None:
        """Allow requests, also again after `close`."""
        for request in self._requests:
            await request.initialize()
        self._is_open = True

    async def close(self) -> None:
        """End every request and close every connection."""
        self._is_open = False
        for request in self._requests:
            await request.shutdown()

    # ---- receiving -------------------------------------------------------------------------------------------

    async def get_me(self) -> Mapping[str, Any]:
        """Return our bot as Telegram describes it."""
        return (await self._connect(self._bot.get_me)).to_dict()

    async def get_updates(self, offset: int | None, *, waits: bool = True) -> list[dict[str, Any]]:
        """Return updates from `offset` on, which confirms those before it; if there are none, wait a while for them."""
        poll_seconds = self._poll_seconds if waits else 0
        parameters: dict[str, Any] = {
            "offset": offset,
            "limit": MAX_UPDATES_PER_POLL,
            "timeout": poll_seconds,
            "allowed_updates": list(ALLOWED_UPDATES),
        }
        read_timeout = poll_seconds + CONNECT_TIMEOUT_SECONDS
        return await self._connect(lambda: self._bot.fetch_updates(parameters, read_timeout=read_timeout))

    async def get_webhook_url(self) -> str:
        """Return where Telegram sends the updates of this bot; empty if it is asked for them."""
        return (await self._connect(self._bot.get_webhook_info)).url

    async def set_webhook(self, url: str, secret: str) -> None:
        await self._connect(
            lambda: self._bot.set_webhook(url, secret_token=secret, allowed_updates=list(ALLOWED_UPDATES))
        )

    async def delete_webhook(self) -> None:
        await self._connect(self._bot.delete_webhook)

    async def set_commands(self, commands: Sequence[tuple[str, str]]) -> None:
        """Fill the menu beside the input field."""
        await self._connect(lambda: self._bot.set_my_commands([BotCommand(*command) for command in commands]))

    async def download(self, file_id: str, size: int | None) -> AsyncIterator[bytes]:
        """Download a file that a person has sent. Raises LimitReached if Telegram does not give it to bots."""
        if size is not None and size > MAX_DOWNLOAD_BYTES:
            raise _make_size_error(size)
        try:
            file = await self._connect(lambda: self._bot.get_file(file_id))
        except ConnectionLost as error:
            if isinstance(error.__cause__, ApiRefusal) and "file is too big" in error.__cause__.description.lower():
                raise _make_size_error(size) from None
            raise
        try:
            content = await self._connect(lambda: file.download_as_bytearray(read_timeout=UPLOAD_TIMEOUT_SECONDS))
        except AccountRefused:  # here 404 is not about the token
            raise ConnectionLost("Telegram no longer has this file.") from None
        view = memoryview(content)
        for start in range(0, len(view), DOWNLOAD_CHUNK_BYTES):
            yield bytes(view[start : start + DOWNLOAD_CHUNK_BYTES])

    # ---- sending ---------------------------------------------------------------------------------------------

    async def send_text(
        self, address: Address, body: MessageBody, *, reply_to: str | None = None, buttons: Sequence[Button] = ()
    ) -> str:
        """Send a message; return its id."""
        if body.rich is not None:
            try:
                return await self._send_rich(address, body.rich, reply_to, buttons)
            except DeliveryError as error:
                if not _is_content_refused(error):
                    raise
                log.info("telegram_rich_message_refused", extra={"reason": str(error.__cause__)})
        message = await self._deliver(
            address,
            lambda: self._bot.send_message(
                _read_chat(address),
                body.text,
                entities=_make_entities(body),
                message_thread_id=_read_thread(address),
                reply_parameters=_make_reply(reply_to),
                reply_markup=_make_keyboard(buttons),
                link_preview_options=LinkPreviewOptions(is_disabled=True),
            ),
        )
        return str(message.message_id)

    async def _send_rich(self, address: Address, markdown: str, reply_to: str | None, buttons: Sequence[Button]) -> str:
        optional = {
            "message_thread_id": _read_thread(address),
            "reply_parameters": _make_reply(reply_to),
            "reply_markup": _make_keyboard(buttons),
        }
        parameters: dict[str, Any] = {"chat_id": _read_chat(address), "rich_message": {"markdown": markdown}}
        parameters |= {name: value for name, value in optional.items() if value is not None}
        message = await self._deliver(
            address, lambda: self._bot.do_api_request("sendRichMessage", api_kwargs=parameters, return_type=Message)
        )
        return str(message.message_id)

    async def send_file(self, address: Address, file: OutgoingFile, *, reply_to: str | None = None) -> str:
        """Send a file; return the id of its message."""
        content = b"".join([chunk async for chunk in file.read()])
        method = choose_file_method(file.media_type, file.size)
        try:
            return await self._send_as(method, address, content, file.name, reply_to)
        except DeliveryError as error:
            # A picture that is too long or too wide, or sound in another encoding, can still be sent as a file.
            if method == "document" or not _is_content_refused(error):
                raise
        return await self._send_as("document", address, content, file.name, reply_to)

    async def _send_as(self, method: str, address: Address, content: bytes, name: str, reply_to: str | None) -> str:
        send: Callable[..., Awaitable[Message]] = getattr(self._bot, f"send_{method}")
        message = await self._deliver(
            address,
            lambda: send(
                _read_chat(address),
                InputFile(content, filename=name),
                message_thread_id=_read_thread(address),
                reply_parameters=_make_reply(reply_to),
            ),
        )
        return str(message.message_id)

    async def edit_text(
        self, address: Address, message_id: str, body: MessageBody, buttons: Sequence[Button] = ()
    ) -> None:
        """Replace the text and the buttons of a message."""
        try:
            await self._deliver(
                address,
                lambda: self._bot.edit_message_text(
                    body.text,
                    _read_chat(address),
                    int(message_id),
                    entities=_make_entities(body),
                    reply_markup=_make_keyboard(buttons),
                    link_preview_options=LinkPreviewOptions(is_disabled=True),
                ),
                is_repeatable=True,
            )
        except SendRejected as error:
            if not _is_refusal(error, "message is not modified"):
                raise

    async def delete_message(self, address: Address, message_id: str) -> None:
        try:
            await self._deliver(
                address,
                lambda: self._bot.delete_message(_read_chat(address), int(message_id)),
                is_repeatable=True,
            )
        except SendRejected as error:
            if not _is_refusal(error, "message to delete not found", "message_id_invalid"):
                raise

    async def send_typing(self, address: Address) -> None:
        await self._deliver(
            address,
            lambda: self._bot.send_chat_action(_read_chat(address), "typing", message_thread_id=_read_thread(address)),
            is_repeatable=True,
        )

    async def send_draft(self, address: Address, draft_id: int, body: MessageBody) -> None:
        """Show a growing text in a private chat; it disappears with the next message, or after 30 seconds."""
        await self._deliver(
            address,
            lambda: self._bot.send_message_draft(
                int(address.chat_id),
                draft_id,
                body.text,
                entities=_make_entities(body),
                message_thread_id=_read_thread(address),
            ),
            is_repeatable=True,
        )

    async def set_reaction(self, address: Address, message_id: str, emoji: str) -> None:
        plain = emoji.removesuffix(
            "\ufe0f"
        )  # keyboards add it, and the list of reactions has some with and some without
        offered = next((each for each in (emoji, plain) if each in _REACTIONS), None)
        if emoji and offered is None:
            raise SendRejected(f"Telegram does not offer {emoji} as a reaction.")
        reactions = [ReactionTypeEmoji(offered)] if offered else []
        await self._deliver(
            address,
            lambda: self._bot.set_message_reaction(_read_chat(address), int(message_id), reactions),
            is_repeatable=True,
        )

    async def answer_press(self, press_id: str, text: str | None) -> None:
        """End the waiting sign on a button. It fails if the press is older than some seconds, which is no harm."""
        shown = text[:MAX_PRESS_ANSWER_CHARS] if text else None
        try:
            await self._connect(
                lambda: self._bot.answer_callback_query(press_id, shown, read_timeout=PRESS_TIMEOUT_SECONDS)
            )
        except ConnectionLost as error:
            log.info("telegram_press_not_answered", extra={"reason": str(error)})

    # ---- calls and their failures ----------------------------------------------------------------------------

    async def _connect(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a request that sends no message. Raises AccountRefused or ConnectionLost."""
        if not self._is_open:
            raise ConnectionLost("The connection to Telegram is closed.")
        try:
            return await call()
        except TelegramError as error:
            raise make_platform_error(error, self._token) from error

    async def _deliver(self, address: Address, call: Callable[[], Awaitable[T]], *, is_repeatable: bool = False) -> T:
        """Make a request about a chat; raises a DeliveryError.

        If Telegram may have acted on a request that does no harm when it is repeated, it can be retried.
        """
        if not self._is_open:
            raise SendRetryable("The connection to Telegram is closed.")
        try:
            return await call()
        except TelegramError as error:
            is_whole_account = isinstance(error, ApiRefusal) and self._note_flood(address, error)
            raise make_delivery_error(
                error, self._token, is_whole_account=is_whole_account, is_repeatable=is_repeatable
            ) from error

    def _note_flood(self, address: Address, error: ApiRefusal) -> bool:
        """Return whether Telegram asks the whole account to wait.

        It does not say so. But if a second chat has to wait while the first still does, it is not about one chat.
        """
        if error.retry_after is None:
            return False
        now = time.monotonic()
        before = self._flooded_chat
        self._flooded_chat = (address.chat_id, now + error.retry_after)
        return before is not None and before[0] != address.chat_id and before[1] > now


def _make_request(pool_size: int) -> _BotRequest:
    return _BotRequest(
        connection_pool_size=pool_size,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=ANSWER_TIMEOUT_SECONDS,
        write_timeout=ANSWER_TIMEOUT_SECONDS,
        pool_timeout=CONNECT_TIMEOUT_SECONDS,
        media_write_timeout=UPLOAD_TIMEOUT_SECONDS,
        httpx_kwargs={"verify": _load_certificates()},
    )


@functools.cache
def _load_certificates() -> ssl.SSLContext:
    """Load the certificate authorities once: it takes as long as many requests, and every connection needs them."""
    return httpx.create_ssl_context()


def _is_content_refused(error: DeliveryError) -> bool:
    """Whether Telegram refuses this kind of message, or does not know it, so that a simpler one may be sent."""
    cause = error.__cause__
    return isinstance(cause, ApiRefusal) and cause.status in {400, 404} and not cause.is_about_chat


def _is_refusal(error: SendRejected, *descriptions: str) -> bool:
    cause = error.__cause__
    return isinstance(cause, ApiRefusal) and any(text in cause.description.lower() for text in descriptions)


def _make_size_error(size: int | None) -> LimitReached:
    measured = f" This one has {size / 1024 / 1024:.0f} MB." if size else ""
    return LimitReached(f"Telegram lets bots download files of up to 20 MB.{measured}")


def _make_entities(body: MessageBody) -> list[MessageEntity] | None:
    return [MessageEntity(**entity) for entity in body.entities] or None


def _make_reply(message_id: str | None) -> ReplyParameters | None:
    # The answer also arrives if the question was deleted meanwhile.
    return ReplyParameters(int(message_id), allow_sending_without_reply=True) if message_id else None


def _read_chat(address: Address) -> int | str:
    return address.chat_id if address.chat_id.startswith("@") else int(address.chat_id)


def _read_thread(address: Address) -> int | None:
    thread = int(address.thread_id) if address.thread_id else None
    return None if thread == GENERAL_TOPIC_ID else thread


def _make_keyboard(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    keys = [InlineKeyboardButton(button.label, callback_data=button.data) for button in buttons]
    rows = [keys[start : start + BUTTONS_PER_ROW] for start in range(0, len(keys), BUTTONS_PER_ROW)]
    return InlineKeyboardMarkup(rows) if rows else None
