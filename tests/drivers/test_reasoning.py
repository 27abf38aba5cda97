"""Reasoning that a provider wants back: sent again after a restart, and never to another model."""

from __future__ import annotations

import importlib
import json
import warnings
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from palaver.config.agent_rules import AgentProfile, Provider
from palaver.core.engines.base import Read
from palaver.core.errors import AgentUnavailable
from palaver.drivers.model import ModelAgent
from palaver.sessions.turn import TurnState
from palaver.sessions.view.transcripts import TranscriptOperations
from support.gateway import make_member, send_message, wait_for_turn

from .conftest import collect_events, make_request
from .reasoning_servers import (
    AnthropicServer,
    DeepSeekServer,
    GeminiServer,
    ReasoningServer,
    ResponsesServer,
    remove_cache_marks,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.gateway.gateway import Gateway
    from support.gateway import MakeSource, StartGateway

pytestmark = pytest.mark.slow  # loads the SDK of a provider

KEY = "sk-very-secret-0123456789"
SERVERS = {
    "anthropic": (AnthropicServer, "claude-sonnet-5-5", "claude-haiku-4-5"),
    "openai": (ResponsesServer, "gpt-5.4-mini", "gpt-5.4"),
    "google": (GeminiServer, "gemini-3.5-flash", "gemini-3.1-pro-preview"),
    "deepseek": (DeepSeekServer, "deepseek-reasoner", "deepseek-chat"),
}


class CutOffServer(ResponsesServer):
    """Its stream ends after the first words."""

    def make_stream(self, body: dict[str, Any]) -> str:
        head, _, _ = super().make_stream(body).partition("event: response.output_text.done")
        return head


class Place:
    """A server of a provider, agents that use it, and what was sent to it."""

    def __init__(self, provider: str, server: ReasoningServer, stack: AsyncExitStack) -> None:
        self.provider = provider
        self.server = server
        _, first, second = SERVERS[provider]
        self.model, self.other_model = f"{provider}:{first}", f"{provider}:{second}"
        self._stack = stack

    def make_agent(self) -> ModelAgent:
        """Make an agent, as a process that has just started does."""
        url = f"{self.server.url}/v1" if self.provider == "deepseek" else self.server.url
        own_url = None if self.provider == "openai" else url
        providers = {self.provider: Provider(api_key=KEY, base_url=own_url)}
        agent = ModelAgent(AgentProfile(model=self.model, providers=providers), {})
        self._stack.push_async_callback(agent.close)
        return agent

    def list_conversations(self) -> list[list[Any]]:
        """List what each request says of the conversation, without marks for caches."""
        keys = {"anthropic": "messages", "openai": "input", "google": "contents", "deepseek": "messages"}
        return [remove_cache_marks(request[keys[self.provider]]) for request in self.server.requests]

    def count_reasoning(self, conversation: list[Any]) -> int:
        """Count the signed or encrypted parts of a request."""
        text = json.dumps(conversation)
        return sum(text.count(signature) for signature in self.server.issued)


@pytest.fixture(params=SERVERS)
async def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    if request.param == "google":
        with warnings.catch_warnings():  # of its package, while it is compiled
            warnings.simplefilter("ignore")
            importlib.import_module("google.genai")
    server = SERVERS[request.param][0]()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server.run())
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield Place(request.param, server, stack)


async def converse(gateway: Gateway, dm: MakeSource, *texts: str) -> None:
    for text in texts:
        turn_id = await send_message(gateway, dm(), text)
        assert turn_id is not None, text
        turn = await wait_for_turn(gateway, turn_id)
        assert (turn.state, turn.error) == (TurnState.DONE, None), text


async def test_a_conversation_that_goes_on_after_a_restart_sends_its_reasoning_again(
    start_gateway: StartGateway, dm: MakeSource, place: Place
) -> None:
    first = await start_gateway(place.make_agent())
    await make_member(first.store, dm())
    await converse(first, dm, "How is the weather?", "And now?")
    second = await start_gateway(place.make_agent())  # nothing but the database is left of the first
    await converse(second, dm, "And tomorrow?")
    assert place.server.refusals == []
    sent = place.list_conversations()
    assert len(sent) == 6
    if place.provider == "deepseek":  # it wants plain reasoning back within a turn only
        sent = [[{**message, "reasoning_content": ""} for message in conversation] for conversation in sent]
    else:
        per_answer = 2 if place.provider == "anthropic" else 1
        assert [place.count_reasoning(conversation) for conversation in sent] == [
            per_answer * count for count in range(6)
        ]
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


async def test_another_model_gets_no_reasoning_of_the_first(
    start_gateway: StartGateway, dm: MakeSource, place: Place
) -> None:
    gateway = await start_gateway(place.make_agent())
    await make_member(gateway.store, dm())
    await converse(gateway, dm, "How is the weather?")
    foreign = dict(place.server.issued)
    await send_message(gateway, dm(), f"/model {place.other_model}")
    await converse(gateway, dm, "And now?")
    assert not any(signature in json.dumps(place.list_conversations()[2:]) for signature in foreign)
    await send_message(gateway, dm(), f"/model {place.model}")
    await converse(gateway, dm, "And tomorrow?")
    assert place.server.refusals == []
    assert all(signature in json.dumps(place.list_conversations()[-1]) for signature in foreign)


async def test_nothing_dangles_after_undo_summary_and_retry(
    start_gateway: StartGateway, dm: MakeSource, place: Place
) -> None:
    gateway = await start_gateway(place.make_agent())
    await make_member(gateway.store, dm())
    await converse(gateway, dm, "one", "two", "three")
    await send_message(gateway, dm(), "/undo")
    await converse(gateway, dm, "four", "/retry", "five", "/compress", "six", "seven")
    assert place.server.refusals == []
    await send_message(gateway, dm(), "/restore")  # the reasoning of two answers had seen the summary
    await converse(gateway, dm, "eight", "nine")
    assert len(place.server.refusals) <= (1 if place.provider == "anthropic" else 0)


async def test_reasoning_that_a_provider_no_longer_accepts_is_left_out(
    start_gateway: StartGateway, dm: MakeSource, place: Place
) -> None:
    """A key of another account, for example, or a signature that has expired."""
    gateway = await start_gateway(place.make_agent())
    await make_member(gateway.store, dm())
    await converse(gateway, dm, "How is the weather?")
    place.server.issued.clear()
    count = len(place.server.requests)
    await converse(gateway, dm, "And now?")
    is_signed = place.provider != "deepseek"
    assert len(place.server.refusals) == (1 if is_signed else 0)
    assert len(place.server.requests) == count + (3 if is_signed else 2)


async def test_an_answer_of_openai_that_breaks_off_is_not_taken_for_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    server = CutOffServer()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server.run())
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        with pytest.raises(AgentUnavailable):
            await collect_events(Place("openai", server, stack).make_agent(), make_request())


async def test_no_person_reads_what_only_the_provider_can(
    start_gateway: StartGateway, dm: MakeSource, place: Place
) -> None:
    gateway = await start_gateway(place.make_agent())
    await make_member(gateway.store, dm())
    await converse(gateway, dm, "How is the weather?")
    entry = await gateway.store.aio.get_or_create_session(dm())
    view = gateway.store.seen_by(gateway.store.get_or_create_person(dm()).principal)
    events = view.part(TranscriptOperations).load_events(entry.session_id)
    shown = json.dumps([event.to_dict() for event in events])
    assert "Thought about it" in shown
    stored = gateway.store.engine.run(Read(lambda tx: str(tx.fetch_all("SELECT body FROM event"))))
    for signature in place.server.issued:
        assert signature in stored
        assert signature not in shown
    assert "provider_reasoning" not in shown
    assert ("provider_reasoning" in stored) == (place.provider != "deepseek")
