"""The meter: what it holds, settles and releases, what it refuses, and what is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver.accounts import merge_table as person_merge
from palaver.config.agent_rules import TurnRules
from palaver.config.budget_rules import (
    FREE,
    BudgetKey,
    BudgetLimit,
    BudgetPeriod,
    BudgetRules,
    BudgetScope,
    BudgetUnit,
    CallPurpose,
)
from palaver.core.engines import postgres_connection
from palaver.core.engines.base import Write
from palaver.core.errors import BudgetExceeded
from palaver.core.ids import PersonId
from palaver.jobs import runs_table as job_runs
from palaver.jobs.model import JobRunKind
from palaver.money import calls_table as call_records, table as budget_limits
from palaver.money.meter import BudgetMeter, Budgets
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.turn import JOB_RUN_KEY, FailureCode, NoticeCode
from support.job_runs import insert_job
from support.metered_work import (
    count_calls,
    make_call,
    make_rules,
    make_usage,
    make_work,
    read_recorded,
    read_windows,
)

if TYPE_CHECKING:
    from palaver import SessionSource, SessionStore
    from palaver.agent.base import Notice
    from palaver.config.budget_rules import BudgetRules as Rules
    from palaver.core.engines.base import Transaction
    from palaver.testing import FakeClock
    from support.metered_work import FakeWork

pytestmark = pytest.mark.both_engines


MakeSource = Callable[..., "SessionSource"]
ALL_DAY = ("all", "", "day")


def make_budgets(store: SessionStore, **limits: int) -> Budgets:
    return Budgets(store, lambda: TurnRules(budgets=make_rules(**limits)))


def make_meter(store: SessionStore, work: FakeWork, rules: Rules | None = None, **options: Any) -> BudgetMeter:
    budgets = Budgets(store, lambda: TurnRules(budgets=rules or BudgetRules()))
    return budgets.make_meter(work, options.pop("purpose", CallPurpose.ANSWER), **options)


async def test_a_call_is_held_and_settled_in_all_its_windows(store: SessionStore, dm: MakeSource) -> None:
    work = make_work(store, dm())
    meter = make_meter(store, work)
    held = await meter.hold(make_call(100, 1000))
    assert (held.max_tokens, held.is_recorded) == (1000, True)
    expected_windows = {(scope, subject) for scope, subject in (("all", ""), ("person", work.person_id))}
    windows = read_windows(store)
    assert {key[:2] for key in windows} == expected_windows
    assert {key[2] for key in windows} == {"day", "month"}
    assert set(windows.values()) == {(0, 1120, 0, 1120, 0)}
    await held.settle(make_usage(90, 30))
    await held.settle(make_usage(90, 30))  # it has ended
    await held.release()
    assert set(read_windows(store).values()) == {(120, 0, 120, 0, 0)}
    assert count_calls(store) == 1, "its usage waits for the end of the turn"


async def test_a_refused_call_counts_nothing(store: SessionStore, dm: MakeSource) -> None:
    held = await make_meter(store, make_work(store, dm())).hold(make_call())
    await held.release()
    assert set(read_windows(store).values()) == {(0, 0, 0, 0, 0)}
    assert count_calls(store) == 0


async def test_a_call_without_reported_usage_counts_what_was_streamed_or_held(
    sqlite_store: SessionStore, dm: MakeSource
) -> None:
    work = make_work(sqlite_store, dm())
    meter = make_meter(sqlite_store, work)
    await (await meter.hold(make_call(100, 1000))).settle(None, streamed_tokens=7)
    assert read_windows(sqlite_store)[ALL_DAY] == (127, 0, 127, 0, 0)
    await (await meter.hold(make_call(100, 1000))).settle(None)
    assert read_windows(sqlite_store)[ALL_DAY] == (127 + 1120, 0, 127 + 1120, 0, 0)
    await (await meter.hold(make_call(100, 1000))).settle(make_usage(5, 5, nanos=None))  # at list price
    assert read_windows(sqlite_store)[ALL_DAY] == (127 + 1130, 0, 127 + 1130, 0, 0)
    await (await meter.hold(make_call(price=None))).settle(make_usage(5, 5, nanos=None))
    assert read_windows(sqlite_store)[ALL_DAY] == (127 + 1130, 0, 127 + 1140, 0, 1)


async def test_a_limit_refuses_with_what_how_much_until_when_and_how_to_raise_it(
    store: SessionStore, dm: MakeSource, clock: FakeClock
) -> None:
    work = make_work(store, dm())
    rules = replace(make_rules(person_day_usd=2_000_000_000), timezone="Europe/Vienna")
    meter = make_meter(store, work, rules)
    await (await meter.hold(make_call(10, 10))).settle(make_usage(1, 1, nanos=1_990_000_000))
    clock.advance(hours=10)
    before = read_windows(store)
    with pytest.raises(BudgetExceeded) as refused:
        await meter.hold(make_call(20_000_000, 10))
    assert str(refused.value) == (
        "Your daily budget has only $0.01 of $2.00 left, and this answer may need $0.0241. It resets at"
        " 2026-11-16 00:00 (Europe/Vienna), in 5 hours. An owner can raise it: `/budget set Ada day $4.00`."
    )
    facts = refused.value.facts
    assert facts["code"] == FailureCode.BUDGET_EXCEEDED
    assert (facts["scope"], facts["period"], facts["unit"]) == ("person", "day", "usd")
    assert (facts["used"], facts["limit"]) == (1_990_000_000, 2_000_000_000)
    assert facts["resets_at"] == "2026-11-15T23:00:00+00:00"
    assert read_windows(store) == before, "nothing is changed"
    clock.advance(hours=5)  # the next day
    await meter.hold(make_call(20_000_000, 10))


async def test_the_command_that_raises_a_limit_means_the_person_whatever_their_name_is(
    sqlite_store: SessionStore, dm: MakeSource
) -> None:
    work = make_work(sqlite_store, dm())
    person_id = work.person_id or PersonId("")
    sqlite_store.engine.run(Write(lambda tx: tx.execute("UPDATE person SET name = $2 WHERE id = $1", person_id, "all")))
    with pytest.raises(BudgetExceeded, match="`/budget set person all day 3k tokens`"):
        await make_meter(sqlite_store, work, make_rules(person_day_tokens=1)).hold(make_call())


async def test_people_learn_no_amounts_of_budgets_that_they_share(sqlite_store: SessionStore, dm: MakeSource) -> None:
    work = make_work(sqlite_store, dm())
    meter = make_meter(sqlite_store, work, make_rules(all_month_tokens=50))
    with pytest.raises(BudgetExceeded) as refused:
        await meter.hold(make_call())
    assert "tokens" not in str(refused.value)
    assert not {"used", "limit"} & refused.value.facts.keys()
    sqlite_store.engine.run(Write(lambda tx: people.set_role(tx, work.person_id or PersonId(""), Role.OWNER)))
    with pytest.raises(BudgetExceeded, match="0 tokens of 50 tokens"):
        await meter.hold(make_call())


async def test_a_model_with_an_unknown_price_is_refused_where_dollars_are_limited(
    sqlite_store: SessionStore, dm: MakeSource
) -> None:
    work = make_work(sqlite_store, dm())
    with pytest.raises(BudgetExceeded) as refused:
        await make_meter(sqlite_store, work, make_rules(all_day_usd=10**12)).hold(make_call(price=None))
    assert refused.value.facts["code"] == FailureCode.PRICE_UNKNOWN
    assert '`prices: {"openai:m": {input: 0.5, output: 1.5}}`' in str(refused.value)
    held = await make_meter(sqlite_store, work, make_rules(all_day_tokens=10**6)).hold(make_call(price=None))
    assert held.max_tokens == 1000


async def test_an_answer_that_does_not_fit_is_shortened_and_the_person_is_told_once(
    sqlite_store: SessionStore, dm: MakeSource
) -> None:
    notices: list[Notice] = []
    meter = make_meter(
        sqlite_store, make_work(sqlite_store, dm()), make_rules(person_day_tokens=2500), on_notice=notices.append
    )
    held = await meter.hold(make_call(100, None))
    assert held.max_tokens == 2380
    await held.settle(make_usage(100, 400))
    assert (await meter.hold(make_call(100, None))).max_tokens == 1880
    assert [(notice.code, notice.facts) for notice in notices] == [(NoticeCode.ANSWER_LIMITED, {})]


@pytest.mark.both_engines
async def test_a_free_call_is_only_counted(store: SessionStore, dm: MakeSource) -> None:
    work = make_work(store, dm())
    held = await make_meter(store, work, make_rules(all_day_usd=0)).hold(make_call(price=FREE, max_tokens=None))
    assert (held.max_tokens, held.is_recorded) == (None, False)
    assert read_windows(store) == {}
    await held.settle(make_usage(5, 6, nanos=0))
    assert set(read_windows(store).values()) == {(0, 0, 11, 0, 0)}
    limited = await make_meter(store, work, make_rules(all_day_tokens=9011)).hold(make_call(price=FREE))
    assert limited.is_recorded
    with pytest.raises(BudgetExceeded):
        await make_meter(store, work, make_rules(all_day_tokens=1000)).hold(make_call(price=FREE))


async def test_a_limit_of_an_owner_wins_and_knows_what_was_used_before(
    sqlite_store: SessionStore, dm: MakeSource
) -> None:
    work = make_work(sqlite_store, dm())
    meter = make_meter(sqlite_store, work, make_rules(person_day_tokens=10))
    person_id = work.person_id or PersonId("")

    def set_limit(amount: int | None, subject: str) -> None:
        key = BudgetKey(BudgetScope.PERSON, subject, BudgetPeriod.DAY)
        limit = BudgetLimit(key=key, unit=BudgetUnit.TOKENS, amount=amount)
        sqlite_store.engine.run(Write(lambda tx: budget_limits.set_limit(tx, limit, person_id, 0)))

    with pytest.raises(BudgetExceeded):
        await meter.hold(make_call())
    set_limit(None, "")
    await (await meter.hold(make_call(100, None))).settle(make_usage(1000, 1000))
    set_limit(3000, person_id)
    with pytest.raises(BudgetExceeded, match="1,000 tokens of 3,000 tokens left"):
        await meter.hold(make_call())
    set_limit(3200, person_id)
    await meter.hold(make_call())


@pytest.mark.usefixtures("new_connections")
async def test_two_processes_cannot_pass_a_limit_together(
    open_store: Any, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All twenty wait for one row: on a busy machine the last ones wait for longer than a lock may take.
    monkeypatch.setitem(postgres_connection.TIME_LIMITS, "lock_timeout", 60_000)
    first, second = open_store(), open_store()
    rules = make_rules(all_day_usd=11_200, person_month_tokens=11_200)
    meters = [make_meter(store, make_work(store, dm(user)), rules) for store in (first, second) for user in ("a", "b")]
    calls = [meter.hold(make_call(100, 1000)) for meter in meters * 5]
    results = await asyncio.gather(*calls, return_exceptions=True)
    refused = [result for result in results if isinstance(result, BudgetExceeded)]
    assert len(refused) == 10
    assert len(results) - len(refused) == 10, results
    assert read_windows(first)[ALL_DAY] == (0, 11_200, 0, 11_200, 0)


async def test_what_a_dead_process_leaves_is_counted_and_recorded_once(
    open_store: Any, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = open_store(), open_store()
    dead, alive = make_work(first, dm()), make_work(first, dm())
    await make_meter(first, dead).hold(make_call(100, 1000))
    await (await make_meter(first, dead).hold(make_call(100, 1000))).settle(make_usage(10, 5))
    await make_meter(first, alive).hold(make_call(100, 1000))
    monkeypatch.setattr(call_records, "is_owner_dead", lambda owner: owner == dead.owner)
    counts = await asyncio.gather(*(make_budgets(store).recover_calls() for store in (first, second) for _ in range(2)))
    assert sum(counts) >= 2
    assert count_calls(first) == 1
    assert sorted(read_recorded(first)) == [(15, 15), (1120, 1120)]
    assert read_windows(first)[ALL_DAY] == (1135, 1120, 1135, 1120, 0)


async def test_a_call_that_is_too_old_is_over(sqlite_store: SessionStore, dm: MakeSource, clock: FakeClock) -> None:
    held = await make_meter(sqlite_store, make_work(sqlite_store, dm())).hold(make_call(100, 1000))
    clock.advance(minutes=34)
    assert await make_budgets(sqlite_store).recover_calls() == 0
    clock.advance(minutes=2)
    assert await make_budgets(sqlite_store).recover_calls() == 1
    await held.settle(make_usage(1, 1))  # too late: it is counted
    assert read_windows(sqlite_store)[ALL_DAY] == (1120, 0, 1120, 0, 0)
    assert read_recorded(sqlite_store) == [(1120, 1120)]


async def test_a_call_ends_also_when_its_caller_is_canceled(sqlite_store: SessionStore, dm: MakeSource) -> None:
    meter = make_meter(sqlite_store, make_work(sqlite_store, dm()))

    async def call_model() -> None:
        held = await meter.hold(make_call(100, 1000))
        try:
            started.set()
            await asyncio.sleep(60)
        finally:
            await held.settle(None, streamed_tokens=3)

    started = asyncio.Event()
    task = asyncio.create_task(call_model())
    await started.wait()
    task.cancel()
    await asyncio.sleep(0)  # it is settling now
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await meter.budgets.stop()
    assert read_windows(sqlite_store)[ALL_DAY] == (123, 0, 123, 0, 0)


@pytest.mark.parametrize("steps", range(4))
async def test_a_caller_that_is_canceled_while_it_holds_leaves_nothing(
    sqlite_store: SessionStore, dm: MakeSource, steps: int
) -> None:
    meter = make_meter(sqlite_store, make_work(sqlite_store, dm()))
    holding = asyncio.create_task(meter.hold(make_call()))
    for _ in range(steps):
        await asyncio.sleep(0)
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    await meter.budgets.stop()
    assert count_calls(sqlite_store) == 0
    assert set(read_windows(sqlite_store).values()) <= {(0, 0, 0, 0, 0)}


async def test_the_budget_of_a_linked_person_moves_with_open_calls(store: SessionStore, dm: MakeSource) -> None:
    one, other = make_work(store, dm("ada")), make_work(store, dm("bob"))
    held = await make_meter(store, other).hold(make_call(100, 1000))
    await (await make_meter(store, one).hold(make_call(100, 1000))).settle(make_usage(1, 1))

    def merge(tx: Transaction) -> None:
        survivor, second = (people.find_by_id(tx, work.person_id or PersonId("")) for work in (one, other))
        assert survivor is not None
        assert second is not None
        person_merge.merge_people(tx, survivor, second, 0)

    store.engine.run(Write(merge))
    assert read_windows(store)["person", str(one.person_id), "day"] == (2, 1120, 2, 1120, 0)
    await held.settle(make_usage(5, 5))
    await (await make_meter(store, other).hold(make_call(100, 1000))).settle(make_usage(1, 1))  # an old lease
    windows = read_windows(store)
    assert windows["person", str(one.person_id), "day"] == (14, 0, 14, 0, 0)
    assert windows["person", str(other.person_id), "day"] == (0, 0, 0, 0, 0), "what they had used before: nothing"


async def test_a_profile_has_a_budget_of_its_own(sqlite_store: SessionStore, dm: MakeSource) -> None:
    work = make_work(sqlite_store, dm())
    set_profile = "UPDATE session SET profile = 'research' WHERE no = $1"
    sqlite_store.engine.run(Write(lambda tx: tx.execute(set_profile, work.session_no)))
    await (await make_meter(sqlite_store, work).hold(make_call())).settle(make_usage(1, 2))
    assert read_windows(sqlite_store)["profile", "research", "month"] == (3, 0, 3, 0, 0)


async def test_a_run_of_a_job_counts_in_the_budget_of_the_job(store: SessionStore, dm: MakeSource) -> None:
    job_row = insert_job(store, dm(), "every 1h")
    run = store.engine.run(
        Write(lambda tx: job_runs.enqueue(tx, job_row, store.clock.now(), JobRunKind.MANUAL, 1_000_000))
    )
    work = make_work(store, dm(), facts={JOB_RUN_KEY: run.id})
    meter = make_meter(store, work, make_rules(job_day_tokens=1200))
    await (await meter.hold(make_call(100, 1000))).settle(make_usage(60, 40))
    assert read_windows(store)["job", job_row.job.id, "day"] == (100, 0, 100, 0, 0)
    with pytest.raises(BudgetExceeded, match="The daily budget of the job “News” has only"):
        await meter.hold(make_call(100, 1000))
    await make_meter(store, make_work(store, dm()), make_rules(job_day_tokens=1)).hold(make_call(100, 1000))


async def test_a_limit_of_a_linked_person_moves_unless_the_other_one_has_one(
    sqlite_store: SessionStore, dm: MakeSource
) -> None:
    one, other = make_work(sqlite_store, dm("ada")), make_work(sqlite_store, dm("bob"))
    limits = ((one, "day", 10), (other, "day", 20), (other, "month", 30))

    def set_limits_and_merge(tx: Transaction) -> list[BudgetLimit]:
        for work, period, amount in limits:
            key = BudgetKey(BudgetScope.PERSON, str(work.person_id), BudgetPeriod(period))
            limit = BudgetLimit(key=key, unit=BudgetUnit.TOKENS, amount=amount)
            budget_limits.set_limit(tx, limit, other.person_id or PersonId(""), 0)
        rows = [people.find_by_id(tx, work.person_id or PersonId("")) for work in (one, other)]
        assert rows[0] is not None
        assert rows[1] is not None
        person_merge.merge_people(tx, rows[0], rows[1], 0)
        return budget_limits.list_all(tx)

    merged = sqlite_store.engine.run(Write(set_limits_and_merge))
    assert {(limit.key.subject, limit.key.period.value, limit.amount) for limit in merged} == {
        (str(one.person_id), "day", 10),
        (str(one.person_id), "month", 30),
        (str(other.person_id), "day", 20),  # holds for nobody, until they are unlinked
    }
