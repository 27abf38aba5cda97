"""Where the output of a job's run goes: every target once, and only where its person may send."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, SessionSource
from palaver.agent.base import ModelPrices
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput
from palaver.core.ids import JobRunId, SessionId
from palaver.delivery.reachable_chats import Origin
from palaver.jobs import table as jobs
from palaver.jobs.fields import FieldChecker, JobEnvironment
from palaver.jobs.model import JobRun, JobRunKind, JobRunState
from palaver.jobs.run_end import RunEnd, make_file_name, make_folder_name
from palaver.jobs.runs_table import RunRow
from palaver.people import table as people
from palaver.people.model import Role
from palaver.people.table import get_person
from palaver.sessions import delivery_queries, table as sessions
from palaver.sessions.context import Redactor
from palaver.sessions.gateway_config import HomeChannel
from palaver.testing import ScriptedAgent
from support.job_runs import insert_job
from support.messaging import add_writer, get_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.jobs.table import JobRow
    from palaver.people.model import Principal

    Source = Callable[..., SessionSource]

SLOT = datetime(2026, 3, 1, 7, tzinfo=UTC)
CONFIG = GatewayConfig(
    connected_platforms=(Platform.TELEGRAM,),
    home_channels={Platform.TELEGRAM: HomeChannel(Platform.TELEGRAM, "-100777", "Family")},
    saves_local_files=True,
    group_sessions_per_user=False,
)


def make_run(job_row: JobRow, session_id: str | None, session_no: int | None) -> RunRow:
    run = JobRun(
        id=JobRunId("r_1"),
        job_id=job_row.job.id,
        slot=SLOT,
        slot_count=1,
        kind=JobRunKind.SCHEDULED,
        state=JobRunState.DONE,
        reason=None,
        result=None,
        refused_tools=(),
        target_errors={},
        session_id=None if session_id is None else SessionId(session_id),
        created_at=SLOT,
        started_at=SLOT,
        ended_at=SLOT,
    )
    return RunRow(
        no=1,
        run=run,
        job_no=job_row.no,
        cause=None,
        reported_failure=None,
        session_no=session_no,
        turn_no=None,
        start_after=0,
    )


def deliver(store: SessionStore, job_row: JobRow, text: str = "Sunny.") -> tuple[dict[str, str], list[str]]:
    """Deliver the output of a run; return the errors, and the addresses that something is sent to."""
    entry = store.get_or_create_session(SessionSource("cron", "r_1", user_id="owner"))
    session_no = store._engine.run(Read(lambda tx: sessions.get_no(tx, entry.session_id)))
    run_row = make_run(job_row, entry.session_id, session_no)

    def run(tx: Any) -> tuple[dict[str, str], list[str]]:
        end = RunEnd(tx=tx, config=store._config, job_row=job_row, run_row=run_row, now=get_now(store))
        errors = end.deliver_output(text, (), None)
        rows = tx.fetch_all("SELECT address FROM delivery ORDER BY no")
        return errors, [address for (address,) in rows]

    return store._engine.run(Write(run))


def test_each_place_gets_one_message_and_each_bad_target_an_error(open_store: OpenStore, dm: Source) -> None:
    store = open_store(CONFIG)
    add_writer(store, dm("ada"))
    add_writer(store, dm("ben"))
    targets = ("origin", "telegram:ada", "telegram", "telegram:-100777", "local", "telegram:ben", "matrix:!x:y.org")
    job_row = insert_job(store, dm("ada"), "every 1h", name="Morning news!", targets=targets)
    errors, addresses = deliver(store, job_row)
    assert list(errors) == ["telegram:ben", "matrix:!x:y.org"]
    assert addresses == [
        "telegram::ada",
        "telegram::-100777",
        f"local::morning-news-{job_row.job.id}:2026-03-01T07-00-00Z",
    ]
    contents = store._engine.run(Read(lambda tx: tx.fetch_all("SELECT content FROM delivery ORDER BY no")))
    headed = '**Job "Morning news!"**\n\nSunny.'
    assert [content for (content,) in contents] == [headed, headed, "Sunny."]
    entry = store.find_entry("agent:main:telegram:dm:ada")
    assert entry is not None
    [status] = store._engine.run(
        Read(lambda tx: delivery_queries.list_latest_statuses(tx, sessions.get_no(tx, entry.session_id), 9))
    )
    message = store.load_events(entry.session_id)[-1]
    assert message.message is not None
    assert (message.message.text, status[1].message_seq) == ("Sunny.", message.seq)
    assert message.message.extra["sent_by"]["name"] == "Morning news!"


@pytest.mark.both_engines
def test_a_job_of_one_person_never_reaches_the_chats_of_another(open_store: OpenStore, dm: Source) -> None:
    store = open_store(CONFIG)
    add_writer(store, dm("ada"))
    job_row = insert_job(store, dm("ben"), "every 1h", targets=("telegram:ada", "origin"))
    object.__setattr__(job_row.job, "origin", dm("ada"))  # even if its origin were forged
    errors, addresses = deliver(store, job_row)
    assert set(errors) == {"telegram:ada", "origin"}
    assert addresses == []


def test_a_person_who_became_a_guest_reaches_only_themselves(open_store: OpenStore, dm: Source) -> None:
    store = open_store(CONFIG)
    job_row = insert_job(store, dm("ada"), "every 1h", targets=("telegram", "local", "telegram:ada"))
    store._engine.run(Write(lambda tx: people.set_role(tx, job_row.job.person_id, Role.GUEST)))
    demoted = store._engine.run(Read(lambda tx: jobs.find_by_id(tx, job_row.job.id)))
    assert demoted is not None
    errors, addresses = deliver(store, demoted)
    assert list(errors) == ["telegram", "local"]
    assert addresses == ["telegram::ada"]


@pytest.mark.both_engines
def test_the_origin_on_the_page_is_a_message_there_and_no_delivery(open_store: OpenStore) -> None:
    store = open_store(CONFIG)
    page = SessionSource("web", "page", user_id="ada", user_name="Ada")
    conversation = store.record_user_message(page, "Every morning, please.")
    session_no = store._engine.run(Read(lambda tx: sessions.get_no(tx, conversation.session_id)))
    job_row = insert_job(store, page, "every 1h", origin_session_no=session_no)
    assert deliver(store, job_row) == ({}, [])
    message = store.load_events(conversation.session_id)[-1].message
    assert message is not None
    assert message.text == "Sunny."
    store.delete_session(conversation.session_id)
    loaded = store._engine.run(Read(lambda tx: jobs.find_by_id(tx, job_row.job.id)))
    assert loaded is not None
    errors, addresses = deliver(store, loaded)
    assert "was deleted" in errors["origin"]
    assert addresses == []


def test_a_job_from_outside_of_any_conversation_keeps_its_output_in_its_own(open_store: OpenStore) -> None:
    store = open_store(CONFIG)
    job_row = insert_job(store, SessionSource.local_cli(), "every 1h")
    assert deliver(store, job_row) == ({}, [])


def test_the_agent_names_targets_of_jobs_as_they_were_shown_to_it(open_store: OpenStore, dm: Source) -> None:
    store = open_store(CONFIG)
    ada, ben = add_writer(store, dm("ada")), add_writer(store, dm("ben"))
    redactor = Redactor(b"a secret of this installation...")
    hidden = redactor.redact_chat("telegram", "ada")

    agent = ScriptedAgent()
    environment = JobEnvironment(
        config=CONFIG,
        rules=TurnRules(),
        agent=agent,
        profile=AgentProfile(),
        prices=ModelPrices(agent),
        redactor=redactor,
    )

    def check(principal: Principal) -> str:
        def run(tx: Transaction) -> str:
            person = get_person(tx, principal.person_id)
            origin, now = Origin(dm("ada")), store._clock.now()
            checker = FieldChecker(tx=tx, environment=environment, person=person, origin=origin, now=now)
            return checker.check_target(hidden)

        return store._engine.run(Read(run))

    assert check(ada) == "telegram:ada"
    with pytest.raises(InvalidInput, match="is not a chat that you can send to"):
        check(ben)


def test_names_of_files_are_never_paths(open_store: OpenStore, dm: Source) -> None:
    store = open_store(CONFIG)
    job_row = insert_job(store, dm("ada"), "every 1h", name="../../etc/passwd\u202e .ssh")
    assert make_folder_name(job_row.job) == f"etc-passwd-ssh-{job_row.job.id}"
    object.__setattr__(job_row.job, "name", "日本")
    assert make_folder_name(job_row.job) == f"job-{job_row.job.id}"
    run = make_run(job_row, None, None).run
    object.__setattr__(run, "slot", SLOT.replace(microsecond=7))
    assert make_file_name(run) == "2026-03-01T07-00-00.000007Z"
