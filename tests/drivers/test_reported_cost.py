"""The cost that a provider itself reports, beside what the price list says."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import UsageReport
from palaver.core.engines.base import Read
from palaver.sessions.inbound import Inbound
from palaver.sessions.usage import CostStatus
from support.gateway import ask, make_member
from support.metered_work import read_windows

from .conftest import collect_events, make_request
from .openai_server import make_usage

if TYPE_CHECKING:
    from palaver.testing import FakeClock
    from support.gateway import MakeSource, StartGateway

    from .conftest import MakeAgent
    from .openai_server import Exchange, OpenAIServer, Reply

pytestmark = pytest.mark.slow  # loads the SDK of a provider


def reply_with_cost(**fields: Any) -> Reply:
    async def reply(to: Exchange) -> None:
        await to.start_stream()
        await to.send_delta({"content": "Yes."}, "stop")
        await to.send_usage(make_usage(100, 20) | fields)
        await to.send_done()

    return reply


@pytest.mark.parametrize(
    ("fields", "dollars"),
    [
        ({"cost": 0.00095}, "0.00095"),
        ({"cost": 0}, "0"),
        ({"cost": "0.0038"}, "0.0038"),
        ({"cost": 1e-9}, "0.000000001"),
        ({"cost": {"input_tokens_cost": 0.1, "total_cost": 0.25}}, "0.25"),
        ({"cost_in_usd_ticks": 37_756_000}, "0.0037756"),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.19}}, "0.20"),
        ({"cost": 0.01, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.19}}, "0.01"),
        ({"cost": 0.01, "is_byok": True, "cost_details": {}}, None),  # the rest of it is unknown
        ({"cost": 0.01, "is_byok": True}, None),
        ({}, None),
        ({"cost": None}, None),
        ({"cost": True}, None),
        ({"cost": -0.5}, None),
        ({"cost": float("nan")}, None),
        ({"cost": float("inf")}, None),
        ({"cost": 1_000_001}, None),
        ({"cost": "a lot"}, None),
        ({"cost": "1" * 1000}, None),
        ({"cost": 10**5000}, None),
        ({"cost": [1]}, None),
        ({"cost": {"total_cost": {"total_cost": 1}}}, None),
        ({"cost_in_usd_ticks": -1}, None),
    ],
)
def test_a_cost_is_read_and_an_impossible_one_is_not(fields: dict[str, Any], dollars: str | None) -> None:
    from palaver.drivers.chat_model import find_reported_cost

    assert find_reported_cost(fields) == (None if dollars is None else Decimal(dollars))


async def test_the_reported_cost_counts_and_the_estimate_is_kept(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.add_replies(reply_with_cost(), reply_with_cost(cost=0.25), reply_with_cost(cost=-1), reply_with_cost(cost=0))
    agent = make_agent()
    usages = [
        event.usage
        for _ in range(4)
        for event in await collect_events(agent, make_request())
        if isinstance(event, UsageReport)
    ]
    estimate = usages[0].cost
    estimated, actual = CostStatus.ESTIMATED, CostStatus.ACTUAL
    assert [(usage.cost, usage.effective_cost_status, usage.estimated_cost) for usage in usages] == [
        (estimate, estimated, None),
        (Decimal("0.25"), actual, estimate),
        (estimate, estimated, None),
        (Decimal(0), actual, estimate),
    ]
    assert [usage.cost_source for usage in usages] == ["genai-prices", "openai", "genai-prices", "openai"]


async def test_the_reported_cost_of_a_model_without_a_price_is_known(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_cost(cost=0.25))
    events = await collect_events(make_agent(model="mine:small"), make_request())
    (usage,) = (event.usage for event in events if isinstance(event, UsageReport))
    assert (usage.cost, usage.cost_source, usage.estimated_cost) == (Decimal("0.25"), "mine", None)


async def test_budgets_and_reports_have_the_reported_cost_beside_the_estimate(
    start_gateway: StartGateway, dm: MakeSource, make_agent: MakeAgent, server: OpenAIServer, clock: FakeClock
) -> None:
    server.add_replies(reply_with_cost(cost=0.25), reply_with_cost())  # the second is that of the title
    gateway = await start_gateway(make_agent(), clock=clock)
    await make_member(gateway.store, dm())
    await ask(gateway, dm(), "Hello")
    rows = gateway.store.engine.run(
        Read(lambda tx: tx.fetch_all("SELECT cost_nanos, cost_status, cost_source, estimated_nanos FROM usage"))
    )
    first = next(row for row in rows if row[1] == "actual")
    assert first[:3] == (250_000_000, "actual", "openai")
    assert 0 < first[3] < 250_000_000
    used_nanos, *_ = read_windows(gateway.store)["all", "", "day"]
    assert used_nanos >= 250_000_000
    reply = (await gateway.inbox.accept(Inbound(source=dm(), content="/usage"))).reply
    assert "(actual; " in str(reply)
    assert "by list prices)" in str(reply)
