"""The end of a run: its result, its output, and what people are told of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import TextDelta
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.core.errors import AgentUnavailable
from palaver.core.texts import translate
from palaver.jobs import runs_table as job_runs
from palaver.jobs.model import PAUSE_AFTER_FAILURES, JobResult, JobRunKind, JobRunState, JobState
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.delivery import DeliveryState
from palaver.sessions.inbound import Inbound
from palaver.testing import FakeClock, ScriptedAgent
from support.job_runs import JobTown, insert_job

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentRequest
    from palaver.jobs.table import JobRow
    from support.gateway import StartGateway


# The statements run on PostgreSQL in `test_scheduler.py`.


class MoodyAgent(ScriptedAgent):
    """Answers, or fails with an error."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.mood: str | Exception = "Done."

    def _answer(self, _request: AgentRequest) -> str:
        if isinstance(self.mood, Exception):
            raise self.mood
        return self.mood


@pytest.fixture
def agent() -> MoodyAgent:
    return MoodyAgent()


@pytest.fixture
async def town(start_gateway: StartGateway, clock: FakeClock, agent: MoodyAgent) -> JobTown:
    loopback = LoopbackAdapter()
    return JobTown(await start_gateway(agent, loopback=loopback, clock=clock), clock, loopback)


async def run_often(town: JobTown, job_row: JobRow, count: int) -> list[str]:
    """Run a job several times; return what people were sent meanwhile."""
    before = len(town.sent)
    for _ in range(count):
        await town.run_at_slot(job_row)
    return town.sent[before:]


async def test_a_silent_answer_is_kept_and_not_sent(town: JobTown, agent: MoodyAgent) -> None:
    agent.mood = "[SILENT]"
    job_row = town.add_job("every 1h")
    run = await town.run_at_slot(job_row)
    assert (run.state, run.result, run.deliveries) == (JobRunState.DONE, JobResult.SILENT, ())
    assert town.sent == []
    assert town.store.load_transcript(run.session_id or "")[-1]["content"] == "[SILENT]"


async def test_an_empty_answer_is_a_failure(town: JobTown, agent: MoodyAgent) -> None:
    agent.mood = " \n"
    run = await town.run_at_slot(town.add_job("every 1h"))
    assert (run.state, run.result, run.reason) == (JobRunState.FAILED, None, "The agent gave no answer.")


async def test_what_the_agent_reports_is_a_failure_and_its_answer_is_not_sent(
    start_gateway: StartGateway, clock: FakeClock
) -> None:
    async def answer(request: AgentRequest) -> AsyncGenerator[TextDelta, None]:
        (tool,) = (tool for tool in request.tools if tool.name == "report_failure")
        await tool.run({"reason": "The page is gone."})
        yield TextDelta("I could not do it.")

    loopback = LoopbackAdapter()
    town = JobTown(await start_gateway(ScriptedAgent(answer), loopback=loopback, clock=clock), clock, loopback)
    run = await town.run_at_slot(town.add_job("every 1h"))
    assert (run.state, run.reason) == (JobRunState.FAILED, "The page is gone.")
    assert town.sent == []


async def test_a_target_that_cannot_be_reached_is_told_once_and_the_run_is_done(town: JobTown) -> None:
    job_row = town.add_job("every 1h", targets=("origin", "loopback:elsewhere"))
    for _ in range(2):
        run = await town.run_at_slot(job_row)
        assert (run.state, list(run.target_errors)) == (JobRunState.DONE, ["loopback:elsewhere"])
    answers = [body for body in town.sent if body == "Done."]
    (notice,) = [body for body in town.sent if body != "Done."]
    assert len(answers) == 2
    assert "could not be sent everywhere" in notice
    assert "elsewhere" in notice


async def test_the_delivery_to_each_target_is_told_apart(town: JobTown) -> None:
    group = town.loopback.get_source("ada", chat="club")
    await town.loopback.receive(Inbound(source=group, content="Hello"))
    run = await town.run_at_slot(town.add_job("every 1h", targets=("origin", "loopback:club")))
    assert [(each.target, each.state) for each in run.deliveries] == [
        ("loopback:ada", DeliveryState.SENT),
        ("loopback:club", DeliveryState.SENT),
    ]


async def test_two_failures_in_a_row_are_told_once_and_so_is_the_recovery(town: JobTown, agent: MoodyAgent) -> None:
    job_row = town.add_job("every 1h", name="News")
    agent.mood = AgentUnavailable("The provider is down.")
    assert await run_often(town, job_row, 1) == []
    (alert,) = await run_often(town, job_row, 1)
    assert alert.startswith('The job "News" failed 2 times in a row: The provider is down.')
    assert "Next run: 2026-11-15 12:12 (Europe/Berlin)." in alert
    assert await run_often(town, job_row, 1) == []
    agent.mood = "Done."
    assert sorted(await run_often(town, job_row, 1)) == ["Done.", 'The job "News" works again.']
    assert await run_often(town, job_row, 1) == ["Done."]
    assert town.load_job(job_row).job.failure_count == 0


async def test_another_cause_is_told_again(town: JobTown, agent: MoodyAgent) -> None:
    job_row = town.add_job("every 1h")
    agent.mood = AgentUnavailable("The provider is down.")
    assert len(await run_often(town, job_row, 2)) == 1
    agent.mood = ""
    (alert,) = await run_often(town, job_row, 1)
    assert "failed 3 times in a row: The agent gave no answer." in alert


async def test_one_failure_between_successes_is_not_told(town: JobTown, agent: MoodyAgent) -> None:
    job_row = town.add_job("every 1h")
    for mood in ("", "Done.", "", "Done."):
        agent.mood = mood
        await town.run_at_slot(job_row)
    assert town.sent == ["Done.", "Done."]


async def test_a_job_that_keeps_failing_is_paused(town: JobTown, agent: MoodyAgent) -> None:
    job_row = town.add_job("every 1h", name="News")
    agent.mood = ""
    alert, notice = await run_often(town, job_row, PAUSE_AFTER_FAILURES)
    job = town.load_job(job_row).job
    assert (job.state, job.next_slot) == (JobState.PAUSED, None)
    assert job.state_reason == "It failed 5 times in a row. The last time: The agent gave no answer."
    assert translate(job.state_reason, "de") == (
        "Sie ist 5-mal hintereinander fehlgeschlagen. Zuletzt: Der Agent hat nicht geantwortet."
    )
    assert "failed 2 times" in alert
    assert 'The job "News" failed 5 times in a row, so I paused it.' in notice
    assert f"`/jobs resume {job.id}`" in notice
    town.clock.advance(days=1)
    await town.poll()
    assert len(town.list_runs(job_row)) == PAUSE_AFTER_FAILURES


async def test_a_manual_run_that_fails_is_told_at_once_and_does_not_count(town: JobTown, agent: MoodyAgent) -> None:
    job_row = town.add_job("every 1h", name="News")
    agent.mood = ""

    def run_now(tx: Any) -> None:
        now = town.clock.now()
        job_runs.enqueue(tx, job_row, now, JobRunKind.MANUAL, to_micros(now))

    town.store.engine.run(Write(run_now))
    await town.poll()
    await town.wait_until_ended()
    assert town.sent == ['The job "News" that you started has failed: The agent gave no answer.']
    assert town.load_job(job_row).job.failure_count == 0


async def test_a_failure_in_a_group_is_told_to_the_person_alone(town: JobTown, agent: MoodyAgent) -> None:
    agent.mood = ""
    await town.loopback.say("Hello", user="ada")
    group = town.loopback.get_source("ada", chat="club")
    job_row = insert_job(town.store, group, "30m", name="Tea")
    await town.run_at_slot(job_row)
    addresses = [str(message.address) for message in town.loopback.sent if "Tea" in message.body]
    assert addresses == ["loopback::ada"]
