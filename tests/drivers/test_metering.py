"""Every call to a model is held before it is made, and ended with what it has used: each retry and each fallback."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import UsageReport
from palaver.config.agent_rules import Provider
from palaver.config.budget_rules import FREE, TokenPrice
from palaver.core.errors import AgentError, BudgetExceeded
from palaver.drivers.demo import DEMO_MODEL, DemoAgent
from palaver.drivers.providers import Timeouts

from .conftest import collect_events, collect_events_into, get_text, make_request, make_tool
from .openai_server import (
    make_usage,
    reply_never,
    reply_slowly,
    reply_with_calls,
    reply_with_cut_line,
    reply_with_error,
    reply_with_reset,
    reply_with_text,
)

if TYPE_CHECKING:
    from palaver.agent.base import AgentEvent, HeldCall, ModelCall
    from palaver.sessions.usage import TurnUsage

    from .conftest import MakeAgent
    from .openai_server import Exchange, OpenAIServer, Reply

pytestmark = pytest.mark.slow  # asks a real HTTP server again and again


@dataclass
class RecordedCall:
    call: ModelCall
    max_tokens: int | None
    is_recorded: bool = True
    ends: list[str] = field(default_factory=list)
    streamed_tokens: int = 0

    async def settle(self, usage: TurnUsage | None, *, streamed_tokens: int = 0) -> None:
        self.streamed_tokens = streamed_tokens
        self.ends.append("estimated" if usage is None else f"{usage.input_tokens}+{usage.output_tokens}")

    async def release(self) -> None:
        self.ends.append("released")


class RecordingMeter:
    """Allows some calls, each with at most this many tokens."""

    def __init__(self, max_calls: int = 100, max_tokens: int | None = None) -> None:
        self.calls: list[RecordedCall] = []
        self._max_calls = max_calls
        self._max_tokens = max_tokens

    async def hold(self, call: ModelCall) -> HeldCall:
        if len(self.calls) >= self._max_calls:
            raise BudgetExceeded("Used up.")
        self.calls.append(RecordedCall(call, self._max_tokens))
        return self.calls[-1]

    @property
    def ends(self) -> list[tuple[str, str]]:
        """The model of each call, and how it ended: once."""
        return [(each.call.model, "/".join(each.ends)) for each in self.calls]


async def test_each_round_is_held_with_its_prompt_and_settled_with_its_usage(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_calls(("1", "look", '{"x": 1}')), reply_with_text("Done."))
    meter = RecordingMeter(max_tokens=1234)
    events = await collect_events(make_agent(), make_request("Hello " * 100, tools=[make_tool()], meter=meter))
    assert meter.ends == [("openai:gpt-5.4-mini", "20+8"), ("openai:gpt-5.4-mini", "10+5")]
    first, second = (each.call for each in meter.calls)
    assert 150 < first.input_tokens < second.input_tokens < 300
    assert first.price == TokenPrice(input_usd=Decimal("0.75"), output_usd=Decimal("4.5"))
    assert [request["max_completion_tokens"] for request in server.requests] == [1234, 1234]
    assert [event.is_recorded for event in events if isinstance(event, UsageReport)] == [True, True]


NEVER = reply_never()


@pytest.mark.parametrize(
    ("reply", "end"),
    [
        (reply_with_error(429), "released"),
        (reply_with_error(503), "released"),
        (reply_with_error(504), "estimated"),
        (reply_with_reset(), "estimated"),
        (NEVER, "estimated"),
        (reply_with_text(usage=(7, 0)), "7+0"),
        (reply_with_text(usage=None), "estimated"),
    ],
    ids=["rate limit", "overloaded", "gateway timeout", "reset", "timeout", "empty", "empty without usage"],
)
async def test_each_retry_and_each_fallback_is_held_by_itself(
    make_agent: MakeAgent, server: OpenAIServer, reply: Reply, end: str
) -> None:
    server.add_replies(*[reply] * 3, reply_with_text("Yes."))
    meter = RecordingMeter()
    timeouts = Timeouts(connect_seconds=60, read_seconds=1 if reply is NEVER else 60)
    agent = make_agent(fallback_models=("mine:big",), timeouts=timeouts)
    await collect_events(agent, make_request(meter=meter))
    assert meter.ends == [("openai:gpt-5.4-mini", end)] * 3 + [("mine:big", "10+5")]


async def test_a_server_that_cannot_be_reached_is_released(make_agent: MakeAgent) -> None:
    agent = make_agent(model="mine:big", providers={"mine": Provider(base_url="http://127.0.0.1:9/v1")})
    meter = RecordingMeter()
    with pytest.raises(AgentError):
        await collect_events(agent, make_request(meter=meter))
    assert meter.ends == [("mine:big", "released")] * 3


@pytest.mark.parametrize("is_canceled", [True, False], ids=["canceled", "closed"])
async def test_an_answer_that_is_stopped_is_settled_at_what_was_streamed(
    make_agent: MakeAgent, server: OpenAIServer, is_canceled: bool
) -> None:
    server.add_replies(reply_slowly(["words "] * 1000, 0.02))
    meter = RecordingMeter()
    answer = make_agent().run(make_request(meter=meter))
    if is_canceled:
        events: list[AgentEvent] = []
        started = asyncio.Event()

        async def collect() -> None:
            async for event in answer:
                events.append(event)
                started.set()

        task = asyncio.create_task(collect())
        await asyncio.wait_for(started.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await answer.aclose()
    else:
        await anext(answer)
        await answer.aclose()
    assert meter.ends == [("openai:gpt-5.4-mini", "estimated")]
    assert meter.calls[0].streamed_tokens > 0


@pytest.mark.parametrize(
    ("usage", "end"),
    [
        (make_usage(10, 5, cached=50), "10+5"),
        (make_usage(-10, 5), "estimated"),
        (make_usage(10**20, 5), "estimated"),
        (make_usage(10, 5, reasoning=-1), "estimated"),
    ],
    ids=["more cached than read", "negative", "too large", "negative reasoning"],
)
@pytest.mark.filterwarnings("ignore:Failed to extract usage")
async def test_an_answer_with_an_impossible_usage_is_complete_and_settled(
    make_agent: MakeAgent, server: OpenAIServer, usage: dict[str, Any], end: str
) -> None:
    async def reply(to: Exchange) -> None:
        await to.start_stream()
        await to.send_delta({"content": "Yes."}, "stop")
        await to.send_usage(usage)
        await to.send_done()

    server.add_replies(reply)
    meter = RecordingMeter()
    events = await collect_events(make_agent(), make_request(meter=meter))
    assert get_text(events) == "Yes."
    assert meter.ends == [("openai:gpt-5.4-mini", end)]
    assert meter.calls[0].streamed_tokens == (1 if end == "estimated" else 0)


async def test_an_answer_that_breaks_off_is_settled_at_the_length_of_its_text(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_cut_line(*["a"] * 400))
    meter = RecordingMeter()
    with pytest.raises(AgentError):
        await collect_events(make_agent(), make_request(meter=meter))
    assert meter.calls[0].streamed_tokens == 100  # not one for each piece of the stream


async def test_a_budget_that_is_used_up_ends_the_turn_without_another_model(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_error(503))
    agent = make_agent(fallback_models=("mine:big",), last_resort=DemoAgent(word_delay=0))
    events: list[AgentEvent] = []
    with pytest.raises(BudgetExceeded, match="Used up"):
        await collect_events_into(agent, make_request(meter=RecordingMeter(max_calls=1)), events)
    assert events == []
    assert len(server.requests) == 1


async def test_the_demo_agent_is_metered_and_free() -> None:
    agent = DemoAgent(word_delay=0)
    meter = RecordingMeter()
    events = await collect_events(agent, make_request("show me markdown", meter=meter))
    assert meter.calls[0].call.price == FREE == await agent.get_price(DEMO_MODEL)
    usage = next(event.usage for event in events if isinstance(event, UsageReport))
    assert meter.ends == [("demo", f"{usage.input_tokens}+{usage.output_tokens}")]


async def test_a_price_comes_from_the_settings_the_price_list_or_is_unknown(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    own = TokenPrice(input_usd=Decimal(3), output_usd=Decimal(9))
    agent = make_agent(model="mine:big", prices={"mine:big": own})
    assert await agent.get_price("mine:big") == own
    assert await agent.get_price("mine:small") is None
    assert await agent.get_price("nowhere:small") is None
    price = await agent.get_price("openai:gpt-5.4-mini")
    assert price == TokenPrice(input_usd=Decimal("0.75"), output_usd=Decimal("4.5"))
    server.add_replies(reply_with_text("Yes."))
    events = await collect_events(agent, make_request())
    usage = next(event.usage for event in events if isinstance(event, UsageReport))
    assert (usage.cost, usage.cost_source) == (Decimal("0.000075"), "settings")
    ollama = {"ollama": Provider(base_url="http://127.0.0.1:11434/v1")}
    assert await make_agent(model="ollama:x", providers=ollama).get_price("ollama:x") == FREE
    remote = {"ollama": Provider(base_url="https://ollama.example.org/v1")}
    assert await make_agent(model="ollama:x", providers=remote).get_price("ollama:x") is None
