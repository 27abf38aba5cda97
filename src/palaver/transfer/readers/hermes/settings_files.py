"""The settings of Hermes that an import needs: `.env`, `config.yaml` and `gateway.json`.

Always true: only the settings named here leave this module. Tokens and keys in the same files are never part of a
value, a report or a log line; also not a line of a file that is damaged.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final

from palaver.transfer.imported import ImportProblem
from palaver.transfer.readers.plain_file import open_plain_file
from palaver.transfer.readers.values import as_dict, as_id, as_list, as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_MAX_FILE_BYTES: Final = 4_000_000
_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Z][A-Z0-9_]{2,80})\s*=\s*(?P<value>.*)")
_PLATFORM_SETTING = re.compile(
    r"(?P<platform>[A-Z][A-Z0-9_]*?)_(?P<kind>ALLOWED_USERS|HOME_(?:CHANNEL|ROOM|ADDRESS))(?P<part>_NAME|_THREAD_ID)?"
)
_PLATFORM_NAMES: Final = {"qq": "qqbot"}


@dataclass(frozen=True, slots=True)
class HomeChat:
    platform: str
    chat_id: str
    name: str = ""
    thread_id: str = ""


@dataclass(frozen=True, slots=True)
class AllowedUser:
    platform: str  # empty: on every platform
    user_id: str
    is_admin: bool = False


@dataclass(slots=True)
class HermesSettings:
    timezone: str = ""
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    homes: dict[str, HomeChat] = field(default_factory=dict)  # by platform
    allowed: list[AllowedUser] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)


def read_settings(folder: Path, make_name: Callable[[Path], str]) -> HermesSettings:
    """Read the three files; what the first of them says wins, as in Hermes."""
    settings = HermesSettings()
    _apply_environment(settings, _read_text(folder / ".env", settings, make_name))
    for file_name, parse in (("config.yaml", _parse_yaml), ("gateway.json", _parse_json)):
        text = _read_text(folder / file_name, settings, make_name)
        document = parse(text, make_name(folder / file_name), settings) if text.strip() else {}
        _apply_document(settings, document)
    return settings


def _read_text(path: Path, settings: HermesSettings, make_name: Callable[[Path], str]) -> str:
    try:
        with TextIOWrapper(open_plain_file(path), encoding="utf-8-sig", errors="replace") as file:
            return file.read(_MAX_FILE_BYTES)
    except FileNotFoundError:
        return ""
    except OSError as error:
        settings.problems.append(
            ImportProblem(where=make_name(path), what=f"The file cannot be read: {error.strerror}.")
        )
        return ""


def _apply_environment(settings: HermesSettings, text: str) -> None:
    chats: dict[str, dict[str, str]] = {}
    for name, value in _read_variables(text):
        if name == "HERMES_TIMEZONE":
            settings.timezone = value
        elif match := _PLATFORM_SETTING.fullmatch(name):
            platform = _PLATFORM_NAMES.get(match["platform"].lower(), match["platform"].lower())
            if match["kind"] == "ALLOWED_USERS":
                platform = "" if platform == "gateway" else platform.removesuffix("_group")
                settings.allowed += [AllowedUser(platform, user) for user in _split(value)]
            else:
                chats.setdefault(platform, {})[match["part"] or ""] = value
    for platform, parts in chats.items():
        if parts.get(""):
            settings.homes[platform] = HomeChat(
                platform, parts[""], parts.get("_NAME", ""), parts.get("_THREAD_ID", "")
            )


def _read_variables(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or not (match["name"] == "HERMES_TIMEZONE" or _PLATFORM_SETTING.fullmatch(match["name"])):
            continue
        value = match["value"].strip()
        if value[:1] in {'"', "'"}:
            value = value[1:].partition(value[0])[0]
        else:
            value = value.partition(" #")[0].strip()
        yield match["name"], value


def _parse_yaml(text: str, name: str, settings: HermesSettings) -> dict[str, Any]:
    import yaml

    try:
        return as_dict(yaml.safe_load(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}, line {mark.line + 1}" if mark else name
        settings.problems.append(ImportProblem(where=where, what="This is not valid YAML; its settings are left out."))
        return {}


def _parse_json(text: str, name: str, settings: HermesSettings) -> dict[str, Any]:
    try:
        return as_dict(json.loads(text))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        settings.problems.append(
            ImportProblem(where=f"{name}, line {line}", what="This is not valid JSON; its settings are left out.")
        )
        return {}


def _apply_document(settings: HermesSettings, document: dict[str, Any]) -> None:
    gateway = as_dict(document.get("gateway"))
    merged = {**gateway, **document}
    settings.timezone = settings.timezone or as_text(merged.get("timezone")).strip()
    if isinstance(value := merged.get("group_sessions_per_user"), bool):
        settings.group_sessions_per_user = value
    if isinstance(value := merged.get("thread_sessions_per_user"), bool):
        settings.thread_sessions_per_user = value
    for platform, section in as_dict(merged.get("platforms")).items():
        if isinstance(platform, str):
            _apply_platform(settings, platform.lower(), as_dict(section))


def _apply_platform(settings: HermesSettings, platform: str, section: dict[str, Any]) -> None:
    extra = {**as_dict(section.get("extra")), **section}
    home = as_dict(section.get("home_channel"))
    if (chat_id := as_id(home.get("chat_id"))) and platform not in settings.homes:
        settings.homes[platform] = HomeChat(platform, chat_id, as_text(home.get("name")), as_id(home.get("thread_id")))
    for key, is_admin in (("allow_from", False), ("allow_admin_from", True), ("group_allow_admin_from", True)):
        settings.allowed += [AllowedUser(platform, user, is_admin) for user in _read_users(extra.get(key))]


def _read_users(value: object) -> Iterable[str]:
    return _split(value) if isinstance(value, str) else [user for item in as_list(value) if (user := as_id(item))]


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
