"""Turns failed requests to Slack into Palaver's errors, in words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from palaver.core.errors import AccountRefused, ConnectionLost, PlatformError
from palaver.core.texts import say
from palaver.platforms.common import failures
from palaver.platforms.common.failures import Refusal, RequestError, RequestFailed

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
_UNREACHABLE: Final = {
    "channel_not_found": say(
        "slack.channel_unknown",
        "Slack does not know this channel, or the app is not in it. Invite it with /invite.",
    ),
    "not_in_channel": say("slack.not_in_channel", "The app is not in this channel. Invite it with /invite."),
    "is_archived": "The channel is archived.",
    "user_not_found": say("slack.person_unknown", "Slack does not know this person."),
    "cannot_dm_bot": say("slack.no_apps", "Apps on Slack cannot write to each other."),
    "messages_tab_disabled": say(
        "slack.messages_tab_off",
        "People can't write to the app. Open https://api.slack.com/apps, choose your app and then App"
        " Home, and turn on Messages Tab.",
    ),
    "restricted_action": say(
        "slack.may_not_write",
        "The app may not write in this channel. Ask an administrator of the workspace to allow it.",
    ),
    "restricted_action_read_only_channel": say("slack.channel_read_app", "The channel is read-only for the app."),
    "restricted_action_non_threadable_channel": say("slack.channel_no_threads", "The channel has no threads."),
    "team_access_not_granted": say("slack.no_access", "The app has no access to this workspace."),
}


class SlackUnreachable(RequestFailed):
    """Slack has not answered."""

    def __init__(self, reason: str, *, may_have_arrived: bool) -> None:
        super().__init__(reason, may_have_arrived=may_have_arrived)
        if not may_have_arrived:
            self.outage_text = say(
                "slack.unreachable",
                "Slack can't be reached. Check the network connection of this machine ({reason}).",
                reason=reason,
            )


class ApiRefusal(Refusal):
    """Slack has answered that it did not do it."""

    def __init__(self, code: str, status: int = 200, *, retry_after: float | None = None, needed: str = "") -> None:
        self.reason = code or f"HTTP status {status}"
        super().__init__(self.reason)
        self.code = code  # empty: the answer is not one of Slack's, but of something in between
        self.needed = needed  # the scope that is missing
        self.may_have_arrived = status >= 500 or code in _UNCERTAIN or (not code and status < 400)
        self.is_about_token = code in _REFUSED_TOKEN
        if self.is_about_token:
            self.account_reason = BOT_ACCESS_REFUSED
        elif status == 429 or code in {"ratelimited", "rate_limited"}:
            self.wait_seconds = DEFAULT_RETRY_SECONDS if retry_after is None else retry_after
        self.chat_reason = _UNREACHABLE.get(code)
        if code == "missing_scope":
            self.message_reason = say(
                "slack.app_lacks_scope", "The app lacks the scope {scope}. {fix}", scope=needed, fix=SCOPE_FIX
            )

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


def make_platform_error(error: RequestError, token_refused: str = BOT_ACCESS_REFUSED) -> PlatformError:
    """Return what a request that sends no message has failed with."""
    if isinstance(error, ApiRefusal):
        if error.is_about_token:
            return AccountRefused(token_refused)
        if error.message_reason is not None:
            return AccountRefused(error.message_reason)
        if error.code and error.wait_seconds is None and not error.may_have_arrived:
            return ConnectionLost.say(
                "slack.slack_refused_connect", "Slack has refused to connect: {reason}.", reason=error.code
            )
    return failures.make_platform_error("Slack", error)


make_delivery_error = partial(failures.make_delivery_error, "Slack")
