"""People, servers and channels on the local Discord server, in the form of Discord's published types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

JSON = dict[str, Any]

TOKEN = "MTEwMDAwMDAwMDAwMDAwMDAx.GlocalX." + "Server1Check2Only3" * 2
BOT_ID = "1100000000000000001"
APPLICATION_ID = "1100000000000000002"
GUILD_ID = "1200000000000000001"
GENERAL_ID = "1200000000000000010"
FORUM_ID = "1200000000000000011"
HIDDEN_ID = "1200000000000000012"
ADA_DM_ID = "1300000000000000001"
BEN_DM_ID = "1300000000000000002"
BOT_ROLE_ID = "1200000000000000020"
ALL_PERMISSIONS = str((1 << 53) - 1)
CONTENT_FLAG = 1 << 19


def make_user(user_id: str, name: str, **fields: Any) -> JSON:
    return {
        "id": user_id,
        "username": name.lower(),
        "discriminator": "0",
        "global_name": name,
        "avatar": None,
        **fields,
    }


BOT = make_user(BOT_ID, "Palaver", bot=True) | {"global_name": None}
ADA = make_user("1400000000000000001", "Ada")
BEN = make_user("1400000000000000002", "Ben")


def make_channel(channel_id: str, name: str, **fields: Any) -> JSON:
    return {
        "id": channel_id,
        "type": 0,
        "guild_id": GUILD_ID,
        "name": name,
        "position": 0,
        "permission_overwrites": [],
        "nsfw": False,
        "parent_id": None,
        "last_message_id": None,
        **fields,
    }


def make_thread(thread_id: str, name: str, parent_id: str, **fields: Any) -> JSON:
    metadata = {"archived": False, "auto_archive_duration": 1440, "archive_timestamp": format_now(), "locked": False}
    return {
        "id": thread_id,
        "type": 11,
        "guild_id": GUILD_ID,
        "name": name,
        "parent_id": parent_id,
        "owner_id": ADA["id"],
        "last_message_id": None,
        "message_count": 0,
        "member_count": 1,
        "rate_limit_per_user": 0,
        "flags": 0,
        "total_message_sent": 0,
        "thread_metadata": metadata,
        **fields,
    }


def make_direct(channel_id: str, person: JSON) -> JSON:
    return {"id": channel_id, "type": 1, "last_message_id": None, "recipients": [person], "flags": 0}


def make_role(role_id: str, name: str) -> JSON:
    return {
        "id": role_id,
        "name": name,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "icon": None,
        "unicode_emoji": None,
        "position": 0,
        "permissions": ALL_PERMISSIONS,
        "managed": False,
        "mentionable": True,
        "flags": 0,
    }


def make_member(user: JSON | None = None, **fields: Any) -> JSON:
    member = {
        "roles": [],
        "joined_at": "2026-01-01T00:00:00+00:00",
        "deaf": False,
        "mute": False,
        "flags": 0,
        "avatar": None,
        "banner": None,
        "nick": None,
        "premium_since": None,
        "pending": False,
        "communication_disabled_until": None,
    }
    return member | ({"user": user} if user else {}) | fields


def make_guild(channels: list[JSON], threads: list[JSON], **fields: Any) -> JSON:
    empty = ("emojis", "features", "guild_scheduled_events", "presences", "soundboard_sounds", "stage_instances")
    absent = (
        "afk_channel_id",
        "application_id",
        "banner",
        "description",
        "discovery_splash",
        "hub_type",
        "icon",
        "incidents_data",
        "public_updates_channel_id",
        "rules_channel_id",
        "safety_alerts_channel_id",
        "splash",
        "system_channel_id",
        "vanity_url_code",
    )
    zero = (
        "default_message_notifications",
        "explicit_content_filter",
        "mfa_level",
        "nsfw_level",
        "premium_tier",
        "system_channel_flags",
        "verification_level",
    )
    return {
        "id": GUILD_ID,
        "name": "Engines",
        "owner_id": ADA["id"],
        "joined_at": "2026-01-02T00:00:00+00:00",
        "afk_timeout": 60,
        "preferred_locale": "en-US",
        "premium_progress_bar_enabled": False,
        "large": False,
        "member_count": 3,
        "members": [make_member(BOT, roles=[BOT_ROLE_ID])],
        "roles": [make_role(GUILD_ID, "@everyone"), make_role(BOT_ROLE_ID, "Agents")],
        "stickers": [],
        "voice_states": [],
        "channels": channels,
        "threads": threads,
        **{name: [] for name in empty},
        **dict.fromkeys(absent),
        **dict.fromkeys(zero, 0),
        **fields,
    }


def make_application(**fields: Any) -> JSON:
    return {
        "id": APPLICATION_ID,
        "name": "Palaver",
        "icon": None,
        "description": "",
        "summary": "",
        "bot_public": True,
        "bot_require_code_grant": False,
        "verify_key": "aa" * 32,
        "team": None,
        "flags": CONTENT_FLAG,
        "flags_new": str(CONTENT_FLAG),
        **fields,
    }


def make_attachment(attachment_id: str, name: str, url: str, size: int, **fields: Any) -> JSON:
    return {"id": attachment_id, "filename": name, "size": size, "url": url, "proxy_url": url, **fields}


def make_message(message_id: str, channel_id: str, author: JSON, content: str, **fields: Any) -> JSON:
    return {
        "id": message_id,
        "channel_id": channel_id,
        "author": author,
        "content": content,
        "timestamp": format_now(),
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "pinned": False,
        "type": 0,
        "flags": 0,
        **fields,
    }


def format_now() -> str:
    return datetime.now(UTC).isoformat()
