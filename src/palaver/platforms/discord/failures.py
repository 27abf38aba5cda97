"""Turns failed requests to Discord into Palaver's errors, in words, and never with a token."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Self

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    DeliveryError,
    PlatformError,
    SendRejected,
    SendRetryable,
    TargetUnreachable,
)
from palaver.core.texts import say
from palaver.platforms.common.failures import RequestError, make_outage_error, make_wait_error, parse_retry_after
from palaver.platforms.common.inbound import parse_json_object

PORTAL: Final = "https://discord.com/developers/applications"
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


class RequestRefused(RequestError):
    """Discord has answered that it did not do it. After a status of 500 and more it may have done so all the same."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: int = 0,
        retry_after: float | None = None,
        is_for_account: bool = False,
        is_from_api: bool = True,
    ) -> None:
        super().__init__(f"{message} (HTTP status {status}{f', code {code}' if code else ''})")
        self.status = status
        self.may_have_arrived = status >= 500
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.is_for_account = is_for_account  # a limit on the whole account, not on one channel
        self.is_from_api = is_from_api  # else it says nothing about the chat, and passes

    @classmethod
    def from_response(cls, status: int, payload: bytes, retry_after: str | None) -> Self:
        """Read an answer that is not a success; it need not come from Discord itself."""
        fields = parse_json_object(payload)
        announced = parse_retry_after(retry_after, datetime.now(UTC))
        if fields is None:
            return cls(
                status,
                "a server in front of Discord's API refused the request",
                retry_after=(announced or BLOCKED_WAIT_SECONDS) if status < 500 else announced,
                is_for_account=status == 429,
                is_from_api=False,
            )
        seconds = fields.get("retry_after")
        code = fields.get("code")
        return cls(
            status,
            str(fields.get("message") or "Discord named no reason")[:200],
            code=code if isinstance(code, int) else 0,
            retry_after=float(seconds) if isinstance(seconds, int | float) else announced,
            is_for_account=fields.get("global") is True,
        )


def make_platform_error(error: RequestError) -> PlatformError:
    """Return what a request that is not about a chat has failed with."""
    if isinstance(error, RequestRefused):
        if error.status == 401:
            return AccountRefused(ACCESS_REFUSED)
        if error.status == 429:
            return ConnectionLost(
                say(
                    "platform.asks_wait_seconds",
                    "{platform} asks to wait {seconds} seconds.",
                    platform="Discord",
                    seconds=f"{error.retry_after or DEFAULT_WAIT_SECONDS:.0f}",
                )
            )
    return ConnectionLost(
        say(
            "platform.not_reachable",
            "{platform} can't be reached right now: {reason}",
            platform="Discord",
            reason=error,
        )
    )


def make_delivery_error(error: RequestError, *, is_repeatable: bool = False) -> DeliveryError:
    """Return what a request about a chat has failed with."""
    if isinstance(error, RequestRefused) and error.status < 500:
        return _make_refusal_error(error)
    return make_outage_error("Discord", str(error), may_have_arrived=error.may_have_arrived and not is_repeatable)


def _make_refusal_error(error: RequestRefused) -> DeliveryError:
    if error.status == 429:
        seconds = error.retry_after or DEFAULT_WAIT_SECONDS
        return make_wait_error("Discord", seconds, whole_account=error.is_for_account)
    if not error.is_from_api and error.status not in {400, 413}:
        return SendRetryable(
            say(
                "platform.not_reachable",
                "{platform} can't be reached right now: {reason}",
                platform="Discord",
                reason=error,
            ),
            retry_after=error.retry_after,
        )
    if error.status == 401:
        return SendRetryable(ACCESS_REFUSED, whole_account=True)
    if (reason := _UNREACHABLE.get(error.code)) is not None:
        return TargetUnreachable(reason)
    if error.status == 403:
        return TargetUnreachable(
            say(
                "platform.bot_cannot_write",
                "{platform} does not let the bot write here: {reason}",
                platform="Discord",
                reason=error.message,
            )
        )
    return SendRejected(
        say(
            "platform.message_refused",
            "{platform} has refused the message: {reason}",
            platform="Discord",
            reason=error.message,
        )
    )


def make_closed_error(code: int | None) -> PlatformError:
    """Return what it means that Discord has closed the connection with a code that forbids to connect again."""
    match code:
        case 4004:
            return AccountRefused(ACCESS_REFUSED)
        case 4013 | 4014:
            return AccountRefused(CONTENT_REFUSED)
        case 4010 | 4011:
            return AccountRefused(TOO_MANY_SERVERS)
    return ConnectionLost(
        say("discord.connection_closed", "Discord has closed the connection (code {code}).", code=str(code))
    )
