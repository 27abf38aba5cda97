"""One MCP server: connecting to it, its tools as ours, and calling them.

A server's tools are listed once for each connection. Their names begin with the server's, so that two servers may
have tools of the same name. Every one of them counts as acting: what a server says of its own tools is not proof.
"""

from __future__ import annotations

import os
import re
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from palaver.domain.profile import McpServer

TIME_TO_CONNECT = 10.0  # seconds
_LONGEST_NAME = 64  # of a tool, with every provider
_LOST = (OSError, RuntimeError, httpx2.HTTPError, MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError)


class Connection:
    """A connection to one server."""

    def __init__(self, name: str, server: McpServer) -> None:
        self._name = name
        self._toolset = _toolset(server)
        self.tools: Sequence[Tool] = ()
        self.broken = False  # the server was lost; what is left is to close it

    async def open(self) -> str | None:
        """Connect and list the tools. What went wrong, in words that hold nothing of the configuration, or None."""
        try:
            await self._toolset.__aenter__()
        except (*_LOST, ExceptionGroup) as error:
            return _why(error)
        try:
            found = await self._toolset.list_tools()
        except (*_LOST, ExceptionGroup) as error:
            await self.close()
            return _why(error)
        self.tools = tuple(self._tool(each.name, each.description or "", each.input_schema) for each in found)
        return None

    async def close(self) -> None:
        """Disconnect; a server that we started ends."""
        try:
            await self._toolset.__aexit__(None, None, None)
        except (*_LOST, ExceptionGroup):
            self.broken = True  # it was gone before we went

    def _tool(self, name: str, description: str, parameters: Mapping[str, Any]) -> Tool:
        return Tool(
            name=re.sub(r"[^A-Za-z0-9_-]", "_", f"{self._name}_{name}")[:_LONGEST_NAME],
            description=description,
            parameters=parameters,
            run=partial(self._call, name),
            acts=True,
            toolset=f"mcp:{self._name}",
        )

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        try:
            value = await self._toolset.direct_call_tool(name, dict(arguments))
        except ToolError as error:
            raise ToolFailed(str(error)) from error
        except (*_LOST, ExceptionGroup) as error:
            if isinstance(error, MCPError) and error.code != CONNECTION_CLOSED:
                raise ToolFailed(error.message) from error
            self.broken = True
            raise ToolFailed(
                f"The server {self._name!r} was lost ({_why(error)}); it may or may not have done it."
            ) from error
        if isinstance(value, str):
            return value
        text, _files = ToolReturnPart(name, value).model_response_str_and_user_content()
        return text


def _toolset(server: McpServer) -> MCPToolset[None]:
    if server.url is not None:
        headers = dict(server.headers) or None
        return MCPToolset(server.url, headers=headers, tool_error_behavior="error", init_timeout=TIME_TO_CONNECT)
    transport = StdioTransport(
        server.command or "",
        list(server.args),
        env=dict(server.env),
        keep_alive=False,
        log_file=Path(os.devnull),  # what a server says to itself does not belong on our terminal
    )
    return MCPToolset(transport, tool_error_behavior="error", init_timeout=TIME_TO_CONNECT)


def _why(error: BaseException) -> str:
    """What happened, without addresses, headers or arguments, which may be secret."""
    for cause in _causes(error):
        if isinstance(cause, TimeoutError):
            return "it did not answer in time"
        if isinstance(cause, FileNotFoundError):
            return "its command was not found"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
    return "it cannot be reached"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and everything behind it, each once: errors of task groups may point back at each other."""
    waiting = [error]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        inner = found.exceptions if isinstance(found, BaseExceptionGroup) else ()
        waiting += [each for each in (found.__context__, found.__cause__, *inner) if each is not None]
