"""What the keys of config.yaml and the variables may hold: each rule a test and the same thing in words.

Owns the rules that are about writing settings down; where the domain has a rule for a value, it is asked.

Always true: a value is taken as it is or refused, never converted. The rules work without pydantic, which only
asks them when it fills the shape.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from palaver.domain.gateway_config import AGENT_NAMES, is_agent_name
from palaver.domain.keys import DmScope
from palaver.domain.person import Role
from palaver.domain.policy import FIELD_RULES
from palaver.domain.profile import TurnRules
from palaver.domain.source import BUILT_IN, ChatType
from palaver.domain.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

TOOLSETS: Final = tuple(TurnRules().toolsets)


@dataclass(frozen=True)
class Rule:
    """What a key may hold: a test, and the same thing in words. Pydantic asks it instead of converting."""

    holds: Callable[[object], bool]
    allowed: str

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self._checked)

    def _checked(self, value: object) -> object:
        if not self.holds(value):
            raise ValueError(self.allowed)
        return value


@dataclass(frozen=True)
class Together:
    """Asks a section or a list, right in each of its parts, what is wrong with them together; None is nothing."""

    complaint: Callable[[Any], str | None]

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: object) -> object:
        from pydantic_core import PydanticCustomError

        if text := self.complaint(value):
            raise PydanticCustomError("together", "{text}", {"text": text})
        return value


@dataclass(frozen=True)
class NullIsEmpty:
    """Lets a section or a list whose lines are all commented out be an empty one."""

    empty: Callable[[], object]

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            lambda value: self.empty() if value is None else value, handler(source)
        )


def _of_policy(key: str) -> Rule:
    return Rule(FIELD_RULES[key].holds, FIELD_RULES[key].allowed)


def _is_database(value: object) -> bool:
    if not isinstance(value, str) or not value.strip() or "\0" in value or ":memory:" in value:
        return False
    if re.match(r"[\w+.-]{2,}:", value):
        return re.match(r"sqlite:///.|postgres(ql)?://.", value) is not None
    return re.match(r"\w+\s*=", value) is None  # the other way to write a PostgreSQL address


def _is_platform(value: object) -> bool:
    """A platform we know, or a plugin's whose name does not look like a slip of the pen."""
    if not isinstance(value, str) or not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", value):
        return False
    return value in BUILT_IN or not difflib.get_close_matches(value, BUILT_IN, cutoff=0.75)


def _is_model(value: object) -> bool:
    if not isinstance(value, str):
        return False
    provider, separator, name = value.partition(":")
    if provider in {"auto", "demo"} or not separator:
        return value in {"auto", "demo", "local"}
    if provider == "local":
        return name.strip() != "" and name.isprintable()
    return PROVIDER.holds(provider) and re.fullmatch(r"\S+", name) is not None and name.isprintable()


def _is_address(value: object) -> bool:
    if not isinstance(value, str) or not re.fullmatch(r"https?://[^\s\\]+", value) or not value.isprintable():
        return False
    try:
        return bool(urlsplit(value).hostname) and urlsplit(value).port != 0
    except ValueError:  # a port that is no number, brackets that do not match
        return False


def _is_network(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        ip_network(value)
    except ValueError:
        return False
    return True


def _named(pattern: str, allowed: str) -> Rule:
    return Rule(lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None, allowed)


def _number(low: int, high: int, allowed: str, *, whole: bool = True) -> Rule:
    def holds(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return low <= value <= high and (isinstance(value, int) or not whole)

    return Rule(holds, f"{allowed}, {low} to {high}")


def _or_nothing(rule: Rule) -> Rule:
    return Rule(lambda value: value is None or rule.holds(value), rule.allowed)


BOOL: Final = Rule(lambda value: isinstance(value, bool), "true or false")
TEXT: Final = Rule(lambda value: isinstance(value, str) and value.strip() != "", "text")
TEXT_OR_NOTHING: Final = Rule(lambda value: value is None or isinstance(value, str), "text")
DATABASE: Final = Rule(_is_database, "sqlite:///path, postgresql://user@host/name or the path of a file")
AGENT: Final = Rule(is_agent_name, AGENT_NAMES)
SCOPE: Final = Rule(lambda value: value in tuple(DmScope), "chat, platform, person or shared")
PLATFORM: Final = Rule(_is_platform, ", ".join(BUILT_IN))
CHAT_TYPE: Final = Rule(lambda value: value in tuple(ChatType), ", ".join(ChatType))
MODE: Final = _of_policy("mode")
MINUTES: Final = _of_policy("idle_minutes")
HOUR: Final = _of_policy("at_hour")
ZONE: Final = _of_policy("timezone")
ZONE_OR_NOTHING: Final = _or_nothing(ZONE)
PROVIDER: Final = _named("[a-z][a-z0-9_-]{0,31}", "up to 32 small letters, digits, '_' or '-', beginning with a letter")
MODEL: Final = Rule(_is_model, "auto, demo, local, local:/path/of/model.gguf or provider:name such as openai:gpt-5")
FALLBACK: Final = Rule(lambda value: value != "auto" and MODEL.holds(value), MODEL.allowed.removeprefix("auto, "))
OF_PROVIDER: Final = Rule(
    lambda value: FALLBACK.holds(value) and ":" in str(value) and not str(value).startswith("local:"),
    "provider:name such as ollama:qwen3",
)
TOKENS: Final = _number(500, 100_000_000, "a whole number of tokens")
KEY_OR_NOTHING: Final = _or_nothing(_named("[!-~]+", "ASCII characters without spaces, as the provider gave it"))
ADDRESS_OR_NOTHING: Final = _or_nothing(Rule(_is_address, "an address that begins with http:// or https://"))
SERVER: Final = _named("[A-Za-z][A-Za-z0-9_-]{0,31}", "up to 32 letters, digits, '_' or '-', beginning with a letter")
ARGUMENT: Final = Rule(lambda value: isinstance(value, str) and "\0" not in value, "text")
COMMAND_OR_NOTHING: Final = _or_nothing(Rule(lambda value: TEXT.holds(value) and ARGUMENT.holds(value), "text"))
VARIABLE_NAME: Final = _named("[A-Za-z_][A-Za-z0-9_]*", "letters, digits and '_', not beginning with a digit")
HEADER_NAME: Final = _named(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "the name of an HTTP header, such as Authorization")
HEADER: Final = Rule(lambda value: isinstance(value, str) and value.isprintable(), "text on one line")
BUSY: Final = Rule(lambda value: value in tuple(BusyPolicy), "queue, steer, interrupt or reject")
BUSY_OR_NOTHING: Final = _or_nothing(BUSY)
ACCESS: Final = Rule(lambda value: value in ("known", "everyone"), "known or everyone")
TURNS: Final = _number(1, 256, "a whole number")
WAITING: Final = _number(1, 1000, "a whole number")
SECONDS: Final = _number(0, 60, "a number of seconds", whole=False)
TURN_MINUTES: Final = _number(1, 1440, "a whole number of minutes")
HOST: Final = _named(r"[A-Za-z0-9.:_-]{1,253}", "an address or name of this machine, such as 127.0.0.1 or 0.0.0.0")
PORT: Final = _number(0, 65535, "a whole number")
NETWORK: Final = Rule(_is_network, "an address or a network, such as 127.0.0.1 or 10.0.0.0/8")
TOOLSET: Final = Rule(lambda value: value in TOOLSETS, ", ".join(TOOLSETS))
ROLE: Final = Rule(lambda value: value in tuple(Role), "owner, member or guest")
SOME: Final = Together(lambda value: "name at least one (enabled: false switches it off)" if value == () else None)
NULL_IS_EMPTY: Final = NullIsEmpty(dict)
NULL_IS_EMPTY_LIST: Final = NullIsEmpty(list)
