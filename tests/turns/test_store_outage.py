"""Turns while the store is not available: a complete answer is stored later, a broken run is repeated at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import StoreDamaged, StoreUnavailable
from palaver.sessions.turn import TurnState
from palaver.testing import ScriptedAgent
from palaver.turns import run as run_module, worker
from support.gateway import ask

if TYPE_CHECKING:
    from palaver.gateway.gateway import Gateway
    from support.gateway import MakeSource, StartGateway

pytestmark = pytest.mark.both_engines


@pytest.fixture(autouse=True)
def retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "END_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(worker, "STORE_RETRY_SECONDS", 0.01)


class BrokenEnd:
    """Lets the end of a turn fail, before or after it is stored."""

    def __init__(self, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, *, before: int = 0, after: int = 0) -> None:
        engine = gateway.store.engine
        arun, finish = engine.arun, run_module.Run._finish
        self.attempts = 0

        def count_and_finish(run: Any, *arguments: Any, **fields: Any) -> None:
            self.attempts += 1
            if self.attempts <= before:
                raise StoreUnavailable("the connection broke before the commit")
            finish(run, *arguments, **fields)

        async def run_and_break(work: Any) -> Any:
            result = await arun(work)
            is_end = getattr(getattr(work.run, "func", None), "__name__", "") == count_and_finish.__name__
            if is_end and self.attempts <= before + after:
                raise StoreUnavailable("the connection broke after the commit")
            return result

        monkeypatch.setattr(run_module.Run, "_finish", count_and_finish)
        monkeypatch.setattr(engine, "arun", run_and_break)


@pytest.mark.parametrize(("before", "after", "attempts"), [(3, 0, 4), (0, 1, 2)], ids=["not stored", "stored"])
async def test_a_complete_answer_is_stored_once_whenever_the_connection_breaks(
    start_gateway: StartGateway,
    dm: MakeSource,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    before: int,
    after: int,
    attempts: int,
) -> None:
    agent = ScriptedAgent("Done.")
    gateway = await start_gateway(agent)
    broken = BrokenEnd(gateway, monkeypatch, before=before, after=after)
    turn = await ask(gateway, dm(), "Hello")
    await gateway.stop()
    assert (turn.state, turn.attempt, len(agent.requests)) == (TurnState.DONE, 1, 1)
    assert broken.attempts >= attempts  # the engine may run one unit of work twice
    assert "turn_lease_lost" not in caplog.messages


@pytest.mark.parametrize("error", [StoreDamaged(), RuntimeError("a programming error")])
async def test_a_run_that_breaks_off_is_repeated_without_waiting_for_its_lease(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    gateway = await start_gateway(ScriptedAgent("Done."))
    execute, failures = run_module.Run.execute, iter([error])

    async def fail_once(run: run_module.Run) -> None:
        for failure in failures:
            raise failure
        await execute(run)

    monkeypatch.setattr(run_module.Run, "execute", fail_once)
    turn = await ask(gateway, dm(), "Hello")
    assert (turn.state, turn.attempt) == (TurnState.DONE, 2)
