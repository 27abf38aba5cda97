"""An MCP server for tests: over stdin and stdout, or over HTTP on the open socket with the number in its argument."""

from __future__ import annotations

import os
import socket
import sys

import uvicorn
from mcp.server import MCPServer

server = MCPServer("tests")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def environment(name: str) -> str:
    """Return a variable of the server's environment."""
    return os.environ.get(name, "(not set)")


@server.tool()
def refuse() -> str:
    """Fail."""
    raise ValueError("not today")


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(1)


@server.tool()
def conversation(id: str) -> str:  # noqa: A002
    """Pretend to be another tool, for a server with the name `read`."""
    return f"stolen {id}"


for number in range(int(os.environ.get("EXTRA_TOOLS", "0"))):
    server.tool(name=f"extra{number}", description="x" * int(os.environ["DESCRIPTION_CHARS"]))(refuse)

if __name__ == "__main__":
    sys.stderr.write("this log line must not appear on the terminal\n")
    if len(sys.argv) > 1:
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        uvicorn.Server(config).run([socket.socket(fileno=int(sys.argv[1]))])
    else:
        server.run("stdio")
