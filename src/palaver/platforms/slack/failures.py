"""Turns failed requests to Slack into Palaver's errors, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    DeliveryError,
    PlatformError,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.texts import say
from palaver.platforms.common.failures import make_wait_error

if TYPE_CHECKING:
    from slack_sdk.errors import SlackApiError

DEFAULT_RETRY_SECONDS: Final = 5.0
SCOPE_FIX: Final = say(
    "slack.scope_fix",
    "Open https://api.slack.com/apps, choose your app and then OAuth & Permissions, add the scope"
    " under Bot Token Scopes, and click Reinstall to Workspace.",
)
BOT_ACCESS_REFUSED: Final = say(
    "slack.bot_access_refused",
    "Slack refuses the bot token. It is wrong or was revoked, or the app was removed from the"
    " workspace. Open https://api.slack.com/apps, choose your app and then OAuth & Permissions,"
    " copy the Bot User OAuth Token (if there is none, click Install to Workspace first), and set"
    " it as bot_token in the server settings or as SLACK_BOT_TOKEN.",
)
APP_ACCESS_REFUSED: Final = say(
    "slack.app_access_refused",
    "Slack refuses the app token. It is wrong or was revoked, or it belongs to another app. Open"
    " https://api.slack.com/apps, choose your app and then Basic Information, create a token with"
    " the scope connections:write under App-Level Tokens, and set it as app_token in the server"
    " settings or as SLACK_APP_TOKEN.",
)
APP_SCOPE_MISSING: Final = say(
    "slack.app_scope_missing",
    "The app token lacks the scope connections:write. Open https://api.slack.com/apps, choose"
    " your app and then Basic Information, create a new token with this scope under App-Level"
    " Tokens, and set it as app_token in the server settings or as SLACK_APP_TOKEN.",
)
SOCKET_MODE_OFF: Final = say(
    "slack.socket_mode_off",
    "Socket Mode is off for this app. Open https://api.slack.com/apps, choose your app and then"
    " Socket Mode, and turn on Enable Socket Mode.",
)

_REFUSED_TOKEN: Final = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type"}
)
# Slack says of these that a part of the work may have been done.
_UNCERTAIN: Final = frozenset({"fatal_error", "internal_error", "request_timeout", "service_unavailable"})
_RATE_LIMITED: Final = frozenset({"ratelimited", "rate_limited"})
_UNREACHABLE: Final = {
    "channel_not_found": say(
        "slack.channel_unknown",
        "Slack does not know this channel, or the app is not in it. Invite it with /invite.",
    ),
    "not_in_channel": say("slack.not_in_channel", "The app is not in this channel. Invite it with /invite."),
    "is_archived": "The channel is archived.",
    "user_not_found": say("slack.person_unknown", "Slack does not know this person."),
    "cannot_dm_bot": say("slack.no_apps", "Apps on Slack cannot write to each other."),
    "messages_tab_disabled": (
        say(
            "slack.messages_tab_off",
            "People can't write to the app. Open https://api.slack.com/apps, choose your app and then App"
            " Home, and turn on Messages Tab.",
        )
    ),
    "restricted_action": say(
        "slack.may_not_write",
        "The app may not write in this channel. Ask an administrator of the workspace to allow it.",
    ),
    "restricted_action_read_only_channel": say("slack.channel_read_app", "The channel is read-only for the app."),
    "restricted_action_non_threadable_channel": say("slack.channel_no_threads", "The channel has no threads."),
    "team_access_not_granted": say("slack.no_access", "The app has no access to this workspace."),
}


class RequestFailed(Exception):
    """A request to Slack has failed, and it is unknown whether Slack has acted."""


class NotSent(RequestFailed):
    """The request never left this machine: Slack could not be reached."""


class ApiRefusal(RequestFailed):
    """Slack has answered that it did not do it."""

    def __init__(self, code: str, status: int = 200, *, retry_after: float | None = None, needed: str = "") -> None:
        super().__init__(code or f"HTTP status {status}")
        self.code = code  # empty: the answer is not one of Slack's, but of something in between
        self.status = status
        self.retry_after = retry_after
        self.needed = needed  # the scope that is missing

    @classmethod
    def from_error(cls, error: SlackApiError) -> Self:
        """Read an answer that is not a success; it need not come from Slack itself."""
        response: Any = error.response
        status = int(getattr(response, "status_code", None) or getattr(response, "status", None) or 0)
        data = getattr(response, "data", None)
        fields = data if isinstance(data, dict) else {}
        wait = (getattr(response, "headers", None) or {}).get("Retry-After", "")
        return cls(
            str(fields.get("error") or ""),
            status,
            retry_after=float(wait) if str(wait).isdecimal() else None,
            needed=str(fields.get("needed") or ""),
        )

    @property
    def is_rate_limit(self) -> bool:
        return self.status == 429 or self.code in _RATE_LIMITED

    @property
    def is_about_token(self) -> bool:
        return self.code in _REFUSED_TOKEN

    @property
    def is_uncertain(self) -> bool:
        return self.status >= 500 or self.code in _UNCERTAIN or (not self.code and self.status < 400)

    @property
    def wait_seconds(self) -> float:
        return DEFAULT_RETRY_SECONDS if self.retry_after is None else self.retry_after


def make_platform_error(error: RequestFailed, token_refused: str = BOT_ACCESS_REFUSED) -> PlatformError:
    """Return what a request that sends no message has failed with."""
    if isinstance(error, ApiRefusal):
        if error.is_rate_limit:
            return ConnectionLost(
                say(
                    "platform.asks_wait_seconds",
                    "{platform} asks to wait {seconds} seconds.",
                    platform="Slack",
                    seconds=f"{error.wait_seconds:.0f}",
                )
            )
        if error.is_about_token:
            return AccountRefused(token_refused)
        if error.code == "missing_scope":
            return AccountRefused(
                say(
                    "slack.app_lacks_scope", "The app lacks the scope {scope}. {fix}", scope=error.needed, fix=SCOPE_FIX
                )
            )
        if error.code and not error.is_uncertain:
            return ConnectionLost(
                say("slack.slack_refused_connect", "Slack has refused to connect: {reason}.", reason=error.code)
            )
    return ConnectionLost(_describe_outage(error))


def make_delivery_error(error: RequestFailed, *, is_repeatable: bool = False) -> DeliveryError:
    """Return what a request about a chat has failed with."""
    if isinstance(error, ApiRefusal) and not error.is_uncertain:
        return _make_refusal_error(error)
    if is_repeatable or isinstance(error, NotSent):
        return SendRetryable(_describe_outage(error))
    return SendUncertain(
        say(
            "platform.not_confirmed", "{platform} did not confirm the message: {reason}", platform="Slack", reason=error
        )
    )


def _make_refusal_error(error: ApiRefusal) -> DeliveryError:
    if error.is_rate_limit:
        return make_wait_error("Slack", error.wait_seconds)
    if error.is_about_token:
        return SendRetryable(BOT_ACCESS_REFUSED, whole_account=True)
    if error.code in _UNREACHABLE:
        return TargetUnreachable(_UNREACHABLE[error.code])
    if error.code == "missing_scope":
        return SendRejected(
            say("slack.app_lacks_scope", "The app lacks the scope {scope}. {fix}", scope=error.needed, fix=SCOPE_FIX)
        )
    return SendRejected(
        say("platform.message_refused", "{platform} has refused the message: {reason}", platform="Slack", reason=error)
    )


def _describe_outage(error: RequestFailed) -> str:
    if isinstance(error, NotSent):
        return f"Slack can't be reached. Check the network connection of this machine ({error})."
    return f"Slack can't be reached right now: {error}."
