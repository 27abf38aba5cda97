"""Conversations that are deleted or undone while a turn runs in them."""

from __future__ import annotations

import asyncio
import contextlib
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.agent.base import AgentRequest, TextDelta, UsageReport
from palaver.core.errors import InvalidInput
from palaver.sessions import turns_table as turns
from palaver.sessions.inbound import Inbound
from palaver.sessions.turn import TurnState
from palaver.sessions.usage import TurnUsage
from palaver.testing import ScriptedAgent
from palaver.turns import worker
from support.agents import EndlessAgent
from support.gateway import ask, get_turn, load_texts, send_message, wait_for_turn, wait_until

if TYPE_CHECKING:
    from concurrent.futures import Future

    from palaver.agent.base import AgentEvent
    from palaver.core.engines.base import Transaction
    from palaver.gateway.gateway import Gateway
    from palaver.sessions.inbound import Receipt
    from palaver.sessions.usage import UsageRow
    from support.gateway import MakeSource, StartGateway


OWNER = SessionSource.local_cli()


def load_total_usage(gateway: Gateway) -> UsageRow:
    """Load the usage of all people and sessions."""
    store = gateway.store
    return store.seen_by(store.get_owner().principal, everything=True).usage.report("platform").rows[0]


@pytest.mark.both_engines
async def test_deleting_a_session_stops_its_run_and_keeps_its_usage(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "HEARTBEAT_SECONDS", 0.05)
    endless = EndlessAgent()
    gateway = await start_gateway(endless.agent)
    turn_id = await send_message(gateway, dm(), "hello")
    await endless.started.wait()
    gateway.store.delete_session((await get_turn(gateway, turn_id)).session_id)
    await wait_until(lambda: gateway.turn_worker.running_count == 0)
    total = load_total_usage(gateway)
    assert (total.group, total.input_tokens, total.cost) == ("telegram", 1000, Decimal("0.01"))
    endless.agent._script = lambda _request: "Hello."
    assert (await ask(gateway, dm(), "hello again")).state is TurnState.DONE


async def test_the_usage_of_a_run_that_was_handed_over_is_added_to_that_of_the_next(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    endless = EndlessAgent()
    gateway = await start_gateway(endless.agent)
    turn_id = await send_message(gateway, dm(), "hello")
    await endless.started.wait()
    await gateway.stop(0)

    def answer(_request: AgentRequest) -> list[AgentEvent]:
        first = TurnUsage(model="large", provider="one", input_tokens=200, output_tokens=20, cost="0.02")
        second = TurnUsage(model="large", provider="two", input_tokens=30, output_tokens=3, cost="0.03")
        return [UsageReport(first), UsageReport(second), TextDelta("Hello.")]  # one model, from two providers

    other = await start_gateway(ScriptedAgent(answer))
    turn = await wait_for_turn(other, turn_id)
    total, session_usage = load_total_usage(other), other.store.get_session(turn.session_id).usage
    assert (total.input_tokens, total.cost) == (1230, Decimal("0.06"))
    assert (session_usage.input_tokens, session_usage.cost) == (1230, Decimal("0.06"))


async def test_undo_and_redo_are_refused_while_the_agent_answers(
    start_gateway: StartGateway,
) -> None:
    endless = EndlessAgent()
    gateway = await start_gateway(endless.agent)
    turn_id = await send_message(gateway, OWNER, "hello")
    await endless.started.wait()
    session_id = (await get_turn(gateway, turn_id)).session_id
    view = gateway.store.seen_by(gateway.store.get_owner().principal)
    for change in (view.undo, view.redo):
        with pytest.raises(InvalidInput, match="still answering"):
            change(session_id)
    assert load_texts(gateway.store, session_id) == [("user", "hello")]
    await gateway.inbox.accept(Inbound(source=OWNER, content="/stop"))  # else the gateway waits for it when it ends
    await wait_for_turn(gateway, turn_id)


async def test_a_message_that_arrives_during_an_undo_is_not_undone_with_it(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, other = await start_gateway(), await start_gateway()
    first = await ask(gateway, OWNER, "first")
    loop = asyncio.get_running_loop()
    original = turns.lock_and_load_open
    arriving: list[Future[Receipt]] = []

    def send_during_lock(tx: Transaction, session_no: int) -> turns.OpenTurns:
        open_turns = original(tx, session_no)
        if not arriving:
            accepting = other.inbox.accept(Inbound(source=OWNER, content="second"))
            arriving.append(asyncio.run_coroutine_threadsafe(accepting, loop))
            with contextlib.suppress(TimeoutError):  # the inbox waits until the undo is done
                arriving[0].result(0.3)
        return open_turns

    monkeypatch.setattr(turns, "lock_and_load_open", send_during_lock)
    await gateway.inbox.accept(Inbound(source=OWNER, content="/undo"))
    receipt = await asyncio.wrap_future(arriving[0])
    assert (await wait_for_turn(gateway, receipt.turn_id)).state is TurnState.DONE
    assert load_texts(gateway.store, first.session_id) == [("user", "second"), ("assistant", "Done.")]
