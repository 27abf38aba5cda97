"""What the profile, the personality and the workspace of a conversation mean for its answers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from palaver import GatewayConfig, Role
from palaver.agent.base import TextDelta, Tool
from palaver.config.agent_rules import AgentProfile, Profile, TurnRules
from palaver.core.engines.base import Write
from palaver.core.errors import InvalidInput
from palaver.live.feed_events import NoticeSent
from palaver.people import table as people
from palaver.sessions.inbound import Inbound
from palaver.sessions.turn import TurnState
from palaver.testing import ScriptedAgent
from palaver.turns.request_builder import DEFAULT_INSTRUCTIONS
from support.gateway import TIMEOUT_SECONDS, ask, make_member

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from palaver import SessionSource
    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.ids import SessionId
    from palaver.gateway.gateway import Gateway
    from support.gateway import MakeSource, StartGateway


async def look(_arguments: Mapping[str, Any]) -> str:
    return "seen"


async def set_role(gateway: Gateway, source: SessionSource, role: Role) -> None:
    person = await gateway.store.aio.get_or_create_person(source)
    await gateway.store.engine.arun(Write(lambda tx: people.set_role(tx, person.id, role)))


async def collect_notices(gateway: Gateway, session_id: SessionId | None, count: int) -> list[str]:
    """Return the first notices of the next turn of a conversation."""
    notices: list[str] = []
    owner = gateway.store.get_owner().principal
    async with aclosing(gateway.feed.follow(owner, session_id or "", after=0, everything=True)) as feed:
        async for item in feed:
            if isinstance(item, NoticeSent):
                notices.append(item.text)
            if len(notices) == count:
                break
    return notices


def make_tool(name: str, toolset: str) -> Tool:
    return Tool(name=name, description="", parameters={"type": "object"}, run=look, toolset=toolset)


AGENT_PROFILE = AgentProfile(
    profiles={
        "work": Profile(instructions="You are a clerk.", model="scripted-large", toolsets=("history", "mcp:files")),
        "quiet": Profile(toolsets=()),
    },
    personalities={"pirate": "Talk like a pirate."},
)


async def test_the_default_has_the_default_instructions_model_and_all_tools(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    agent = ScriptedAgent(tools=[make_tool("read_file", "mcp:files"), make_tool("play", "mcp:music")])
    gateway = await start_gateway(agent, profile=AGENT_PROFILE)
    await make_member(gateway.store, dm())
    await ask(gateway, dm(), "hello")
    request = agent.requests[-1]
    assert request.instructions.startswith(DEFAULT_INSTRUCTIONS)
    assert request.model is None
    assert {tool.toolset for tool in request.tools} == {
        *(name for name in TurnRules().toolsets if name != "web"),  # this gateway has no access to the web
        "mcp:files",
        "mcp:music",
    }


async def test_a_profile_sets_instructions_model_and_tools(start_gateway: StartGateway, dm: MakeSource) -> None:
    agent = ScriptedAgent(tools=[make_tool("read_file", "mcp:files"), make_tool("play", "mcp:music")])
    gateway = await start_gateway(agent, profile=AGENT_PROFILE)
    await make_member(gateway.store, dm())
    for command in ("/profile work", "/personality pirate", "/workspace /srv/site"):
        await gateway.inbox.accept(Inbound(source=dm(), content=command))
    await ask(gateway, dm(), "hello")
    request = agent.requests[-1]
    assert request.instructions.startswith("You are a clerk.\n\nTalk like a pirate.\n\n# Where this conversation")
    assert 'about: "/srv/site"' in request.instructions
    assert request.model == "scripted-large"
    assert {tool.toolset for tool in request.tools} == {"history", "mcp:files"}
    await gateway.inbox.accept(Inbound(source=dm(), content="/tools off history"))
    await gateway.inbox.accept(Inbound(source=dm(), content="/model scripted"))
    await ask(gateway, dm(), "and now?")
    request = agent.requests[-1]
    assert {tool.toolset for tool in request.tools} == {"mcp:files"}
    assert request.model == "scripted"


async def test_the_agent_is_told_the_instructions_of_a_project_in_private_conversations_only(
    start_gateway: StartGateway, dm: MakeSource, group: MakeSource
) -> None:
    agent = ScriptedAgent()
    gateway = await start_gateway(agent, config=GatewayConfig(group_sessions_per_user=False))
    await make_member(gateway.store, dm())
    view = gateway.store.seen_by(gateway.store.get_or_create_person(dm()).principal)
    project = view.projects.create("Garden")
    view.projects.update(project.id, instructions="Answer in rhymes.")
    for source in (dm(), group()):
        session_id = (await ask(gateway, source, "hello")).session_id
        gateway.store.move_to_project(session_id, project.id)
        await ask(gateway, source, "and now?")
    private, shared = agent.requests[1], agent.requests[3]
    assert "project that this conversation is in:\nAnswer in rhymes.\n\n# Where" in private.instructions
    assert "rhymes" not in shared.instructions


async def test_a_profile_without_toolsets_has_no_tools(start_gateway: StartGateway, dm: MakeSource) -> None:
    agent = ScriptedAgent(tools=[make_tool("read_file", "mcp:files")])
    gateway = await start_gateway(agent, profile=AGENT_PROFILE)
    await make_member(gateway.store, dm())
    await gateway.inbox.accept(Inbound(source=dm(), content="/profile quiet"))
    await ask(gateway, dm(), "hello")
    assert list(agent.requests[-1].tools) == []


async def test_a_profile_cannot_add_tools_that_the_rules_do_not_allow(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    agent = ScriptedAgent(tools=[make_tool("read_file", "mcp:files")])
    gateway = await start_gateway(agent, profile=AGENT_PROFILE, toolsets={})
    await make_member(gateway.store, dm())
    await gateway.inbox.accept(Inbound(source=dm(), content="/profile work"))
    await set_role(gateway, dm(), Role.GUEST)
    await ask(gateway, dm(), "hello")
    assert list(agent.requests[-1].tools) == []


async def test_a_removed_profile_falls_back_to_the_default_with_a_notice(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    first = await start_gateway(profile=AGENT_PROFILE)
    await make_member(first.store, dm())
    for command in ("/profile work", "/personality pirate"):
        receipt = await first.inbox.accept(Inbound(source=dm(), content=command))
    await first.stop()
    were_notices_seen = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        await were_notices_seen.wait()
        yield TextDelta("Hello.")

    agent = ScriptedAgent(answer)
    second = await start_gateway(agent)
    asking = asyncio.create_task(ask(second, dm(), "hello"))
    async with asyncio.timeout(TIMEOUT_SECONDS):
        notices = await collect_notices(second, receipt.session_id, 2)
    were_notices_seen.set()
    assert (await asking).state is TurnState.DONE
    assert agent.requests[-1].instructions.startswith(DEFAULT_INSTRUCTIONS)
    assert agent.requests[-1].model is None
    assert [notice.split(" is no longer")[0] for notice in notices] == [
        "The profile “work”",
        "The personality “pirate”",
    ]


async def test_a_model_of_a_profile_that_cannot_be_used_falls_back_to_the_default(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    agent = ScriptedAgent()
    gateway = await start_gateway(agent, profile=AGENT_PROFILE)
    await make_member(gateway.store, dm())
    await gateway.inbox.accept(Inbound(source=dm(), content="/profile work"))

    def refuse(name: str) -> None:
        raise InvalidInput(f"{name} needs a key")

    agent.check_model = refuse  # type: ignore[method-assign]
    assert (await ask(gateway, dm(), "hello")).state is TurnState.DONE
    assert agent.requests[-1].model is None
    assert agent.requests[-1].instructions.startswith("You are a clerk.")
