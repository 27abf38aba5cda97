"""Says what keeps a Discord bot from working, and which click changes that. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from palaver.delivery.adapter import AccountInfo
from palaver.platforms.discord.failures import PORTAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    JSON = Mapping[str, Any]

# The flags of an application that may read messages: one for small bots, one for those that Discord has verified.
CONTENT_FLAGS: Final = (1 << 18) | (1 << 19)
ADMINISTRATOR: Final = 1 << 3
PERMISSIONS: Final = {
    1 << 10: "View Channels",
    1 << 11: "Send Messages",
    1 << 38: "Send Messages in Threads",
    1 << 16: "Read Message History",
    1 << 15: "Attach Files",
    1 << 6: "Add Reactions",
}
MAX_NAMED_SERVERS: Final = 5

NO_CONTENT_WARNING: Final = (
    "In servers the bot reads only messages that mention it, and not what was written before: the Message Content "
    f"Intent is off. To turn it on, open {PORTAL}, choose your application, then Bot, and turn on Message Content "
    "Intent under Privileged Gateway Intents. Press Save Changes, and test the connection again: then it has an effect."
)
ENDPOINT_WARNING: Final = (
    "Slash commands and buttons don't work: Discord sends them to another program. Open "
    f"{PORTAL}, choose your application, then General Information, and empty Interactions Endpoint URL."
)


def has_content_intent(application: JSON) -> bool:
    """Whether the bot may read messages that do not mention it."""
    return bool(application.get("flags", 0) & CONTENT_FLAGS)


def build_invite_url(application_id: str) -> str:
    """Return the address where the bot is added to a server, with the permissions that it needs."""
    permissions = sum(PERMISSIONS)
    return (
        f"https://discord.com/oauth2/authorize?client_id={application_id}&scope=bot+applications.commands"
        f"&permissions={permissions}"
    )


def describe_account(user: JSON, application: JSON, guilds: Sequence[JSON]) -> AccountInfo:
    """Return the bot's name, and what is missing."""
    warnings = []
    if not has_content_intent(application):
        warnings.append(NO_CONTENT_WARNING)
    if application.get("interactions_endpoint_url"):
        warnings.append(ENDPOINT_WARNING)
    invite = build_invite_url(application["id"])
    if not guilds:
        warnings.append(
            "The bot is in no server yet, and people can only write to it if they share one with it. Open this link in "
            f"a browser, choose a server, and press Authorize: {invite}"
        )
    lacking = [(guild["name"], missing) for guild in guilds if (missing := _list_missing(guild))]
    for name, missing in lacking[:MAX_NAMED_SERVERS]:
        warnings.append(
            f'In the server "{name}" the bot lacks: {", ".join(missing)}. Let an administrator open Server Settings, '
            "then Roles, choose the role of the bot, and turn these on under Permissions."
        )
    if len(lacking) > MAX_NAMED_SERVERS:
        warnings.append(f"It lacks permissions in {len(lacking) - MAX_NAMED_SERVERS} more servers.")
    count = len(guilds)
    return AccountInfo(
        user_id=user["id"],
        name=f"@{user['username']}",
        warnings=tuple(warnings),
        details=(f"In {count} server{'' if count == 1 else 's'}", f"Add it to a server: {invite}"),
    )


def _list_missing(guild: JSON) -> list[str]:
    granted = int(guild["permissions"])
    return [] if granted & ADMINISTRATOR else [name for bit, name in PERMISSIONS.items() if not granted & bit]
