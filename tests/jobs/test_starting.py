"""Starting queued runs: what is not to run any more ends with its reason, and no run or person blocks others."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver.accounts.accounts import Accounts
from palaver.agent.base import AgentRequest, TextDelta
from palaver.config.agent_rules import JobRules
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.ids import PersonId
from palaver.jobs import firing, runs_table as job_runs, table as jobs
from palaver.jobs.model import NO_ACCESS_REASON, JobRunKind, JobRunState, JobState
from palaver.jobs.run_end import EndedTurn, finish_job_run
from palaver.people import table as people
from palaver.people.model import Principal, Role
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions import projects_table as projects
from palaver.sessions.turn import InterruptReason, TurnState
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import wait_until
from support.inbox import list_rows
from support.job_runs import JobTown

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.jobs.model import JobRun
    from palaver.jobs.table import JobRow
    from support.gateway import StartGateway

# The statements run on PostgreSQL in `test_scheduler.py`.


@pytest.fixture
def gate() -> asyncio.Event:
    """The agent answers when it is set."""
    return asyncio.Event()


@pytest.fixture
async def town(start_gateway: StartGateway, clock: FakeClock, gate: asyncio.Event) -> JobTown:
    async def answer(_request: AgentRequest) -> AsyncGenerator[TextDelta, None]:
        await gate.wait()
        yield TextDelta("Done.")

    loopback = LoopbackAdapter()
    rules: dict[str, Any] = {"jobs": JobRules(max_running=2), "max_running_per_person": 8}
    gateway = await start_gateway(ScriptedAgent(answer), loopback=loopback, clock=clock, **rules)
    return JobTown(gateway, clock, loopback)


def queue_manual_run(town: JobTown, job_row: JobRow) -> None:
    now = town.clock.now()
    town.store.engine.run(Write(lambda tx: job_runs.enqueue(tx, job_row, now, JobRunKind.MANUAL, to_micros(now))))


def set_role(town: JobTown, job_row: JobRow, role: Role) -> None:
    town.store.engine.run(Write(lambda tx: people.set_role(tx, job_row.job.person_id, role)))


async def queue_behind_others(town: JobTown, schedule: str, **fields: Any) -> JobRow:
    """Queue a run of a job that cannot start, because as many runs as are allowed are under way."""
    for number in range(2):
        queue_manual_run(town, town.add_job("every 30d", name=f"Blocking {number}", user="bob"))
    await town.poll()
    job_row = town.add_job(schedule, **fields)
    next_slot = town.load_job(job_row).job.next_slot
    assert next_slot is not None
    town.clock.set(next_slot)
    await town.poll()
    assert town.summarize(job_row) == ["queued"]
    return job_row


def get_last_run(town: JobTown, job_row: JobRow) -> JobRun:
    return town.list_runs(job_row)[-1]


async def test_a_run_that_waited_too_long_is_missed_and_told(town: JobTown, gate: asyncio.Event) -> None:
    job_row = await queue_behind_others(town, "0 7 * * *", name="News", runs_left=3)
    town.clock.advance(hours=2, seconds=1)  # as if Palaver had stopped before the run could start
    gate.set()
    await town.wait_until_ended()
    await town.poll()
    run = get_last_run(town, job_row)
    assert (run.state, run.reason) == ("missed", firing.TOO_LATE_REASON)
    assert town.load_job(job_row).job.runs_left == 3
    await town.wait_until_ended()
    (notice,) = [body for body in town.sent if "News" in body]
    beginning = 'The job "News" did not run at 2026-11-16 07:00 (Europe/Berlin).'
    assert notice.startswith(f"{beginning} {firing.TOO_LATE_REASON} Next run: 2026-11-17")


async def test_a_run_that_waited_too_long_does_not_keep_the_next_slot_from_running(
    town: JobTown, gate: asyncio.Event
) -> None:
    job_row = await queue_behind_others(town, "0 7 * * *", runs_left=3)
    town.clock.advance(days=1)
    gate.set()
    await town.poll()
    await town.wait_until_ended()
    await town.poll()
    await town.wait_until_ended()
    assert town.summarize(job_row) == ["missed", "done"]
    assert town.load_job(job_row).job.runs_left == 2


async def test_a_run_that_waited_for_a_while_is_started(town: JobTown, gate: asyncio.Event) -> None:
    job_row = await queue_behind_others(town, "0 7 * * *")
    town.clock.advance(hours=2)
    gate.set()
    await town.wait_until_ended()
    await town.poll()
    await town.wait_until_ended()
    assert town.summarize(job_row) == ["done"]


async def test_a_pause_before_the_start_takes_no_run_away(town: JobTown, gate: asyncio.Event) -> None:
    job_row = await queue_behind_others(town, "every 1h", runs_left=3)
    assert town.load_job(job_row).job.runs_left == 2
    town.store.engine.run(Write(lambda tx: jobs.set_state(tx, job_row.no, JobState.PAUSED, None, None, 0)))
    gate.set()
    await town.wait_until_ended()
    await town.poll()
    assert town.summarize(job_row) == ["skipped"]
    assert town.load_job(job_row).job.runs_left == 3


@pytest.mark.parametrize("schedule", ["30m", "every 1h"])
async def test_nothing_starts_for_a_person_who_has_lost_access(
    town: JobTown, gate: asyncio.Event, schedule: str
) -> None:
    job_row = await queue_behind_others(town, schedule)  # a one-shot has ended by now, so it cannot be paused
    set_role(town, job_row, Role.GUEST)
    gate.set()
    await town.wait_until_ended()
    await town.poll()
    run = get_last_run(town, job_row)
    assert (run.state, run.reason, run.session_id) == ("skipped", NO_ACCESS_REASON, None)


async def test_a_run_of_a_person_who_has_lost_access_sends_nothing(town: JobTown, gate: asyncio.Event) -> None:
    job_row = town.add_job("every 1h")
    queue_manual_run(town, job_row)
    await town.poll()
    set_role(town, job_row, Role.GUEST)
    gate.set()
    await town.wait_until_ended()
    run = get_last_run(town, job_row)
    assert (run.state, run.reason) == ("failed", NO_ACCESS_REASON)
    assert town.sent == []


async def test_removing_a_person_stops_the_runs_of_their_jobs(town: JobTown) -> None:
    job_rows = [town.add_job("every 1h", name=f"Job {number}") for number in range(3)]
    for job_row in job_rows:
        queue_manual_run(town, job_row)
    await town.poll()
    await wait_until(lambda: list_rows(town.store, "SELECT COUNT(*) FROM turn WHERE state = 'running'") == [(2,)])
    owner = Principal(PersonId("p_owner"), Role.OWNER)
    await Accounts(town.store).open_people(owner).remove(job_rows[0].job.person_id)
    await town.wait_until_ended()  # though the agent would go on
    await town.poll()
    assert [town.summarize(job_row) for job_row in job_rows] == [["failed"], ["failed"], ["skipped"]]
    assert {get_last_run(town, job_row).reason for job_row in job_rows} == {NO_ACCESS_REASON}
    assert town.sent == []


async def test_a_run_that_cannot_be_started_has_failed_and_delays_no_other(
    town: JobTown, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.set()
    broken, job_row = town.add_job("every 1h", name="Broken"), town.add_job("every 1h", name="Fine")
    original = firing._start

    def start(tx: Any, config: Any, row: Any, run_row: Any, now: int) -> None:
        original(tx, config, row, run_row, now)
        assert row.no != broken.no

    monkeypatch.setattr(firing, "_start", start)
    town.clock.advance(hours=1)
    await town.poll()
    await town.wait_until_ended()
    assert (town.summarize(broken), town.summarize(job_row)) == (["failed"], ["done"])
    run = get_last_run(town, broken)
    assert (run.reason, run.session_id) == ("The run could not be started.", None)
    assert town.load_job(broken).job.failure_count == 1


async def test_the_runs_of_one_person_do_not_keep_another_waiting(town: JobTown, gate: asyncio.Event) -> None:
    mine = [town.add_job("every 1h", name=f"Job {number}") for number in range(4)]
    theirs = town.add_job("every 1h", name="Other", user="bob")
    for job_row in (*mine, theirs):
        queue_manual_run(town, job_row)
    await town.poll()
    assert [town.summarize(job_row) for job_row in mine] == [["running"], ["queued"], ["queued"], ["queued"]]
    assert town.summarize(theirs) == ["running"]
    gate.set()
    while any(town.summarize(job_row) != ["done"] for job_row in (*mine, theirs)):
        await town.poll()
        await asyncio.sleep(0.005)


async def test_one_person_may_use_all_that_no_other_person_needs(town: JobTown, gate: asyncio.Event) -> None:
    job_rows = [town.add_job("every 1h", name=f"Job {number}") for number in range(3)]
    for job_row in job_rows:
        queue_manual_run(town, job_row)
    await town.poll()
    assert [town.summarize(job_row) for job_row in job_rows] == [["running"], ["running"], ["queued"]]
    gate.set()


async def test_a_run_that_was_queued_before_the_clock_was_set_back_starts(town: JobTown, gate: asyncio.Event) -> None:
    gate.set()
    job_row = town.add_job("every 1h")
    await town.poll()
    now = town.clock.now()

    def queue_late(tx: Any) -> None:
        later = to_micros(now + timedelta(minutes=2))
        job_runs.enqueue(tx, job_row, now, JobRunKind.SCHEDULED, to_micros(now), start_after=later)

    town.store.engine.run(Write(queue_late))
    town.clock.advance(hours=-5)
    await town.poll()
    await wait_until(lambda: town.summarize(job_row) == ["done"])


async def test_a_renamed_project_stays_and_another_one_is_made(town: JobTown, gate: asyncio.Event) -> None:
    gate.set()
    job_row = town.add_job("every 1h")
    for _ in range(2):
        await town.run_at_slot(job_row)
    person_id = job_row.job.person_id
    town.store.engine.run(Write(lambda tx: projects.update(tx, person_id, "Scheduled", "Mine", None)))
    await town.run_at_slot(job_row)
    found = town.store.engine.run(Read(lambda tx: projects.list_projects(tx, person_id)))
    assert [(project.name, project.session_count) for project in found] == [("Mine", 2), ("Scheduled", 1)]


async def test_a_run_that_a_crash_cut_off_does_not_ask_how_to_continue(town: JobTown, gate: asyncio.Event) -> None:
    job_row = town.add_job("every 1h", name="News")
    queue_manual_run(town, job_row)
    await town.poll()
    await town.wait_for_state(job_row, JobRunState.RUNNING)

    def end(tx: Any) -> None:
        run_row = job_runs.find_open(tx, job_row.no)
        assert run_row is not None
        reason = InterruptReason.SERVER_CRASHED
        turn = EndedTurn(
            run_id=run_row.run.id,
            turn_no=run_row.turn_no or 0,
            state=TurnState.INTERRUPTED,
            error=reason.explain(),
            facts={"reason": reason.value},
            messages=(),
        )
        finish_job_run(tx, town.store.config, turn, to_micros(town.clock.now()))

    town.store.engine.run(Write(end))
    run = get_last_run(town, job_row)
    assert run.reason == (
        "Palaver stopped while a tool was running, so we don't know if the tool finished. The run was not repeated."
    )
    gate.set()
    await town.wait_until_ended()
