"""Notices of runs that were missed: one for each person, and nothing that other people may not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.engines.base import Write
from palaver.core.texts import chat_language, translate
from palaver.jobs import run_end as missed_notices
from palaver.people import table as people
from palaver.people.model import Role
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.inbound import Inbound
from support.job_runs import JobTown, insert_job

if TYPE_CHECKING:
    from palaver.testing import FakeClock
    from support.gateway import StartGateway


@pytest.fixture
async def town(start_gateway: StartGateway, clock: FakeClock) -> JobTown:
    loopback = LoopbackAdapter()
    return JobTown(await start_gateway(loopback=loopback, clock=clock), clock, loopback)


async def miss_runs(town: JobTown) -> list[tuple[str, str]]:
    """Let three days pass without Palaver; return to whom what was sent then."""
    await town.wait_until_ended()
    before = len(town.loopback.sent)
    town.clock.advance(days=3, minutes=40)
    await town.poll()
    await town.poll()
    await town.wait_until_ended()
    return [(str(message.address), message.body) for message in town.loopback.sent[before:]]


async def test_a_person_gets_one_notice_for_all_their_jobs(town: JobTown) -> None:
    for number in range(12):
        town.add_job("0 7 * * *", name=f"Job {number}")
    town.add_job("0 7 * * *", name="Other", user="bob")
    town.add_job("every 1h", name="Hourly", user="bob")  # it runs soon again
    notices = dict(await miss_runs(town))
    lines = notices["loopback::ada"].splitlines()
    assert lines[0] == "12 of your jobs did not run:"
    assert lines[2] == '- "Job 0" at 2026-11-16 07:00 (Europe/Berlin). Next run: 2026-11-19 07:00 (Europe/Berlin).'
    assert lines[2 + missed_notices.MAX_LISTED_JOBS] == "- and 2 more"
    assert lines[-1].startswith("Palaver was not running")
    assert notices["loopback::bob"].startswith('The job "Other" did not run at 2026-11-16 07:00 (Europe/Berlin).')
    assert len(town.sent) == 2


async def test_why_a_run_was_missed_is_told_in_the_language_of_the_reader(
    town: JobTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = town.add_job("0 7 * * *", name="News")
    monkeypatch.setattr(chat_language, "name", "de")
    [(_, body)] = await miss_runs(town)
    assert "Palaver lief" in body
    assert "Palaver was" not in body
    [run, *_] = town.list_runs(job)
    assert (run.reason or "").startswith("Palaver was not running at this time and after it")
    assert translate(run.reason or "", "de").startswith("Palaver lief")


async def test_a_group_reads_only_of_jobs_that_were_made_there(town: JobTown) -> None:
    for chat in ("club", "team"):
        group = town.loopback.get_source("ada", chat=chat)
        await town.loopback.receive(Inbound(source=group, content="Hello"))
        insert_job(town.store, group, "0 7 * * *", name=f"For {chat}")
    notices = await miss_runs(town)
    assert sorted((address, "For club" in body, "For team" in body) for address, body in notices) == [
        ("loopback::club", True, False),
        ("loopback::team", False, True),
    ]


async def test_a_person_without_access_is_told_nothing(town: JobTown) -> None:
    job_row = town.add_job("0 7 * * *")
    town.store.engine.run(Write(lambda tx: people.set_role(tx, job_row.job.person_id, Role.GUEST)))
    assert await miss_runs(town) == []
