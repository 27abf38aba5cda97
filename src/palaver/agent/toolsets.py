"""Toolsets: which sets of tools a person has in a conversation, according to the operator's rules.

Always true: a conversation can turn off some of these toolsets, but it can never add one.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.agent.history import READ_RESULT_TOOL
from palaver.config.agent_rules import ToolsetRule, TurnRules
from palaver.config.validators import TOOLSET_NAMES
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.source import ChatType, Platform
from palaver.core.texts import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.agent.base import Tool
    from palaver.people.model import Role
    from palaver.sessions.model import Session


MAX_TOOL_NAME_CHARS: Final = 64  # what every provider accepts
HISTORY_TOOLSET, MEMORY_TOOLSET, SCHEDULE_TOOLSET, MESSAGING_TOOLSET, WEB_TOOLSET = TOOLSET_NAMES
PALAVER_TOOL_NAMES: Final = frozenset(
    {
        *("search_conversations", "read_conversation", READ_RESULT_TOOL),
        *("remember", "recall", "forget"),
        *("list_chats", "send_message"),
        *("create_job", "change_job", "list_jobs", "pause_job"),
        *("fetch_page", "search_web"),
        "report_failure",  # in a run of a job
    }
)
SERVER_PREFIX: Final = "mcp:"  # of the name of a tool server's toolset
SERVER_RULE: Final = ToolsetRule()  # guests may not use the tools of servers
BUILT_IN_TOOLSETS: Final = {
    HISTORY_TOOLSET: say("toolset.history", "searches and reads earlier conversations"),
    MEMORY_TOOLSET: say("toolset.memory", "remembers, recalls and forgets"),
    SCHEDULE_TOOLSET: say("toolset.schedule", "makes and changes jobs that run on a schedule"),
    MESSAGING_TOOLSET: say("toolset.messaging", "sends messages to other chats"),
    WEB_TOOLSET: say("toolset.web", "reads web pages and searches the web"),
}
PUBLIC_TOOLSETS: Final = frozenset({WEB_TOOLSET})  # they return nothing that belongs to a person
NEVER_FOR_JOBS: Final = frozenset({SCHEDULE_TOOLSET})  # a job makes no jobs, whatever was granted to it


def build_tool_name(server: str, tool: str) -> str:
    """Build the name of a server's tool: with the server's name, shortened, without characters that are refused."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}_{tool}")[:MAX_TOOL_NAME_CHARS]


def mark_collisions(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools of all servers; those that can't be used because of their name have a `problem`."""
    counts = Counter(tool.name for tool in tools)
    return tuple(replace(tool, problem=_find_problem(tool.name, counts)) for tool in tools)


def _find_problem(name: str, counts: Counter[str]) -> str | None:
    if name in PALAVER_TOOL_NAMES:
        return f"{name} is one of Palaver's own tools"
    if counts[name] > 1:
        return f"{counts[name]} tools would have the name {name}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    name: str
    description: str
    tools: tuple[Tool, ...] = ()  # empty if its server cannot be reached


def list_allowed_toolsets(rules: TurnRules, servers: Iterable[str], platform: Platform, role: Role) -> tuple[str, ...]:
    allowed = [name for name, rule in rules.toolsets.items() if rule.allows(platform, role)]
    built_in = [name for name in allowed if name in BUILT_IN_TOOLSETS]
    of_servers = servers if SERVER_RULE.allows(platform, role) else ()
    return (*built_in, *(f"{SERVER_PREFIX}{server}" for server in of_servers))


def list_session_toolsets(session: Session, rules: TurnRules, servers: Iterable[str], role: Role) -> tuple[str, ...]:
    """List the toolsets that a person has in a conversation.

    There is no memory in a person's own lane in a group, because the others there read the answers.
    """
    names = list_allowed_toolsets(rules, servers, session.platform, role)
    return tuple(name for name in names if name != MEMORY_TOOLSET or not is_personal_lane_in_group(session))


def find_memory_rule(rules: TurnRules) -> ToolsetRule | None:
    """Return the operator's rule for the memory toolset; None if the toolset is turned off."""
    return rules.toolsets.get(MEMORY_TOOLSET)


def describe_toolset(name: str) -> str:
    return BUILT_IN_TOOLSETS.get(name) or say(
        "toolset.server", "the tools of the server {server}", server=name.removeprefix(SERVER_PREFIX)
    )


def check_toolsets_exist(names: Iterable[str], available: Sequence[str]) -> None:
    unknown = [name for name in names if name not in available]
    if unknown:
        valid = ", ".join(available) or "none"
        text = say(
            "toolset.unknown",
            "toolsets: there is no {name} here. Valid values: {valid}.",
            name=repr(unknown[0]),
            valid=valid,
        )
        raise InvalidInput(text, toolset=unknown[0])


def is_personal_lane_in_group(session: Session) -> bool:
    """Return whether this is one person's own conversation in a place where other people read the answers."""
    return not session.shared and session.chat_type is not ChatType.DM
