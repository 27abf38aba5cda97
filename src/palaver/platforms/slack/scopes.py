"""The scopes that the app needs, and what for."""

from __future__ import annotations

from typing import Final

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


def describe_missing_scopes(scopes: frozenset[str] | None) -> str | None:
    """Return which scopes are missing and how to add them; None if none is, or if Slack does not tell them."""
    if scopes is None:
        return None
    missing = [f"{scope} (to {use})" for scope, use in NEEDED_SCOPES.items() if scope not in scopes]
    if not missing:
        return None
    word = "scope" if len(missing) == 1 else "scopes"
    return (
        f"The app lacks the {word} {', '.join(missing)}. Open https://api.slack.com/apps, choose your app and then "
        "OAuth & Permissions, add what is missing under Bot Token Scopes, and click Reinstall to Workspace."
    )
