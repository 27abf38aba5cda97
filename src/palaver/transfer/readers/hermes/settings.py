"""The settings of Hermes that decide where and when conversations continue, and what each of them is here.

The environment wins over `config.yaml`, that over `gateway.json`, and that over the defaults of the version that wrote
the folder. Nothing else of these files is read; the names of the other settings are listed, without their values.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidSource
from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.core.source import ChatType, Platform
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS
from palaver.transfer.imported import ImportedSetting
from palaver.transfer.reader_kit.values import as_dict, as_list, as_text
from palaver.transfer.readers.hermes.state_database import OWN_SOURCES, convert_platform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.transfer.readers.hermes.home import HermesHome

# Since 0.18.1 conversations don't restart automatically unless the settings say so; before, after a day or at four.
_SCHEMA_WITHOUT_RESET: Final = 19  # of `state.db`; 0.18.0 has 17, and no release has 18
_CONFIG_WITHOUT_RESET: Final = 33  # `_config_version`; 0.18.0 has 32
_MODES: Final = frozenset({"none", "idle", "daily", "both"})
_MAX_OTHER_NAMES: Final = 30

# What it means that these are left out, by the key in config.yaml.
_LEFT_OUT: Final = {
    "model": "Choose the model and its provider here: palaver config set model …",
    "reset_triggers": "Here /new and /reset start a new conversation.",
    "quick_commands": "Commands of your own don't come in. A saved prompt is similar: palaver prompts.",
    "session_store_max_age_days": "Hermes lets go of a chat's conversation after this time; here a chat stays on it.",
    "max_concurrent_sessions": "The number of conversations has no limit here; turns.max_running limits answers.",
    "multiplex_profiles": "Here one agent answers in all chats, and a conversation can use a profile.",
    "profile_routes": "Here one agent answers in all chats, and a conversation can use a profile.",
    "require_mention": "In groups the agent answers when it is mentioned; see platforms.NAME.group_activation.",
    "mcp_servers": "Add MCP servers here: palaver config set mcp_servers.NAME.url …",
    "compression": "Conversations are compacted when they nearly fill the model's context; see compaction.",
    "streaming": "Answers are shown while they are written; platforms.NAME.streaming changes that.",
    "stt": "Turn on speech here: see the guide on voice.",
    "tts": "Turn on speech here: see the guide on voice.",
}
_LEFT_OUT_OF_PLATFORMS: Final = {
    "channel_overrides": "Here an owner sets the model or profile of a chat with /sethere.",
    "dm_policy": "Who may write is in people and access here; the people of allow-lists come in.",
    "group_policy": "Who may write is in people and access here; the people of allow-lists come in.",
    "require_mention": _LEFT_OUT["require_mention"],
    "free_response_channels": _LEFT_OUT["require_mention"],
}
_LOOKED_AT: Final = frozenset(
    {
        *("timezone", "group_sessions_per_user", "thread_sessions_per_user", "session_reset", "default_reset_policy"),
        *("reset_by_type", "reset_by_platform", "unauthorized_dm_behavior", "platforms", "gateway", "_config_version"),
    }
)


def read_settings(home: HermesHome) -> Iterator[ImportedSetting]:
    config, legacy = home.settings.config, home.settings.legacy
    yield _make_sharing(home, "group_sessions_per_user", "sessions.group_per_user", "a group")
    yield _make_sharing(home, "thread_sessions_per_user", "sessions.thread_per_user", "a thread")
    if zone := home.settings.timezone:
        yield ImportedSetting(name="timezone", shown=zone, key="timezone", value=zone)
    yield from _read_default_policy(home)
    for section, label in (("reset_by_platform", "platform"), ("reset_by_type", "kind of chat")):
        for name, policy in as_dict(legacy.get(section)).items():
            key = _convert_policy_key(section, as_text(name))
            if key is None:
                meaning = f"There is no such {label} here, or no conversation of it restarts automatically."
                yield ImportedSetting(name=f"{section}.{name}", shown=_get_mode(as_dict(policy)), meaning=meaning)
            else:
                yield from _list_policy(f"{section}.{name}", key, as_dict(policy), _get_mode(as_dict(policy)))
    yield from _list_strangers(home)
    busy = as_dict(config.get("display")).get("busy_input_mode")
    if busy in ("interrupt", "queue", "steer"):
        yield ImportedSetting(name="display.busy_input_mode", shown=busy, key="turns.busy_policy", value=busy)
    if as_dict(config.get("privacy")).get("redact_pii") is True:
        yield ImportedSetting(name="privacy.redact_pii", shown="true", key="privacy.redact_pii", value=True)
    yield from _list_left_out(home)


def _make_sharing(home: HermesHome, name: str, key: str, place: str) -> ImportedSetting:
    is_separate: bool = getattr(home.settings, name)
    is_default = all(name not in document for document in home.settings.documents)
    meaning = f"Each person in {place} has their own conversation there."
    if not is_separate:
        meaning = (
            f"Everyone in {place} shares one conversation there. With another setting here, one of them continues it,"
            " and everyone else starts a new one."
        )
    shown = "true" if is_separate else "false"
    return ImportedSetting(name=name, shown=shown, is_default=is_default, key=key, value=is_separate, meaning=meaning)


def _read_default_policy(home: HermesHome) -> Iterator[ImportedSetting]:
    settings = home.settings
    policy = as_dict(settings.get("session_reset")) or as_dict(settings.legacy.get("default_reset_policy"))
    mode, is_default = policy.get("mode"), False
    if mode is None:
        is_default = True
        mode = _find_default_mode(home)
        if mode is None:
            meaning = (
                "It is not set, and the folder does not say which version wrote it. Before 0.18.1, conversations"
                " restarted after 24 hours without a message and every day at 4:00. If yours did:"
                " palaver config set session_reset.mode both"
            )
            yield ImportedSetting(name="session_reset.mode", shown="not set", is_default=True, meaning=meaning)
            return
    policy = {**policy, **settings.reset_variables}
    if not 0 <= _to_number(policy.get("at_hour"), 4) <= 23:
        policy["at_hour"] = 4
    if _to_number(policy.get("idle_minutes"), 1440) <= 0:
        policy["idle_minutes"] = 1440
    yield from _list_policy("session_reset", "session_reset", policy, as_text(mode), is_default=is_default)
    excluded = policy.get("notify_exclude_platforms")
    if excluded is not None and set(map(as_text, as_list(excluded))) != {"api_server", "webhook"}:
        names = ", ".join(map(as_text, as_list(excluded)))
        meaning = "Here people are told of a restart on all platforms or on none: session_reset.notify."
        yield ImportedSetting(name="session_reset.notify_exclude_platforms", shown=names, meaning=meaning)
    if (hours := policy.get("bg_process_max_age_hours")) not in (None, 24):
        meaning = "Here work in the background keeps a conversation from a restart for 24 hours."
        yield ImportedSetting(name="session_reset.bg_process_max_age_hours", shown=str(hours)[:20], meaning=meaning)


def _find_default_mode(home: HermesHome) -> str | None:
    """Return when conversations restart without a setting, by the version that wrote the folder last."""
    schema = 0
    if home.database is not None:
        with suppress(InvalidForeignDatabase):  # the conversations report that it is damaged
            schema = home.database.read_schema_version()
    config = home.settings.config.get("_config_version")
    if schema:
        return "none" if schema >= _SCHEMA_WITHOUT_RESET else "both"
    if isinstance(config, int) and config > 0:
        return "none" if config >= _CONFIG_WITHOUT_RESET else "both"
    return "both" if home.database is None and home.transcripts else None  # versions before the database


def _list_policy(
    name: str, key: str, policy: dict[str, Any], mode: str, *, is_default: bool = False
) -> Iterator[ImportedSetting]:
    """List what a policy says, without the fields that its mode does not use."""
    mode = mode if mode in _MODES else "none"  # of any other, Hermes makes nothing
    meanings = {
        "none": "Conversations never restart automatically there.",
        "idle": "Conversations restart after a time without messages there.",
        "daily": "Conversations restart every day there.",
        "both": "Conversations restart after a time without messages, and every day, there.",
    }
    found: dict[str, object] = {"mode": mode}
    if mode in ("idle", "both"):
        found["idle_minutes"] = _to_number(policy.get("idle_minutes"), 1440)
    if mode in ("daily", "both"):
        found["at_hour"] = _to_number(policy.get("at_hour"), 4)
    if mode != "none" and policy.get("notify") is False:
        found["notify"] = False
    for field, value in found.items():
        yield ImportedSetting(
            name=f"{name}.{field}",
            shown=str(value).lower(),
            is_default=is_default if field == "mode" else field not in policy,
            key=f"{key}.{field}",
            value=value,
            meaning=meanings[mode] if field == "mode" else "",
        )


def _get_mode(policy: dict[str, Any]) -> str:
    return as_text(policy.get("mode")) or "none"


def _to_number(value: object, default: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() else default


def _convert_policy_key(section: str, name: str) -> str | None:
    try:
        if section == "reset_by_type":
            return f"{section}.{ChatType(name)}"
        platform = convert_platform(name)
    except (InvalidSource, ValueError):
        return None
    has_chats = name not in OWN_SOURCES and platform not in {Platform.WEBHOOK, *MULTI_SESSION_PLATFORMS}
    return f"{section}.{platform}" if has_chats else None


def _list_strangers(home: HermesHome) -> Iterator[ImportedSetting]:
    """List the platforms on which strangers get no reply: where a setting says so, or there is an allow-list."""
    settings = home.settings
    sections = as_dict(settings.get("platforms"))
    listed = {each.platform for each in settings.allowed}
    for name in sorted({*listed, *settings.homes, *map(as_text, sections)} - {"", *OWN_SOURCES}):
        section = {**as_dict(as_dict(sections.get(name)).get("extra")), **as_dict(sections.get(name))}
        chosen = section.get("unauthorized_dm_behavior", settings.get("unauthorized_dm_behavior"))
        has_list = name in listed or "" in listed or name == "email"
        has_list = has_list or section.get("dm_policy") in ("allowlist", "disabled")
        if chosen != "ignore" and (not has_list or "unauthorized_dm_behavior" in section):
            continue
        with suppress(InvalidSource):
            yield ImportedSetting(
                name=f"unauthorized_dm_behavior of {name}",
                shown="ignore",
                is_default=chosen != "ignore",
                key=f"platforms.{convert_platform(name)}.strangers",
                value="ignore",
                meaning="Strangers get no reply there. Otherwise they get a code here, to ask for access with.",
            )


def _list_left_out(home: HermesHome) -> Iterator[ImportedSetting]:
    """List what is set there and does not come in: what people would miss with what that means, the rest by name."""
    names = dict.fromkeys(name for document in home.settings.documents for name in map(as_text, document) if name)
    yield from (ImportedSetting(name=name, meaning=_LEFT_OUT[name]) for name in names if name in _LEFT_OUT)
    platforms = as_dict(home.settings.get("platforms"))
    for platform, section in platforms.items():
        found = {**as_dict(as_dict(section).get("extra")), **as_dict(section)}
        for name in found.keys() & _LEFT_OUT_OF_PLATFORMS.keys():
            meaning = _LEFT_OUT_OF_PLATFORMS[name]
            yield ImportedSetting(name=f"platforms.{platform}.{name}", meaning=meaning)
    if others := [name[:60] for name in names if name not in _LEFT_OUT and name not in _LOOKED_AT]:
        shown = ", ".join(others[:_MAX_OTHER_NAMES]) + ", …" * (len(others) > _MAX_OTHER_NAMES)
        meaning = "The import does not look at them, or only at a part. Look through the settings here."
        yield ImportedSetting(name=shown, meaning=meaning)
