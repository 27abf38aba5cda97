"""Providers that do not speak as OpenAI does: that they are asked, heard and understood as the others are."""

from __future__ import annotations

import importlib
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import ReasoningDelta, ToolCall, ToolFailed, ToolResult, Used
from palaver.domain.errors import AgentBusy, AgentError, AgentRefused, AgentUnavailable, ContextOverflow
from palaver.domain.profile import Provider

from .conftest import asking, events, text_in, tool
from .openai_server import KEY, reset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.agent.model import ModelAgent

    from .conftest import MakeAgent
    from .openai_server import Exchange, OpenAIServer, Reply

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Google's library warns of itself when it is compiled
    importlib.import_module("google.genai")

MODELS = ("anthropic:claude-sonnet-5-5", "google:gemini-3.5-flash")


def reached(make_agent: MakeAgent, server: OpenAIServer, model: str) -> ModelAgent:
    root = server.url.removesuffix("/v1")
    provider = Provider(api_key=KEY, base_url=root)
    return make_agent(model=model, providers={"anthropic": provider, "google": provider})


def anthropic(*blocks: dict[str, Any], stop: str = "end_turn") -> Reply:
    """Blocks of an answer as Anthropic streams them."""

    async def event(to: Exchange, kind: str, **data: Any) -> None:
        await to.raw(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n")

    async def reply(to: Exchange) -> None:
        await to.stream()
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
        await to.end()

    return reply


def google(*parts: dict[str, Any]) -> Reply:
    """Parts of an answer as Google streams them."""

    async def reply(to: Exchange) -> None:
        await to.stream()
        for number, part in enumerate(parts, 1):
            candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
            if number == len(parts):
                candidate["finishReason"] = "STOP"
            counts = {"promptTokenCount": 30, "candidatesTokenCount": 9, "totalTokenCount": 39}
            chunk = {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "gemini-3.5-flash"}
            await to.raw(f"data: {json.dumps(chunk)}\r\n\r\n")
        await to.end()

    return reply


ANTHROPIC_TEXT = {"start": {"type": "text", "text": ""}, "delta": {"type": "text_delta", "text": "A cat."}}
ANTHROPIC_THOUGHT = {
    "start": {"type": "thinking", "thinking": "", "signature": ""},
    "delta": {"type": "thinking_delta", "thinking": "Hm."},
}
ANTHROPIC_CALL = {
    "start": {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    "delta": {"type": "input_json_delta", "partial_json": '{"where": "here"}'},
}
SCRIPTS = {
    MODELS[0]: (anthropic(ANTHROPIC_THOUGHT, ANTHROPIC_CALL, stop="tool_use"), anthropic(ANTHROPIC_TEXT)),
    MODELS[1]: (
        google({"text": "Hm.", "thought": True}, {"functionCall": {"name": "look", "args": {"where": "here"}}}),
        google({"text": "A "}, {"text": "cat."}),
    ),
}


@pytest.mark.parametrize("model", MODELS)
async def test_an_answer_with_thoughts_and_a_tool(make_agent: MakeAgent, server: OpenAIServer, model: str) -> None:
    server.script(*SCRIPTS[model])
    agent = reached(make_agent, server, model)
    found = await events(agent, asking("What is there?", instructions="Be kind.", tools=[tool()]))
    assert ReasoningDelta("Hm.") in found
    (call,) = (event for event in found if isinstance(event, ToolCall))
    assert (call.name, json.loads(call.arguments)) == ("look", {"where": "here"})
    assert ToolResult(call.id, "look", 'seen {"where": "here"}') in found
    assert text_in(found) == "A cat."
    used = [event.usage for event in found if isinstance(event, Used)]
    assert len(used) == 2
    assert all(each.provider == model.partition(":")[0] and each.nanos for each in used)
    assert b"seen" in server.bodies[1]


async def test_what_a_conversation_has_in_common_is_kept_by_anthropic(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.script(anthropic(ANTHROPIC_TEXT))
    found = await events(reached(make_agent, server, MODELS[0]), asking(instructions="Be kind."))
    assert b"cache_control" in server.bodies[0]
    (used,) = (event.usage for event in found if isinstance(event, Used))
    assert used.cache_read_tokens == 20


async def test_a_tool_that_failed_is_marked_for_the_model(make_agent: MakeAgent, server: OpenAIServer) -> None:
    async def fail(_: Mapping[str, Any]) -> str:
        raise ToolFailed("the door is shut")

    server.script(*SCRIPTS[MODELS[0]])
    await events(reached(make_agent, server, MODELS[0]), asking(tools=[tool(run=fail)]))
    (result,) = server.requests[1]["messages"][-1]["content"]
    assert result["is_error"] is True
    assert "the door is shut" in str(result["content"])


def says_no(status: int, kind: str, message: str, reason: str = "") -> Reply:
    """An error that both kinds of provider would send."""

    async def reply(to: Exchange) -> None:
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]
        error = {"type": kind, "message": message, "code": status, "status": kind.upper(), "details": details}
        await to.json(status, {"type": "error", "error": error})

    return reply


FAULTS = {
    "refused key": (says_no(401, "authentication_error", f"invalid {KEY}"), AgentRefused, "_API_KEY"),
    "no such model": (says_no(404, "not_found_error", "model: x"), AgentRefused, "has no model"),
    "busy": (says_no(429, "rate_limit_error", "slow"), AgentBusy, "slow down"),
    "overloaded": (says_no(529, "overloaded_error", "Overloaded"), AgentUnavailable, "cannot answer"),
    "broken": (says_no(500, "api_error", "oops"), AgentUnavailable, "cannot answer"),
    "cut": (reset(), AgentUnavailable, "cannot answer"),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("fault", "error", "words"), FAULTS.values(), ids=FAULTS)
async def test_failures_are_understood(
    make_agent: MakeAgent, server: OpenAIServer, model: str, fault: Reply, error: type[AgentError], words: str
) -> None:
    server.script(fault, fault, fault)
    with pytest.raises(error, match=words) as caught:
        await events(reached(make_agent, server, model), asking())
    assert KEY not in str(caught.value)
    assert len(server.requests) == (1 if error is AgentRefused else 3)


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (MODELS[0], says_no(400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum")),
        (
            MODELS[1],
            says_no(
                400, "invalid_argument", "The input token count (9) exceeds the maximum number of tokens allowed (8)"
            ),
        ),
    ],
)
async def test_too_long_is_understood(make_agent: MakeAgent, server: OpenAIServer, model: str, fault: Reply) -> None:
    server.script(fault)
    with pytest.raises(ContextOverflow):
        await events(reached(make_agent, server, model), asking())
