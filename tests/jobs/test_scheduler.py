"""The scheduler: jobs fire on time and once, and each slot ends as one run with its reason."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import Platform
from palaver.agent.base import AgentRequest, TextDelta
from palaver.config.agent_rules import JobRules
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import JobRunning, SessionNotFound
from palaver.jobs import firing, runs_table as job_runs, scheduler as scheduler_module, table as jobs
from palaver.jobs.model import JobResult, JobRunKind, JobRunState, JobState
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions import turns_table as turns
from palaver.sessions.turn import StopRequest
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import wait_until
from support.job_runs import HEADING, JobTown

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from palaver.sessions.model import Session
    from support.gateway import StartGateway

    MakeTown = Callable[..., Awaitable[JobTown]]


@pytest.fixture
def make_town(start_gateway: StartGateway, clock: FakeClock) -> MakeTown:
    """Starts gateways on one database; only the scheduler of each is left to the test."""

    async def make(agent: ScriptedAgent | None = None, **rules: Any) -> JobTown:
        loopback = LoopbackAdapter()
        gateway = await start_gateway(agent, loopback=loopback, clock=clock, **rules)
        return JobTown(gateway, clock, loopback)

    return make


class GatedAgent(ScriptedAgent):
    """Answers when the test opens the gate."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.gate = asyncio.Event()

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[TextDelta, None]:
        yield TextDelta("Working")
        await self.gate.wait()
        yield TextDelta(" and done.")


def load_session(town: JobTown, session_id: str | None) -> Session:
    return town.store.get_session(session_id or "")


@pytest.mark.both_engines
async def test_a_job_runs_at_its_slot_in_a_new_conversation_and_its_output_arrives_once(make_town: MakeTown) -> None:
    town = await make_town(ScriptedAgent("All quiet."))
    job_row = town.add_job("0 7 * * *", name="News")
    await town.poll()
    assert town.list_runs(job_row) == []
    runs = [await town.run_at_slot(job_row) for _ in range(2)]
    await town.poll()
    assert town.summarize(job_row) == ["done", "done"]
    assert [run.result for run in runs] == [JobResult.ANSWER] * 2
    assert runs[1].slot - runs[0].slot == timedelta(days=1)
    assert town.sent == [f"{HEADING}All quiet."] * 2
    assert [delivery.state for run in town.list_runs(job_row) for delivery in run.deliveries] == ["sent", "sent"]
    session = load_session(town, runs[0].session_id)
    assert session.platform == Platform.CRON
    assert session.auto_title == "News"
    assert session.last_human_at is None
    assert runs[0].session_id != runs[1].session_id
    person_view = town.store.seen_by(job_row.principal)
    assert [project.name for project in person_view.projects.list()] == ["Scheduled"]
    assert session.project_id == person_view.projects.list()[0].id
    transcript = town.store.load_transcript(session.id)
    assert [(message["role"], message["content"]) for message in transcript] == [
        ("user", "What is new?"),
        ("assistant", "All quiet."),
    ]


@pytest.mark.both_engines
async def test_a_run_is_private_to_the_person_of_the_job(make_town: MakeTown) -> None:
    town = await make_town()
    run = await town.run_at_slot(town.add_job("0 7 * * *", user="ada"))
    other = await town.store.aio.get_or_create_person(town.loopback.get_source("bob"))
    with pytest.raises(SessionNotFound):
        town.store.seen_by(other.principal).get(run.session_id or "")


async def test_slots_that_were_missed_are_one_row_and_the_newest_is_run_late(
    make_town: MakeTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "zlib", SimpleNamespace(crc32=lambda _id: 60))  # an id may mean "at once"
    town = await make_town()
    job_row = town.add_job("every 1h")
    town.clock.advance(hours=5, minutes=10)  # the machine slept
    await town.poll()
    late = town.list_runs(job_row)[-1]
    assert town.summarize(job_row) == ["missed x4", "queued"]
    assert town.list_runs(job_row)[0].reason == (
        "Palaver was not running at this time and after it: 4 runs were missed."
    )
    assert late.slot == job_row.job.anchor + timedelta(hours=5)
    town.clock.advance(minutes=2)  # catch-ups are spread over this time
    await town.poll()
    await town.wait_until_ended()
    assert town.summarize(job_row) == ["missed x4", "done"]
    assert town.sent == [f"{HEADING}Done."]


async def test_a_daily_job_that_was_missed_is_told(make_town: MakeTown) -> None:
    town = await make_town()
    job_row = town.add_job("0 7 * * *", name="News")
    town.clock.advance(days=3)
    await town.poll()
    await town.wait_until_ended()
    assert town.summarize(job_row) == ["missed x3"]
    (notice,) = town.sent
    assert 'The job "News" did not run at 2026-11-16 07:00 (Europe/Berlin).' in notice
    assert "3 runs were missed" in notice
    assert "Next run: 2026-11-19 07:00 (Europe/Berlin)." in notice


@pytest.mark.both_engines
async def test_a_one_shot_that_was_missed_ends_the_job_and_is_told(make_town: MakeTown) -> None:
    town = await make_town()
    job_row = town.add_job("30m")
    town.clock.advance(hours=3)
    await town.poll()
    await town.wait_until_ended()
    assert town.summarize(job_row) == ["missed"]
    assert town.load_job(job_row).job.state is JobState.ENDED
    assert "It does not run again." in town.sent[0]


@pytest.mark.both_engines
@pytest.mark.parametrize("answer", ["Done.", ""])
async def test_any_end_disables_a_one_shot(make_town: MakeTown, answer: str) -> None:
    town = await make_town(ScriptedAgent(answer))
    job_row = town.add_job("30m", name="Tea")
    run = await town.run_at_slot(job_row)
    town.clock.advance(days=1)
    await town.poll()
    job = town.load_job(job_row).job
    assert (job.state, job.next_slot) == (JobState.ENDED, None)
    assert town.summarize(job_row) == ["done" if answer else "failed"]
    if not answer:
        assert run.reason == "The agent gave no answer."
        assert town.sent == ['The job "Tea" has failed, and does not run again: The agent gave no answer.']


async def test_runs_left_counts_the_slots_that_were_started(make_town: MakeTown) -> None:
    town = await make_town()
    job_row = town.add_job("every 1h", runs_left=2)
    await town.run_at_slot(job_row)
    assert town.load_job(job_row).job.runs_left == 1
    town.clock.advance(hours=1, minutes=45)
    await town.poll()
    assert (town.summarize(job_row), town.load_job(job_row).job.runs_left) == (["done", "missed"], 1)
    await town.run_at_slot(job_row)
    job = town.load_job(job_row).job
    assert (job.state, job.runs_left, job.next_slot) == (JobState.ENDED, 0, None)
    assert town.summarize(job_row) == ["done", "missed", "done"]


async def test_a_slot_is_skipped_while_the_run_before_it_goes_on(make_town: MakeTown) -> None:
    agent = GatedAgent()
    town = await make_town(agent)
    job_row = town.add_job("every 5m")
    town.clock.advance(minutes=5)
    await town.poll()
    await town.wait_for_state(job_row, JobRunState.RUNNING)
    town.clock.advance(minutes=5)
    await town.poll()
    assert town.summarize(job_row) == ["running", "skipped"]
    assert town.list_runs(job_row)[1].reason == "The previous run had not ended."
    agent.gate.set()
    await town.wait_until_ended()
    await town.run_at_slot(job_row)
    assert town.summarize(job_row) == ["done", "skipped", "done"]


async def test_few_jobs_run_at_the_same_time(make_town: MakeTown) -> None:
    agent = GatedAgent()
    town = await make_town(agent, jobs=JobRules(max_running=2), max_running_per_person=8)
    job_rows = [town.add_job("0 7 * * *", name=f"Job {number}") for number in range(5)]
    next_slot = town.load_job(job_rows[0]).job.next_slot
    assert next_slot is not None
    town.clock.set(next_slot)
    await town.poll()
    states = [town.summarize(job_row) for job_row in job_rows]
    assert states == [["running"], ["running"], ["queued"], ["queued"], ["queued"]]
    agent.gate.set()
    while any(town.summarize(job_row) != ["done"] for job_row in job_rows):
        await town.poll()
        await asyncio.sleep(0.005)


async def test_two_processes_fire_a_slot_once(make_town: MakeTown) -> None:
    first, second = await make_town(), await make_town()
    job_rows = [first.add_job("every 1h", name=f"Job {number}") for number in range(3)]
    for _ in range(3):
        first.clock.advance(hours=1)
        await asyncio.gather(*(town.poll() for town in (first, second, first, second)))
        while any("queued" in first.summarize(job_row) for job_row in job_rows):
            await asyncio.gather(first.poll(), second.poll())
        await first.wait_until_ended()
    assert [first.summarize(job_row) for job_row in job_rows] == [["done"] * 3] * 3
    assert len(first.sent) + len(second.sent) == 9


async def test_a_clock_that_is_set_back_fires_no_slot_twice_and_stalls_no_job(make_town: MakeTown) -> None:
    town = await make_town()
    job_row = town.add_job("*/30 * * * *")
    start = town.clock.now()
    for _ in range(3):
        await town.run_at_slot(job_row)
    slots = [run.slot for run in town.list_runs(job_row)]
    town.clock.set(start + timedelta(days=20))  # a wrong clock
    await town.poll()
    town.clock.set(start + timedelta(minutes=40))  # it is corrected, to before the last two runs
    await town.poll()
    next_slot = town.load_job(job_row).job.next_slot
    assert next_slot is not None
    assert next_slot == slots[-1] + timedelta(minutes=60), "not a slot that has a run, and not in 20 days"
    await town.run_at_slot(job_row)
    assert len({run.slot for run in town.list_runs(job_row)}) == len(town.list_runs(job_row))


async def test_a_clock_that_was_set_back_while_nothing_ran_is_noticed_at_the_start(make_town: MakeTown) -> None:
    town = await make_town()
    job_row = town.add_job("0 * * * *")
    start = town.clock.now()
    town.clock.advance(days=20)
    await town.poll()
    town.clock.set(start + timedelta(hours=2))
    restarted = await make_town()
    await restarted.poll()
    next_slot = town.load_job(job_row).job.next_slot
    assert next_slot is not None
    assert next_slot - town.clock.now() <= timedelta(hours=1)


@pytest.mark.both_engines
async def test_an_interval_made_before_the_clock_was_set_back_goes_on(make_town: MakeTown) -> None:
    town = await make_town()
    job_row = town.add_job("every 30m")
    await town.poll()
    town.clock.advance(days=-2)
    await town.poll()
    next_slot = town.load_job(job_row).job.next_slot
    assert next_slot is not None
    assert timedelta(0) < next_slot - town.clock.now() <= timedelta(minutes=30)


async def test_the_scheduler_looks_at_the_clock_at_least_every_half_a_minute(make_town: MakeTown) -> None:
    town = await make_town()
    assert await town.poll() == scheduler_module.MAX_WAIT_SECONDS
    town.add_job("every 1h")
    assert await town.poll() == scheduler_module.MAX_WAIT_SECONDS
    town.clock.advance(minutes=59, seconds=50)
    assert await town.poll() == pytest.approx(10)


async def test_a_server_runs_jobs_by_itself_and_wakes_for_a_new_one(make_town: MakeTown, store_url: str) -> None:
    town = await make_town()
    await town.gateway.scheduler.start()
    try:
        job_row = town.add_job("every 5m")

        def run_now(tx: Any) -> None:
            now = town.clock.now()
            job_runs.enqueue(tx, job_row, now, JobRunKind.MANUAL, to_micros(now))

        town.store.engine.run(Write(run_now))  # as another process does it
        await wait_until(lambda: town.summarize(job_row) == ["done"])
        await town.wait_until_ended()
        assert town.sent == [f"{HEADING}Done."]
    finally:
        await town.gateway.scheduler.stop()


async def test_a_manual_run_is_refused_while_the_job_runs(make_town: MakeTown) -> None:
    town = await make_town()
    job_row = town.add_job("every 1h")
    now = town.clock.now()

    def run_now(tx: Any) -> None:
        job_runs.enqueue(tx, job_row, now, JobRunKind.MANUAL, to_micros(now))

    town.store.engine.run(Write(run_now))
    with pytest.raises(JobRunning, match="already running"):
        town.store.engine.run(Write(run_now))
    await town.poll()
    await town.wait_until_ended()
    town.store.engine.run(Write(run_now))  # at the same moment as the first, and yet another run
    assert town.summarize(job_row) == ["done", "queued"]


@pytest.mark.both_engines
async def test_a_run_that_has_not_started_when_its_job_is_paused_never_does(make_town: MakeTown) -> None:
    town = await make_town(GatedAgent(), jobs=JobRules(max_running=1))
    blocking, job_row = town.add_job("every 1h", name="First"), town.add_job("every 1h", name="Second")
    town.clock.advance(hours=1)
    await town.poll()
    assert (town.summarize(blocking), town.summarize(job_row)) == (["running"], ["queued"])
    town.store.engine.run(Write(lambda tx: jobs.set_state(tx, job_row.no, JobState.PAUSED, None, None, 0)))
    town.gateway.agent.gate.set()  # type: ignore[attr-defined]
    await town.wait_until_ended()
    await town.poll()
    assert town.summarize(job_row) == ["skipped"]
    assert town.list_runs(job_row)[0].reason == "The job was paused before this run started."


@pytest.mark.both_engines
async def test_a_job_whose_schedule_cannot_be_read_is_paused_and_delays_no_other(make_town: MakeTown) -> None:
    town = await make_town()
    broken, job_row = town.add_job("every 1h", name="Broken"), town.add_job("every 1h", name="Fine")
    sql = "UPDATE job SET schedule = 'whenever' WHERE no = $1"
    town.store.engine.run(Write(lambda tx: tx.execute(sql, broken.no)))
    await town.run_at_slot(job_row)
    assert town.summarize(job_row) == ["done"]
    assert town.load_job(broken).job.state is JobState.PAUSED
    (notice,) = [body for body in town.sent if "Broken" in body]
    assert notice.startswith('I paused the job "Broken", because I can\'t tell when it should run: ')


async def test_a_job_that_cannot_be_fired_delays_no_other(make_town: MakeTown, monkeypatch: pytest.MonkeyPatch) -> None:
    town = await make_town()
    broken, job_row = town.add_job("every 1h", name="Broken"), town.add_job("every 1h", name="Fine")
    original = firing.fire_job

    def fire(tx: Any, config: Any, seen_row: Any, plan: Any, now: int) -> bool:
        assert seen_row.no != broken.no
        return original(tx, config, seen_row, plan, now)

    monkeypatch.setattr(firing, "fire_job", fire)
    await town.run_at_slot(job_row)
    assert (town.summarize(job_row), town.summarize(broken)) == (["done"], [])
    assert await town.poll() == scheduler_module.MAX_WAIT_SECONDS


async def test_many_jobs_that_cannot_be_fired_delay_no_other_and_are_tried_rarely(
    make_town: MakeTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = await make_town()
    monkeypatch.setattr(scheduler_module, "JOBS_PER_BATCH", 2)
    broken = [town.add_job("every 1h", name=f"Broken {number}").job.name for number in range(3)]
    job_row = town.add_job("every 1h", name="Fine")
    tried: list[str] = []
    original = firing.plan_firing

    def plan_firing(job: Any, now: Any) -> firing.FiringPlan:
        tried.append(job.name)
        assert job.name not in broken
        return original(job, now)

    monkeypatch.setattr(firing, "plan_firing", plan_firing)
    await town.run_at_slot(job_row)
    assert town.summarize(job_row) == ["done"]
    await town.poll()
    assert tried == [*broken, "Fine"], "each once"


@pytest.mark.both_engines
async def test_a_broken_schedule_does_not_stop_the_correction_of_a_clock(make_town: MakeTown) -> None:
    town = await make_town()
    broken, job_row = town.add_job("every 1h", name="Broken"), town.add_job("every 1h", name="Fine")
    sql = "UPDATE job SET timezone = 'Mars/Base', schedule = '0 7 * * *' WHERE no = $1"
    town.store.engine.run(Write(lambda tx: tx.execute(sql, broken.no)))
    await town.poll()
    town.clock.advance(days=-3)
    await town.poll()
    next_slot = town.load_job(job_row).job.next_slot
    assert next_slot is not None
    assert next_slot - town.clock.now() <= timedelta(hours=1)


async def test_a_job_with_a_model_and_a_profile_runs_with_them(make_town: MakeTown) -> None:
    agent = ScriptedAgent()
    town = await make_town(agent)
    await town.run_at_slot(town.add_job("every 1h", model="scripted-large"))
    assert [request.model for request in agent.requests] == ["scripted-large"]


# -- runs that end without an answer ------------------------------------------------------------------------


async def start_run(town: JobTown) -> tuple[Any, Any]:
    """Start a run whose agent waits; return the job and the run."""
    job_row = town.add_job("every 1h")
    town.clock.advance(hours=1)
    await town.poll()
    run = await town.wait_for_state(job_row, JobRunState.RUNNING)
    await wait_until(lambda: town.store.engine.run(Read(lambda tx: tx.fetch_one("SELECT 1 FROM draft"))))
    return job_row, run


@pytest.mark.both_engines
async def test_a_run_that_a_person_stops_has_failed_and_sends_no_alert(make_town: MakeTown) -> None:
    town = await make_town(GatedAgent())
    job_row, run = await start_run(town)

    def stop(tx: Any) -> None:
        run_row = job_runs.find_run(tx, run.id)
        assert run_row is not None
        turns.request_stop(tx, run_row.session_no or 0, StopRequest.STOP)

    town.store.engine.run(Write(stop))
    await town.wait_until_ended()
    assert [(run.state, run.reason) for run in town.list_runs(job_row)] == [("failed", "It was stopped.")]
    assert town.load_job(job_row).job.failure_count == 0
    assert town.sent == []


async def test_deleting_the_conversation_of_a_run_ends_the_run(make_town: MakeTown) -> None:
    town = await make_town(GatedAgent())
    job_row, run = await start_run(town)
    await town.store.aio.delete_session(run.session_id or "")
    town.gateway.agent.gate.set()  # type: ignore[attr-defined]
    await town.poll()
    ended = town.list_runs(job_row)[0]
    assert (ended.state, ended.reason) == (
        JobRunState.FAILED,
        "Its conversation was deleted before the run had ended.",
    )


@pytest.mark.both_engines
async def test_taking_a_run_out_of_the_queue_ends_it(make_town: MakeTown) -> None:
    town = await make_town(max_running=1)
    await town.gateway.turn_worker.stop(0)
    job_row = town.add_job("every 1h")
    town.clock.advance(hours=1)
    await town.poll()

    def clear_queue(tx: Any) -> None:
        run_row = job_runs.find_open(tx, job_row.no)
        assert run_row is not None
        turns.cancel_queued(tx, run_row.session_no or 0, to_micros(town.clock.now()), "Removed from the queue.")

    town.store.engine.run(Write(clear_queue))
    await town.poll()
    ended = town.list_runs(job_row)[0]
    assert (ended.state, ended.reason) == (JobRunState.FAILED, "Removed from the queue.")


@pytest.mark.both_engines
async def test_a_run_that_takes_too_long_has_failed_and_is_not_repeated(make_town: MakeTown) -> None:
    town = await make_town(GatedAgent(), timeout_minutes=0.05 / 60)
    job_row = town.add_job("every 1h")
    run = await town.run_at_slot(job_row)
    await town.poll()
    assert run.state is JobRunState.FAILED
    assert "took longer than" in (run.reason or "")
    assert town.summarize(job_row) == ["failed"]


async def test_the_answer_of_a_deleted_job_is_not_sent(make_town: MakeTown) -> None:
    agent = GatedAgent()
    town = await make_town(agent)
    job_row, run = await start_run(town)
    town.store.engine.run(Write(lambda tx: jobs.delete(tx, job_row.no)))
    agent.gate.set()
    await town.wait_until_ended()
    assert town.sent == []
    assert load_session(town, run.session_id).message_count == 2
