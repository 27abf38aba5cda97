"""The environment: which variables there are, what they say, and how that is put over the file.

Owns the names of the variables and the key that each wins over. What a value may be is said in `rules`.

Always true: a variable changes only the key it names, except that another chat takes no name or thread from the
file's; of two for one key the first in the list wins; an empty one says nothing; and one that is wrong is reported
by its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from palaver.config import validators
from palaver.config.schema import File, HomeSection, PlatformSection, ProviderSection
from palaver.config.validation import shown
from palaver.domain.source import Platform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CHAT_PLATFORMS: Final = (
    Platform.TELEGRAM,
    Platform.DISCORD,
    Platform.SLACK,
    Platform.WHATSAPP,
    Platform.SIGNAL,
    Platform.MATRIX,
)


@dataclass(frozen=True)
class Variable:
    """An environment variable, and the key of config.yaml that it wins over."""

    name: str
    key: str
    rule: validators.Rule = validators.TEXT
    read: Callable[[str], object] = str


def _number(text: str) -> object:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text


def _truth(text: str) -> object:
    words = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
    return words.get(text.lower(), text)


VARIABLES: Final = (
    Variable("PALAVER_DATABASE_URL", "database_url", validators.DATABASE),
    Variable("PALAVER_TIMEZONE", "timezone", validators.ZONE),
    Variable("PALAVER_SESSION_RESET_MODE", "session_reset.mode", validators.MODE),
    Variable("PALAVER_SESSION_RESET_IDLE_MINUTES", "session_reset.idle_minutes", validators.MINUTES, _number),
    Variable("PALAVER_SESSION_RESET_AT_HOUR", "session_reset.at_hour", validators.HOUR, _number),
    Variable("PALAVER_DM_SCOPE", "sessions.dm_scope", validators.SCOPE),
    Variable("PALAVER_REDACT_PII", "privacy.redact_pii", validators.BOOL, _truth),
    Variable("PALAVER_HOST", "web.host", validators.HOST),
    Variable("PALAVER_PORT", "web.port", validators.PORT, _number),
    Variable("PALAVER_PUBLIC_URL", "web.public_url", validators.ADDRESS_OR_NOTHING),
    Variable("PALAVER_MODEL", "model", validators.MODEL),
    Variable("OPENAI_API_KEY", "providers.openai.api_key", validators.KEY_OR_NOTHING),
    Variable("OPENAI_BASE_URL", "providers.openai.base_url", validators.ADDRESS_OR_NOTHING),
    Variable("ANTHROPIC_API_KEY", "providers.anthropic.api_key", validators.KEY_OR_NOTHING),
    Variable("GEMINI_API_KEY", "providers.google.api_key", validators.KEY_OR_NOTHING),
    Variable("GOOGLE_API_KEY", "providers.google.api_key", validators.KEY_OR_NOTHING),
    *(
        Variable(f"{platform.upper()}_HOME_CHANNEL{suffix}", f"platforms.{platform}.home_channel.{key}")
        for platform in CHAT_PLATFORMS
        for suffix, key in (("", "chat_id"), ("_NAME", "name"), ("_THREAD_ID", "thread_id"))
    ),
)


def overrides(environ: Mapping[str, str]) -> tuple[dict[str, object], list[str]]:
    """What the environment says, by key, and what is wrong with it; an empty variable says nothing."""
    given: dict[str, object] = {}
    mistakes = []
    for variable in VARIABLES:
        text = environ.get(variable.name, "").strip()
        if not text:
            continue
        value = variable.read(text)
        if variable.rule.holds(value):
            given.setdefault(variable.key, value)
        else:
            found = shown(tuple(variable.key.split(".")), value)
            mistakes.append(f"{variable.name}: {found} is not allowed ({variable.rule.allowed})")
    return given, mistakes


def overridden(file: File, given: Mapping[str, object]) -> tuple[File, list[str]]:
    """The file with what the environment says put over it, and what does not go together."""
    mistakes = []
    for key, value in given.items():
        if key.startswith("providers."):
            file = _with_provider(file, key, value)
        elif not key.startswith("platforms."):
            file = _put(file, key.split("."), value)
    for platform in CHAT_PLATFORMS:
        prefix = f"platforms.{platform}.home_channel."
        said = {key.removeprefix(prefix): str(text) for key, text in given.items() if key.startswith(prefix)}
        section = file.platforms.get(platform) or PlatformSection(enabled=False)
        home = section.home_channel
        if "chat_id" in said and (home is None or home.chat_id != said["chat_id"]):
            home = HomeSection(chat_id=said["chat_id"])  # another chat: name and thread of the file's are not its own
        if said and home is None:
            names = [variable.name for variable in VARIABLES if variable.key.removeprefix(prefix) in said]
            needed = f"{platform.upper()}_HOME_CHANNEL"
            mistakes.append(f"{', '.join(names)}: there is no home channel to go with it (set {needed})")
        elif said and home:
            section = replace(section, home_channel=replace(home, **said))
            file = replace(file, platforms={**file.platforms, platform: section})
    return file, mistakes


def _with_provider(file: File, key: str, value: Any) -> File:
    """The file with one key of a provider changed, which it need not name."""
    _, name, what = key.split(".")
    section = replace(file.providers.get(name) or ProviderSection(), **{what: value})
    return replace(file, providers={**file.providers, name: section})


def _put(section: Any, path: list[str], value: object) -> Any:
    """A copy of a section with one key in it changed."""
    head, *rest = path
    return replace(section, **{head: _put(getattr(section, head), rest, value) if rest else value})
