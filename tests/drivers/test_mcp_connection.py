from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver.agent.base import Notice, ToolFailed, ToolResult
from palaver.config.agent_rules import McpServer
from palaver.drivers.mcp_servers import MAX_TOOL_BYTES, MAX_TOOLS, MAX_TOOLS_BYTES, McpServers
from support.gateway import TIMEOUT_SECONDS

from .conftest import collect_events, get_text, make_request
from .openai_server import reply_with_calls, reply_with_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.agent.base import Tool

    from .conftest import MakeAgent
    from .openai_server import OpenAIServer

pytestmark = pytest.mark.slow  # starts real server processes

SERVER_SCRIPT = str(Path(__file__).with_name("mcp_server.py"))
STDIO_SERVER = McpServer(command=sys.executable, args=(SERVER_SCRIPT,), env={"GIVEN": "yes"})
MISSING_SERVER = McpServer(command="/no/such/command", env={"TOKEN": "secret-token"})


@pytest.fixture(scope="module")
def http_server() -> Iterator[McpServer]:
    """Start an MCP server over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, number = listener.getsockname()[1], listener.fileno()
        process = subprocess.Popen(
            [sys.executable, SERVER_SCRIPT, str(number)],
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    try:
        with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)) as connection:
            connection.request("GET", "/")
            connection.getresponse()  # comes when the server has started
        yield McpServer(url=f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer secret-token"})
    finally:
        process.kill()
        process.wait()


async def load_tools_by_name(servers: McpServers) -> dict[str, Tool]:
    return {tool.name: tool for tool in await servers.load_tools()}


async def test_the_tools_of_several_servers_can_be_used_and_errors_reach_the_model(http_server: McpServer) -> None:
    servers = McpServers({"calc": STDIO_SERVER, "far away": http_server})
    try:
        tools = await load_tools_by_name(servers)
        assert next(iter(tools)) == "calc_add"
        assert "far_away_add" in tools
        add = tools["calc_add"]
        assert (add.description, add.has_side_effects, add.toolset) == ("Add two numbers.", True, "mcp:calc")
        assert add.parameters["required"] == ["a", "b"]
        assert await add.run({"a": 1, "b": 2}) == "3"
        assert await tools["far_away_add"].run({"a": 3, "b": 4}) == "7"
        with pytest.raises(ToolFailed, match="refuse"):
            await tools["calc_refuse"].run({})
        with pytest.raises(ToolFailed, match="integer"):
            await add.run({"a": "one", "b": 2})
        assert await add.run({"a": 1, "b": 2}) == "3"
    finally:
        await servers.close()
    assert servers.take_notices() == []


async def test_a_server_gets_only_its_configured_environment_can_not_replace_our_tools_and_is_started_again_if_it_died(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    servers = McpServers({"read": STDIO_SERVER})
    try:
        for _ in range(2):
            tools = await load_tools_by_name(servers)
            assert tools["read_conversation"].problem == "read_conversation is one of Palaver's own tools"
            assert tools["read_add"].problem is None
        [notice] = servers.take_notices()
        assert "Rename the server under mcp_servers" in notice.text
        events = [record.message for record in caplog.records if record.name.startswith("palaver")]
        assert events == ["mcp_tool_refused"]
        assert await tools["read_environment"].run({"name": "GIVEN"}) == "yes"
        assert await tools["read_environment"].run({"name": "OPENAI_API_KEY"}) == "(not set)"
        with pytest.raises(ToolFailed, match="may or may not"):
            await (await load_tools_by_name(servers))["read_die"].run({})
        assert await (await load_tools_by_name(servers))["read_add"].run({"a": 1, "b": 2}) == "3"
    finally:
        await servers.close()


@pytest.mark.parametrize(
    ("tool_count", "description_chars", "used_count"),
    [
        (1000, 10, MAX_TOOLS),
        (1, MAX_TOOL_BYTES + 1, 5),
        (40, MAX_TOOL_BYTES // 2, 5 + MAX_TOOLS_BYTES // (MAX_TOOL_BYTES // 2) - 1),
    ],
)
async def test_a_server_brings_a_bounded_number_of_bytes_and_tools(
    tool_count: int, description_chars: int, used_count: int, caplog: pytest.LogCaptureFixture
) -> None:
    env = {"EXTRA_TOOLS": str(tool_count), "DESCRIPTION_CHARS": str(description_chars)}
    servers = McpServers({"many": McpServer(command=sys.executable, args=(SERVER_SCRIPT,), env=env)})
    try:
        for _ in range(2):
            tools = await servers.load_tools()
            assert len(tools) == used_count
            assert sum(len(tool.description) for tool in tools) <= MAX_TOOLS_BYTES
        [notice] = servers.take_notices()
        assert f"{used_count} tools of the MCP server 'many' are available" in notice.text
        assert [record.message for record in caplog.records if record.name.startswith("palaver")] == [
            "mcp_tools_left_out"
        ]
        assert await tools[0].run({"a": 1, "b": 2}) == "3"
    finally:
        await servers.close()


async def test_an_unreachable_server_is_reported_once_and_tried_again() -> None:
    servers = McpServers(
        {"absent": MISSING_SERVER, "deaf": McpServer(url="http://127.0.0.1:1/mcp?token=secret-token")},
        reconnect_seconds=0,
    )
    assert await servers.load_tools() == ()
    first, second = servers.take_notices()
    assert "mcp_servers.absent" in first.text
    assert "mcp_servers.deaf" in second.text
    assert "secret-token" not in first.text + second.text
    assert await servers.load_tools() == ()
    assert servers.take_notices() == []
    await servers.close()


async def test_a_turn_works_with_one_server_while_another_is_missing(
    make_agent: MakeAgent, server: OpenAIServer, http_server: McpServer
) -> None:
    agent = make_agent(mcp_servers={"calc": http_server, "absent": MISSING_SERVER})
    assert agent.list_tool_servers() == ("calc", "absent")
    tools = await agent.load_tools()
    server.add_replies(reply_with_calls(("1", "calc_add", '{"a": 20, "b": 22}')), reply_with_text("It is 42."))
    events = await collect_events(agent, make_request("What is 20 + 22?", tools=tools))
    assert isinstance(events[0], Notice)
    assert "absent" in events[0].text
    assert ToolResult("1", "calc_add", "42") in events
    assert get_text(events) == "It is 42."
    assert server.requests[0]["tools"][0]["function"]["name"] == "calc_add"
