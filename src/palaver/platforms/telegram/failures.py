"""Turns failed requests to the Bot API into Palaver's errors, in words, and never with the token."""

from __future__ import annotations

from typing import Final, Self

from telegram.error import NetworkError, TelegramError

from palaver.core.errors import (
    AccountRefused,
    ChatMovedAway,
    ConnectionLost,
    DeliveryError,
    PlatformError,
    SendRejected,
    SendRetryable,
    TargetUnreachable,
)
from palaver.core.texts import say
from palaver.platforms.common.failures import make_outage_error, make_wait_error
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
# What the description of a refusal contains, and what it means for people.
_UNREACHABLE: Final = {
    "blocked by the user": say("telegram.blocked", "The person has blocked the bot on Telegram."),
    "user is deactivated": say("telegram.account_deleted", "The person has deleted their Telegram account."),
    "bot was kicked": say("telegram.bot_removed", "The bot was removed from this chat."),
    "bot is not a member": say("telegram.bot_not_chat", "The bot is not in this chat."),
    "can't initiate conversation": say("telegram.must_write_first", "The person has to write to the bot first."),
    "can't send messages to bots": say("telegram.no_bots", "Bots on Telegram cannot write to each other."),
    "chat not found": say("telegram.chat_unknown", "Telegram does not know this chat, or the bot was never in it."),
    "peer_id_invalid": say("telegram.chat_unknown", "Telegram does not know this chat, or the bot was never in it."),
    "group chat was deactivated": "The group was deleted.",
    "group chat was deleted": "The group was deleted.",
    "message thread not found": "The topic was deleted.",
    "have no rights to send": say(
        "telegram.may_not_write", "The bot may not write in this chat. Let an administrator allow it."
    ),
    "not enough rights": say("telegram.may_not_act", "The bot may not do this here. Let an administrator allow it."),
    "chat_write_forbidden": say(
        "telegram.may_not_write", "The bot may not write in this chat. Let an administrator allow it."
    ),
    "need administrator rights": say(
        "telegram.not_administrator", "The bot has to be an administrator of this channel to write there."
    ),
}


class NotSentError(NetworkError):
    """The request never left this machine: Telegram could not be reached."""


class ApiRefusal(TelegramError):
    """The Bot API has answered that it did not do it."""

    def __init__(
        self, status: int, description: str, *, retry_after: float | None = None, new_chat_id: int | None = None
    ) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.retry_after = retry_after
        self.new_chat_id = new_chat_id

    @classmethod
    def from_response(cls, status: int, payload: bytes) -> Self:
        """Read an answer that is not a success; it need not come from Telegram itself."""
        fields = parse_json_object(payload) or {}
        parameters = fields.get("parameters") or {}
        return cls(
            status,
            str(fields.get("description") or f"HTTP status {status}"),
            retry_after=parameters.get("retry_after"),
            new_chat_id=parameters.get("migrate_to_chat_id"),
        )

    @property
    def is_about_chat(self) -> bool:
        """Whether nothing at all can be sent to the chat."""
        return self.status == 403 or self.new_chat_id is not None or _find_unreachable(self) is not None


def make_platform_error(error: TelegramError, token: str) -> PlatformError:
    """Return what a request that is not about a chat has failed with."""
    if isinstance(error, ApiRefusal):
        description = error.description.lower()
        if error.status in {401, 404}:
            return AccountRefused(ACCESS_REFUSED)
        if error.status == 409 and "webhook" in description:
            return AccountRefused(WEBHOOK_ACTIVE)
        if error.status == 409:
            return ConnectionLost(OTHER_POLLER)
        if error.retry_after is not None:
            return ConnectionLost(
                say(
                    "platform.asks_wait_seconds",
                    "{platform} asks to wait {seconds} seconds.",
                    platform="Telegram",
                    seconds=f"{error.retry_after:.0f}",
                )
            )
    return ConnectionLost(
        say(
            "platform.not_reachable",
            "{platform} can't be reached right now: {reason}",
            platform="Telegram",
            reason=remove_token(str(error), token),
        )
    )


def make_delivery_error(
    error: TelegramError, token: str, *, is_whole_account: bool = False, is_repeatable: bool = False
) -> DeliveryError:
    """Return what a request about a chat has failed with."""
    if isinstance(error, ApiRefusal) and error.status < 500:
        return _make_refusal_error(error, is_whole_account=is_whole_account)
    reason = remove_token(str(error), token)
    # After a status of 500 and more the message may be there all the same: Telegram only failed to say so.
    may_have_arrived = not is_repeatable and not isinstance(error, NotSentError)
    return make_outage_error("Telegram", reason, may_have_arrived=may_have_arrived)


def _make_refusal_error(error: ApiRefusal, *, is_whole_account: bool) -> DeliveryError:
    if error.new_chat_id is not None:
        return ChatMovedAway("The group has become a supergroup with another id.", new_chat_id=str(error.new_chat_id))
    if error.retry_after is not None or error.status == 429:
        seconds = float(error.retry_after or 5)
        return make_wait_error("Telegram", seconds, whole_account=is_whole_account)
    if error.status in {401, 404}:
        return SendRetryable(ACCESS_REFUSED, whole_account=True)
    if (reason := _find_unreachable(error)) is not None:
        return TargetUnreachable(reason)
    if error.status == 403:
        return TargetUnreachable(
            say(
                "platform.bot_cannot_write",
                "{platform} does not let the bot write here: {reason}",
                platform="Telegram",
                reason=error.description,
            )
        )
    return SendRejected(
        say(
            "platform.message_refused",
            "{platform} has refused the message: {reason}",
            platform="Telegram",
            reason=error.description,
        )
    )


def _find_unreachable(error: ApiRefusal) -> str | None:
    description = error.description.lower()
    return next((reason for text, reason in _UNREACHABLE.items() if text in description), None)


def remove_token(text: str, token: str) -> str:
    """Return a text without the token: it is part of every address of the Bot API."""
    return text.replace(token, "[removed]")
