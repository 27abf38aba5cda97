"""The valid values of settings: each rule is a test and a description of what it accepts.

Owns the rules that concern only settings; where the domain has a rule for a value, that one is used.

Always true: a value is accepted unchanged or rejected, never converted. The rules work without pydantic, which only
calls them when it fills the schema.
"""

from __future__ import annotations

import base64
import difflib
import re
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final

from palaver.config.agent_rules import SearchProvider, TurnRules
from palaver.config.budget_rules import parse_dollars
from palaver.core.errors import InvalidInput
from palaver.core.http_url import is_http_url
from palaver.core.source import BUILT_IN_PLATFORMS, ChatType
from palaver.people.model import Role
from palaver.sessions.gateway_config import AGENT_NAME_RULE, is_agent_name
from palaver.sessions.keys import DmScope
from palaver.sessions.policy import FIELD_RULES, MAX_IDLE_MINUTES, ResetMode
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TOOLSET_NAMES: Final = tuple(TurnRules().toolsets)


@dataclass(frozen=True)
class ValueForm:
    """What the valid values of a setting look like, for a form on a page; the rule alone decides."""

    kind: str = "text"  # text, long_text, url, number, integer, boolean, choice, timezone, model, image
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    pattern: str | None = None  # a regular expression for the whole text
    is_optional: bool = False  # null is valid too


TEXT_FORM: Final = ValueForm()
MAX_PICTURE_CHARS: Final = 65_536  # of the data URL
_PICTURE_STARTS: Final = {  # the first bytes of a file of each type
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
    "gif": re.compile(rb"GIF8[79]a"),
}


@dataclass(frozen=True)
class Rule:
    """The valid values of a setting: a test, and a description. Pydantic calls the test instead of converting."""

    accepts: Callable[[object], bool]
    allowed: str
    form: ValueForm = TEXT_FORM

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self._check)

    def _check(self, value: object) -> object:
        if not self.accepts(value):
            raise ValueError(self.allowed)
        return value


@dataclass(frozen=True)
class CheckTogether:
    """Checks whether the valid parts of a section or list fit together; `find_conflict` returns None if they do."""

    find_conflict: Callable[[Any], str | None]

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, value: object) -> object:
        from pydantic_core import PydanticCustomError

        if text := self.find_conflict(value):
            raise PydanticCustomError("together", "{text}", {"text": text})
        return value


@dataclass(frozen=True)
class TreatNullAsEmpty:
    """Accepts a section or list without any value, for example because all its lines are commented out."""

    empty: Callable[[], object]

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            lambda value: self.empty() if value is None else value, handler(source)
        )


def _policy_rule(key: str, form: ValueForm) -> Rule:
    return Rule(FIELD_RULES[key].accepts, FIELD_RULES[key].allowed, form)


def _choice_rule(choices: Iterable[str], allowed: str) -> Rule:
    known = tuple(map(str, choices))
    return Rule(lambda value: value in known, allowed, ValueForm("choice", choices=known))


def _is_database(value: object) -> bool:
    if not isinstance(value, str) or not value.strip() or "\0" in value or ":memory:" in value:
        return False
    if re.match(r"[\w+.-]{2,}:", value):
        return re.match(r"sqlite:///.|postgres(ql)?://.", value) is not None
    return re.match(r"\w+\s*=", value) is None  # the keyword form of a PostgreSQL address is not supported


def _is_platform(value: object) -> bool:
    """Whether this is a built-in platform, or a name that does not look like a misspelled one."""
    if not isinstance(value, str) or not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", value):
        return False
    return value in BUILT_IN_PLATFORMS or not difflib.get_close_matches(value, BUILT_IN_PLATFORMS, cutoff=0.75)


def _is_model(value: object) -> bool:
    if not isinstance(value, str):
        return False
    provider, separator, name = value.partition(":")
    if provider in {"auto", "demo"} or not separator:
        return value in {"auto", "demo", "local"}
    if provider == "local":
        return name.strip() != "" and name.isprintable()
    return PROVIDER_NAME.accepts(provider) and re.fullmatch(r"\S+", name) is not None and name.isprintable()


def _is_network(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        ip_network(value)
    except ValueError:
        return False
    return True


def _is_picture(value: object) -> bool:
    """Whether this is a data URL of a picture, whose content has the type that it claims."""
    if not isinstance(value, str) or len(value) > MAX_PICTURE_CHARS:
        return False
    match = re.fullmatch(r"data:image/(png|jpeg|webp|gif);base64,([A-Za-z0-9+/]+={0,2})", value)
    if match is None:
        return False
    try:
        content = base64.b64decode(match[2], validate=True)
    except ValueError:
        return False
    return _PICTURE_STARTS[match[1]].match(content) is not None


def _is_dollars(value: object) -> bool:
    """Whether this is an amount of money, as the text in the file: it is never read as a float."""
    try:
        parse_dollars(value if isinstance(value, str) else "")
    except InvalidInput:
        return False
    return True


def _pattern_rule(pattern: str, allowed: str) -> Rule:
    return Rule(
        lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None,
        allowed,
        ValueForm(pattern=pattern),
    )


def _number_rule(low: int, high: int, allowed: str, *, whole: bool = True) -> Rule:
    def accepts(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return low <= value <= high and (isinstance(value, int) or not whole)

    form = ValueForm("integer" if whole else "number", minimum=low, maximum=high)
    return Rule(accepts, f"{allowed}, {low} to {high}", form)


def _optional_rule(rule: Rule) -> Rule:
    return Rule(lambda value: value is None or rule.accepts(value), rule.allowed, replace(rule.form, is_optional=True))


BOOL: Final = Rule(lambda value: isinstance(value, bool), "true or false", ValueForm("boolean"))
TEXT: Final = Rule(lambda value: isinstance(value, str) and value.strip() != "", "text")
OPTIONAL_TEXT: Final = Rule(lambda value: value is None or isinstance(value, str), "text", ValueForm(is_optional=True))
DATABASE_URL: Final = Rule(_is_database, "sqlite:///path, postgresql://user@host/name or a file path")
AGENT_NAME: Final = Rule(is_agent_name, AGENT_NAME_RULE)
CHOICE_NAME: Final = Rule(
    lambda value: is_agent_name(value) and value != "default",
    "up to 32 lowercase letters, digits, '_' or '-', starting with a letter or digit, but not default",
)
DM_SCOPE: Final = _choice_rule(DmScope, "chat, platform, person or shared")
PLATFORM: Final = Rule(_is_platform, ", ".join(BUILT_IN_PLATFORMS))
CHAT_TYPE: Final = _choice_rule(ChatType, ", ".join(ChatType))
RESET_MODE: Final = _policy_rule("mode", ValueForm("choice", choices=tuple(map(str, ResetMode))))
OPTIONAL_RESET_MODE: Final = _optional_rule(RESET_MODE)
IDLE_MINUTES: Final = _policy_rule("idle_minutes", ValueForm("integer", minimum=1, maximum=MAX_IDLE_MINUTES))
HOUR_OF_DAY: Final = _policy_rule("at_hour", ValueForm("integer", minimum=0, maximum=23))
TIMEZONE: Final = _policy_rule("timezone", ValueForm("timezone"))
OPTIONAL_TIMEZONE: Final = _optional_rule(TIMEZONE)
PROVIDER_NAME: Final = _pattern_rule(
    "[a-z][a-z0-9_-]{0,31}", "up to 32 lowercase letters, digits, '_' or '-', starting with a letter"
)
MODEL: Final = Rule(
    _is_model,
    "auto, demo, local, local:/path/of/model.gguf or provider:name such as openai:gpt-5",
    ValueForm("model"),
)
FALLBACK_MODEL: Final = Rule(
    lambda value: value != "auto" and MODEL.accepts(value), MODEL.allowed.removeprefix("auto, "), ValueForm("model")
)
PROVIDER_MODEL: Final = Rule(
    lambda value: FALLBACK_MODEL.accepts(value) and ":" in str(value) and not str(value).startswith("local:"),
    "provider:name such as ollama:qwen3",
)
MODEL_PATTERN: Final = Rule(
    lambda value: FALLBACK_MODEL.accepts(value) and "*" not in str(value)[:-1],
    f"{FALLBACK_MODEL.allowed}; a * at the end stands for any ending, as in openai:*",
    ValueForm("model"),
)
TOKEN_COUNT: Final = _number_rule(500, 100_000_000, "a whole number of tokens")
OPTIONAL_API_KEY: Final = _optional_rule(
    _pattern_rule("[!-~]+", "ASCII characters without spaces, exactly as the provider gave it")
)
OPTIONAL_URL: Final = _optional_rule(Rule(is_http_url, "a URL that begins with http:// or https://", ValueForm("url")))
SERVER_NAME: Final = _pattern_rule(
    "[A-Za-z][A-Za-z0-9_-]{0,31}", "up to 32 letters, digits, '_' or '-', starting with a letter"
)
ARGUMENT_TEXT: Final = Rule(lambda value: isinstance(value, str) and "\0" not in value, "text")
OPTIONAL_COMMAND: Final = _optional_rule(
    Rule(lambda value: TEXT.accepts(value) and ARGUMENT_TEXT.accepts(value), "text")
)
VARIABLE_NAME: Final = _pattern_rule("[A-Za-z_][A-Za-z0-9_]*", "letters, digits and '_', not starting with a digit")
HEADER_NAME: Final = _pattern_rule(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "the name of an HTTP header, such as Authorization")
HEADER_VALUE: Final = Rule(lambda value: isinstance(value, str) and value.isprintable(), "text on one line")
BUSY_POLICY: Final = _choice_rule(BusyPolicy, "queue, steer, interrupt or reject")
OPTIONAL_BUSY_POLICY: Final = _optional_rule(BUSY_POLICY)
ACCOUNT_NAME: Final = _pattern_rule(
    "[a-z][a-z0-9_-]{0,31}", "up to 32 lowercase letters, digits, '_' or '-', starting with a letter"
)
GROUP_ACTIVATION: Final = _choice_rule(("mention", "always"), "mention or always")
ACCESS: Final = _choice_rule(("known", "everyone"), "known or everyone")
OPTIONAL_MESSAGE_COUNT: Final = _optional_rule(_number_rule(1, 6000, "a whole number, or null for no limit"))
COMMAND_NAME: Final = _pattern_rule("[a-z]{1,32}", "the name of a slash command, without its slash")
RUNNING_TURNS: Final = _number_rule(1, 256, "a whole number")
RUNNING_JOBS: Final = _number_rule(1, 64, "a whole number")
BACKUP_HOURS: Final = _number_rule(0, 8760, "a whole number of hours; 0 turns automatic backups off")
IMPORT_MB: Final = _number_rule(1, 100_000, "a whole number of megabytes")
BACKUP_COUNT: Final = _number_rule(1, 1000, "a whole number")
KEEP_DAYS: Final = _number_rule(0, 36500, "a whole number of days; 0 keeps everything")
OPTIONAL_AGE_DAYS: Final = _optional_rule(_number_rule(1, 36500, "a whole number of days"))
OPTIONAL_DATABASE_MB: Final = _optional_rule(_number_rule(10, 10**8, "a whole number of megabytes"))
QUEUED_TURNS: Final = _number_rule(1, 1000, "a whole number")
MERGE_WINDOW_SECONDS: Final = _number_rule(0, 60, "a number of seconds", whole=False)
TIMEOUT_MINUTES: Final = _number_rule(1, 1440, "a whole number of minutes")
PERCENT_OF_CONTEXT: Final = _number_rule(10, 95, "a whole number of percent")
MEMORY_COUNT: Final = _number_rule(10, 1000, "a whole number")
SPEECH_ENGINE: Final = Rule(
    lambda value: value in {"auto", "off", "command"} or PROVIDER_MODEL.accepts(value),
    "auto, off, command or provider:name such as openai:gpt-4o-mini-transcribe",
)
OPTIONAL_VOICE: Final = _optional_rule(
    _pattern_rule(r"[A-Za-z0-9][A-Za-z0-9_.+/-]{0,99}", "the name of a voice, such as alloy or en-us")
)
OPTIONAL_LANGUAGE: Final = _optional_rule(_pattern_rule("[a-z]{2,3}", "a language code of two or three letters: de"))
RECORDING_MINUTES: Final = _number_rule(1, 60, "a whole number of minutes")
OPTIONAL_CONTACT: Final = _optional_rule(
    _pattern_rule(
        r"mailto:[^@\s]{1,100}@[^@\s]{1,200}|https://[^\s]{1,300}", "mailto: with an address, or an https:// URL"
    )
)
KEPT_EXCHANGES: Final = _number_rule(1, 50, "a whole number")
HOST: Final = _pattern_rule(
    r"[A-Za-z0-9.:_-]{1,253}", "an IP address or host name of this machine, such as 127.0.0.1 or 0.0.0.0"
)
PORT: Final = _number_rule(0, 65535, "a whole number")
OPTIONAL_PORT: Final = _optional_rule(PORT)
OPTIONAL_SEARCH_PROVIDER: Final = _optional_rule(_choice_rule(SearchProvider, ", ".join(SearchProvider)))
PRIVATE_HOST: Final = _pattern_rule(
    r"[A-Za-z0-9.:_-]{1,253}", "a host name or an IP address, without a port, such as wiki.home.lan or 192.168.1.20"
)
NETWORK: Final = Rule(_is_network, "an IP address or network, such as 127.0.0.1 or 10.0.0.0/8")
TOOLSET_NAME: Final = _choice_rule(TOOLSET_NAMES, ", ".join(TOOLSET_NAMES))
PROFILE_TOOLSET: Final = Rule(
    lambda value: (
        value in TOOLSET_NAMES
        or (isinstance(value, str) and value.startswith("mcp:") and SERVER_NAME.accepts(value[4:]))
    ),
    f"{', '.join(TOOLSET_NAMES)}, or mcp: with the name of a server, such as mcp:files",
)
OPTIONAL_PICTURE: Final = _optional_rule(
    Rule(
        _is_picture,
        f"a PNG, JPEG, WebP or GIF picture as a data URL, at most {MAX_PICTURE_CHARS} characters",
        ValueForm("image"),
    )
)
OPTIONAL_FALLBACK_MODEL: Final = _optional_rule(FALLBACK_MODEL)
ROLE: Final = _choice_rule(Role, "owner, member or guest")
TOKEN_PRICE: Final = Rule(_is_dollars, "dollars for a million tokens, 0 to 1000000, such as 2.5")
OPTIONAL_BUDGET_TOKENS: Final = _optional_rule(_number_rule(0, 10**12, "a whole number of tokens"))
OPTIONAL_BUDGET_USD: Final = _optional_rule(
    Rule(_is_dollars, "dollars with at most 6 decimals, 0 to 1000000, such as 5 or 0.25")
)
AT_LEAST_ONE: Final = CheckTogether(lambda value: "list at least one (or use enabled: false)" if value == () else None)
NULL_IS_EMPTY: Final = TreatNullAsEmpty(dict)
NULL_IS_EMPTY_LIST: Final = TreatNullAsEmpty(list)
