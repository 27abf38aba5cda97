"""One Telegram bot: fetches updates, and advances only after they are stored; sends, edits and reacts."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from palaver.core.errors import AccountRefused, ConnectionLost, InvalidInput, SendRejected
from palaver.core.source import Platform
from palaver.delivery.adapter import AccountInfo, Adapter, WebhookResponse
from palaver.gateway.intake import Intake, WebhookIntake
from palaver.inbox.registry import COMMANDS
from palaver.platforms.common.receiving import accept_updates
from palaver.platforms.telegram.client import TelegramClient
from palaver.platforms.telegram.inbound import BotIdentity, parse_update
from palaver.platforms.telegram.manifest import CAPABILITIES
from palaver.platforms.telegram.outbound import MessageBody, choose_menu_commands, compute_draft_id, render_markdown
from palaver.sessions.inbound import ButtonPressed, Cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.delivery.adapter import AccountLink, OutgoingMessage, WebhookRequest
    from palaver.platforms.manifest import AccountPlace
    from palaver.platforms.telegram.manifest import TelegramSettings
    from palaver.sessions.delivery import Address
    from palaver.sessions.inbound import AnyUpdate, Receipt

log = logging.getLogger(__name__)

MAX_WEBHOOK_BYTES: Final = 1024 * 1024
WEBHOOK_CHECK_SECONDS: Final = 60.0
BUSY_POLL_SECONDS: Final = 1.0  # between two polls while files are downloaded: a poll returns at once then
SECRET_HEADER: Final = "x-telegram-bot-api-secret-token"  # noqa: S105  (the name of a header)
PRIVACY_WARNING: Final = (
    "The privacy mode of the bot is on: in groups it sees only commands and replies to it, unless it is an "
    "administrator. To let it see mentions and other messages, send /setprivacy to @BotFather, choose the bot and then "
    "Disable. Then remove the bot from each group and add it again."
)
NO_PUBLIC_URL: Final = (
    "The mode webhook needs an address that Telegram can reach: set web.public_url in the server settings, or use the "
    "mode polling."
)
NO_GROUPS_WARNING: Final = (
    "The bot can't be added to groups. To allow it, send /setjoingroups to @BotFather, choose the bot and then Enable."
)


class TelegramAdapter(Adapter):
    """One bot on Telegram."""

    platform = Platform.TELEGRAM
    capabilities = CAPABILITIES

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
        me = await self._client.get_me()
        names = frozenset(name for name, _ in self._commands)
        self._bot = BotIdentity(id=me["id"], username=me.get("username", ""), commands=names)
        warnings = []
        if not me.get("can_join_groups", True):
            warnings.append(NO_GROUPS_WARNING)
        elif not me.get("can_read_all_group_messages", True):
            warnings.append(PRIVACY_WARNING)
        return AccountInfo(user_id=str(self._bot.id), name=f"@{self._bot.username}", warnings=tuple(warnings))

    async def run(self, link: AccountLink) -> None:
        """Receive updates, by asking for them or through the webhook."""
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
        except (AttributeError, KeyError, TypeError, ValueError, InvalidInput) as error:
            log.warning("telegram_update_unreadable", extra={"update": update.get("update_id"), "reason": repr(error)})
            return []

    async def _answer_press_of(self, update: AnyUpdate, receipt: Receipt) -> None:
        if isinstance(update, ButtonPressed):
            await self.answer_press(update.press_id, receipt.reply)

    async def _set_commands(self) -> None:
        if not self._commands or self._has_set_commands:
            return
        try:
            await self._client.set_commands(self._commands)
        except ConnectionLost as error:  # the bot works without its menu
            log.warning("telegram_menu_not_set", extra={"reason": str(error)})
        else:
            self._has_set_commands = True

    async def _leave_own_webhook(self) -> None:
        """Delete the webhook if it is ours, from before the mode was changed; that of another program stays."""
        url = await self._client.get_webhook_url()
        if not url:
            return
        if url == self._webhook_url:
            await self._client.delete_webhook()
            return
        raise AccountRefused(
            f"Telegram sends the messages of this bot to another program, at {urlsplit(url).hostname}. If it is no "
            "longer used, open https://api.telegram.org/bot<token>/deleteWebhook with your token in a browser. "
            "Otherwise create a second bot with @BotFather."
        )

    # ---- webhook ---------------------------------------------------------------------------------------------

    async def _watch_webhook(self, link: AccountLink) -> None:
        assert self._webhook_url is not None  # noqa: S101  (checked by `probe`)
        await self._client.set_webhook(self._webhook_url, self._settings.get_webhook_secret())
        while True:
            if await self._client.get_webhook_url() != self._webhook_url:
                raise ConnectionLost("Another program has changed the webhook of this bot.")
            link.report_connected()
            await asyncio.sleep(WEBHOOK_CHECK_SECONDS)

    async def handle_webhook(self, link: AccountLink, request: WebhookRequest) -> WebhookResponse:
        """Store the update of a request. Telegram repeats it until the answer is a success."""
        secret = request.headers.get(SECRET_HEADER, "")
        if self._settings.mode != "webhook" or request.method != "POST" or self._bot is None:
            return WebhookResponse(status=404)
        if not hmac.compare_digest(secret.encode(), self._settings.get_webhook_secret().encode()):
            return WebhookResponse(status=401)
        try:
            update = json.loads(request.body)
        except ValueError:
            update = None
        if not isinstance(update, dict):
            return WebhookResponse(status=400)
        is_complete = await self._intake.accept(link, self._parse(update))
        return WebhookResponse(status=200 if is_complete else 503)

    async def close(self) -> None:
        """End the poll and close the connections."""
        await self._intake.close()
        await self._client.close()

    # ---- sending ---------------------------------------------------------------------------------------------

    def render(self, markdown: str) -> list[str]:
        """Return the messages that a text becomes, as JSON with a text and its entities."""
        return render_markdown(markdown, uses_rich_messages=self._settings.rich_messages)

    async def send(self, message: OutgoingMessage) -> str:
        """Send a text or a file; return the id of the message."""
        _check_address(message.address)
        if message.file is not None:
            return await self._client.send_file(message.address, message.file, reply_to=message.reply_to)
        body = MessageBody.from_json(message.body)
        return await self._client.send_text(message.address, body, reply_to=message.reply_to, buttons=message.buttons)

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        """Replace the text and the buttons of a message."""
        body = MessageBody.from_json(message.body)
        await self._client.edit_text(message.address, message_id, body, message.buttons)

    async def delete(self, address: Address, message_id: str) -> None:
        """Delete a message of ours."""
        await self._client.delete_message(address, message_id)

    async def show_typing(self, address: Address) -> None:
        """Show "typing…" for five seconds."""
        await self._client.send_typing(address)

    async def show_draft(self, address: Address, key: str, body: str) -> bool:
        """Show a growing text; only private chats have drafts, and their ids are positive."""
        if not address.chat_id.isdecimal():
            return False
        try:
            await self._client.send_draft(address, compute_draft_id(key), MessageBody.from_json(body))
        except SendRejected:
            return False
        return True

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """React to a message. Telegram allows about 70 emoji, and refuses the others."""
        await self._client.set_reaction(address, message_id, emoji)

    async def answer_press(self, press_id: str, text: str | None) -> None:
        """Show a text to the person who pressed a button, or only end the waiting sign."""
        await self._client.answer_press(press_id, text)


def _check_address(address: Address) -> None:
    is_name = address.chat_id.startswith("@")  # of a public channel or group
    for part in ("0" if is_name else address.chat_id, address.thread_id or "0"):
        if not part.removeprefix("-").isdecimal():
            raise SendRejected(f"{address} is not a chat on Telegram: its id is a number, such as -1001234567890.")


def create_adapter(settings: TelegramSettings, place: AccountPlace) -> Adapter:
    return TelegramAdapter(settings, place, commands=[(command.name, command.summary) for command in COMMANDS])
