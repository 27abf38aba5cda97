from __future__ import annotations

import socket
import traceback
from typing import TYPE_CHECKING

import pytest

from palaver.agent.base import Notice, TextDelta, ToolResult
from palaver.domain.errors import (
    AgentBusy,
    AgentError,
    AgentRefused,
    AgentUnavailable,
    ContextOverflow,
)
from palaver.domain.profile import Provider

from .conftest import MODEL, asking, collected, events, text_in, tool
from .openai_server import (
    KEY,
    calls,
    cut,
    ends_early,
    fails,
    garbage,
    never,
    reset,
    says,
    stalls,
)

if TYPE_CHECKING:
    from palaver.agent.base import AgentEvent

    from .conftest import MakeAgent, Waits
    from .openai_server import OpenAIServer, Reply

PASSING = {
    "500": fails(500),
    "502": fails(502),
    "503": fails(503),
    "408": fails(408),
    "never answers": never(),
    "resets the line": reset(),
    "cut before the first word": cut(),
    "ends before the first word": ends_early(),
    "not JSON": garbage(),
    "JSON of another kind": garbage("data: 42\n\n"),
    "no events": garbage("hello"),
    "an error in the stream": garbage('data: {"error": {"message": "boom"}}\n\n'),
    "says nothing": says(),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
async def test_what_may_pass_is_tried_again(
    make_agent: MakeAgent, server: OpenAIServer, waits: Waits, fault: Reply
) -> None:
    server.script(fault, fault, says("There you are."))
    assert text_in(await events(make_agent(), asking())) == "There you are."
    assert len(server.requests) == 3
    assert len(waits.seconds) == 2
    assert 0 < waits.seconds[0] < waits.seconds[1]


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
async def test_what_does_not_pass_is_given_up(make_agent: MakeAgent, server: OpenAIServer, fault: Reply) -> None:
    server.script(fault, fault, fault, says("too late"))
    with pytest.raises(AgentUnavailable):
        await events(make_agent(), asking())
    assert len(server.requests) == 3


async def test_another_model_answers_instead_and_the_person_is_told(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.script(fails(500), fails(500), fails(500), says("I am here."))
    found = await events(make_agent(fallback_models=("mine:spare",)), asking())
    assert isinstance(found[0], Notice)
    assert MODEL in found[0].text
    assert "mine:spare" in found[0].text
    assert text_in(found) == "I am here."
    assert [request["model"] for request in server.requests] == ["gpt-5.4-mini"] * 3 + ["spare"]


async def test_when_every_model_fails_the_last_failure_is_raised(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(*[fails(500)] * 3, *[fails(429)] * 3)
    with pytest.raises(AgentBusy, match="mine"):
        await events(make_agent(fallback_models=("mine:spare",)), asking())
    assert len(server.requests) == 6


async def test_the_turn_stays_with_the_model_that_answered(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(*[fails(500)] * 3, calls(("1", "look", "{}")), says("Done."))
    found = await events(make_agent(fallback_models=("mine:spare",)), asking(tools=[tool()]))
    assert text_in(found) == "Done."
    assert server.requests[-1]["model"] == "spare"


async def test_nobody_is_listening(make_agent: MakeAgent, waits: Waits) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    agent = make_agent(model="ollama:llama3", providers={"ollama": Provider(base_url=url)})
    with pytest.raises(AgentUnavailable, match=r"Ollama .*is Ollama running"):
        await events(agent, asking())
    assert len(waits.seconds) == 2


# ---- asked to slow down --------------------------------------------------------------------------------------


async def test_a_provider_that_asks_for_time_gets_it(make_agent: MakeAgent, server: OpenAIServer, waits: Waits) -> None:
    server.script(fails(429, retry_after="7"), says("Now."))
    assert text_in(await events(make_agent(), asking())) == "Now."
    assert waits.seconds == [7]


async def test_a_provider_that_asks_for_nothing_is_given_some(
    make_agent: MakeAgent, server: OpenAIServer, waits: Waits
) -> None:
    server.script(fails(429), says("Now."))
    assert text_in(await events(make_agent(), asking())) == "Now."
    assert 0 < waits.seconds[0] < 1


async def test_nobody_is_kept_waiting_for_long(make_agent: MakeAgent, server: OpenAIServer, waits: Waits) -> None:
    server.script(fails(429, retry_after="600"))
    with pytest.raises(AgentBusy) as caught:
        await events(make_agent(), asking())
    assert caught.value.retry_after == 600
    assert waits.seconds == []


async def test_a_busy_provider_is_left_for_another(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(fails(429, retry_after="600"), says("Here."))
    assert text_in(await events(make_agent(fallback_models=("mine:spare",)), asking())) == "Here."


# ---- breaking off --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [cut("Once ", "upon"), ends_early("Once ", "upon"), stalls("Once ", "upon")])
async def test_an_answer_that_breaks_off_keeps_its_words_and_is_not_asked_again(
    make_agent: MakeAgent, server: OpenAIServer, fault: Reply
) -> None:
    server.script(fault, says("Never asked."))
    found: list[AgentEvent] = []
    with pytest.raises(AgentUnavailable, match="broke off"):
        await collected(make_agent(fallback_models=("mine:spare",)), asking(), found)
    assert found == [TextDelta("Once "), TextDelta("upon")]
    assert len(server.requests) == 1


async def test_a_round_after_tools_is_tried_again_without_running_them_again(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.script(calls(("1", "look", "{}"), text="Let me see."), fails(500), says(" A cat."))
    found = await events(make_agent(), asking(tools=[tool()]))
    assert sum(isinstance(event, ToolResult) for event in found) == 1
    assert text_in(found) == "Let me see. A cat."


# ---- refused -------------------------------------------------------------------------------------------------

REFUSED = {
    "401": (fails(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"), "OPENAI_API_KEY"),
    "403": (fails(403, f"{KEY} may not"), r"providers\.openai\.api_key"),
    "404": (fails(404, "no such model", code="model_not_found"), r"has no model 'gpt-5\.4-mini'"),
    "no credit": (fails(429, "pay first", code="insufficient_quota"), "no credit"),
    "bad request": (fails(400, f"Unknown parameter, {KEY}"), "Unknown parameter"),
    "filtered": (says(finish="content_filter"), "content filter"),
}


@pytest.mark.parametrize(("fault", "words"), REFUSED.values(), ids=REFUSED)
async def test_a_refusal_says_how_to_mend_it_and_never_shows_the_key(
    make_agent: MakeAgent, server: OpenAIServer, fault: Reply, words: str
) -> None:
    server.script(fault, says("Never asked."))
    with pytest.raises(AgentRefused, match=words) as caught:
        await events(make_agent(), asking())
    assert len(server.requests) == 1
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in str(caught.value.facts)


async def test_a_server_without_a_key_that_wants_one_says_so(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.script(fails(401, "who are you?"))
    with pytest.raises(AgentRefused, match=r"mine wants a key: set providers\.mine\.api_key"):
        await events(make_agent(model="mine:small"), asking())


TOO_LONG = {
    "OpenAI": fails(400, "too long", code="context_length_exceeded"),
    "vLLM": fails(400, "This model's maximum context length is 4096 tokens."),
    "llama.cpp": fails(400, "request (9 tokens) exceeds the available context size", kind="exceed_context_size_error"),
    "a proxy": fails(413, "Request too large"),
}


@pytest.mark.parametrize("fault", TOO_LONG.values(), ids=TOO_LONG)
async def test_a_conversation_that_is_too_long_is_told_apart(
    make_agent: MakeAgent, server: OpenAIServer, fault: Reply
) -> None:
    server.script(fault)
    with pytest.raises(ContextOverflow, match="/compress"):
        await events(make_agent(fallback_models=("mine:spare",)), asking())
    assert len(server.requests) == 1


async def test_the_next_turn_works_after_a_failure(make_agent: MakeAgent, server: OpenAIServer) -> None:
    agent = make_agent()
    server.script(cut("Once"), says("Twice."))
    with pytest.raises(AgentError):
        await events(agent, asking())
    assert text_in(await events(agent, asking())) == "Twice."
