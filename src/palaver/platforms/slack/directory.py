"""The names of people and channels: Slack's events contain only their ids."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from palaver.core.errors import PlatformError
from palaver.core.recent_entries import RecentEntries
from palaver.core.texts import parse_locale, say_count
from palaver.platforms.common.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import Collection

    from palaver.platforms.slack.client import SlackClient
    from palaver.platforms.slack.outbound import Names

log = logging.getLogger(__name__)

MAX_NAMES: Final = 10_000
MAX_AGE_SECONDS: Final = 3600.0
RETRY_SECONDS: Final = 60.0  # before a name that could not be found is looked up again
LOOKUP_SECONDS: Final = 2.0  # a message waits so long for names, and is accepted without them then
MAX_LOOKUPS: Final = 20  # for one message

NEEDED_SCOPES: Final = {
    "chat:write": "send answers",
    "app_mentions:read": "see when it is mentioned",
    "im:history": "read direct messages",
    "im:read": "find direct messages",
    "mpim:history": "read direct messages of several people",
    "mpim:read": "find direct messages of several people",
    "channels:history": "read public channels it is in",
    "channels:read": "know the names of public channels",
    "groups:history": "read private channels it is in",
    "groups:read": "know the names of private channels",
    "users:read": "know people's names",
    "files:read": "open files that people send",
    "files:write": "send files",
    "reactions:read": "see reactions",
    "reactions:write": "react to messages",
}


class Directory:
    """Looks up names, and keeps them for a while."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        # By id: the name, and until when it is kept.
        self._known: RecentEntries[str, tuple[str, float]] = RecentEntries(MAX_NAMES)
        self._languages: RecentEntries[str, str | None] = RecentEntries(MAX_NAMES)  # of people

    async def load(self, ids: Collection[str]) -> Names:
        """Return the names that are known, or can be found in time. A name that is missing is no error."""
        now = time.monotonic()
        named = [each for each in sorted(ids) if not each.startswith("D")]  # a direct message has no name
        unknown = [each for each in named if each not in self._known or self._known[each][1] <= now]
        if unknown:
            await asyncio.gather(*map(self._look_up, unknown[:MAX_LOOKUPS]))
        return {each: self._known[each][0] for each in named if each in self._known and self._known[each][0]}

    def find_language(self, user_id: str | None) -> str | None:
        """Return the language in which a person uses Slack, if it was loaded with their name."""
        return self._languages.get(user_id or "")

    async def is_member(self, channel_id: str) -> bool:
        """Return whether the app is in a channel now; True if Slack does not say in time."""
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await self._client.is_member(channel_id)
        except (RequestError, TimeoutError, KeyError) as error:
            log.info("slack_membership_not_found", extra={"channel": channel_id, "reason": str(error)})
            return True

    async def _look_up(self, entry_id: str) -> None:
        name, kept_seconds = self._known.get(entry_id, ("", 0.0))[0], RETRY_SECONDS
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                name = await self._find_name(entry_id)
            kept_seconds = MAX_AGE_SECONDS
        except (PlatformError, RequestError, TimeoutError, KeyError) as error:
            log.info("slack_name_not_found", extra={"id": entry_id, "reason": str(error)})
        self._known.remember(entry_id, (name, time.monotonic() + kept_seconds))

    async def _find_name(self, entry_id: str) -> str:
        if entry_id.startswith(("C", "G")):
            return str((await self._client.find_channel(entry_id)).get("name") or "")
        user = await self._client.find_user(entry_id)
        self._languages.remember(entry_id, parse_locale(user.get("locale")))
        profile = user.get("profile") or {}
        return str(profile.get("display_name") or profile.get("real_name") or user.get("name") or "")


def describe_missing_scopes(scopes: frozenset[str] | None) -> str | None:
    """Return which scopes are missing and how to add them; None if none is, or if Slack does not tell them."""
    if scopes is None:
        return None
    missing = [f"{scope} (to {use})" for scope, use in NEEDED_SCOPES.items() if scope not in scopes]
    if not missing:
        return None
    return say_count(
        "slack.scopes_missing",
        len(missing),
        "The app lacks the scope {scopes}. Open https://api.slack.com/apps, choose your app and then"
        " OAuth & Permissions, add what is missing under Bot Token Scopes, and click Reinstall to"
        " Workspace.",
        "The app lacks the scopes {scopes}. Open https://api.slack.com/apps, choose your app and then"
        " OAuth & Permissions, add what is missing under Bot Token Scopes, and click Reinstall to"
        " Workspace.",
        scopes=", ".join(missing),
    )
