"""The folder of Hermes, or of one of its profiles: its files, as reports name them, and its settings."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput
from palaver.jobs.schedule import load_zone
from palaver.transfer.imported import ImportedAccount, ImportProblem
from palaver.transfer.reader_kit.values import as_dict, as_id, as_list, as_text, read_json_file, read_text_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo
    from pathlib import Path


_MAX_FILE_CHARS: Final = 4_000_000
_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Z][A-Z0-9_]{2,80})\s*=\s*(?P<value>.*)")
_PLATFORM_SETTING = re.compile(
    r"(?P<platform>[A-Z][A-Z0-9_]*?)_(?P<kind>ALLOWED_USERS|HOME_(?:CHANNEL|ROOM|ADDRESS))(?P<part>_NAME|_THREAD_ID)?"
)
_PLATFORM_NAMES: Final = {"qq": "qqbot"}


class HermesFolder:
    """Files that cannot be read are reported, and left out."""

    def __init__(self, path: Path, root: Path, profile: str) -> None:
        self.path = path
        self.profile = profile
        self._root = root  # the folder of the import
        self._problems: list[ImportProblem] = []
        self.settings = _read_settings(self)
        self.zone = _load_zone(self)  # None: of this machine

    def make_name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)

    def report(self, where: Path | str, what: object) -> None:
        name = where if isinstance(where, str) else self.make_name(where)
        self._problems.append(ImportProblem(where=name, what=str(what)))

    def take_problems(self) -> list[ImportProblem]:
        """Return what was reported since the last call, each problem once."""
        problems, self._problems = self._problems, []
        return list(dict.fromkeys(problems))

    def read_text(self, path: Path) -> str | None:
        return read_text_file(path, self.make_name(path), self._problems, _MAX_FILE_CHARS)

    def read_json(self, path: Path, what: str) -> Any:
        return read_json_file(path, self.make_name(path), self._problems, what)


@dataclass(frozen=True, slots=True)
class HomeChat:
    chat_id: str
    name: str = ""
    thread_id: str = ""


@dataclass(slots=True)
class HermesSettings:
    timezone: str = ""
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    homes: dict[str, HomeChat] = field(default_factory=dict)  # by platform
    allowed: list[ImportedAccount] = field(default_factory=list)  # without a platform: on every one


def _read_settings(folder: HermesFolder) -> HermesSettings:
    """Read the three files; what the first of them says wins, as in Hermes."""
    settings = HermesSettings()
    _apply_environment(settings, folder.read_text(folder.path / ".env") or "")
    for name in ("config.yaml", "gateway.json"):
        _apply_document(settings, _read_document(folder, folder.path / name))
    return settings


def _apply_environment(settings: HermesSettings, text: str) -> None:
    chats: dict[str, dict[str, str]] = {}
    for name, value in _read_variables(text):
        if name == "HERMES_TIMEZONE":
            settings.timezone = value
        elif match := _PLATFORM_SETTING.fullmatch(name):
            platform = _PLATFORM_NAMES.get(match["platform"].lower(), match["platform"].lower())
            if match["kind"] == "ALLOWED_USERS":
                platform = "" if platform == "gateway" else platform.removesuffix("_group")
                settings.allowed += [ImportedAccount(platform=platform, user_id=user) for user in _split(value)]
            else:
                chats.setdefault(platform, {})[match["part"] or ""] = value
    for platform, parts in chats.items():
        if parts.get(""):
            settings.homes[platform] = HomeChat(parts[""], parts.get("_NAME", ""), parts.get("_THREAD_ID", ""))


def _read_variables(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        value = match["value"].strip()
        if value[:1] in {'"', "'"}:
            value = value[1:].partition(value[0])[0]
        else:
            value = value.partition(" #")[0].strip()
        yield match["name"], value


def _read_document(folder: HermesFolder, path: Path) -> dict[str, Any]:
    """Read a file of settings; empty if it is missing or damaged."""
    import yaml

    text = folder.read_text(path) or ""
    is_json = path.suffix == ".json"
    try:
        return as_dict((json.loads if is_json else yaml.safe_load)(text)) if text.strip() else {}
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else getattr(error, "lineno", 1)
        what = f"This is not valid {'JSON' if is_json else 'YAML'}; its settings are left out."
        folder.report(f"{folder.make_name(path)}, line {line}", what)
        return {}


def _apply_document(settings: HermesSettings, document: dict[str, Any]) -> None:
    merged = {**as_dict(document.get("gateway")), **document}
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
        settings.homes[platform] = HomeChat(chat_id, as_text(home.get("name")), as_id(home.get("thread_id")))
    for key, is_admin in (("allow_from", False), ("allow_admin_from", True), ("group_allow_admin_from", True)):
        users = extra.get(key)
        ids = _split(users) if isinstance(users, str) else filter(None, map(as_id, as_list(users)))
        settings.allowed += [ImportedAccount(platform=platform, user_id=each, is_owner=is_admin) for each in ids]


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _load_zone(folder: HermesFolder) -> tzinfo | None:
    name = folder.settings.timezone
    if not name:
        return None
    try:
        return load_zone(name)
    except InvalidInput:
        folder.report("timezone", f"{name!r} is not a time zone; the one of this machine is used.")
        folder.settings.timezone = ""
        return None
