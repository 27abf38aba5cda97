"""A tool's answer is cut where it would crowd out the conversation, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import Tool, ToolFailed
from palaver.agent.tools.limits import capped

if TYPE_CHECKING:
    from collections.abc import Mapping


def saying(text: str, *, fails: bool = False, **fields: Any) -> Tool:
    async def run(_: Mapping[str, Any]) -> str:
        if fails:
            raise ToolFailed(text)
        return text

    return Tool(name="say", description="says", parameters={"type": "object"}, run=run, **fields)


async def test_what_fits_stays_as_it_is() -> None:
    assert await capped(saying("x" * 20_000)).run({}) == "x" * 20_000


async def test_what_is_too_long_is_cut_and_says_how_much_is_missing() -> None:
    said = await capped(saying("x" * 150), most=100).run({})
    assert said.startswith("x" * 100 + "\n")
    assert "50 of 150 characters are missing" in said


async def test_a_failure_is_cut_too_and_stays_one() -> None:
    with pytest.raises(ToolFailed, match="50 of 150 characters are missing"):
        await capped(saying("x" * 150, fails=True), most=100).run({})


def test_a_capped_tool_is_the_same_otherwise() -> None:
    tool = saying("x", acts=True, toolset="set")
    same = capped(tool)
    assert (same.name, same.parameters, same.acts, same.toolset) == (tool.name, tool.parameters, True, "set")
