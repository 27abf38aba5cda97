"""What the tests of the agents need: a provider on loopback, agents that are closed, waiting that takes no time."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver.agent.base import AgentRequest, TextDelta, Tool
from palaver.agent.model import ModelAgent, TimeOuts
from palaver.domain.profile import AgentProfile, Provider

from .openai_server import KEY, OpenAIServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from palaver.agent.base import Agent, AgentEvent

MODEL = "openai:gpt-5.4-mini"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


class Waits:
    """Sleeps that take no time, and how long each would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


class MakeAgent(Protocol):
    def __call__(self, *, model: str = MODEL, **options: Any) -> ModelAgent: ...


@pytest.fixture
async def make_agent(server: OpenAIServer, waits: Waits) -> AsyncIterator[MakeAgent]:
    """Makes agents that ask the server under several names, and closes them."""
    async with AsyncExitStack() as stack:

        def make(*, model: str = MODEL, **options: Any) -> ModelAgent:
            named = {"openai": Provider(api_key=KEY, base_url=server.url), "mine": Provider(base_url=server.url)}
            of_profile = ("fallback_models", "mcp_servers", "context_windows")
            profile_options = {key: options.pop(key) for key in of_profile if key in options}
            profile = AgentProfile(model=model, providers=options.pop("providers", named), **profile_options)
            options.setdefault("sleep", waits.sleep)
            options.setdefault("time_outs", TimeOuts(connect=1, read=0.3))
            agent = ModelAgent(profile, {}, **options)
            stack.push_async_callback(agent.close)
            return agent

        yield make


def asking(text: str = "Hello", **options: Any) -> AgentRequest:
    options.setdefault("messages", [{"role": "user", "content": text}])
    return AgentRequest(**options)


async def events(agent: Agent, request: AgentRequest) -> list[AgentEvent]:
    return [event async for event in agent.run(request)]


def text_in(found: Sequence[AgentEvent]) -> str:
    return "".join(event.text for event in found if isinstance(event, TextDelta))


async def collected(agent: Agent, request: AgentRequest, into: list[AgentEvent]) -> None:
    """Collects into a list that outlives an error."""
    async for event in agent.run(request):
        into.append(event)  # noqa: PERF401  (what came before an error is kept)


def tool(name: str = "look", answer: str = "seen", **options: Any) -> Tool:
    async def run(arguments: Mapping[str, Any]) -> str:
        return f"{answer} {json.dumps(arguments)}" if arguments else answer

    return Tool(
        name=name, description=f"To {name}.", parameters={"type": "object", "properties": {}}, **{"run": run} | options
    )
