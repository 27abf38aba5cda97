"""Turns failed requests to Discord into Palaver's errors, in words, and never with a token."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Final

from palaver.core.errors import AccountRefused, ConnectionLost, DeliveryError, PlatformError, SendRetryable
from palaver.core.texts import say
from palaver.platforms.common import failures
from palaver.platforms.common.failures import (
    Refusal,
    RequestError,
    describe_forbidden,
    describe_outage,
    parse_retry_after,
)
from palaver.platforms.common.inbound import parse_json_object

ACCESS_REFUSED: Final = say(
    "discord.access_refused",
    "Discord refuses the bot token. It was reset, or it is not complete. Open"
    " https://discord.com/developers/applications, choose your application, then Bot, press Reset"
    " Token, and set the new one as bot_token in the server settings or as DISCORD_BOT_TOKEN.",
)
CONTENT_REFUSED: Final = say(
    "discord.content_refused",
    "Discord does not let this bot read messages. Open"
    " https://discord.com/developers/applications, choose your application, then Bot, turn on"
    " Message Content Intent under Privileged Gateway Intents, press Save Changes, and connect"
    " again.",
)
TOO_MANY_SERVERS: Final = say(
    "discord.too_many_servers",
    "Discord wants this bot to use several connections, because it is in too many servers."
    " Palaver has one connection for each bot: create a second application for some of the"
    " servers.",
)
UNKNOWN_MESSAGE: Final = 10008
UNKNOWN_INTERACTION: Final = 10062
NO_HISTORY_FOR_REPLY: Final = 160002
DEFAULT_WAIT_SECONDS: Final = 5.0
BLOCKED_WAIT_SECONDS: Final = 60.0  # of a refusal that does not come from Discord's API, but from what is before it
# Discord's error codes that concern the whole chat, and what they mean for people.
_UNREACHABLE: Final = {
    10003: say("discord.channel_gone", "This channel was deleted, or Discord does not know it."),
    10004: say("discord.server_gone", "The server was deleted, or the bot is no longer in it."),
    50001: say(
        "discord.channel_hidden",
        "The bot can't see this channel. Give its role the permission View Channel there.",
    ),
    50007: say(
        "discord.no_direct_messages",
        "Discord does not let the bot write to this person: they don't accept direct messages, or blocked the bot.",
    ),
    50008: say("discord.wrong_channel_type", "Messages can't be sent in a channel of this type."),
    50013: say(
        "discord.may_not_write",
        "The bot may not write here. Give its role the permission Send Messages, and Send Messages in Threads.",
    ),
    50278: say(
        "discord.no_common_server",
        "Discord does not let the bot write to this person: they share no server with it.",
    ),
    160005: "This thread is locked.",
}


class RequestRefused(Refusal):
    """Discord has answered that it did not do it. After a status of 500 and more it may have done so all the same."""

    def __init__(self, status: int, payload: bytes, retry_after: str | None) -> None:
        """Read an answer that is not a success; it need not come from Discord itself."""
        fields = parse_json_object(payload)
        self.is_from_api = fields is not None  # else it says nothing about the chat, and passes
        self.retry_after = parse_retry_after(retry_after, datetime.now(UTC))
        self.code = 0
        if fields is None:
            self.reason = "a server in front of Discord's API refused the request"
            self.is_for_account = status == 429
            if status < 500:
                self.retry_after = self.retry_after or BLOCKED_WAIT_SECONDS
        else:
            self.reason = str(fields.get("message") or "Discord named no reason")[:200]
            self.is_for_account = fields.get("global") is True  # a limit on the whole account, not on one channel
            if isinstance(fields.get("code"), int):
                self.code = fields["code"]
            if isinstance(fields.get("retry_after"), int | float):
                self.retry_after = float(fields["retry_after"])
        super().__init__(f"{self.reason} (HTTP status {status}{f', code {self.code}' if self.code else ''})")
        self.status = status
        self.may_have_arrived = status >= 500
        if status == 401:
            self.account_reason = ACCESS_REFUSED
        elif status == 429:
            self.wait_seconds = self.retry_after or DEFAULT_WAIT_SECONDS
        elif status < 500:
            self.chat_reason = _UNREACHABLE.get(self.code)
            if self.chat_reason is None and status == 403:
                self.chat_reason = describe_forbidden("Discord", self.reason)

    @property
    def is_blocked(self) -> bool:
        """Whether something before Discord's API has refused the request for now."""
        return not self.is_from_api and self.status < 500 and self.status not in {400, 413, 429}


make_platform_error = partial(failures.make_platform_error, "Discord")


def make_delivery_error(error: RequestError, *, is_repeatable: bool = False) -> DeliveryError:
    if isinstance(error, RequestRefused) and error.is_blocked:
        return SendRetryable(describe_outage("Discord", error), retry_after=error.retry_after)
    return failures.make_delivery_error("Discord", error, is_repeatable=is_repeatable)


def make_closed_error(code: int | None) -> PlatformError:
    """Return what it means that Discord has closed the connection with a code that forbids to connect again."""
    match code:
        case 4004:
            return AccountRefused(ACCESS_REFUSED)
        case 4013 | 4014:
            return AccountRefused(CONTENT_REFUSED)
        case 4010 | 4011:
            return AccountRefused(TOO_MANY_SERVERS)
    return ConnectionLost.say(
        "discord.connection_closed", "Discord has closed the connection (code {code}).", code=str(code)
    )
