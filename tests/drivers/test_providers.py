"""Tests of the providers with their own API, Anthropic and Google."""

from __future__ import annotations

import importlib
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import ReasoningDelta, ToolCall, ToolFailed, ToolResult, UsageReport
from palaver.config.agent_rules import Provider
from palaver.core.errors import AgentError, AgentRateLimited, AgentRejected, AgentUnavailable, ContextOverflow

from .conftest import collect_events, get_text, make_request, make_tool
from .openai_server import KEY, reply_with_reset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.drivers.model import ModelAgent

    from .conftest import MakeAgent
    from .openai_server import Exchange, OpenAIServer, Reply

pytestmark = pytest.mark.slow  # loads the SDKs of all providers


@pytest.fixture(scope="module", autouse=True)
def import_google_library() -> None:
    """Import it outside the tests: it emits warnings when it is compiled, and takes every worker a second."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("google.genai")


MODELS = ("anthropic:claude-sonnet-5-5", "google:gemini-3.5-flash")


def make_provider_agent(make_agent: MakeAgent, server: OpenAIServer, model: str) -> ModelAgent:
    root = server.url.removesuffix("/v1")
    provider = Provider(api_key=KEY, base_url=root)
    return make_agent(model=model, providers={"anthropic": provider, "google": provider})


def reply_as_anthropic(*blocks: dict[str, Any], stop: str = "end_turn") -> Reply:
    """Reply with blocks of an answer in Anthropic's format."""

    async def event(to: Exchange, kind: str, **data: Any) -> None:
        await to.send_raw(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n")

    async def reply(to: Exchange) -> None:
        await to.start_stream()
        usage = {"input_tokens": 30, "output_tokens": 1, "cache_read_input_tokens": 20}
        message = {"id": "m", "type": "message", "role": "assistant", "model": to.model, "content": [], "usage": usage}
        await event(to, "message_start", message=message | {"stop_reason": None, "stop_sequence": None})
        for index, block in enumerate(blocks):
            start, delta = block["start"], block["delta"]
            await event(to, "content_block_start", index=index, content_block=start)
            await event(to, "content_block_delta", index=index, delta=delta)
            await event(to, "content_block_stop", index=index)
        await event(to, "message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 9})
        await event(to, "message_stop")
        await to.end_stream()

    return reply


def reply_as_google(*parts: dict[str, Any]) -> Reply:
    """Reply with parts of an answer in Google's format."""

    async def reply(to: Exchange) -> None:
        await to.start_stream()
        for number, part in enumerate(parts, 1):
            candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
            if number == len(parts):
                candidate["finishReason"] = "STOP"
            counts = {"promptTokenCount": 30, "candidatesTokenCount": 9, "totalTokenCount": 39}
            chunk = {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "gemini-3.5-flash"}
            await to.send_raw(f"data: {json.dumps(chunk)}\r\n\r\n")
        await to.end_stream()

    return reply


ANTHROPIC_TEXT = {"start": {"type": "text", "text": ""}, "delta": {"type": "text_delta", "text": "A cat."}}
ANTHROPIC_REASONING = {
    "start": {"type": "thinking", "thinking": "", "signature": ""},
    "delta": {"type": "thinking_delta", "thinking": "Hm."},
}
ANTHROPIC_CALL = {
    "start": {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    "delta": {"type": "input_json_delta", "partial_json": '{"where": "here"}'},
}
REPLIES = {
    MODELS[0]: (
        reply_as_anthropic(ANTHROPIC_REASONING, ANTHROPIC_CALL, stop="tool_use"),
        reply_as_anthropic(ANTHROPIC_TEXT),
    ),
    MODELS[1]: (
        reply_as_google(
            {"text": "Hm.", "thought": True}, {"functionCall": {"name": "look", "args": {"where": "here"}}}
        ),
        reply_as_google({"text": "A "}, {"text": "cat."}),
    ),
}


@pytest.mark.parametrize("model", MODELS)
async def test_an_answer_with_reasoning_and_a_tool_call(
    make_agent: MakeAgent, server: OpenAIServer, model: str
) -> None:
    server.add_replies(*REPLIES[model])
    agent = make_provider_agent(make_agent, server, model)
    events = await collect_events(agent, make_request("What is there?", instructions="Be kind.", tools=[make_tool()]))
    assert ReasoningDelta("Hm.") in events
    (call,) = (event for event in events if isinstance(event, ToolCall))
    assert (call.name, json.loads(call.arguments)) == ("look", {"where": "here"})
    assert ToolResult(call.id, "look", 'seen {"where": "here"}') in events
    assert get_text(events) == "A cat."
    usages = [event.usage for event in events if isinstance(event, UsageReport)]
    assert len(usages) == 2
    assert all(usage.provider == model.partition(":")[0] and usage.cost_nanos for usage in usages)
    assert b"seen" in server.bodies[1]


async def test_anthropic_is_asked_to_cache_the_prompt(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_as_anthropic(ANTHROPIC_TEXT))
    events = await collect_events(
        make_provider_agent(make_agent, server, MODELS[0]), make_request(instructions="Be kind.")
    )
    assert b"cache_control" in server.bodies[0]
    (usage,) = (event.usage for event in events if isinstance(event, UsageReport))
    assert usage.cache_read_tokens == 20


async def test_a_failed_tool_is_marked_as_an_error(make_agent: MakeAgent, server: OpenAIServer) -> None:
    async def fail(_: Mapping[str, Any]) -> str:
        raise ToolFailed("the door is shut")

    server.add_replies(*REPLIES[MODELS[0]])
    await collect_events(make_provider_agent(make_agent, server, MODELS[0]), make_request(tools=[make_tool(run=fail)]))
    (result,) = server.requests[1]["messages"][-1]["content"]
    assert result["is_error"] is True
    assert "the door is shut" in str(result["content"])


def reply_with_provider_error(status: int, kind: str, message: str, reason: str = "") -> Reply:
    """Reply with an error that is valid for both providers."""

    async def reply(to: Exchange) -> None:
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]
        error = {"type": kind, "message": message, "code": status, "status": kind.upper(), "details": details}
        await to.send_json(status, {"type": "error", "error": error})

    return reply


FAULTS = {
    "rejected key": (
        reply_with_provider_error(401, "authentication_error", f"invalid {KEY}"),
        AgentRejected,
        "_API_KEY",
    ),
    "no such model": (reply_with_provider_error(404, "not_found_error", "model: x"), AgentRejected, "has no model"),
    "busy": (reply_with_provider_error(429, "rate_limit_error", "slow"), AgentRateLimited, "Rate limit reached at"),
    "overloaded": (
        reply_with_provider_error(529, "overloaded_error", "Overloaded"),
        AgentUnavailable,
        r"unavailable at the moment \(HTTP 529\)",
    ),
    "broken": (
        reply_with_provider_error(500, "api_error", "oops"),
        AgentUnavailable,
        r"unavailable at the moment \(HTTP 500\)",
    ),
    "cut": (reply_with_reset(), AgentUnavailable, "The connection to"),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("fault", "error", "words"), FAULTS.values(), ids=FAULTS)
async def test_errors_of_providers_are_classified(
    make_agent: MakeAgent, server: OpenAIServer, model: str, fault: Reply, error: type[AgentError], words: str
) -> None:
    server.add_replies(fault, fault, fault)
    with pytest.raises(error, match=words) as caught:
        await collect_events(make_provider_agent(make_agent, server, model), make_request())
    assert KEY not in str(caught.value)
    assert len(server.requests) == (1 if error is AgentRejected else 3)


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (
            MODELS[0],
            reply_with_provider_error(
                400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"
            ),
        ),
        (
            MODELS[1],
            reply_with_provider_error(
                400, "invalid_argument", "The input token count (9) exceeds the maximum number of tokens allowed (8)"
            ),
        ),
    ],
)
async def test_a_conversation_that_is_too_long_is_recognized(
    make_agent: MakeAgent, server: OpenAIServer, model: str, fault: Reply
) -> None:
    server.add_replies(fault)
    with pytest.raises(ContextOverflow):
        await collect_events(make_provider_agent(make_agent, server, model), make_request())
