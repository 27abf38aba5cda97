"""Environment variables: which exist, which setting each overrides, and how they are applied to the file.

`validators` says which values are valid.

Always true: a variable changes only its own key, except that a home channel from the environment does not keep the
name and thread of another chat in the file; of two variables for one key the first in the list wins; an empty
variable is ignored; and an invalid one is reported by its name.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from palaver.config.agent_rules import Provider
from palaver.config.schema import ConfigFile, HomeSection, PlatformSection
from palaver.config.setting_templates import iterate_variables
from palaver.config.validation import format_value
from palaver.config.validators import TEXT, Rule
from palaver.core.dataclass import dataclass
from palaver.core.source import BUILT_IN_PLATFORMS, PLATFORMS_WITHOUT_CHATS, Platform

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TRUTH_VALUES: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "0"), False
)

CHAT_PLATFORMS: Final = tuple(
    each for each in BUILT_IN_PLATFORMS if each not in {*PLATFORMS_WITHOUT_CHATS, Platform.WEBHOOK}
)


@dataclass(frozen=True)
class EnvironmentVariable:
    name: str
    key: str
    rule: Rule

    def parse(self, text: str) -> object:
        match self.rule.form.kind:
            case "integer":
                return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text
            case "boolean":
                return _TRUTH_VALUES.get(text.lower(), text)
            case _:
                return text


def _iterate_variables() -> Iterator[EnvironmentVariable]:
    for key, variable, rule in iterate_variables():
        for platform in CHAT_PLATFORMS if "{}" in variable.name else ("",):
            yield EnvironmentVariable(
                variable.name.format(platform.upper().replace("-", "_")),
                (variable.key or key).format(platform),
                TEXT if rule is None or platform else rule,
            )


# A section that is used several times declares its variables as often.
ENVIRONMENT_VARIABLES: Final = tuple({each.name: each for each in _iterate_variables()}.values())


def read_overrides(environ: Mapping[str, str]) -> tuple[dict[str, object], dict[str, str], list[str]]:
    """Return the values from the environment and the names of their variables, by setting key, and the problems."""
    values: dict[str, object] = {}
    names: dict[str, str] = {}
    problems = []
    for variable in ENVIRONMENT_VARIABLES:
        text = environ.get(variable.name, "").strip()
        if not text:
            continue
        value = variable.parse(text)
        try:
            values.setdefault(variable.key, variable.rule.check(value))
            names.setdefault(variable.key, variable.name)
        except ValueError as error:
            shown_value = format_value(tuple(variable.key.split(".")), value)
            problems.append(f"{variable.name}: {shown_value} is not allowed ({error})")
    return values, names, problems


def apply_overrides(file: ConfigFile, values: Mapping[str, object]) -> tuple[ConfigFile, list[str]]:
    """Return the file with the values from the environment applied, and the problems with their combination."""
    problems = []
    for key, value in values.items():
        if not key.startswith("platforms."):
            file = _set_key(file, key.split("."), value)
    for platform in CHAT_PLATFORMS:
        prefix = f"platforms.{platform}.home_channel."
        overrides = {key.removeprefix(prefix): str(text) for key, text in values.items() if key.startswith(prefix)}
        section = file.platforms.get(platform) or PlatformSection(enabled=False)
        home = section.home_channel
        if "chat_id" in overrides and (home is None or home.chat_id != overrides["chat_id"]):
            home = HomeSection(chat_id=overrides["chat_id"])  # another chat: the file's name and thread do not apply
        if overrides and home is None:
            names = [
                variable.name for variable in ENVIRONMENT_VARIABLES if variable.key.removeprefix(prefix) in overrides
            ]
            needed = next(each.name for each in ENVIRONMENT_VARIABLES if each.key == f"{prefix}chat_id")
            problems.append(f"{', '.join(names)}: this needs a home channel (set {needed})")
        elif overrides and home:
            section = replace(section, home_channel=replace(home, **overrides))
            file = replace(file, platforms={**file.platforms, platform: section})
    return file, problems


def _set_key(section: Any, path: list[str], value: object) -> Any:
    """Return a copy of a section with one key changed; the section of a provider need not be there."""
    head, *rest = path
    if isinstance(section, dict):
        return {**section, head: _set_key(section.get(head) or Provider(), rest, value)}
    return replace(section, **{head: _set_key(getattr(section, head), rest, value) if rest else value})


_UTC = "UTC"
_DATABASE_FOLDER = "zoneinfo/"  # the names of zones are paths in a folder of this name


def find_machine_timezone(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """Return the zone named by TZ, /etc/localtime or /etc/timezone; UTC if none of them names one."""
    candidates = [environ["TZ"].strip().removeprefix(":")] if "TZ" in environ else _read_system_settings(etc)
    names = (candidate.rpartition(_DATABASE_FOLDER)[2] for candidate in candidates)
    zone = next((name for name in names if _is_zone(name)), _UTC)
    return zone.removeprefix("Etc/") if zone == f"Etc/{_UTC}" else zone


def _read_system_settings(etc: Path) -> list[str]:
    settings: list[str] = []
    with contextlib.suppress(OSError):  # not there, or not a link
        settings.append(str((etc / "localtime").readlink()))
    with contextlib.suppress(OSError, ValueError):
        settings.append((etc / "timezone").read_text(encoding="utf-8").strip())
    return settings


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, ZoneInfoNotFoundError):  # an unknown name, or no name at all
        return False
    return True
