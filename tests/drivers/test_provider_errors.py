from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

from palaver.agent.base import Notice, TextDelta, ToolResult
from palaver.config.agent_rules import Provider
from palaver.core.errors import AgentError, AgentRateLimited, AgentRejected, AgentUnavailable, ContextOverflow
from palaver.drivers.providers import Timeouts
from palaver.sessions.turn import FailureCode, NoticeCode
from support.process import find_free_port

from .conftest import MODEL, collect_events, collect_events_into, get_text, make_request, make_tool
from .openai_server import (
    KEY,
    reply_never,
    reply_then_stall,
    reply_with_calls,
    reply_with_cut_line,
    reply_with_early_end,
    reply_with_error,
    reply_with_garbage,
    reply_with_reset,
    reply_with_text,
)

if TYPE_CHECKING:
    from palaver.agent.base import AgentEvent

    from .conftest import MakeAgent, RecordedSleeps
    from .openai_server import OpenAIServer, Reply

pytestmark = pytest.mark.slow  # asks a real HTTP server again and again

NEVER = reply_never()
TEMPORARY_FAULTS = {
    "500": reply_with_error(500),
    "502": reply_with_error(502),
    "503": reply_with_error(503),
    "408": reply_with_error(408),
    "never answers": NEVER,
    "resets the connection": reply_with_reset(),
    "resets before the first word": reply_with_cut_line(),
    "ends before the first word": reply_with_early_end(),
    "not JSON": reply_with_garbage(),
    "unexpected JSON": reply_with_garbage("data: 42\n\n"),
    "no events": reply_with_garbage("hello"),
    "an error in the stream": reply_with_garbage('data: {"error": {"message": "boom"}}\n\n'),
    "empty answer": reply_with_text(),
}


@pytest.mark.parametrize("fault", TEMPORARY_FAULTS.values(), ids=TEMPORARY_FAULTS)
async def test_a_temporary_failure_is_retried(
    make_agent: MakeAgent, server: OpenAIServer, sleeps: RecordedSleeps, fault: Reply
) -> None:
    server.add_replies(fault, fault, reply_with_text("There you are."))
    agent = make_agent(timeouts=Timeouts(connect_seconds=60, read_seconds=1 if fault is NEVER else 60))
    assert get_text(await collect_events(agent, make_request())) == "There you are."
    assert len(server.requests) == 3
    assert len(sleeps.seconds) == 2
    assert 0 < sleeps.seconds[0] < sleeps.seconds[1]


@pytest.mark.parametrize("fault", TEMPORARY_FAULTS.values(), ids=TEMPORARY_FAULTS)
async def test_retries_end_after_three_failures(make_agent: MakeAgent, server: OpenAIServer, fault: Reply) -> None:
    server.add_replies(fault, fault, fault, reply_with_text("too late"))
    agent = make_agent(timeouts=Timeouts(connect_seconds=60, read_seconds=0.2 if fault is NEVER else 60))
    with pytest.raises(AgentUnavailable):
        await collect_events(agent, make_request())
    assert len(server.requests) == 3


async def test_a_fallback_model_answers_with_a_notice(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(
        reply_with_error(500), reply_with_error(500), reply_with_error(500), reply_with_text("I am here.")
    )
    events = await collect_events(make_agent(fallback_models=("mine:spare",)), make_request())
    assert isinstance(events[0], Notice)
    assert MODEL in events[0].text
    assert "mine:spare" in events[0].text
    assert events[0].code == NoticeCode.FALLBACK_USED
    assert (events[0].facts["model"], events[0].facts["instead_of"]) == ("mine:spare", MODEL)
    assert events[0].facts["failure"]["code"] == FailureCode.UNAVAILABLE
    assert events[0].facts["failure"]["status"] == 500
    assert get_text(events) == "I am here."
    assert [request["model"] for request in server.requests] == ["gpt-5.4-mini"] * 3 + ["spare"]


async def test_if_every_model_fails_the_last_error_is_raised(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(*[reply_with_error(500)] * 3, *[reply_with_error(429)] * 3)
    with pytest.raises(AgentRateLimited, match="mine"):
        await collect_events(make_agent(fallback_models=("mine:spare",)), make_request())
    assert len(server.requests) == 6


async def test_a_turn_stays_with_the_fallback_model(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(*[reply_with_error(500)] * 3, reply_with_calls(("1", "look", "{}")), reply_with_text("Done."))
    events = await collect_events(make_agent(fallback_models=("mine:spare",)), make_request(tools=[make_tool()]))
    assert get_text(events) == "Done."
    assert server.requests[-1]["model"] == "spare"


async def test_a_refused_connection_to_ollama_asks_whether_it_is_running(
    make_agent: MakeAgent, sleeps: RecordedSleeps
) -> None:
    url = f"http://127.0.0.1:{find_free_port()}/v1"
    agent = make_agent(model="ollama:llama3", providers={"ollama": Provider(base_url=url)})
    with pytest.raises(AgentUnavailable, match=r"Could not connect to Ollama\. Is Ollama running\?"):
        await collect_events(agent, make_request())
    assert len(sleeps.seconds) == 2


@pytest.mark.parametrize("provider", ["mine", "openai", "anthropic", "ollama"])
async def test_an_address_that_no_client_can_use_is_explained_and_not_tried_again(
    make_agent: MakeAgent, sleeps: RecordedSleeps, provider: str
) -> None:
    """The settings refuse most of them, but clients know more about names with letters outside of ASCII."""
    agent = make_agent(model=f"{provider}:x", providers={provider: Provider(api_key=KEY, base_url="http://☃/v1")})
    with pytest.raises(AgentRejected, match=rf"is not valid\. Set providers\.{provider}\.base_url") as caught:
        await collect_events(agent, make_request())
    assert caught.value.facts["code"] == FailureCode.ADDRESS_INVALID
    assert sleeps.seconds == []


# ---- what the provider itself says ---------------------------------------------------------------------------

OWN_MESSAGES = {
    "401": (reply_with_error(401, "Your account is disabled."), 401, "Your account is disabled. (error)"),
    "429": (reply_with_error(429, "3 requests per minute", retry_after="600"), 429, "3 requests per minute (error)"),
    "500": (reply_with_error(500, "The GPU is on fire."), 500, "The GPU is on fire. (error)"),
    "400": (reply_with_error(400, "Unknown parameter"), 400, "Unknown parameter (error)"),
    "cut stream": (reply_with_cut_line("Once "), None, "Connection error. ("),
    "error in the stream": (reply_with_garbage('data: {"error": {"message": "boom"}}\n\n'), None, "boom"),
}


@pytest.mark.parametrize(("fault", "status", "detail"), OWN_MESSAGES.values(), ids=OWN_MESSAGES)
async def test_an_error_holds_the_providers_own_message(
    make_agent: MakeAgent, server: OpenAIServer, fault: Reply, status: int | None, detail: str
) -> None:
    server.add_replies(fault, fault, fault)
    with pytest.raises(AgentError) as caught:
        await collect_events(make_agent(), make_request())
    facts = caught.value.facts
    assert (facts["provider"], facts["model"], facts.get("status")) == ("openai", MODEL, status)
    assert detail in str(facts["detail"])


async def test_the_providers_own_message_is_short_and_without_secrets(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    secrets = [KEY, "sk-live-0123456789abcdef", "hunter2hunter2"]
    server.add_replies(reply_with_error(401, f"{secrets[0]} {secrets[1]} password={secrets[2]} " + "x " * 50_000))
    with pytest.raises(AgentRejected) as caught:
        await collect_events(make_agent(), make_request())
    detail = str(caught.value.facts["detail"])
    assert len(detail) <= 1001
    assert not any(secret in detail for secret in secrets)


# ---- rate limits ---------------------------------------------------------------------------------------------


async def test_the_wait_that_a_provider_requests_is_respected(
    make_agent: MakeAgent, server: OpenAIServer, sleeps: RecordedSleeps
) -> None:
    server.add_replies(reply_with_error(429, retry_after="7"), reply_with_text("Now."))
    assert get_text(await collect_events(make_agent(), make_request())) == "Now."
    assert sleeps.seconds == [7]


async def test_without_a_requested_wait_there_is_a_short_one(
    make_agent: MakeAgent, server: OpenAIServer, sleeps: RecordedSleeps
) -> None:
    server.add_replies(reply_with_error(429), reply_with_text("Now."))
    assert get_text(await collect_events(make_agent(), make_request())) == "Now."
    assert 0 < sleeps.seconds[0] < 1


async def test_a_long_requested_wait_fails_at_once(
    make_agent: MakeAgent, server: OpenAIServer, sleeps: RecordedSleeps
) -> None:
    server.add_replies(reply_with_error(429, retry_after="600"))
    with pytest.raises(AgentRateLimited) as caught:
        await collect_events(make_agent(), make_request())
    assert caught.value.retry_after == 600
    assert sleeps.seconds == []


async def test_a_fallback_model_answers_if_the_requested_wait_is_long(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_error(429, retry_after="600"), reply_with_text("Here."))
    assert get_text(await collect_events(make_agent(fallback_models=("mine:spare",)), make_request())) == "Here."


# ---- failures in the middle of an answer ---------------------------------------------------------------------

STALL = reply_then_stall("Once ", "upon")
MID_ANSWER_FAULTS = [
    (reply_with_cut_line("Once ", "upon"), r"The connection to OpenAI dropped mid-answer\. .*/retry"),
    (reply_with_early_end("Once ", "upon"), r"The connection to OpenAI dropped mid-answer\. .*/retry"),
    (STALL, r"OpenAI stopped responding mid-answer\. .*/retry"),
]


@pytest.mark.parametrize(("fault", "text"), MID_ANSWER_FAULTS)
async def test_an_answer_that_fails_midway_keeps_its_text_and_is_not_requested_again(
    make_agent: MakeAgent, server: OpenAIServer, fault: Reply, text: str
) -> None:
    server.add_replies(fault, reply_with_text("Never requested."))
    events: list[AgentEvent] = []
    timeouts = Timeouts(connect_seconds=60, read_seconds=1 if fault is STALL else 60)
    agent = make_agent(fallback_models=("mine:spare",), timeouts=timeouts)
    with pytest.raises(AgentUnavailable, match=text):
        await collect_events_into(agent, make_request(), events)
    assert events == [TextDelta("Once "), TextDelta("upon")]
    assert len(server.requests) == 1


async def test_a_retry_after_tool_calls_does_not_run_the_tools_again(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.add_replies(
        reply_with_calls(("1", "look", "{}"), text="Let me see."), reply_with_error(500), reply_with_text(" A cat.")
    )
    events = await collect_events(make_agent(), make_request(tools=[make_tool()]))
    assert sum(isinstance(event, ToolResult) for event in events) == 1
    assert get_text(events) == "Let me see. A cat."


# ---- rejections ----------------------------------------------------------------------------------------------

REJECTIONS = {
    "401": (reply_with_error(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"), "OPENAI_API_KEY"),
    "403": (reply_with_error(403, f"{KEY} may not"), r"providers\.openai\.api_key"),
    "404": (reply_with_error(404, "no such model", code="model_not_found"), r"has no model 'gpt-5\.4-mini'"),
    "no credit": (reply_with_error(429, "pay first", code="insufficient_quota"), "no credit"),
    "bad request": (reply_with_error(400, f"Unknown parameter, {KEY}"), "Unknown parameter"),
    "filtered": (reply_with_text(finish="content_filter"), "content filter"),
}


@pytest.mark.parametrize(("fault", "text"), REJECTIONS.values(), ids=REJECTIONS)
async def test_a_rejection_says_what_to_do_and_never_shows_the_key(
    make_agent: MakeAgent, server: OpenAIServer, fault: Reply, text: str
) -> None:
    server.add_replies(fault, reply_with_text("Never requested."))
    with pytest.raises(AgentRejected, match=text) as caught:
        await collect_events(make_agent(), make_request())
    assert len(server.requests) == 1
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in str(caught.value.facts)


async def test_a_missing_key_for_a_custom_provider_names_the_setting(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_error(401, "who are you?"))
    with pytest.raises(AgentRejected, match=r'"mine" requires an API key\. Set providers\.mine\.api_key'):
        await collect_events(make_agent(model="mine:small"), make_request())


TOO_LONG_REPLIES = {
    "OpenAI": reply_with_error(400, "too long", code="context_length_exceeded"),
    "vLLM": reply_with_error(400, "This model's maximum context length is 4096 tokens."),
    "llama.cpp": reply_with_error(
        400, "request (9 tokens) exceeds the available context size", kind="exceed_context_size_error"
    ),
    "a proxy": reply_with_error(413, "Request too large"),
}


@pytest.mark.parametrize("fault", TOO_LONG_REPLIES.values(), ids=TOO_LONG_REPLIES)
async def test_a_conversation_that_is_too_long_is_recognized(
    make_agent: MakeAgent, server: OpenAIServer, fault: Reply
) -> None:
    server.add_replies(fault)
    with pytest.raises(ContextOverflow, match="/compress"):
        await collect_events(make_agent(fallback_models=("mine:spare",)), make_request())
    assert len(server.requests) == 1


async def test_the_next_turn_works_after_a_failure(make_agent: MakeAgent, server: OpenAIServer) -> None:
    agent = make_agent()
    server.add_replies(reply_with_cut_line("Once"), reply_with_text("Twice."))
    with pytest.raises(AgentError):
        await collect_events(agent, make_request())
    assert get_text(await collect_events(agent, make_request())) == "Twice."
