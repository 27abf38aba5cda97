"""`kill -9` while something long is deleted: no reader sees a part of it, and any server deletes the rest."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource, SessionStore
from palaver.core.engines.base import Read, Write
from palaver.core.errors import SessionNotFound
from palaver.jobs import table as jobs
from palaver.jobs.model import JobState
from palaver.jobs.table import RUNS_PER_PIECE
from palaver.media.attachments import Attachments
from palaver.operation.cleanup import Cleanup
from palaver.sessions.deletion_table import ROWS_PER_PIECE
from palaver.sessions.projects_table import SESSIONS_PER_PIECE
from scenarios.kill_cases import build_cases
from scenarios.store_harness import find_inconsistencies, wait_for_disconnect
from support.crashing import list_crash_points
from support.inbox import list_rows

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("deletion_process.py")
POINT = "deletion.before_piece"
MESSAGES = 2 * ROWS_PER_PIECE + 10

# At which passing the process is killed: nothing but hidden, in the middle, and only the row of the session left.
CASES = build_cases([(1,), (2,), (3,), (4,)], {("sqlite", 1), ("sqlite", 2), ("sqlite", 4), ("postgres", 3)})


def test_the_point_is_the_only_one_of_deletions() -> None:
    assert list_crash_points("deletion.") == {POINT}


def fill_store(url: str) -> tuple[str, str]:
    """Store a long and a short conversation, both in the search index."""
    with SessionStore.open(url) as store:
        long_id, short_id = (
            store.record_user_message(SessionSource("telegram", user, user_id=user), f"zebra of {user}").session_id
            for user in ("ada", "bob")
        )
        for number in range(1, MESSAGES):
            store.append_to_transcript(long_id, {"role": "assistant", "content": f"zebra {number}"})
        store.search("zebra")
        return long_id, short_id


@pytest.mark.parametrize(("store_url", "passing"), CASES, indirect=["store_url"])
def test_a_deletion_goes_on_after_a_kill(launcher: WarmLauncher, store_url: str, tmp_path: Path, passing: int) -> None:
    long_id, short_id = fill_store(store_url)
    killed = launcher.run_script(SCRIPT, store_url, "session", long_id, POINT, str(passing))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    wait_for_disconnect(store_url)
    with SessionStore.open(store_url) as store:
        assert len(list_rows(store, "SELECT no FROM session")) == 2
        assert [session.id for session in store.list_sessions()] == [short_id]
        assert {hit.session_id for hit in store.search("zebra", limit=100)} == {short_id}
        with pytest.raises(SessionNotFound):
            store.load_transcript(long_id)
        assert find_inconsistencies(store_url) == []
        asyncio.run(Cleanup(store, Attachments(store, tmp_path / "attachments")).run_once())
        assert [session_id for (session_id,) in list_rows(store, "SELECT id FROM session")] == [short_id]
        assert list_rows(store, "SELECT COUNT(*) FROM event WHERE kind = 'message'") == [(1,)]
        assert {hit.session_id for hit in store.search("zebra", limit=100)} == {short_id}
    assert find_inconsistencies(store_url) == []


def fill_job(store: SessionStore) -> tuple[str, int]:
    """Add a job of the owner with many runs; return its id and number."""
    person_id, now = store.get_owner().id, store.clock.now()
    new_job = jobs.NewJob(
        person_id=person_id,
        name="News",
        prompt="What is new?",
        schedule="every 5m",
        timezone="UTC",
        anchor=now,
        targets=("local",),
        origin=SessionSource("local", "1"),
        toolsets=(),
        state=JobState.PAUSED,
        next_slot=None,
    )

    def fill(tx: Transaction) -> tuple[str, int]:
        row = jobs.insert(tx, new_job, 1)
        tx.execute_many(
            "INSERT INTO job_run (id, job_no, slot, kind, state, start_after, created_at, ended_at)"
            " VALUES ($1, $2, $3, 'scheduled', 'skipped', 0, 1, 1)",
            [(f"r{slot}", row.no, slot) for slot in range(2 * RUNS_PER_PIECE + 1)],
        )
        return row.job.id, row.no

    return store.engine.run(Write(fill))


@pytest.mark.parametrize(("store_url", "passing"), [("sqlite", 2), ("postgres", 3)], indirect=["store_url"])
def test_the_deletion_of_a_job_goes_on_after_a_kill(
    launcher: WarmLauncher, store_url: str, tmp_path: Path, passing: int
) -> None:
    with SessionStore.open(store_url) as store:
        job_id, no = fill_job(store)
    killed = launcher.run_script(SCRIPT, store_url, "job", job_id, POINT, str(passing))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    wait_for_disconnect(store_url)
    with SessionStore.open(store_url) as store:
        assert store.engine.run(Read(lambda tx: jobs.list_owned(tx, store.get_owner().id))) == []
        left = list_rows(store, "SELECT COUNT(*) FROM job_run WHERE job_no = $1", no)
        assert left == [(2 * RUNS_PER_PIECE + 1 - (passing - 1) * RUNS_PER_PIECE,)]
        asyncio.run(Cleanup(store, Attachments(store, tmp_path / "attachments")).run_once())
        assert list_rows(store, "SELECT 1 FROM job_run") == list_rows(store, "SELECT 1 FROM job") == []


@pytest.mark.parametrize(("store_url", "passing"), [("sqlite", 1), ("postgres", 2)], indirect=["store_url"])
def test_the_deletion_of_a_project_goes_on_after_a_kill(
    launcher: WarmLauncher, store_url: str, tmp_path: Path, passing: int
) -> None:
    count = SESSIONS_PER_PIECE + 1
    with SessionStore.open(store_url) as store:
        view = store.seen_by(store.get_owner().principal)
        project_id = view.projects.create("Garden").id
        for number in range(count):
            store.record_user_message(SessionSource("local", str(number), user_id="1"), "hello")
        in_project = "UPDATE session SET project_no = (SELECT no FROM project WHERE id = $1)"
        store.engine.run(Write(lambda tx: tx.execute(in_project, project_id)))
    killed = launcher.run_script(SCRIPT, store_url, "project", project_id, POINT, str(passing))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    wait_for_disconnect(store_url)
    with SessionStore.open(store_url) as store:
        assert store.seen_by(store.get_owner().principal).projects.list() == []
        assert {session.project_id for session in store.list_sessions()} == {None}
        left = list_rows(store, "SELECT COUNT(*) FROM session WHERE project_no IS NOT NULL")
        assert left == [(count - (passing - 1) * SESSIONS_PER_PIECE,)]
        asyncio.run(Cleanup(store, Attachments(store, tmp_path / "attachments")).run_once())
        assert list_rows(store, "SELECT 1 FROM session WHERE project_no IS NOT NULL") == []
        assert list_rows(store, "SELECT 1 FROM project") == []
        assert list_rows(store, "SELECT COUNT(*) FROM session") == [(count,)]
    assert find_inconsistencies(store_url) == []
