"""One Telegram bot: fetches updates, and advances only after they are stored; sends, edits and reacts."""

from __future__ import annotations

import asyncio
import hmac
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from telegram import (
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

from palaver.core.errors import AccountRefused, ConnectionLost, DeliveryError, SendRejected
from palaver.core.source import Platform
from palaver.core.texts import chat_language, say, translate
from palaver.delivery.adapter import (
    AccountInfo,
    AccountLink,
    Adapter,
    OutgoingFile,
    OutgoingMessage,
    WebhookRequest,
    WebhookResponse,
)
from palaver.gateway.intake import Intake, WebhookIntake
from palaver.inbox.registry import COMMANDS
from palaver.platforms.common.inbound import UNREADABLE_ERRORS, accept_updates, parse_json_object
from palaver.platforms.telegram.client import TelegramClient
from palaver.platforms.telegram.failures import ApiRefusal
from palaver.platforms.telegram.inbound import ALLOWED_UPDATES, GENERAL_TOPIC_ID, BotIdentity, parse_update
from palaver.platforms.telegram.manifest import CAPABILITIES, TelegramSettings
from palaver.platforms.telegram.outbound import (
    MAX_PRESS_ANSWER_CHARS,
    MessageBody,
    choose_file_method,
    choose_menu_commands,
    compute_draft_id,
    render_markdown,
)
from palaver.sessions.inbound import AnyUpdate, ButtonPressed, Cursor, Receipt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from palaver.platforms.manifest import AccountPlace
    from palaver.sessions.delivery import Address, Button

log = logging.getLogger(__name__)

MAX_WEBHOOK_BYTES: Final = 1024 * 1024
WEBHOOK_CHECK_SECONDS: Final = 60.0
BUTTONS_PER_ROW: Final = 3
PRESS_TIMEOUT_SECONDS: Final = 5.0  # other updates wait for it
BUSY_POLL_SECONDS: Final = 1.0  # between two polls while files are downloaded: a poll returns at once then
SECRET_HEADER: Final = "x-telegram-bot-api-secret-token"  # noqa: S105  (the name of a header)
PRIVACY_WARNING: Final = say(
    "telegram.privacy_warning",
    "The privacy mode of the bot is on: in groups it sees only commands and replies to it, unless"
    " it is an administrator. To let it see mentions and other messages, send /setprivacy to"
    " @BotFather, choose the bot and then Disable. Then remove the bot from each group and add it"
    " again.",
)
NO_PUBLIC_URL: Final = say(
    "telegram.no_public_url",
    "The mode webhook needs an address that Telegram can reach: set web.public_url in the server"
    " settings, or use the mode polling.",
)
NO_GROUPS_WARNING: Final = say(
    "telegram.no_groups_warning",
    "The bot can't be added to groups. To allow it, send /setjoingroups to @BotFather, choose the bot and then Enable.",
)
_REACTIONS: Final = frozenset(emoji.value for emoji in ReactionEmoji)


class TelegramAdapter(Adapter):
    platform = Platform.TELEGRAM
    capabilities = CAPABILITIES
    marks_sending = True

    def __init__(
        self,
        settings: TelegramSettings,
        place: AccountPlace,
        *,
        commands: Sequence[tuple[str, str]] = (),
        client: TelegramClient | None = None,
    ) -> None:
        self.account = place.account
        self._settings = settings
        self.max_webhook_bytes = MAX_WEBHOOK_BYTES if settings.mode == "webhook" else 0
        self._webhook_url = place.webhook_url
        self._commands = choose_menu_commands(commands)
        self._client = client or TelegramClient(settings)
        self._bot: BotIdentity | None = None
        self._has_set_commands = False
        self._intake = WebhookIntake(self._answer_press_of)
        self._receiving = asyncio.Lock()  # two polls of one bot would end each other

    # ---- receiving -------------------------------------------------------------------------------------------

    async def probe(self) -> AccountInfo:
        """Sign in, and say which switches keep the bot from reading groups."""
        if self._settings.mode == "webhook" and self._webhook_url is None:
            raise AccountRefused(NO_PUBLIC_URL)
        await self._client.open()
        me = (await self._client.call(self._client.bot.get_me)).to_dict()
        names = frozenset(name for name, _ in self._commands)
        self._bot = BotIdentity(id=me["id"], username=me.get("username", ""), commands=names)
        warnings: tuple[str, ...] = ()
        if not me.get("can_join_groups", True):
            warnings = (NO_GROUPS_WARNING,)
        elif not me.get("can_read_all_group_messages", True):
            warnings = (PRIVACY_WARNING,)
        return AccountInfo(user_id=str(self._bot.id), name=f"@{self._bot.username}", warnings=warnings)

    async def run(self, link: AccountLink) -> None:
        async with self._receiving:
            if self._bot is None:
                await self.probe()
            await self._client.open()
            await self._set_commands()
            if self._settings.mode == "webhook":
                await self._watch_webhook(link)
            else:
                await self._leave_own_webhook()
                await self._poll(link)

    async def _poll(self, link: AccountLink) -> None:
        """Fetch, store, advance: Telegram keeps an update until the next request names a higher number."""
        stored = await link.load_cursor()
        offset = int(stored) if stored else None
        received: set[int] = set()  # updates that are not stored yet: Telegram sends them again with the next ones
        is_connected = False  # the first request returns at once, so that the account is soon known to work
        async with Intake(link, self._answer_press_of) as intake:
            while True:
                updates = await self._client.get_updates(offset, waits=is_connected and not intake.is_busy)
                is_connected = True
                link.report_connected()
                new = {number: each for each in updates if (number := int(each["update_id"])) not in received}
                for number, update in sorted(new.items()):
                    received.add(number)
                    await accept_updates(intake, self._parse(update), Cursor(str(number + 1)))
                if intake.is_busy and not new:
                    await intake.wait_for_change(BUSY_POLL_SECONDS)
                if intake.cursor is not None:
                    offset = int(intake.cursor)
                    received = {number for number in received if number >= offset}

    def _parse(self, update: dict[str, Any]) -> Sequence[AnyUpdate]:
        """Return what an update contains. One that cannot be read is left out, so that it does not stop the rest."""
        assert self._bot is not None  # noqa: S101  (set by `probe`)
        try:
            return parse_update(update, self._bot, self._client.download)
        except UNREADABLE_ERRORS as error:
            log.warning("telegram_update_unreadable", extra={"update": update.get("update_id"), "reason": repr(error)})
            return []

    async def _answer_press_of(self, update: AnyUpdate, receipt: Receipt) -> None:
        if isinstance(update, ButtonPressed):
            await self.answer_press(update.press_id, receipt.reply)

    async def _set_commands(self) -> None:
        if not self._commands or self._has_set_commands:
            return
        try:
            commands = [BotCommand(*command) for command in self._commands]
            await self._client.call(self._client.bot.set_my_commands, commands=commands)
        except ConnectionLost as error:  # the bot works without its menu
            log.warning("telegram_menu_not_set", extra={"reason": str(error)})
        else:
            self._has_set_commands = True

    async def _leave_own_webhook(self) -> None:
        """Delete the webhook if it is ours, from before the mode was changed; that of another program stays."""
        url = await self._client.get_webhook_url()
        if url and url != self._webhook_url:
            raise AccountRefused.say(
                "telegram.webhook_elsewhere",
                "Telegram sends the messages of this bot to another program, at {host}. If it is no longer"
                " used, open https://api.telegram.org/bot<token>/deleteWebhook with your token in a browser."
                " Otherwise create a second bot with @BotFather.",
                host=urlsplit(url).hostname,
            )
        if url:
            await self._client.call(self._client.bot.delete_webhook)

    # ---- webhook ---------------------------------------------------------------------------------------------

    async def _watch_webhook(self, link: AccountLink) -> None:
        assert self._webhook_url is not None  # noqa: S101  (checked by `probe`)
        await self._client.call(
            self._client.bot.set_webhook,
            url=self._webhook_url,
            secret_token=self._settings.get_webhook_secret(),
            allowed_updates=list(ALLOWED_UPDATES),
        )
        while True:
            if await self._client.get_webhook_url() != self._webhook_url:
                raise ConnectionLost.say(
                    "telegram.webhook_changed", "Another program has changed the webhook of this bot."
                )
            link.report_connected()
            await asyncio.sleep(WEBHOOK_CHECK_SECONDS)

    async def handle_webhook(self, link: AccountLink, request: WebhookRequest) -> WebhookResponse:
        """Store the update of a request. Telegram repeats it until the answer is a success."""
        secret = request.headers.get(SECRET_HEADER, "")
        if self._settings.mode != "webhook" or request.method != "POST" or self._bot is None:
            return WebhookResponse(status=404)
        if not hmac.compare_digest(secret.encode(), self._settings.get_webhook_secret().encode()):
            return WebhookResponse(status=401)
        if (update := parse_json_object(request.body)) is None:
            return WebhookResponse(status=400)
        is_complete = await self._intake.accept(link, self._parse(update))
        return WebhookResponse(status=200 if is_complete else 503)

    async def close(self) -> None:
        await self._intake.close()
        await self._client.close()

    # ---- sending ---------------------------------------------------------------------------------------------

    def render(self, markdown: str) -> list[str]:
        return render_markdown(markdown, uses_rich_messages=self._settings.rich_messages)

    async def send(self, message: OutgoingMessage) -> str:
        _check_address(message.address)
        if message.file is not None:
            return await self._send_file(message, message.file)
        body = MessageBody.from_json(message.body)
        if body.rich is not None:
            try:
                rich_call, keyboard = self._client.bot.send_rich_message, _make_keyboard(message.buttons)
                return await self._send(message, rich_call, markdown=body.rich, reply_markup=keyboard)
            except DeliveryError as error:
                if not _is_content_refused(error):
                    raise
                log.info("telegram_rich_message_refused", extra={"reason": str(error.__cause__)})
        return await self._send(message, self._client.bot.send_message, **_make_content(body, message.buttons))

    async def _send(self, message: OutgoingMessage, call: Callable[..., Awaitable[Message]], **fields: Any) -> str:
        # The answer also arrives if the question was deleted meanwhile.
        reply = ReplyParameters(int(message.reply_to), allow_sending_without_reply=True) if message.reply_to else None
        sent = await self._client.deliver(
            message.address,
            call,
            mark=message.mark_sending,
            message_thread_id=_read_thread(message.address),
            reply_parameters=reply,
            **fields,
        )
        return str(sent.message_id)

    async def _send_file(self, message: OutgoingMessage, file: OutgoingFile) -> str:
        content = b"".join([chunk async for chunk in file.read()])
        method = choose_file_method(file.media_type, file.size)
        bot = self._client.bot
        try:
            field = {method: InputFile(content, filename=file.name)}
            return await self._send(message, getattr(bot, f"send_{method}"), **field)
        except DeliveryError as error:
            # A picture that is too long or too wide, or sound in another encoding, can still be sent as a file.
            if method == "document" or not _is_content_refused(error):
                raise
        return await self._send(message, bot.send_document, document=InputFile(content, filename=file.name))

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        body = MessageBody.from_json(message.body)
        try:
            await self._client.deliver(
                message.address,
                self._client.bot.edit_message_text,
                message_id=int(message_id),
                is_repeatable=True,
                **_make_content(body, message.buttons),
            )
        except SendRejected as error:
            if not _is_refusal(error, "message is not modified"):
                raise

    async def delete(self, address: Address, message_id: str) -> None:
        call = self._client.bot.delete_message
        try:
            await self._client.deliver(address, call, message_id=int(message_id), is_repeatable=True)
        except SendRejected as error:
            if not _is_refusal(error, "message to delete not found", "message_id_invalid"):
                raise

    async def show_typing(self, address: Address) -> None:
        call, thread_id = self._client.bot.send_chat_action, _read_thread(address)
        await self._client.deliver(address, call, action="typing", message_thread_id=thread_id, is_repeatable=True)

    async def show_draft(self, address: Address, key: str, body: str) -> bool:
        """Show a growing text, which disappears with the next message, or after 30 seconds.

        Only private chats have drafts, and their ids are positive.
        """
        if not address.chat_id.isdecimal():
            return False
        draft = MessageBody.from_json(body)
        try:
            await self._client.deliver(
                address,
                self._client.bot.send_message_draft,
                draft_id=compute_draft_id(key),
                text=draft.text,
                entities=_make_entities(draft),
                message_thread_id=_read_thread(address),
                is_repeatable=True,
            )
        except SendRejected:
            return False
        return True

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """React to a message. Telegram allows about 70 emoji, and refuses the others."""
        plain = emoji.removesuffix("\ufe0f")  # keyboards add it; Telegram's list has some with and some without
        offered = next((each for each in (emoji, plain) if each in _REACTIONS), None)
        if emoji and offered is None:
            raise SendRejected(f"Telegram does not offer {emoji} as a reaction.")
        reaction = [ReactionTypeEmoji(offered)] if offered else []
        call = self._client.bot.set_message_reaction
        await self._client.deliver(address, call, message_id=int(message_id), reaction=reaction, is_repeatable=True)

    async def answer_press(self, press_id: str, text: str | None) -> None:
        """End the waiting sign on a button. It fails if the press is older than some seconds, which is no harm."""
        shown = text[:MAX_PRESS_ANSWER_CHARS] if text else None
        try:
            call, seconds = self._client.bot.answer_callback_query, PRESS_TIMEOUT_SECONDS
            await self._client.call(call, callback_query_id=press_id, text=shown, read_timeout=seconds)
        except ConnectionLost as error:
            log.info("telegram_press_not_answered", extra={"reason": str(error)})


def _check_address(address: Address) -> None:
    is_name = address.chat_id.startswith("@")  # of a public channel or group
    for part in ("0" if is_name else address.chat_id, address.thread_id or "0"):
        if not part.removeprefix("-").isdecimal():
            raise SendRejected.say(
                "telegram.bad_chat",
                "{address} is not a chat on Telegram: its id is a number, such as -1001234567890.",
                address=str(address),
            )


def _is_content_refused(error: DeliveryError) -> bool:
    """Return whether Telegram refuses this kind of message, or does not know it, so that a simpler one may be sent."""
    cause = error.__cause__
    if not isinstance(cause, ApiRefusal) or cause.status not in {400, 404}:
        return False
    return cause.chat_reason is None and cause.new_chat_id is None


def _is_refusal(error: SendRejected, *descriptions: str) -> bool:
    cause = error.__cause__
    return isinstance(cause, ApiRefusal) and any(map(cause.says, descriptions))


def _make_content(body: MessageBody, buttons: Sequence[Button]) -> dict[str, Any]:
    return {
        "text": body.text,
        "entities": _make_entities(body),
        "reply_markup": _make_keyboard(buttons),
        "link_preview_options": LinkPreviewOptions(is_disabled=True),
    }


def _make_entities(body: MessageBody) -> list[MessageEntity] | None:
    return [MessageEntity(**entity) for entity in body.entities] or None


def _read_thread(address: Address) -> int | None:
    thread = int(address.thread_id) if address.thread_id else None
    return None if thread == GENERAL_TOPIC_ID else thread


def _make_keyboard(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    keys = [InlineKeyboardButton(button.label, callback_data=button.data) for button in buttons]
    rows = [keys[start : start + BUTTONS_PER_ROW] for start in range(0, len(keys), BUTTONS_PER_ROW)]
    return InlineKeyboardMarkup(rows) if rows else None


def create_adapter(settings: TelegramSettings, place: AccountPlace) -> Adapter:
    commands = [(command.name, translate(command.summary, chat_language.name)) for command in COMMANDS]
    return TelegramAdapter(settings, place, commands=commands)
