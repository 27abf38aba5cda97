"""Tests of limiting the size of tool results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import Tool, ToolFailed
from palaver.agent.tool_arguments import limit_results

if TYPE_CHECKING:
    from collections.abc import Mapping


def make_tool(text: str, *, fails: bool = False, **fields: Any) -> Tool:
    async def run(_: Mapping[str, Any]) -> str:
        if fails:
            raise ToolFailed(text)
        return text

    return Tool(name="say", description="says", parameters={"type": "object"}, run=run, **fields)


async def test_a_result_within_the_limit_is_unchanged() -> None:
    assert await limit_results(make_tool("x" * 20_000)).run({}) == "x" * 20_000


async def test_a_long_result_is_cut_and_says_how_much_is_missing() -> None:
    result = await limit_results(make_tool("x" * 150), max_chars=100).run({})
    assert result.startswith("x" * 100 + "\n")
    assert "50 of 150 characters are missing" in result


async def test_a_long_error_is_cut_and_stays_an_error() -> None:
    with pytest.raises(ToolFailed, match="50 of 150 characters are missing"):
        await limit_results(make_tool("x" * 150, fails=True), max_chars=100).run({})


def test_a_limited_tool_is_otherwise_the_same() -> None:
    tool = make_tool("x", has_side_effects=True, toolset="set")
    limited = limit_results(tool)
    assert (limited.name, limited.parameters, limited.has_side_effects, limited.toolset) == (
        tool.name,
        tool.parameters,
        True,
        "set",
    )
