"""The settings, capabilities and manifest of Slack apps; it loads no SDK."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, SecretStr, model_validator

from palaver.core.source import Platform
from palaver.core.texts import say
from palaver.delivery.model import Capabilities, Pace
from palaver.platforms.common.settings import PLACEHOLDER, check_api_url, check_text, check_token
from palaver.platforms.manifest import AccountSettings, FieldHelp, PlatformManifest

CAPABILITIES: Final = Capabilities(
    max_length=12_000,  # of a Markdown block
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=60.0,  # in threads with the app; Slack ends the sign after two minutes, or with the answer
    max_buttons=5,
    max_file_bytes=200 * 1024 * 1024,  # Slack takes 1 GB, but larger files than this take too long to send
    has_threads=True,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    pace_per_chat=Pace(1.0),
    edit_pace=Pace(1.5),  # Slack allows about 50 updates a minute
)

DEFAULT_API_URL: Final = "https://slack.com/api"

_BOT_FIX: Final = say(
    "slack.bot_fix",
    "Open https://api.slack.com/apps, choose your app and then OAuth & Permissions, and copy the Bot User OAuth Token.",
)
_APP_FIX: Final = say(
    "slack.app_fix",
    "Open https://api.slack.com/apps, choose your app and then Basic Information, and copy a"
    " token with the scope connections:write from App-Level Tokens.",
)
_SIGNING_FIX: Final = say(
    "slack.signing_fix",
    "Open https://api.slack.com/apps, choose your app and then Basic Information, and copy the Signing Secret.",
)


def _check_slack_token(name: str, prefix: str, fix: str) -> AfterValidator:
    pattern = rf"(?i:(?!.*(?:{PLACEHOLDER}))){prefix}[A-Za-z0-9-]{{15,395}}"
    return check_token(
        name,
        pattern,
        say("slack.not_token", "This is not a Slack {name}, which starts with {prefix}.", name=name, prefix=prefix),
        fix,
    )


_CHECK_SIGNING_SECRET: Final = check_text(
    "[0-9a-fA-F]{16,128}",
    say(
        "slack.bad_signing_secret",
        "This is not a signing secret, which has 32 digits and letters from a to f. {fix}",
        fix=_SIGNING_FIX,
    ),
)


class SlackSettings(AccountSettings):
    """One app in one workspace. With an app token it is reached by Socket Mode, without one by HTTP."""

    bot_token: Annotated[SecretStr, _check_slack_token("bot token", "xoxb-", _BOT_FIX)]
    app_token: Annotated[SecretStr, _check_slack_token("app token", "xapp-", _APP_FIX)] | None = None  # for socket
    signing_secret: Annotated[SecretStr, _CHECK_SIGNING_SECRET] | None = None  # for http
    mode: Literal["socket", "http"] = "socket"
    api_url: Annotated[str, check_api_url("Slack's Web API", DEFAULT_API_URL)] = DEFAULT_API_URL

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.mode == "socket" and self.app_token is None:
            raise ValueError(
                say(
                    "slack.app_token_missing",
                    "The mode socket needs app_token (or SLACK_APP_TOKEN). {fix}",
                    fix=_APP_FIX,
                )
            )
        if self.mode == "http" and self.signing_secret is None:
            raise ValueError(
                say(
                    "slack.signing_secret_missing",
                    "The mode http needs signing_secret (or SLACK_SIGNING_SECRET). {fix}",
                    fix=_SIGNING_FIX,
                )
            )
        return self


MANIFEST = PlatformManifest(
    platform=Platform.SLACK,
    settings=SlackSettings,
    create="palaver.platforms.slack.adapter:create_adapter",
    capabilities=CAPABILITIES,
    extra="slack",
    modules=("slack_sdk", "aiohttp", "httpx2"),
    environment={
        "SLACK_BOT_TOKEN": "bot_token",
        "SLACK_APP_TOKEN": "app_token",
        "SLACK_SIGNING_SECRET": "signing_secret",
        "SLACK_API_URL": "api_url",
    },
    addresses=("api_url",),
    summary="A Slack app: channels, threads, direct messages and the agent view",
    steps=(
        "Open api.slack.com/apps, press Create New App, then From a manifest, and choose your workspace.",
        "Choose the tab YAML, replace what is there with the app manifest below, and create the app.",
        "On its page Basic Information, generate an app-level token with the scope connections:write.",
        "On its page Install App, install it in your workspace, and copy the bot token.",
        "Paste both tokens here, test them and save them.",
    ),
    help={
        "bot_token": FieldHelp(
            "The token that begins with xoxb-.", "api.slack.com/apps, your app, OAuth & Permissions."
        ),
        "app_token": FieldHelp(
            "The token that begins with xapp-; for the mode socket.",
            "api.slack.com/apps, your app, Basic Information, App-Level Tokens.",
        ),
        "signing_secret": FieldHelp("For the mode http.", "api.slack.com/apps, your app, Basic Information."),
        "mode": FieldHelp("How messages arrive: over a socket, or Slack calls this server."),
        "api_url": FieldHelp.for_own_server("The address of Slack's API."),
    },
)
