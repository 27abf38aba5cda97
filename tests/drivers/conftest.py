"""Fixtures for tests of agents: a provider on loopback, agents that use it, and sleeps that take no time."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver.agent.base import AgentRequest, TextDelta, Tool
from palaver.config.agent_rules import AgentProfile, Provider
from palaver.drivers.model import ModelAgent
from palaver.drivers.providers import Timeouts

from .openai_server import KEY, OpenAIServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from palaver.agent.base import Agent, AgentEvent

MODEL = "openai:gpt-5.4-mini"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


class RecordedSleeps:
    """Records how long a caller would have slept, without sleeping."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def sleeps() -> RecordedSleeps:
    return RecordedSleeps()


class MakeAgent(Protocol):
    def __call__(self, *, model: str = MODEL, **options: Any) -> ModelAgent: ...


@pytest.fixture
async def make_agent(server: OpenAIServer, sleeps: RecordedSleeps) -> AsyncIterator[MakeAgent]:
    """Make agents that use the server under the provider names `openai` and `mine`, and close them."""
    async with AsyncExitStack() as stack:

        def make(*, model: str = MODEL, **options: Any) -> ModelAgent:
            providers = {"openai": Provider(api_key=KEY, base_url=server.url), "mine": Provider(base_url=server.url)}
            profile_keys = ("fallback_models", "mcp_servers", "context_windows", "prices")
            profile_options = {key: options.pop(key) for key in profile_keys if key in options}
            profile = AgentProfile(model=model, providers=options.pop("providers", providers), **profile_options)
            options.setdefault("sleep", sleeps.sleep)
            options.setdefault("timeouts", Timeouts(connect_seconds=60, read_seconds=60))
            agent = ModelAgent(profile, {}, **options)
            stack.push_async_callback(agent.close)
            return agent

        yield make


def make_request(text: str = "Hello", **options: Any) -> AgentRequest:
    options.setdefault("messages", [{"role": "user", "content": text}])
    return AgentRequest(**options)


async def collect_events(agent: Agent, request: AgentRequest) -> list[AgentEvent]:
    return [event async for event in agent.run(request)]


def get_text(events: Sequence[AgentEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def collect_events_into(agent: Agent, request: AgentRequest, collected_events: list[AgentEvent]) -> None:
    """Collect events into a list that the caller still has after an error."""
    async for event in agent.run(request):
        collected_events.append(event)  # noqa: PERF401  (events before an error are kept)


def make_tool(name: str = "look", answer: str = "seen", **options: Any) -> Tool:
    async def run(arguments: Mapping[str, Any]) -> str:
        return f"{answer} {json.dumps(arguments)}" if arguments else answer

    return Tool(
        name=name, description=f"To {name}.", parameters={"type": "object", "properties": {}}, **{"run": run} | options
    )
