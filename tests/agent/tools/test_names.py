"""The names of tools: unique, and never one of Palaver's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from palaver.agent import history_tools as history
from palaver.agent.base import Tool
from palaver.agent.toolsets import MAX_TOOL_NAME_CHARS, PALAVER_TOOL_NAMES, build_tool_name, mark_collisions
from palaver.delivery import tools as messaging
from palaver.jobs import tools as schedule
from palaver.media.web import tools as web
from palaver.memory import tools as memory

if TYPE_CHECKING:
    from collections.abc import Mapping


async def do_nothing(_arguments: Mapping[str, Any]) -> str:
    return ""


def make_tool(server: str, name: str) -> Tool:
    name = build_tool_name(server, name)
    return Tool(name=name, description="", parameters={}, run=do_nothing, toolset=f"mcp:{server}")


def test_our_own_names_are_known() -> None:
    unused = cast("Any", SimpleNamespace(grantable_toolsets=(), can_search=True))
    tools = (
        *history.make_history_tools(unused),
        *memory.make_memory_tools(unused),
        *messaging.make_messaging_tools(unused),
        *schedule.make_schedule_tools(unused),
        *schedule.make_run_tools(unused),
        *web.make_web_tools(unused, "ada"),
    )
    assert {tool.name for tool in tools} == PALAVER_TOOL_NAMES


@pytest.mark.parametrize(("server", "tool"), [("read", "conversation"), ("search", "conversations")])
def test_our_own_tools_always_win(server: str, tool: str) -> None:
    [marked] = mark_collisions([make_tool(server, tool)])
    assert marked.problem == f"{server}_{tool} is one of Palaver's own tools"


@pytest.mark.parametrize(
    "tools",
    [
        [("a", "b_c"), ("a_b", "c")],  # where one name ends and the other begins
        [("a", "b.c"), ("a", "b/c")],  # only by characters that are replaced
        [("a b", "c"), ("a.b", "c")],
        [("a", "x" * 100 + "1"), ("a", "x" * 100 + "2")],  # only beyond the length limit
    ],
)
def test_two_tools_with_one_name_are_both_refused(tools: list[tuple[str, str]]) -> None:
    other = make_tool("z", "other")
    *marked, unaffected = mark_collisions([*(make_tool(*each) for each in tools), other])
    assert len({tool.name for tool in marked}) == 1
    assert [tool.problem for tool in marked] == [f"2 tools would have the name {marked[0].name}"] * 2
    assert unaffected == other


def test_a_name_is_accepted_by_every_provider() -> None:
    name = build_tool_name("my server", "größe" * 50)
    assert len(name) == MAX_TOOL_NAME_CHARS
    assert name.startswith("my_server_gr__e")
