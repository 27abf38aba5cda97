"""The valid values of settings, and what else the declaration of a setting can say.

A setting is a field of a `Section`: `timeout: Annotated[int, number(1, 60), "How long one answer may take."] = 30`.
Its annotation has the type, a `Rule` with the valid values, the help text, and where they apply `Variable`, `SentTo`,
`NotStorable`, `NEEDS_RESTART` and `STARTS_PROGRAM`. Everything else about it is derived: see `setting_templates`.

Owns the rules that concern only settings; where another room has a rule for a value, that one is used.

Always true: a value is accepted or rejected as it is written; text that names a member of an enumeration becomes that
member, and nothing else is converted. The rules work without pydantic, which only calls them when it fills a section.
"""

from __future__ import annotations

import base64
import re
from enum import Enum, StrEnum
from functools import partial
from ipaddress import ip_network
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar, get_args

from palaver.config.budget_rules import MAX_LIMIT_TOKENS, parse_dollars
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.http_url import is_http_url
from palaver.core.source import BUILT_IN_PLATFORMS, ChatType, Platform
from palaver.core.texts import LANGUAGES, say
from palaver.people.model import Role
from palaver.sessions.gateway_config import AGENT_NAME_RULE, is_agent_name
from palaver.sessions.keys import DmScope
from palaver.sessions.policy import FIELD_RULES, MAX_IDLE_MINUTES, ResetMode
from palaver.sessions.targets import format_chat_target, parse_target
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TOOLSET_NAMES: Final = ("history", "memory", "schedule", "messaging", "web")
MAX_PICTURE_CHARS: Final = 65_536  # of the data URL
_PICTURE_STARTS: Final = {  # the first bytes of a file of each type
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
    "gif": re.compile(rb"GIF8[79]a"),
}


class SearchProvider(StrEnum):
    """A service that searches the web."""

    SEARXNG = "searxng"
    BRAVE = "brave"
    TAVILY = "tavily"


@dataclass(frozen=True)
class ValueForm:
    """The look of the valid values of a setting, for a form on a page; the rule alone decides."""

    kind: str = "text"  # text, long_text, url, number, integer, boolean, choice, timezone, model, image
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None  # a regular expression for the whole text


@dataclass(frozen=True)
class Rule:
    """The valid values of a setting: a test, and a description. Pydantic calls the test instead of converting.

    Null is valid, too, where the type of the setting says so.
    """

    accepts: Callable[[object], bool]
    allowed: str
    form: ValueForm = ValueForm()
    is_literal: bool = False  # 007 and 1712345678.1200 are text, and not numbers
    convert: Callable[[Any], object] | None = None  # an enumeration

    def check(self, value: object, *, is_optional: bool = False) -> object:
        """Return a valid value. Raises ValueError with what is allowed."""
        if is_optional and value is None:
            return None
        if not self.accepts(value):
            raise ValueError(self.allowed)
        return value if self.convert is None else self.convert(value)

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> Any:
        from pydantic_core import core_schema

        is_optional = type(None) in get_args(source)
        return core_schema.no_info_plain_validator_function(partial(self.check, is_optional=is_optional))


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


class Section:
    """A section of config.yaml: its subclasses are plain frozen dataclasses, so that the defaults cost no import.

    Pydantic fills them when there is a file, and rejects keys that they do not define.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def find_conflict(self) -> str | None:
        """Return why the keys of this section cannot be used together; None when they can."""
        return None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Any) -> Any:
        # Pydantic reuses a schema that has a reference: the outermost has to have it.
        plain = dict(handler.resolve_ref_schema(handler(source)))
        reference = plain.pop("ref")
        check = CheckTogether(cls.find_conflict)
        schema = TreatNullAsEmpty(dict).__get_pydantic_core_schema__(
            source, lambda section: check.__get_pydantic_core_schema__(section, lambda _: plain)
        )
        return {**schema, "ref": reference}


_K = TypeVar("_K")
_V = TypeVar("_V")
Named = Annotated[dict[_K, _V], TreatNullAsEmpty(dict)]  # sections or values by names that the operator chooses
Many = Annotated[tuple[_V, ...], TreatNullAsEmpty(list)]


@dataclass(frozen=True)
class Variable:
    """The environment variable that sets a setting; of several for one setting the first wins.

    `key` says which setting, if several are declared by the same field. In both, `{}` stands for a platform.
    """

    name: str
    key: str | None = None


@dataclass(frozen=True)
class SentTo:
    """The setting is secret. It is sent to an address that these keys of its section say."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)


@dataclass(frozen=True)
class NotStorable:
    """The setting can't be changed while Palaver runs."""

    reason: str


class Trait(Enum):
    """A special property of a setting."""

    NEEDS_RESTART = 1
    STARTS_PROGRAM = 2  # on the server, which a thief of a browser session must not be able to do


NEEDS_RESTART: Final = Trait.NEEDS_RESTART
STARTS_PROGRAM: Final = Trait.STARTS_PROGRAM


def _policy_rule(key: str, form: ValueForm, *, is_literal: bool = False) -> Rule:
    return Rule(FIELD_RULES[key].accepts, FIELD_RULES[key].allowed, form, is_literal)


def _choice_rule(choices: Iterable[str], allowed: str) -> Rule:
    known = tuple(map(str, choices))
    convert = choices if isinstance(choices, type) else None  # an enumeration
    return Rule(lambda value: value in known, allowed, ValueForm("choice", choices=known), convert=convert)


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
    from difflib import get_close_matches  # most names are known

    return value in BUILT_IN_PLATFORMS or not get_close_matches(value, BUILT_IN_PLATFORMS, cutoff=0.75)


def _is_chat_target(value: object) -> bool:
    """Whether this is the target of a chat, in the one way that it is written."""
    if not isinstance(value, str):
        return False
    try:
        target = parse_target(value)
    except InvalidInput:
        return False
    written = format_chat_target(target.platform, target.chat_id, target.thread_id, target.account)
    return target.kind == "chat" and written == value


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


def _pattern_rule(pattern: str, allowed: str, *, is_literal: bool = False) -> Rule:
    return Rule(
        lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None,
        allowed,
        ValueForm(pattern=pattern),
        is_literal,
    )


_ANY_TEXT: Final = say("allowed.text", "text")


def _text_rule(
    accepts: Callable[[object], bool],
    allowed: str = _ANY_TEXT,
    kind: str = "text",
) -> Rule:
    return Rule(accepts, allowed, ValueForm(kind), is_literal=True)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.strip() != ""


WHOLE_NUMBER: Final = say("allowed.whole_number", "a whole number")
TOKENS: Final = say("allowed.whole_number_tokens", "a whole number of tokens")
MEGABYTES: Final = say("allowed.whole_number_megabytes", "a whole number of megabytes")
MINUTES: Final = say("allowed.whole_number_minutes", "a whole number of minutes")
DAYS: Final = say("allowed.whole_number_days", "a whole number of days")


def number(low: int, high: int, allowed: str = WHOLE_NUMBER, *, whole: bool = True) -> Rule:
    def accepts(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return low <= value <= high and (isinstance(value, int) or not whole)

    form = ValueForm("integer" if whole else "number", minimum=low, maximum=high)
    values = say("allowed.range", "{allowed}, {low} to {high}", allowed=allowed, low=str(low), high=str(high))
    return Rule(accepts, values, form)


BOOL: Final = Rule(
    lambda value: isinstance(value, bool), say("allowed.true_false", "true or false"), ValueForm("boolean")
)
TEXT: Final = _text_rule(_is_text)
LONG_TEXT: Final = _text_rule(_is_text, kind="long_text")
ANY_TEXT: Final = _text_rule(lambda value: isinstance(value, str))  # it may be empty
ANY_LONG_TEXT: Final = _text_rule(ANY_TEXT.accepts, kind="long_text")
DATABASE_URL: Final = _text_rule(
    _is_database,
    say("allowed.sqlite_path_postgresql_user", "sqlite:///path, postgresql://user@host/name or a file path"),
)
AGENT_NAME: Final = _text_rule(is_agent_name, AGENT_NAME_RULE)
CHOICE_NAME: Final = Rule(
    lambda value: is_agent_name(value) and value != "default",
    say(
        "allowed.up_32_lowercase_letters",
        "up to 32 lowercase letters, digits, '_' or '-', starting with a letter or digit, but not default",
    ),
)
DM_SCOPE: Final = _choice_rule(DmScope, say("allowed.chat_platform_person_shared", "chat, platform, person or shared"))
PLATFORM: Final = Rule(_is_platform, ", ".join(BUILT_IN_PLATFORMS), convert=Platform)
CHAT_TARGET: Final = Rule(
    _is_chat_target,
    say("allowed.chat_target", "a chat, such as telegram:-1001234567, or slack:C0123:1700000000.1 for a thread"),
)
CHAT_TYPE: Final = _choice_rule(ChatType, ", ".join(ChatType))
RESET_MODE: Final = _policy_rule("mode", ValueForm("choice", choices=tuple(map(str, ResetMode))))
IDLE_MINUTES: Final = _policy_rule("idle_minutes", ValueForm("integer", minimum=1, maximum=MAX_IDLE_MINUTES))
HOUR_OF_DAY: Final = _policy_rule("at_hour", ValueForm("integer", minimum=0, maximum=23))
TIMEZONE: Final = _policy_rule("timezone", ValueForm("timezone"), is_literal=True)
PROVIDER_NAME: Final = _pattern_rule(
    "[a-z][a-z0-9_-]{0,31}",
    say(
        "allowed.up_32_lowercase_letters_digits",
        "up to 32 lowercase letters, digits, '_' or '-', starting with a letter",
    ),
)
MODEL: Final = _text_rule(
    _is_model,
    say(
        "allowed.auto_demo_local_local",
        "auto, demo, local, local:/path/of/model.gguf or provider:name such as openai:gpt-5",
    ),
    "model",
)
FALLBACK_MODEL: Final = _text_rule(
    lambda value: value != "auto" and MODEL.accepts(value),
    say("allowed.fallback_model", "demo, local, local:/path/of/model.gguf or provider:name such as openai:gpt-5"),
    "model",
)
PROVIDER_MODEL: Final = Rule(
    lambda value: FALLBACK_MODEL.accepts(value) and ":" in str(value) and not str(value).startswith("local:"),
    say("allowed.provider_name_ollama_qwen3", "provider:name such as ollama:qwen3"),
)
MODEL_PATTERN: Final = _text_rule(
    lambda value: FALLBACK_MODEL.accepts(value) and "*" not in str(value)[:-1],
    say(
        "allowed.model_pattern",
        "{allowed}; a * at the end stands for any ending, as in openai:*",
        allowed=FALLBACK_MODEL.allowed,
    ),
    "model",
)
API_KEY: Final = _pattern_rule(
    "[!-~]+",
    say("allowed.ascii_characters_without_spaces", "ASCII characters without spaces, exactly as the provider gave it"),
    is_literal=True,
)
URL: Final = Rule(
    is_http_url, say("allowed.url_begins_http_https", "a URL that begins with http:// or https://"), ValueForm("url")
)
SERVER_NAME: Final = _pattern_rule(
    "[A-Za-z][A-Za-z0-9_-]{0,31}",
    say("allowed.up_32_letters_digits", "up to 32 letters, digits, '_' or '-', starting with a letter"),
)
ARGUMENT_TEXT: Final = _text_rule(lambda value: isinstance(value, str) and "\0" not in value)
COMMAND: Final = _text_rule(lambda value: TEXT.accepts(value) and ARGUMENT_TEXT.accepts(value))
VARIABLE_NAME: Final = _pattern_rule(
    "[A-Za-z_][A-Za-z0-9_]*", say("allowed.letters_digits", "letters, digits and '_', not starting with a digit")
)
HEADER_NAME: Final = _pattern_rule(
    r"[A-Za-z0-9!#$%&'*+.^_`|~-]+",
    say("allowed.name_http_header_authorization", "the name of an HTTP header, such as Authorization"),
)
HEADER_VALUE: Final = _text_rule(
    lambda value: isinstance(value, str) and value.isprintable(), say("allowed.text_one_line", "text on one line")
)
BUSY_POLICY: Final = _choice_rule(
    BusyPolicy, say("allowed.queue_steer_interrupt_reject", "queue, steer, interrupt or reject")
)
ACCOUNT_NAME: Final = PROVIDER_NAME
GROUP_ACTIVATION: Final = _choice_rule(
    ("mention", "each_mention", "always"), say("allowed.mention_always", "mention, each_mention or always")
)
ACCESS: Final = _choice_rule(("known", "everyone"), say("allowed.known_everyone", "known or everyone"))
STRANGERS: Final = _choice_rule(("pair", "ignore"), say("allowed.pair_ignore", "pair or ignore"))
TEXT_LANGUAGE: Final = _choice_rule(LANGUAGES, say("allowed.language", "en or de"))
MESSAGE_COUNT: Final = number(1, 6000, say("allowed.number_or_none", "a whole number, or null for no limit"))
COMMAND_NAME: Final = _pattern_rule(
    "[a-z]{1,32}", say("allowed.name_slash_command_without", "the name of a slash command, without its slash")
)
BACKUP_HOURS: Final = number(
    0, 8760, say("allowed.whole_number_hours_0", "a whole number of hours; 0 turns automatic backups off")
)
KEEP_DAYS: Final = number(0, 36500, say("allowed.whole_number_days_0", "a whole number of days; 0 keeps everything"))
MERGE_WINDOW_SECONDS: Final = number(0, 60, say("allowed.number_seconds", "a number of seconds"), whole=False)
PERCENT_OF_CONTEXT: Final = number(10, 95, say("allowed.whole_number_percent", "a whole number of percent"))
SPEECH_ENGINE: Final = _text_rule(
    lambda value: value in {"auto", "off", "command"} or PROVIDER_MODEL.accepts(value),
    say(
        "allowed.auto_off_command_provider", "auto, off, command or provider:name such as openai:gpt-4o-mini-transcribe"
    ),
)
VOICE: Final = _pattern_rule(
    r"[A-Za-z0-9][A-Za-z0-9_.+/-]{0,99}",
    say("allowed.name_voice_alloy_en", "the name of a voice, such as alloy or en-us"),
    is_literal=True,
)
LANGUAGE: Final = _pattern_rule(
    "[a-z]{2,3}", say("allowed.language_code_two_three", "a language code of two or three letters: de"), is_literal=True
)
CONTACT: Final = _pattern_rule(
    r"mailto:[^@\s]{1,100}@[^@\s]{1,200}|https://[^\s]{1,300}",
    say("allowed.mailto_address_https_url", "mailto: with an address, or an https:// URL"),
    is_literal=True,
)
HOST: Final = _pattern_rule(
    r"[A-Za-z0-9.:_-]{1,253}",
    say("allowed.ip_address_host_name", "an IP address or host name of this machine, such as 127.0.0.1 or 0.0.0.0"),
)
SEARCH_PROVIDER: Final = _choice_rule(SearchProvider, ", ".join(SearchProvider))
PRIVATE_HOST: Final = _pattern_rule(
    r"[A-Za-z0-9.:_-]{1,253}",
    say(
        "allowed.host_name_ip_address",
        "a host name or an IP address, without a port, such as wiki.home.lan or 192.168.1.20",
    ),
)
NETWORK: Final = Rule(
    _is_network, say("allowed.ip_address_network_127", "an IP address or network, such as 127.0.0.1 or 10.0.0.0/8")
)
TOOLSET_NAME: Final = _choice_rule(TOOLSET_NAMES, ", ".join(TOOLSET_NAMES))
PROFILE_TOOLSET: Final = Rule(
    lambda value: (
        value in TOOLSET_NAMES
        or (isinstance(value, str) and value.startswith("mcp:") and SERVER_NAME.accepts(value[4:]))
    ),
    say(
        "allowed.mcp_name_server_mcp",
        "{names}, or mcp: with the name of a server, such as mcp:files",
        names=", ".join(TOOLSET_NAMES),
    ),
)
PICTURE: Final = _text_rule(
    _is_picture,
    say(
        "allowed.png_jpeg_webp_gif",
        "a PNG, JPEG, WebP or GIF picture as a data URL, at most {count} characters",
        count=str(MAX_PICTURE_CHARS),
    ),
    "image",
)
ROLE: Final = _choice_rule(Role, say("allowed.role", "owner, member or guest"))
TOKEN_PRICE: Final = _text_rule(
    _is_dollars, say("allowed.dollars_million_tokens_0", "dollars for a million tokens, 0 to 1000000, such as 2.5")
)
BUDGET_TOKENS: Final = number(0, MAX_LIMIT_TOKENS, TOKENS)
BUDGET_USD: Final = _text_rule(
    _is_dollars,
    say("allowed.dollars_most_6_decimals", "dollars with at most 6 decimals, 0 to 1000000, such as 5 or 0.25"),
)
AT_LEAST_ONE: Final = CheckTogether(
    lambda value: say("settings.list_empty", "list at least one (or use enabled: false)") if value == () else None
)
