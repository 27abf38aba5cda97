"""The MCP servers of an agent: connected when their tools are first needed, and again after a lost connection.

If a server cannot be reached, only its own tools are missing; no turn fails because of it. The person is told once,
and the connection is tried again after a while.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import TYPE_CHECKING

from palaver.agent.base import Notice, Tool
from palaver.agent.toolsets import mark_collisions
from palaver.sessions.turn import NoticeCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.config.agent_rules import McpServer
    from palaver.drivers.mcp import McpConnection

RECONNECT_SECONDS = 60.0  # between two attempts to connect to a server
# Every request to a model carries the tools, so what a server brings is bounded.
MAX_TOOLS = 128  # of one server
MAX_TOOL_BYTES = 32_768  # the description and parameters of one tool
MAX_TOOLS_BYTES = 262_144  # of all tools of one server

log = logging.getLogger(__name__)


class McpServers:
    def __init__(self, servers: Mapping[str, McpServer], *, reconnect_seconds: float = RECONNECT_SECONDS) -> None:
        self._servers = servers
        self._reconnect_seconds = reconnect_seconds
        self._connections: dict[str, McpConnection] = {}
        self._failed_at: dict[str, float] = {}  # when the last attempt to connect failed, by server
        self._notices: list[Notice] = []
        self._reported_problems: set[tuple[str, str]] = set()  # toolset and problem of tools that can't be used
        self._lock = asyncio.Lock()

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._servers)

    async def load_tools(self) -> Sequence[Tool]:
        """Return the tools of every server that can be reached, in the order of the settings.

        A tool whose name is taken has a `problem`.
        """
        if not self._servers:
            return ()
        async with self._lock:
            for name in [name for name, connection in self._connections.items() if connection.is_broken]:
                await self._connections.pop(name).close()
            latest = time.monotonic() - self._reconnect_seconds
            missing = [
                name
                for name in self._servers
                if name not in self._connections and self._failed_at.get(name, latest) <= latest
            ]
            await asyncio.gather(*(self._connect(name) for name in missing))
        tools = mark_collisions(
            [tool for name in self._servers if name in self._connections for tool in self._connections[name].tools]
        )
        for tool in tools:
            self._report_problem(tool)
        return tools

    def take_notices(self) -> list[Notice]:
        """Return notices about servers for the person, each once."""
        notices, self._notices = self._notices, []
        return notices

    async def close(self) -> None:
        """Close all connections, and end the servers that we started."""
        async with self._lock:
            for name in list(self._connections):
                await self._connections.pop(name).close()

    def _report_problem(self, tool: Tool) -> None:
        """Log why a tool can't be used, and tell the next person who asks; both once."""
        if tool.problem is None or not self._is_new(tool.toolset, tool.problem):
            return
        server = tool.toolset.removeprefix("mcp:")
        log.warning("mcp_tool_refused", extra={"server": server, "tool": tool.name, "problem": tool.problem})
        text = (
            f"A tool of the MCP server {server!r} is not available: {tool.problem}. Rename the server under mcp_servers"
            " in the settings."
        )
        self._notices.append(Notice(text))

    def _report_left_out(self, name: str, used_count: int, left_out_count: int) -> None:
        """Log that a server has more tools than are used, and tell the next person who asks; both once."""
        problem = f"{left_out_count} of its tools are too many or too large"
        if not left_out_count or not self._is_new(name, problem):
            return
        log.warning("mcp_tools_left_out", extra={"server": name, "used": used_count, "left_out": left_out_count})
        self._notices.append(
            Notice(
                f"{used_count} tools of the MCP server {name!r} are available; {problem} to be sent to a model with"
                f" every request. Let the server offer fewer tools (mcp_servers.{name} in the settings)."
            )
        )

    def _is_new(self, toolset: str, problem: str) -> bool:
        """Whether a problem is reported for the first time."""
        is_new = (toolset, problem) not in self._reported_problems
        self._reported_problems.add((toolset, problem))
        return is_new

    async def _connect(self, name: str) -> None:
        connection = await asyncio.to_thread(_create_connection, name, self._servers[name])
        problem = await connection.open()
        if problem is None:
            listed_count = len(connection.tools)
            connection.tools = _select_tools(connection.tools)
            self._connections[name] = connection
            self._failed_at.pop(name, None)
            self._report_left_out(name, len(connection.tools), listed_count - len(connection.tools))
            return
        if name not in self._failed_at:
            text = (
                f"The tools of the MCP server {name!r} are not available ({problem}). Check mcp_servers.{name} in "
                "the server settings. Palaver keeps trying to connect."
            )
            self._notices.append(Notice(text, NoticeCode.MCP_UNAVAILABLE, {"server": name, "problem": str(problem)}))
        self._failed_at[name] = time.monotonic()


def _select_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools that are within the limits, in the server's order."""
    selected: list[Tool] = []
    left_bytes = MAX_TOOLS_BYTES
    for tool in tools:
        size = len(tool.description.encode("utf-8", "replace")) + len(json.dumps(tool.parameters))
        if size <= min(MAX_TOOL_BYTES, left_bytes) and len(selected) < MAX_TOOLS:
            selected.append(tool)
            left_bytes -= size
    return tuple(selected)


def _create_connection(name: str, server: McpServer) -> McpConnection:
    from palaver.drivers.mcp import McpConnection  # takes seconds

    return McpConnection(name, server)
