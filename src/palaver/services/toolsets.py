"""Which sets of tools there are for somebody in a conversation, by the operator's rules alone.

Always true: what a conversation has switched off is taken away from these, and nothing can be added to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.agent.tools import history, memory
from palaver.domain.errors import InvalidInput
from palaver.domain.profile import ToolsetRule
from palaver.domain.source import ChatType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.agent.base import Tool
    from palaver.domain.person import Role
    from palaver.domain.profile import TurnRules
    from palaver.domain.session import Session
    from palaver.domain.source import Platform

SERVED: Final = "mcp:"  # how the name of a toolset begins that is a server's
SERVERS: Final = ToolsetRule()  # what servers do is not for strangers
OWN: Final = {
    history.TOOLSET: "searches and reads earlier conversations",
    memory.TOOLSET: "remembers, recalls and forgets",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """A set of tools, and what is in it as far as that is known: a server may be out of reach."""

    name: str
    description: str
    tools: tuple[Tool, ...] = ()


def names(rules: TurnRules, servers: Iterable[str], platform: Platform, role: Role) -> tuple[str, ...]:
    """The toolsets that somebody with this role has on a platform."""
    own = [name for name, rule in rules.toolsets.items() if name in OWN and rule.allows(platform, role)]
    served = map(of_server, servers) if SERVERS.allows(platform, role) else ()
    return (*own, *served)


def names_in(session: Session, rules: TurnRules, servers: Iterable[str], role: Role) -> tuple[str, ...]:
    """The toolsets that somebody has in a conversation; where others read along, nothing is remembered."""
    found = names(rules, servers, session.platform, role)
    return tuple(name for name in found if name != memory.TOOLSET or not is_read_along(session))


def of_server(server: str) -> str:
    """What the tools of a server are called together."""
    return f"{SERVED}{server}"


def describe(name: str) -> str:
    """What a toolset is for, in a few words."""
    return OWN.get(name) or f"the tools of the server {name.removeprefix(SERVED)}"


def check_known(given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse the names of toolsets that are none."""
    unknown = [name for name in given if name not in known]
    if unknown:
        there = ", ".join(known) or "none"
        raise InvalidInput(f"toolsets: there is no {unknown[0]!r} here; there are: {there}", toolset=unknown[0])


def is_read_along(session: Session) -> bool:
    """Whether this is one person's conversation in a place where others read the answers."""
    return not session.shared and session.chat_type is not ChatType.DM
