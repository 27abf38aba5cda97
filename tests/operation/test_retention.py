"""What is kept, and for how long: runs of jobs and their conversations, proposals, budgets, sent texts."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.config.agent_rules import JobRules, RetentionRules, TurnRules
from palaver.core.clock import to_micros
from palaver.core.engines import sqlite
from palaver.core.engines.base import Write
from palaver.delivery.table import MAX_SENT_BODY_AGE
from palaver.jobs import firing as starting, runs_table as job_runs, table as jobs
from palaver.jobs.model import JobRunKind, JobRunState
from palaver.jobs.table import MAX_PROPOSAL_AGE
from palaver.media.attachments import Attachments
from palaver.memory import learning_table as memory_turns
from palaver.memory.model import MemoryTurnKind
from palaver.money.windows_table import MAX_WINDOW_AGE
from palaver.operation import cleanup
from palaver.operation.cleanup import Cleanup
from palaver.sessions import table as sessions
from support.inbox import answer, list_rows, make_dm, make_inbox, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.testing import FakeClock

pytestmark = pytest.mark.both_engines


KEEP_DAYS = 90


@pytest.fixture
def clean_up(store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cleanup:
    monkeypatch.setattr(cleanup, "ROWS_PER_BATCH", 2)
    monkeypatch.setattr(cleanup, "RUNS_PER_BATCH", 2)
    monkeypatch.setattr(cleanup, "BATCH_PAUSE_SECONDS", 0)
    return Cleanup(
        store, Attachments(store, tmp_path / "attachments"), lambda: TurnRules(jobs=JobRules(keep_days=KEEP_DAYS))
    )


def add_job(store: SessionStore, name: str = "News", state: str = "paused", proposed_at: int | None = None) -> int:
    """Store a job of Ada, and return its number."""
    person = store.get_or_create_person(make_dm())
    store.engine.run(Write(partial(_execute, "UPDATE person SET role = 'member' WHERE id = $1", person.id)))
    now = to_micros(store.clock.now())
    insert = (
        "INSERT INTO job (id, person_id, name, name_key, prompt, schedule, timezone, anchor, targets, origin, toolsets,"
        " state, proposed_at, created_at, updated_at) VALUES ($1, $2, $3, $1, 'What is new?', 'every 1h', 'UTC', 0,"
        " '[]', $4, '[]', $5, $6, $7, $7) RETURNING no"
    )
    origin = '{"platform": "telegram", "chat_id": "ada", "chat_type": "dm"}'
    work = Write(lambda tx: tx.fetch_one(insert, f"j_{name}", person.id, name, origin, state, proposed_at, now))
    return int((store.engine.run(work) or [0])[0])


def run_job(store: SessionStore, job_no: int) -> str:
    """Run a job now, to its end, and return the id of its conversation."""
    now = store.clock.now()

    def start(tx: Transaction) -> None:
        job_row = jobs.find_by_no(tx, job_no)
        assert job_row is not None
        job_runs.enqueue(tx, job_row, now, JobRunKind.MANUAL, to_micros(now))
        assert starting.start_next_run(tx, store.config, 5, to_micros(now), [])

    def end(tx: Transaction) -> None:
        run = job_runs.find_open(tx, job_no)
        assert run is not None
        tx.execute("UPDATE turn SET state = 'done', ended_at = $2 WHERE no = $1", run.turn_no, to_micros(now))
        job_runs.end_run(tx, run.no, JobRunState.DONE, to_micros(now))

    store.engine.run(Write(start))
    session_id: str = list_rows(store, "SELECT id FROM session ORDER BY no DESC LIMIT 1")[0][0]
    store.append_to_transcript(session_id, "Nothing is new.")
    store.engine.run(Write(end))
    return session_id


def _execute(sql: str, parameter: object, tx: Transaction) -> None:
    tx.execute(sql, parameter)


def has_session(store: SessionStore, session_id: str) -> bool:
    return bool(list_rows(store, "SELECT 1 FROM session WHERE id = $1", session_id))


# ---- jobs --------------------------------------------------------------------------------------------------


async def test_old_runs_go_with_their_conversations_and_the_last_one_stays(
    store: SessionStore, clock: FakeClock, clean_up: Cleanup
) -> None:
    job_no = add_job(store)
    conversations = []
    for _ in range(5):
        conversations.append(run_job(store, job_no))
        clock.advance(hours=1)
    clock.advance(days=KEEP_DAYS, hours=-3)  # two of them are old
    assert await clean_up.delete_old_job_runs() == 2
    assert [has_session(store, each) for each in conversations] == [False, False, True, True, True]
    clock.advance(days=400)
    assert await clean_up.delete_old_job_runs() == 2
    assert [has_session(store, each) for each in conversations] == [False] * 4 + [True]
    assert await clean_up.delete_old_job_runs() == 0
    assert len(list_rows(store, "SELECT 1 FROM job_run")) == len(list_rows(store, "SELECT 1 FROM job")) == 1


async def test_a_conversation_that_a_person_has_touched_stays(
    store: SessionStore, clock: FakeClock, clean_up: Cleanup
) -> None:
    job_no = add_job(store)
    conversations = []
    for _ in range(7):
        conversations.append(run_job(store, job_no))
        clock.advance(hours=1)
    person = store.get_or_create_person(make_dm())
    view = store.seen_by(person.principal)
    written, pinned, moved, named, archived, *_ = conversations
    store.append_to_transcript(written, {"role": "user", "content": "Tell me more"})
    view.pin(pinned)
    view.move(moved, None)
    view.rename(named, "Important")
    view.archive(archived)
    clock.advance(days=KEEP_DAYS + 1)
    assert await clean_up.delete_old_job_runs() == 6
    assert [has_session(store, each) for each in conversations] == [True] * 5 + [False, True]


async def test_what_a_run_has_sent_to_a_chat_stays_there(
    store: SessionStore, clock: FakeClock, clean_up: Cleanup
) -> None:
    chat = store.record_user_message(make_dm(), "hello")
    job_no = add_job(store)
    run_job(store, job_no)
    insert = (
        "INSERT INTO delivery (id, kind, session_no, turn_no, platform, account, address, content, state, created_at)"
        " SELECT 'd1', 'answer', s.no, r.turn_no, 'telegram', '', 'a', 'News', 'sent', 0 FROM session s, job_run r"
        " WHERE s.id = $1"
    )
    store.engine.run(Write(lambda tx: tx.execute(insert, chat.session_id)))
    clock.advance(hours=1)
    run_job(store, job_no)
    clock.advance(days=KEEP_DAYS + 1)
    assert await clean_up.delete_old_job_runs() == 1
    assert list_rows(store, "SELECT content, turn_no FROM delivery") == [("News", None)]


async def test_a_job_that_is_over_goes_with_its_last_run(
    store: SessionStore, clock: FakeClock, clean_up: Cleanup
) -> None:
    over, active = add_job(store, "Once", state="ended"), add_job(store, "Daily")
    conversations = [run_job(store, over), run_job(store, active)]
    never_run = add_job(store, "Never", state="ended")
    clock.advance(days=KEEP_DAYS + 1)
    new = add_job(store, "New", state="ended")
    assert await clean_up.delete_old_job_runs() == 3
    left = [no for (no,) in list_rows(store, "SELECT no FROM job ORDER BY no")]
    assert left == [active, new]
    assert never_run not in left
    assert [has_session(store, each) for each in conversations] == [False, True]


async def test_everything_of_jobs_can_be_kept(store: SessionStore, clock: FakeClock, tmp_path: Path) -> None:
    add_job(store, state="ended")
    clock.advance(days=9000)
    clean_up = Cleanup(store, Attachments(store, tmp_path), lambda: TurnRules(jobs=JobRules(keep_days=0)))
    assert await clean_up.delete_old_job_runs() == 0
    assert len(list_rows(store, "SELECT 1 FROM job")) == 1


async def test_a_job_that_is_not_confirmed_is_dropped_after_a_week(
    store: SessionStore, clock: FakeClock, clean_up: Cleanup
) -> None:
    add_job(store, state="proposed", proposed_at=to_micros(clock.now()))
    clock.advance(days=MAX_PROPOSAL_AGE.days)
    assert await clean_up.delete_old("proposals") == 0
    clock.advance(seconds=1)
    assert await clean_up.delete_old("proposals") == 1
    assert list_rows(store, "SELECT 1 FROM job") == []


# ---- budgets, memory turns, deliveries ---------------------------------------------------------------------


async def test_budget_windows_are_kept_for_more_than_a_year(
    store: SessionStore, clock: FakeClock, clean_up: Cleanup
) -> None:
    insert = "INSERT INTO budget_window (scope, subject, period, starts_at) VALUES ('all', '', 'day', $1)"
    for days in range(5):
        starts_at = to_micros(clock.now() - MAX_WINDOW_AGE - timedelta(days=days))
        store.engine.run(Write(partial(_execute, insert, starts_at)))
    assert await clean_up.delete_old("budget_windows") == 4
    assert await clean_up.delete_old("budget_windows") == 0


async def test_only_the_last_memory_turn_of_a_conversation_is_kept_for_long(
    store: SessionStore, clock: FakeClock
) -> None:
    session_id = store.record_user_message(make_dm(), "hello").session_id
    person = store.get_or_create_person(make_dm())

    def queue_and_end(seq: int, tx: Transaction) -> None:
        no, now = sessions.get_no(tx, session_id), to_micros(clock.now())
        memory_turns.queue(tx, no, seq, person.id, MemoryTurnKind.COMPACTION, now)
        tx.execute("UPDATE memory_turn SET state = 'done', ended_at = $1 WHERE ended_at IS NULL", now)

    for seq in (2, 4, 6):
        store.engine.run(Write(partial(queue_and_end, seq)))
        clock.advance(days=1)
    assert [seq for (seq,) in list_rows(store, "SELECT up_to_seq FROM memory_turn")] == [2, 4, 6]
    clock.advance(days=40)
    store.engine.run(Write(partial(queue_and_end, 8)))
    assert [seq for (seq,) in list_rows(store, "SELECT up_to_seq FROM memory_turn")] == [8]


async def test_texts_that_were_sent_are_emptied_after_a_month(
    store: SessionStore, clock: FakeClock, clean_up: Cleanup
) -> None:
    def add_deliveries(tx: Transaction) -> None:
        for number, state in enumerate(("sent", "sent", "failed", "sent")):
            row = tx.fetch_one(
                "INSERT INTO delivery (id, kind, platform, account, address, content, state, created_at)"
                " VALUES ($1, 'notice', 'telegram', '', 'a', 'Hello', 'failed', $2) RETURNING no",
                f"d{number}-{clock.now()}",
                to_micros(clock.now()),
            )
            tx.execute(
                "INSERT INTO delivery_part (delivery_no, part_no, body, state) VALUES ($1, 1, 'Hello', $2)",
                (row or [0])[0],
                state,
            )

    store.engine.run(Write(add_deliveries))
    clock.advance(days=MAX_SENT_BODY_AGE.days)
    store.engine.run(Write(add_deliveries))
    assert await clean_up.delete_old("sent_bodies") == 0
    clock.advance(seconds=1)
    assert await clean_up.delete_old("sent_bodies") == 3
    bodies = [body for (body,) in list_rows(store, "SELECT body FROM delivery_part ORDER BY delivery_no")]
    assert bodies == ["", "", "Hello", "", "Hello", "Hello", "Hello", "Hello"]
    assert {content for (content,) in list_rows(store, "SELECT content FROM delivery")} == {"Hello"}


async def test_what_people_wrote_and_were_answered_is_never_deleted(
    store: SessionStore, clock: FakeClock, clean_up: Cleanup
) -> None:
    inbox = make_inbox(store)
    sources = (make_dm(), SessionSource("telegram", "club", chat_type="group", user_id="ada"))
    for source in sources:
        answer(store, await say(inbox, source, "hello", message_id="1"))
    before = list_rows(store, "SELECT session_no, seq, kind, content, body FROM event ORDER BY session_no, seq")
    clock.advance(days=5000)
    await clean_up.run_once()
    assert list_rows(store, "SELECT session_no, seq, kind, content, body FROM event ORDER BY session_no, seq") == before
    assert list_rows(store, "SELECT 1 FROM inbound_message") == []


# ---- the bounds --------------------------------------------------------------------------------------------


def list_tables() -> set[str]:
    migrations = Path(sqlite.__file__).parents[1] / "migrations"
    texts = (file.read_text(encoding="utf-8") for file in migrations.glob("*.sql") if "postgres" not in file.name)
    return {name for text in texts for name in re.findall(r"CREATE (?:VIRTUAL )?TABLE (?!temp\.)(\w+)", text)}


def test_the_documentation_says_what_bounds_every_table() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/retention.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.partition("## Every table")[2].splitlines() if line.startswith("| `")]
    documented = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(documented) == sorted(list_tables())


async def test_the_cleanup_scans_no_table(sqlite_store: SessionStore, tmp_path: Path, monkeypatch: Any) -> None:
    statements: set[str] = set()
    for name in ("fetch_one", "fetch_all", "execute", "execute_many"):
        original = getattr(sqlite.SqliteTransaction, name)

        def collect(self: Any, sql: str, *params: Any, original: Any = original) -> Any:
            statements.add(sql)
            return original(self, sql, *params)

        monkeypatch.setattr(sqlite.SqliteTransaction, name, collect)

    def delete_always(has_older: Callable[[Transaction, int], bool]) -> Callable[[Transaction, int], bool]:
        return lambda tx, before: has_older(tx, before) or True  # although there is nothing

    for name, rows in cleanup.OLD_ROWS.items():
        monkeypatch.setitem(cleanup.OLD_ROWS, name, rows._replace(has_older=delete_always(rows.has_older)))
    monkeypatch.setattr(jobs, "has_old", delete_always(jobs.has_old))
    rules = TurnRules(retention=RetentionRules(max_age_days=1, max_database_mb=1))
    await Cleanup(sqlite_store, Attachments(sqlite_store, tmp_path / "files"), lambda: rules).run_once()
    assert len(statements) >= 16
    for sql in sorted(statements):
        parameters = [None] * max((int(number) for number in re.findall(r"\$(\d+)", sql)), default=0)
        plan = list_rows(sqlite_store, f"EXPLAIN QUERY PLAN {sql}", *parameters)
        scans = [row[3] for row in plan if re.match(r"SCAN (?!CONSTANT)", row[3])]
        allowed = ("INDEX delivery_part_body", "INDEX erasure_open")  # of the rows that wait to be handled
        assert all(any(name in scan for name in allowed) for scan in scans), (sql, scans)
