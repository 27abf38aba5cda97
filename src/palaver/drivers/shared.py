"""Counts the runs that use an agent, so that it can be closed when other settings have replaced it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.agent.base import Agent


class SharedAgent:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._user_count = 0
        self._unused = asyncio.Event()
        self._unused.set()

    def acquire(self) -> Callable[[], None]:
        """Keep the agent open until the returned function is called, once."""
        self._user_count += 1
        self._unused.clear()
        return self._release

    def _release(self) -> None:
        self._user_count -= 1
        if self._user_count == 0:
            self._unused.set()

    async def close_when_unused(self) -> None:
        """Close the agent when the last run that uses it has ended."""
        await self._unused.wait()
        await self.agent.close()
