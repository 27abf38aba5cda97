"""The settings, capabilities and manifest of Discord bots; it loads no SDK."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

from pydantic import SecretStr  # noqa: TC002  (read at run time)

from palaver.core.source import Platform
from palaver.core.texts import say
from palaver.delivery.model import Capabilities, Pace
from palaver.platforms.common.settings import check_api_url, check_token
from palaver.platforms.manifest import AccountSettings, FieldHelp, PlatformManifest

MAX_MESSAGE_CHARS: Final = 2000
MAX_BUTTONS: Final = 25  # five rows of five

CAPABILITIES: Final = Capabilities(
    max_length=MAX_MESSAGE_CHARS,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=10.0,
    max_buttons=MAX_BUTTONS,
    max_file_bytes=10 * 1024 * 1024,
    has_threads=True,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    pace_per_chat=Pace(1.0, burst=5),
    pace_per_account=Pace(1 / 40, burst=40),
    edit_pace=Pace(1.5),
    key_lifetime=timedelta(minutes=2),  # Discord says "the past few minutes"
)

DEFAULT_API_URL = "https://discord.com/api/v10"

_CHECK_TOKEN = check_token(
    say("platform.bot_token", "bot token"),
    r"[A-Za-z0-9_-]{18,40}\.[A-Za-z0-9_-]{5,10}\.[A-Za-z0-9_-]{25,110}",
    say(
        "discord.not_bot_token",
        "This is not a bot token. A token has three parts of letters, digits, '-' or '_' with dots"
        " between them, about 70 characters. The client secret, the public key and the application ID"
        " are something else.",
    ),
    say(
        "discord.enable_intent",
        "Open https://discord.com/developers/applications, choose your application, then Bot, press"
        " Reset Token, and copy all of it.",
    ),
    clean=lambda token: token.strip().removeprefix("Bot ").strip(),
)


class DiscordSettings(AccountSettings):
    """One bot. Only the token is needed."""

    bot_token: Annotated[SecretStr, _CHECK_TOKEN]
    api_url: Annotated[str, check_api_url("Discord's API", DEFAULT_API_URL)] = DEFAULT_API_URL


MANIFEST = PlatformManifest(
    platform=Platform.DISCORD,
    settings=DiscordSettings,
    create="palaver.platforms.discord.adapter:create_adapter",
    capabilities=CAPABILITIES,
    extra="discord",
    modules=("discord", "httpx2"),
    environment={"DISCORD_BOT_TOKEN": "bot_token", "DISCORD_API_URL": "api_url"},
    addresses=("api_url",),
    summary="A Discord bot: direct messages, channels, threads and forum posts",
    steps=(
        "Create an application at discord.com/developers/applications.",
        "On its page Bot, switch on Message Content Intent, then reset and copy the token.",
        "On its page OAuth2, make a link with the scope bot, and open it to add the bot to your server.",
        "Paste the token here, test it and save it.",
    ),
    help={
        "bot_token": FieldHelp("The token of the bot.", "discord.com/developers/applications, your application, Bot."),
        "api_url": FieldHelp.for_own_server("The address of Discord's API."),
    },
)
