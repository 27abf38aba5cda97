from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver.agent.base import Notice, ToolFailed, ToolResult
from palaver.agent.mcp_servers import ToolServers
from palaver.domain.profile import McpServer

from .conftest import asking, events, text_in
from .openai_server import calls, says

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.agent.base import Tool

    from .conftest import MakeAgent
    from .openai_server import OpenAIServer

SCRIPT = str(Path(__file__).with_name("mcp_server.py"))
BY_COMMAND = McpServer(command=sys.executable, args=(SCRIPT,), env={"GIVEN": "yes"})
ABSENT = McpServer(command="/no/such/command", env={"TOKEN": "secret-token"})


@pytest.fixture
async def by_url() -> AsyncIterator[McpServer]:
    """A server of tools that somebody else has started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nowhere = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable, SCRIPT, str(port), stdout=nowhere, stderr=nowhere, stdin=nowhere
    )
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            await writer.wait_closed()
            break
    yield McpServer(url=f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer secret-token"})
    process.kill()
    await process.wait()


async def tools_of(servers: ToolServers) -> dict[str, Tool]:
    return {tool.name: tool for tool in await servers.tools()}


async def test_the_tools_of_servers_become_ours(by_url: McpServer) -> None:
    servers = ToolServers({"calc": BY_COMMAND, "far away": by_url})
    try:
        tools = await tools_of(servers)
        assert next(iter(tools)) == "calc_add"
        assert "far_away_add" in tools
        add = tools["calc_add"]
        assert (add.description, add.acts, add.toolset) == ("Add two numbers.", True, "mcp:calc")
        assert add.parameters["required"] == ["a", "b"]
        assert await add.run({"a": 1, "b": 2}) == "3"
        assert await tools["far_away_add"].run({"a": 3, "b": 4}) == "7"
    finally:
        await servers.close()
    assert servers.news() == []


async def test_a_server_gets_only_the_environment_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    servers = ToolServers({"calc": BY_COMMAND})
    try:
        look = (await tools_of(servers))["calc_environment"]
        assert await look.run({"name": "GIVEN"}) == "yes"
        assert await look.run({"name": "OPENAI_API_KEY"}) == "(not set)"
    finally:
        await servers.close()


async def test_what_a_server_cannot_do_is_told_to_the_model() -> None:
    servers = ToolServers({"calc": BY_COMMAND})
    try:
        tools = await tools_of(servers)
        with pytest.raises(ToolFailed, match="refuse"):
            await tools["calc_refuse"].run({})
        with pytest.raises(ToolFailed, match="integer"):
            await tools["calc_add"].run({"a": "one", "b": 2})
        assert await tools["calc_add"].run({"a": 1, "b": 2}) == "3"
    finally:
        await servers.close()


async def test_a_server_that_dies_is_connected_again() -> None:
    servers = ToolServers({"calc": BY_COMMAND})
    try:
        with pytest.raises(ToolFailed, match="may or may not"):
            await (await tools_of(servers))["calc_die"].run({})
        assert await (await tools_of(servers))["calc_add"].run({"a": 1, "b": 2}) == "3"
    finally:
        await servers.close()


async def test_a_server_that_cannot_be_reached_is_reported_once_and_tried_again() -> None:
    servers = ToolServers(
        {"absent": ABSENT, "deaf": McpServer(url="http://127.0.0.1:1/mcp?token=secret-token")}, pause=0
    )
    assert await servers.tools() == ()
    first, second = servers.news()
    assert "mcp_servers.absent" in first
    assert "mcp_servers.deaf" in second
    assert "secret-token" not in first + second
    assert await servers.tools() == ()
    assert servers.news() == []
    await servers.close()


async def test_a_model_uses_a_server_and_misses_another(make_agent: MakeAgent, server: OpenAIServer) -> None:
    agent = make_agent(mcp_servers={"calc": BY_COMMAND, "absent": ABSENT})
    assert agent.tool_servers() == ("calc", "absent")
    tools = await agent.tools()
    server.script(calls(("1", "calc_add", '{"a": 20, "b": 22}')), says("It is 42."))
    found = await events(agent, asking("What is 20 + 22?", tools=tools))
    assert isinstance(found[0], Notice)
    assert "absent" in found[0].text
    assert ToolResult("1", "calc_add", "42") in found
    assert text_in(found) == "It is 42."
    assert server.requests[0]["tools"][0]["function"]["name"] == "calc_add"
