"""Turns failed requests to the Bot API into Palaver's errors, in words, and never with the token."""

from __future__ import annotations

from functools import partial
from typing import Final

from telegram.error import NetworkError, TelegramError

from palaver.core.errors import ChatMovedAway, DeliveryError
from palaver.core.texts import say
from palaver.platforms.common import failures
from palaver.platforms.common.failures import Refusal, RequestError, RequestFailed, describe_forbidden
from palaver.platforms.common.inbound import parse_json_object

ACCESS_REFUSED: Final = say(
    "telegram.access_refused",
    "Telegram refuses the bot token: it was revoked, or it is not complete. Send /mybots to"
    " @BotFather, choose your bot and then API Token, and set it as bot_token in the server"
    " settings or as TELEGRAM_BOT_TOKEN.",
)
OTHER_POLLER: Final = say(
    "telegram.other_poller",
    "Another program receives the messages of this bot with the same token. Stop the other one,"
    " or create a second bot with @BotFather for it. If there is none, revoke the token there"
    " (/revoke) and set the new one.",
)
WEBHOOK_ACTIVE: Final = say(
    "telegram.webhook_active",
    "Telegram sends the messages of this bot to a webhook of another program. If that program is"
    " no longer used, open https://api.telegram.org/bot<token>/deleteWebhook with your token in a"
    " browser, and start again.",
)
DEFAULT_WAIT_SECONDS: Final = 5.0
REMOVED: Final = "[removed]"  # stands for the token, which is part of every address of the Bot API
# What the description of a refusal contains, and what it means for people.
_UNREACHABLE: Final = {
    "blocked by the user": say("telegram.blocked", "The person has blocked the bot on Telegram."),
    "user is deactivated": say("telegram.account_deleted", "The person has deleted their Telegram account."),
    "bot was kicked": say("telegram.bot_removed", "The bot was removed from this chat."),
    "bot is not a member": say("telegram.bot_not_chat", "The bot is not in this chat."),
    "can't initiate conversation": say("telegram.must_write_first", "The person has to write to the bot first."),
    "can't send messages to bots": say("telegram.no_bots", "Bots on Telegram cannot write to each other."),
    **dict.fromkeys(
        ("chat not found", "peer_id_invalid"),
        say("telegram.chat_unknown", "Telegram does not know this chat, or the bot was never in it."),
    ),
    **dict.fromkeys(("group chat was deactivated", "group chat was deleted"), "The group was deleted."),
    "message thread not found": "The topic was deleted.",
    **dict.fromkeys(
        ("have no rights to send", "chat_write_forbidden"),
        say("telegram.may_not_write", "The bot may not write in this chat. Let an administrator allow it."),
    ),
    "not enough rights": say("telegram.may_not_act", "The bot may not do this here. Let an administrator allow it."),
    "need administrator rights": say(
        "telegram.not_administrator", "The bot has to be an administrator of this channel to write there."
    ),
}


class NotSentError(NetworkError):
    """The request never left this machine: Telegram could not be reached."""


class ApiRefusal(TelegramError, Refusal):
    """The Bot API has answered that it did not do it.

    After a status of 500 and more the message may be there all the same: Telegram only failed to say so.
    """

    def __init__(self, status: int, payload: bytes) -> None:
        """Read an answer that is not a success; it need not come from Telegram itself."""
        fields = parse_json_object(payload) or {}
        parameters = fields.get("parameters") or {}
        self.status = status
        self.reason = str(fields.get("description") or f"HTTP status {status}")
        self.new_chat_id: int | None = parameters.get("migrate_to_chat_id")
        self.may_have_arrived = status >= 500
        super().__init__(self.reason)
        if status >= 500:
            return
        retry_after = parameters.get("retry_after")
        if retry_after is not None or status == 429:
            self.wait_seconds = float(retry_after or DEFAULT_WAIT_SECONDS)
        elif status in {401, 404}:
            self.account_reason = ACCESS_REFUSED
        elif status == 409 and self.says("webhook"):
            self.account_reason = WEBHOOK_ACTIVE
        elif status == 409:
            self.outage_text = OTHER_POLLER
        self.chat_reason = next((text for part, text in _UNREACHABLE.items() if self.says(part)), None)
        if self.chat_reason is None and status == 403:
            self.chat_reason = describe_forbidden("Telegram", self.reason)

    def says(self, text: str) -> bool:
        return text in self.reason.lower()


def read_failure(error: TelegramError, token: str) -> RequestError:
    """Return what a request has failed with, without the token."""
    if isinstance(error, ApiRefusal):
        return error
    return RequestFailed(str(error).replace(token, REMOVED), may_have_arrived=not isinstance(error, NotSentError))


make_platform_error = partial(failures.make_platform_error, "Telegram")


def make_delivery_error(error: RequestError, *, is_repeatable: bool = False) -> DeliveryError:
    if isinstance(error, ApiRefusal) and error.new_chat_id is not None:
        return ChatMovedAway("The group has become a supergroup with another id.", new_chat_id=str(error.new_chat_id))
    return failures.make_delivery_error("Telegram", error, is_repeatable=is_repeatable)
