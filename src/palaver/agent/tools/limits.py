"""How much of a tool's answer a model is given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.agent.base import ToolFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.agent.base import Tool

MOST_CHARACTERS = 20_000


def capped(tool: Tool, most: int = MOST_CHARACTERS) -> Tool:
    """The same tool with answers of about `most` characters; what is missing is said where it was cut."""

    async def run(arguments: Mapping[str, Any]) -> str:
        try:
            return _cut(await tool.run(arguments), most)
        except ToolFailed as error:
            raise ToolFailed(_cut(str(error), most)) from None

    return replace(tool, run=run)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return (
        f"{text[:most]}\n[cut here: {len(text) - most} of {len(text)} characters are missing; ask for less at a time]"
    )
