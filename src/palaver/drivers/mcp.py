"""The connection to one MCP server: connecting, converting its tools to ours, and calling them.

A server's tools are listed once for each connection. Their names start with the server's name, so that two servers
may have tools with the same name; names that are taken all the same are found in `mcp_servers.py`. All tools count as
having side effects: what a server claims about its own tools is no proof.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import CONNECTION_CLOSED
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolReturnPart

from palaver.agent.base import Tool, ToolFailed
from palaver.agent.toolsets import build_tool_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from palaver.config.agent_rules import McpServer

CONNECT_TIMEOUT_SECONDS = 10.0
_CONNECTION_ERRORS = (
    OSError,
    RuntimeError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    MCPError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
)


class McpConnection:
    def __init__(self, name: str, server: McpServer) -> None:
        self._name = name
        self._toolset = _create_toolset(server)
        self.tools: Sequence[Tool] = ()
        self.is_broken = False  # the connection was lost and only has to be closed

    async def open(self) -> str | None:
        """Connect and list the tools. Returns None, or what went wrong in words that reveal no configuration."""
        try:
            await self._toolset.__aenter__()
        except (*_CONNECTION_ERRORS, ExceptionGroup) as error:
            return _describe_error(error)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):  # a list may have pages without end
                definitions = await self._toolset.list_tools()
        except (*_CONNECTION_ERRORS, ExceptionGroup) as error:
            await self.close()
            return _describe_error(error)
        self.tools = tuple(
            self._make_tool(tool.name, tool.description or "", tool.input_schema) for tool in definitions
        )
        return None

    async def close(self) -> None:
        """Disconnect, and end the server if we started it."""
        try:
            await self._toolset.__aexit__(None, None, None)
        except (*_CONNECTION_ERRORS, ExceptionGroup):
            self.is_broken = True  # the server had already closed the connection

    def _make_tool(self, name: str, description: str, parameters: Mapping[str, Any]) -> Tool:
        return Tool(
            name=build_tool_name(self._name, name),
            description=description,
            parameters=parameters,
            run=partial(self._call, name),
            has_side_effects=True,
            toolset=f"mcp:{self._name}",
        )

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        try:
            value = await self._toolset.direct_call_tool(name, dict(arguments))
        except ToolError as error:
            raise ToolFailed(str(error)) from error
        except (*_CONNECTION_ERRORS, ExceptionGroup) as error:
            if isinstance(error, MCPError) and error.code != CONNECTION_CLOSED:
                raise ToolFailed(error.message) from error
            self.is_broken = True
            raise ToolFailed(
                f"The connection to the server {self._name!r} was lost ({_describe_error(error)}). The tool may or may"
                " not have run."
            ) from error
        if isinstance(value, str):
            return value
        text, _files = ToolReturnPart(name, value).model_response_str_and_user_content()
        return text


def _create_toolset(server: McpServer) -> MCPToolset[None]:
    headers = None if server.url is None else dict(server.headers) or None
    transport = server.url or StdioTransport(
        server.command or "",
        list(server.args),
        env=dict(server.env),
        keep_alive=False,
        log_file=Path(os.devnull),  # a server's log must not appear on our terminal
    )
    return MCPToolset(transport, headers=headers, tool_error_behavior="error", init_timeout=CONNECT_TIMEOUT_SECONDS)


def _describe_error(error: BaseException) -> str:
    """Describe an error without addresses, headers or arguments, which may be secret."""
    for cause in _iterate_causes(error):
        if isinstance(cause, TimeoutError):
            return "no response in time"
        if isinstance(cause, FileNotFoundError):
            return "command not found"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
    return "no connection"


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all its causes, each once: errors of task groups may refer to each other in a circle."""
    pending = [error]
    visited_ids: set[int] = set()
    while pending:
        current = pending.pop()
        if id(current) in visited_ids:
            continue
        visited_ids.add(id(current))
        yield current
        members = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        pending += [cause for cause in (current.__context__, current.__cause__, *members) if cause is not None]
