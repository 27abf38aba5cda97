"""What the keys of config.yaml and the variables may hold: each rule a test and the same thing in words.

Owns the rules that are about writing settings down; where the domain has a rule for a value, it is asked.

Always true: a value is taken as it is or refused, never converted. The rules work without pydantic, which only
asks them when it fills the shape.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from palaver.domain.gateway import AGENT_NAMES, is_agent_name
from palaver.domain.keys import DmScope
from palaver.domain.policy import FIELD_RULES
from palaver.domain.source import BUILT_IN, ChatType

if TYPE_CHECKING:
    from collections.abc import Callable


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


class NullIsEmpty:
    """Lets a section whose keys are all commented out be an empty one."""

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            lambda value: {} if value is None else value, handler(source)
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
ZONE_OR_NOTHING: Final = Rule(lambda value: value is None or ZONE.holds(value), ZONE.allowed)
NULL_IS_EMPTY: Final = NullIsEmpty()
