"""The names of tools as a model sees them: unique, and accepted by every provider.

Always true: no tool of an MCP server replaces one of Palaver's own, and of two tools that would get the same name
neither is used. Which one is meant would otherwise depend on the order in which servers connect.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.agent.base import Tool

MAX_TOOL_NAME_CHARS: Final = 64  # what every provider accepts
HISTORY_TOOLSET: Final = "history"
MEMORY_TOOLSET: Final = "memory"
SCHEDULE_TOOLSET: Final = "schedule"
MESSAGING_TOOLSET: Final = "messaging"
WEB_TOOLSET: Final = "web"
PALAVER_TOOL_NAMES: Final = frozenset(
    {
        *("search_conversations", "read_conversation"),
        *("remember", "recall", "forget"),
        *("list_chats", "send_message"),
        *("create_job", "change_job", "list_jobs", "pause_job"),
        *("fetch_page", "search_web"),
        "report_failure",  # in a run of a job
    }
)


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
