"""Limiting how much of a tool's result goes to the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.agent.base import ToolFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.agent.base import Tool

MAX_RESULT_CHARS = 20_000


def limit_results(tool: Tool, max_chars: int = MAX_RESULT_CHARS) -> Tool:
    """Return the same tool with results of about `max_chars` characters; a cut result says how much is missing."""

    async def run(arguments: Mapping[str, Any]) -> str:
        try:
            return _truncate(await tool.run(arguments), max_chars)
        except ToolFailed as error:
            raise ToolFailed(_truncate(str(error), max_chars)) from None

    return replace(tool, run=run)


def _truncate(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    missing = len(text) - max_chars
    return f"{text[:max_chars]}\n[cut here: {missing} of {len(text)} characters are missing; ask for less at a time]"
