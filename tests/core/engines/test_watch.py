"""Changes by other processes are noticed: by file events, and by polling where there are none."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

from palaver import SessionSource, SessionStore
from palaver.core.engines import postgres_pool as postgres_watch, sqlite, sqlite_watch
from palaver.core.engines.base import ACCESS_CHANGE, SETTINGS_CHANGE, WORK_CHANGE, Read, Write
from palaver.core.engines.postgres import PostgresEngine
from palaver.core.engines.sqlite import SqliteEngine
from palaver.core.engines.sqlite_watch import FileEvents
from palaver.delivery import table as deliveries
from palaver.sessions import table as sessions, turns_table as turns
from palaver.sessions.turns_table import TurnRequest
from palaver.settings import table as settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from palaver.core.engines.base import Transaction

WAIT_SECONDS = 60.0
COMMIT = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(20_000)  # the watch may be reading
db.execute("PRAGMA wal_autocheckpoint = 0")
for line in sys.stdin:
    if line.strip() == "checkpoint":
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    else:
        db.execute("INSERT INTO note VALUES (1)")
    print("done", flush=True)
"""


class Changes:
    """The changes that a watch reports."""

    def __init__(self) -> None:
        self.reported: list[frozenset[int] | None] = []
        self._event = threading.Event()

    def __call__(self, session_numbers: frozenset[int] | None) -> None:
        self.reported.append(session_numbers)
        self._event.set()

    def wait(self) -> bool:
        return self._event.wait(WAIT_SECONDS)

    def clear(self) -> None:
        self._event.clear()

    def wait_for(self, change: frozenset[int] | None) -> None:
        """Wait until this is reported, and forget what was reported until then."""
        while change not in self.reported:
            assert self.wait()
            self.clear()
        self.reported.clear()


class OtherProcess:
    """Another process that writes to the same file."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", COMMIT, str(path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, line: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n"

    def close(self) -> None:
        self._process.communicate(timeout=WAIT_SECONDS)


def open_file(path: Path) -> SqliteEngine:
    engine = SqliteEngine.open(path)
    engine.run(Write(lambda tx: tx.execute("CREATE TABLE note (text)")))
    return engine


def test_commits_of_another_process_are_noticed_also_after_it_truncates_the_wal(tmp_path: Path) -> None:
    path, changes = tmp_path / "palaver.db", Changes()
    with closing(open_file(path)) as engine, closing(OtherProcess(path)) as other, closing(engine.watch(changes)):
        for line in ("commit", "commit", "checkpoint", "commit"):
            changes.clear()
            other.do(line)
            assert line == "checkpoint" or changes.wait()


def test_a_file_behind_a_link_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_watch, "MAX_WAIT_SECONDS", WAIT_SECONDS * 10)  # only events can report the change
    folder = tmp_path / "real"
    folder.mkdir()
    link, changes = tmp_path / "palaver.db", Changes()
    link.symlink_to(folder / "data.db")
    with closing(open_file(link)) as engine, closing(OtherProcess(link)) as other, closing(engine.watch(changes)):
        other.do("commit")
        assert changes.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no inotify")
def test_an_idle_watch_never_reads_the_database_more_than_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    wait = FileEvents.wait

    def record_wait(events: FileEvents, timeout_seconds: float) -> bool:
        waits.append(timeout_seconds)
        return wait(events, min(timeout_seconds, 0.01))

    monkeypatch.setattr(FileEvents, "wait", record_wait)
    with closing(open_file(tmp_path / "palaver.db")) as engine, closing(engine.watch(Changes())):
        while len(waits) < 5:
            threading.Event().wait(0.01)
    assert set(waits[:5]) == {sqlite_watch.MAX_WAIT_SECONDS}


@pytest.mark.parametrize("has_events", [True, False], ids=["unreliable events", "no events"])
def test_changes_are_noticed_without_file_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_events: bool
) -> None:
    other_folder = tmp_path / "elsewhere"  # as if the events of the file never came
    other_folder.mkdir()
    open_inotify = sqlite_watch._open_inotify
    monkeypatch.setattr(
        sqlite_watch, "_open_inotify", lambda _, mask: open_inotify([other_folder], mask) if has_events else None
    )
    monkeypatch.setattr(sqlite_watch, "MAX_WAIT_SECONDS", 0.05)
    path, changes = tmp_path / "palaver.db", Changes()
    with closing(open_file(path)) as engine, closing(OtherProcess(path)) as other, closing(engine.watch(changes)):
        for _ in range(3):
            changes.clear()
            other.do("commit")
            assert changes.wait()


def test_a_commit_of_the_same_process_says_what_it_has_changed(tmp_path: Path) -> None:
    changes = Changes()
    with closing(SessionStore.open(f"sqlite:///{tmp_path / 'palaver.db'}")) as store:
        engine = store.engine
        recorded = store.record_user_message(SessionSource("telegram", "1", user_id="1"), "hello")
        session_no = engine.run(Read(lambda tx: sessions.get_no(tx, recorded.session_id)))

        def change(run: Callable[[Transaction], object]) -> set[int]:
            engine.run(Write(run))
            return set(changes.reported[-1] or ())

        with closing(engine.watch(changes)):
            request = TurnRequest(session_no=session_no, input_seq=recorded.seq)
            assert change(lambda tx: turns.enqueue(tx, request, 1)) == {session_no, WORK_CHANGE}
            assert change(
                lambda tx: tx.execute("UPDATE turn SET state = 'running', lease_owner = 'w', lease_until = 1")
            ) == {session_no}
            assert change(lambda tx: tx.execute("UPDATE turn SET stop_request = 'stop'")) == {session_no, WORK_CHANGE}
            assert change(lambda tx: tx.execute("UPDATE turn SET attempt = 2")) == set()
            assert change(lambda tx: deliveries.enqueue(tx, "telegram::1", "hi", 1)) == {0, WORK_CHANGE}
            assert change(
                lambda tx: tx.execute("UPDATE delivery SET state = 'sending', lease_owner = 'w', lease_until = 1")
            ) == {0}
            assert change(lambda tx: tx.execute("UPDATE delivery SET due_at = 5")) == {WORK_CHANGE}
            assert change(lambda tx: tx.execute("DELETE FROM audience_member")) == {ACCESS_CHANGE}
            assert change(lambda tx: settings.save_state(tx, replace(settings.load_state(tx), version=9))) == {
                SETTINGS_CHANGE
            }
            with pytest.raises(ZeroDivisionError):
                change(lambda tx: (turns.enqueue(tx, request, 1), 1 / 0))
            assert change(lambda tx: tx.execute("UPDATE person SET name = 'Ada'")) == set()
            store.append_to_transcript(recorded.session_id, {"role": "assistant", "content": "hi"})
            assert changes.reported[-1] == frozenset({session_no})


def test_our_own_commits_need_no_search_at_once_and_hide_none_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, changes = tmp_path / "palaver.db", Changes()
    monkeypatch.setattr(sqlite_watch, "CHECK_SECONDS", WAIT_SECONDS * 10)
    monkeypatch.setattr(sqlite, "BLOCKED_SECONDS", WAIT_SECONDS * 10)
    with closing(open_file(path)) as engine, closing(OtherProcess(path)) as other, closing(engine.watch(changes)):

        def write() -> None:
            engine.run(Write(lambda tx: tx.execute("INSERT INTO note VALUES (2)")))

        for _ in range(20):
            write()
        assert changes.reported == [frozenset()] * 20
        for _ in range(3):
            write()
            other.do("commit")
            write()
            changes.wait_for(None)
        monkeypatch.setattr(sqlite_watch, "CHECK_SECONDS", 0.0)
        write()
        changes.wait_for(None)


def test_a_watch_can_be_closed_while_others_commit(tmp_path: Path) -> None:
    with closing(open_file(tmp_path / "palaver.db")) as engine:
        for _ in range(50):
            watch = engine.watch(Changes())
            waker = threading.Thread(target=lambda each=watch: [each.report_commit(frozenset()) for _ in range(100)])
            waker.start()
            watch.close()
            waker.join()


def test_postgres_reports_a_commit_without_a_notification(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_watch, "CHECK_SECONDS", 0.01)
    changes = Changes()
    with (
        closing(PostgresEngine.open(postgres_database)) as engine,
        psycopg.connect(postgres_database, autocommit=True) as other,
        closing(engine.watch(changes)),
    ):
        other.execute("DELETE FROM deleted_session")
        other.execute("INSERT INTO deleted_session (session_id, audience_no) VALUES ('s', 1)")
        assert changes.wait()
        other.execute("NOTIFY palaver, '7'")
        while frozenset({7}) not in changes.reported:
            changes.clear()
            assert changes.wait()
    assert None not in changes.reported
