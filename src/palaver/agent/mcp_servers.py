"""The MCP servers an agent has tools from: connected when tools are first asked for, and again after they were lost.

A server that cannot be reached takes nothing but its own tools away. It is reported once, and tried again after a
while; nobody's turn fails for it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.agent.base import Tool
    from palaver.agent.mcp_connection import Connection
    from palaver.domain.profile import McpServer

PAUSE = 60.0  # seconds before a server that could not be reached is tried again


class ToolServers:
    """All configured servers, and the connections there are."""

    def __init__(self, servers: Mapping[str, McpServer], *, pause: float = PAUSE) -> None:
        self._servers = servers
        self._pause = pause
        self._open: dict[str, Connection] = {}
        self._lost: dict[str, float] = {}  # when each was last tried in vain
        self._news: list[str] = []
        self._connecting = asyncio.Lock()

    @property
    def names(self) -> Sequence[str]:
        """Of all servers, in the order of the configuration."""
        return tuple(self._servers)

    async def tools(self) -> Sequence[Tool]:
        """The tools of every server that can be reached, in the order of the configuration."""
        if not self._servers:
            return ()
        async with self._connecting:
            await self._drop_broken()
            wanted = [name for name in self._servers if name not in self._open and self._is_due(name)]
            await asyncio.gather(*(self._connect(name) for name in wanted))
        return tuple(tool for name in self._servers if name in self._open for tool in self._open[name].tools)

    def news(self) -> list[str]:
        """What the person should know about servers, said once."""
        news, self._news = self._news, []
        return news

    async def close(self) -> None:
        """Let go of all servers; those we started end."""
        async with self._connecting:
            for name in list(self._open):
                await self._open.pop(name).close()

    async def _drop_broken(self) -> None:
        for name in [name for name, connection in self._open.items() if connection.broken]:
            await self._open.pop(name).close()

    def _is_due(self, name: str) -> bool:
        return name not in self._lost or time.monotonic() - self._lost[name] >= self._pause

    async def _connect(self, name: str) -> None:
        connection = await asyncio.to_thread(_connection, name, self._servers[name])
        why = await connection.open()
        if why is None:
            self._open[name] = connection
            self._lost.pop(name, None)
            return
        if name not in self._lost:
            self._news.append(
                f"The tools of {name!r} are not there: {why}. The server is mcp_servers.{name} in config.yaml; "
                "it is tried again from time to time."
            )
        self._lost[name] = time.monotonic()


def _connection(name: str, server: McpServer) -> Connection:
    from palaver.agent.mcp_connection import Connection  # takes seconds

    return Connection(name, server)
