"""Environment variables: which exist, which setting each overrides, and how they are applied to the file.

`validators` says which values are valid.

Always true: a variable changes only its own key, except that a home channel from the environment does not keep the
name and thread of another chat in the file; of two variables for one key the first in the list wins; an empty
variable is ignored; and an invalid one is reported by its name.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from palaver.config import validators
from palaver.config.schema import ConfigFile, HomeSection, PlatformSection, ProviderSection
from palaver.config.validation import format_value
from palaver.core.source import Platform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


CHAT_PLATFORMS: Final = (
    Platform.TELEGRAM,
    Platform.DISCORD,
    Platform.SLACK,
    Platform.WHATSAPP,
    Platform.WHATSAPP_WEB,
    Platform.SIGNAL,
    Platform.MATRIX,
    Platform.EMAIL,
)


def get_home_channel_variable(platform: Platform) -> str:
    """Return the variable with the home channel of a platform, such as `WHATSAPP_WEB_HOME_CHANNEL`."""
    return f"{platform.upper().replace('-', '_')}_HOME_CHANNEL"


@dataclass(frozen=True)
class EnvironmentVariable:
    """An environment variable, and the key of config.yaml that it overrides."""

    name: str
    key: str
    rule: validators.Rule = validators.TEXT
    parse: Callable[[str], object] = str


def _parse_number(text: str) -> object:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text


def _parse_bool(text: str) -> object:
    words = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
    return words.get(text.lower(), text)


ENVIRONMENT_VARIABLES: Final = (
    EnvironmentVariable("PALAVER_DATABASE_URL", "database_url", validators.DATABASE_URL),
    EnvironmentVariable("PALAVER_TIMEZONE", "timezone", validators.TIMEZONE),
    EnvironmentVariable("PALAVER_SESSION_RESET_MODE", "session_reset.mode", validators.RESET_MODE),
    EnvironmentVariable(
        "PALAVER_SESSION_RESET_IDLE_MINUTES", "session_reset.idle_minutes", validators.IDLE_MINUTES, _parse_number
    ),
    EnvironmentVariable(
        "PALAVER_SESSION_RESET_AT_HOUR", "session_reset.at_hour", validators.HOUR_OF_DAY, _parse_number
    ),
    EnvironmentVariable("PALAVER_DM_SCOPE", "sessions.dm_scope", validators.DM_SCOPE),
    EnvironmentVariable("PALAVER_REDACT_PII", "privacy.redact_pii", validators.BOOL, _parse_bool),
    EnvironmentVariable("PALAVER_HOST", "web.host", validators.HOST),
    EnvironmentVariable("PALAVER_PORT", "web.port", validators.PORT, _parse_number),
    EnvironmentVariable("PALAVER_PUBLIC_URL", "web.public_url", validators.OPTIONAL_URL),
    EnvironmentVariable("PALAVER_MODEL", "model", validators.MODEL),
    EnvironmentVariable("PALAVER_BUDGET_DAY_USD", "budgets.overall.day_usd", validators.OPTIONAL_BUDGET_USD),
    EnvironmentVariable("PALAVER_BUDGET_MONTH_USD", "budgets.overall.month_usd", validators.OPTIONAL_BUDGET_USD),
    EnvironmentVariable("OPENAI_API_KEY", "providers.openai.api_key", validators.OPTIONAL_API_KEY),
    EnvironmentVariable("OPENAI_BASE_URL", "providers.openai.base_url", validators.OPTIONAL_URL),
    EnvironmentVariable("ANTHROPIC_API_KEY", "providers.anthropic.api_key", validators.OPTIONAL_API_KEY),
    EnvironmentVariable("GEMINI_API_KEY", "providers.google.api_key", validators.OPTIONAL_API_KEY),
    EnvironmentVariable("GOOGLE_API_KEY", "providers.google.api_key", validators.OPTIONAL_API_KEY),
    *(
        EnvironmentVariable(
            f"{get_home_channel_variable(platform)}{suffix}", f"platforms.{platform}.home_channel.{key}"
        )
        for platform in CHAT_PLATFORMS
        for suffix, key in (("", "chat_id"), ("_NAME", "name"), ("_THREAD_ID", "thread_id"))
    ),
)


def read_overrides(environ: Mapping[str, str]) -> tuple[dict[str, object], list[str]]:
    """Return the values from the environment, by setting key, and the problems with them."""
    values: dict[str, object] = {}
    problems = []
    for variable in ENVIRONMENT_VARIABLES:
        text = environ.get(variable.name, "").strip()
        if not text:
            continue
        value = variable.parse(text)
        if variable.rule.accepts(value):
            values.setdefault(variable.key, value)
        else:
            shown_value = format_value(tuple(variable.key.split(".")), value)
            problems.append(f"{variable.name}: {shown_value} is not allowed ({variable.rule.allowed})")
    return values, problems


def apply_overrides(file: ConfigFile, values: Mapping[str, object]) -> tuple[ConfigFile, list[str]]:
    """Return the file with the values from the environment applied, and the problems with their combination."""
    problems = []
    for key, value in values.items():
        if key.startswith("providers."):
            file = _set_provider_key(file, key, value)
        elif not key.startswith("platforms."):
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
            problems.append(
                f"{', '.join(names)}: this needs a home channel (set {get_home_channel_variable(platform)})"
            )
        elif overrides and home:
            section = replace(section, home_channel=replace(home, **overrides))
            file = replace(file, platforms={**file.platforms, platform: section})
    return file, problems


def _set_provider_key(file: ConfigFile, key: str, value: Any) -> ConfigFile:
    """Return a copy of the file with one key of a provider changed; the file need not have that provider."""
    _, name, field = key.split(".")
    section = replace(file.providers.get(name) or ProviderSection(), **{field: value})
    return replace(file, providers={**file.providers, name: section})


def _set_key(section: Any, path: list[str], value: object) -> Any:
    """Return a copy of a section with one key changed."""
    head, *rest = path
    return replace(section, **{head: _set_key(getattr(section, head), rest, value) if rest else value})


# --------------------------------------------------------------------------------------------------
# Finds the time zone that this machine is set to, by its IANA name.

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
