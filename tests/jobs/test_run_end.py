"""The end of a run: its result, its output, and what people are told of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import TextDelta
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import AgentUnavailable
from palaver.core.source import SessionSource
from palaver.core.texts import chat_language, translate
from palaver.jobs import runs_table as job_runs
from palaver.jobs.model import PAUSE_AFTER_FAILURES, JobResult, JobRunKind, JobRunState, JobState
from palaver.jobs.run_end import starts_with_name
from palaver.people import table as people
from palaver.people.model import Role
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions import table as sessions
from palaver.sessions.delivery import DeliveryState
from palaver.sessions.inbound import Inbound
from palaver.testing import FakeClock, ScriptedAgent
from support.job_runs import HEADING, JobTown, insert_job

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentRequest
    from palaver.jobs.table import JobRow
    from support.gateway import StartGateway


DONE = f"{HEADING}Done."

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
    (notice,) = town.sent
    assert notice.startswith('The job "News" has failed: The page is gone. Next run: ')


async def test_a_target_that_cannot_be_reached_is_told_once_and_the_run_is_done(town: JobTown) -> None:
    job_row = town.add_job("every 1h", targets=("origin", "loopback:elsewhere"))
    for _ in range(2):
        run = await town.run_at_slot(job_row)
        assert (run.state, list(run.target_errors)) == (JobRunState.DONE, ["loopback:elsewhere"])
    answers = [body for body in town.sent if body == DONE]
    (notice,) = [body for body in town.sent if body != DONE]
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


async def test_the_first_failure_is_told_where_its_answers_go_and_the_second_to_its_person(
    town: JobTown, agent: MoodyAgent
) -> None:
    job_row = town.add_job("every 1h", name="News")
    agent.mood = AgentUnavailable("The provider is down.")
    (first,) = await run_often(town, job_row, 1)
    assert first == 'The job "News" has failed: The provider is down. Next run: 2026-11-15 11:12 (Europe/Berlin).'
    (alert,) = await run_often(town, job_row, 1)
    assert alert.startswith('The job "News" failed 2 times in a row: The provider is down.')
    assert "Next run: 2026-11-15 12:12 (Europe/Berlin)." in alert
    assert await run_often(town, job_row, 1) == []
    agent.mood = "Done."
    assert sorted(await run_often(town, job_row, 1)) == [DONE, 'The job "News" works again.']
    assert await run_often(town, job_row, 1) == [DONE]
    assert town.load_job(job_row).job.failure_count == 0


async def test_another_cause_is_told_again(town: JobTown, agent: MoodyAgent) -> None:
    job_row = town.add_job("every 1h")
    agent.mood = AgentUnavailable("The provider is down.")
    assert len(await run_often(town, job_row, 2)) == 2
    agent.mood = ""
    (alert,) = await run_often(town, job_row, 1)
    assert "failed 3 times in a row: The agent gave no answer." in alert


async def test_each_failure_after_a_success_is_a_first_one(town: JobTown, agent: MoodyAgent) -> None:
    job_row = town.add_job("every 1h")
    for mood in ("", "Done.", "", "Done."):
        agent.mood = mood
        await town.run_at_slot(job_row)
    assert [body.partition(".")[0] for body in town.sent] == [
        'The job "News" has failed: The agent gave no answer',
        DONE.rstrip("."),
    ] * 2


@pytest.mark.both_engines
async def test_a_job_that_only_saves_files_tells_no_chat_of_its_first_failure(town: JobTown, agent: MoodyAgent) -> None:
    agent.mood = ""
    job_row = town.add_job("every 1h", targets=("local",))
    assert await run_often(town, job_row, 1) == []
    (alert,) = await run_often(town, job_row, 1)
    assert "failed 2 times in a row" in alert


async def test_a_first_failure_is_told_in_a_conversation_of_the_page(town: JobTown, agent: MoodyAgent) -> None:
    agent.mood = ""
    web = SessionSource("web", "w1", user_id="ada")
    session_id = town.store.get_or_create_session(web).session_id
    session_no = town.store.engine.run(Read(lambda tx: sessions.get_no(tx, session_id)))
    job_row = insert_job(town.store, web, "every 1h", origin_session_no=session_no)
    await run_often(town, job_row, 1)
    (message,) = town.store.load_transcript(session_id)
    assert message["content"].startswith('The job "News" has failed: The agent gave no answer. Next run:')


async def test_the_heading_is_in_the_language_of_chats_and_no_part_of_the_message(
    town: JobTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_language, "name", "de")
    await town.run_at_slot(town.add_job("every 1h", name="News *now*"))
    assert town.sent == ['**Aufgabe "News \\*now\\*"**\n\nDone.']
    messages = town.store.load_transcript(town.store.get_or_create_session(town.loopback.get_source("ada")).session_id)
    assert [message["content"] for message in messages] == ["Done."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("News\n\nNothing.", True),
        ("# news: nothing", True),
        ("**News**", True),
        ("Newsletters are full.", False),
        ("The News", False),
        ("", False),
    ],
)
def test_an_answer_that_begins_with_the_name_of_its_job_has_no_heading(text: str, *, expected: bool) -> None:
    assert starts_with_name(text, "News") is expected


async def test_a_job_that_keeps_failing_is_paused(town: JobTown, agent: MoodyAgent) -> None:
    job_row = town.add_job("every 1h", name="News")
    agent.mood = ""
    _, alert, notice = await run_often(town, job_row, PAUSE_AFTER_FAILURES)
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


async def test_a_failure_in_a_group_is_told_there_without_its_reason_and_to_the_person_with_it(
    town: JobTown, agent: MoodyAgent
) -> None:
    agent.mood = ""
    await town.loopback.say("Hello", user="ada")
    group = town.loopback.get_source("ada", chat="club")
    await town.loopback.receive(Inbound(source=group, content="Hello"))
    job_row = insert_job(town.store, group, "30m", name="Tea")
    await town.run_at_slot(job_row)
    assert {str(message.address): message.body for message in town.loopback.sent if "Tea" in message.body} == {
        "loopback::club": 'The job "Tea" has failed this time. It does not run again.',
        "loopback::ada": 'The job "Tea" has failed, and does not run again: The agent gave no answer.',
    }


async def test_another_person_who_gets_the_answers_of_a_job_is_not_told_why_it_failed(
    town: JobTown, agent: MoodyAgent
) -> None:
    await town.loopback.say("Hello", user="ben")
    await town.wait_until_ended()
    agent.mood = AgentUnavailable("Your budget of $5 is used up.")
    job_row = town.add_job("every 1h", targets=("loopback:ben",))
    town.store.engine.run(Write(lambda tx: people.set_role(tx, job_row.job.person_id, Role.OWNER)))
    (notice,) = await run_often(town, job_row, 1)
    assert notice.startswith('The job "News" has failed this time. Next run: ')
