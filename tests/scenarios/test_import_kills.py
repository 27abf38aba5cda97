"""`kill -9` during an import: run again, the store is the same as after an import that was not interrupted."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conftest import create_sqlite_database, empty_database
from palaver import GatewayConfig, SessionStore
from palaver.media.attachments import Attachments
from palaver.testing import FakeClock
from palaver.transfer.exporter import ExportScope, export_records
from palaver.transfer.own_format import format_lines
from scenarios.store_harness import fetch_rows, find_inconsistencies, wait_for_disconnect
from support.crashing import list_crash_points
from support.random_store import RandomStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from subprocess import CompletedProcess

    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]

SCRIPT = Path(__file__).with_name("import_process.py")
CRASH_POINTS = ("import.before_batch", "import.batch_stored", "import.file_stored")
CONFIG = GatewayConfig(group_sessions_per_user=False)
# What an import writes, without numbers, random ids and the time of the import.
WRITTEN = {
    "sessions": "SELECT s.platform, s.key LIKE 'agent:main:made:%', s.title, s.auto_title, s.preview, s.message_count,"
    " s.tool_call_count, s.active_at, s.last_message_at, s.last_human_at, s.ended_at IS NULL, s.end_reason, s.last_seq,"
    " s.compaction_seq, s.cost_nanos, s.input_tokens, s.model, s.unindexed, s.is_first_contact, s.start_reason,"
    " (SELECT p.title FROM session p WHERE p.no = s.parent_no) FROM session s",
    "events": "SELECT s.preview, e.seq, e.kind, e.created_at, e.role, e.content, e.hidden_by FROM event e"
    " JOIN session s ON s.no = e.session_no",
    "lanes": "SELECT l.key, s.preview FROM lane l JOIN session s ON s.no = l.session_no",
    "members": "SELECT p.name, COUNT(DISTINCT s.no) FROM person p JOIN audience_member m ON m.person_id = p.id"
    " JOIN session s ON s.audience_no = m.audience_no GROUP BY p.name",
    "files": "SELECT a.name, s.preview FROM attachment a JOIN attachment_use u ON u.attachment_no = a.no JOIN session s"
    " ON s.no = u.session_no",
    "marks": "SELECT s.preview, p.name, r.read_seq FROM read_mark r JOIN session s ON s.no = r.session_no JOIN person p"
    " ON p.id = r.person_id",
    "items": "SELECT origin_id, state, entry_count, digest, last_seq FROM imported_item",
}


class ImportRunner:
    """Runs imports into one database, each in a process of its own."""

    def __init__(self, launcher: WarmLauncher, url: str) -> None:
        self._launcher = launcher
        self._url = url

    def run(self, folder: Path, *, export: Path | None = None) -> Counter[str]:
        """Import everything; return how often it passed each crash point."""
        done = self._start(folder, export, None)
        assert done.returncode == 0, done.stderr
        return Counter(json.loads(done.stdout))

    def run_and_kill(self, folder: Path, point: str, passing: int, *, export: Path | None = None) -> None:
        """Start an import that is killed at a passing of a crash point."""
        done = self._start(folder, export, [point, passing])
        assert done.returncode == -signal.SIGKILL, done.stderr or f"{point} was not passed {passing} times"

    def _start(self, folder: Path, export: Path | None, crash_at: list[Any] | None) -> CompletedProcess[str]:
        arguments = {
            "url": self._url,
            "folder": str(folder),
            "export": None if export is None else str(export),
            "crash_at": crash_at,
        }
        done = self._launcher.run_script(SCRIPT, json.dumps(arguments))
        wait_for_disconnect(self._url)
        return done

    def empty_database(self) -> None:
        if self._url.startswith("sqlite:"):
            path = Path(self._url.removeprefix("sqlite:///"))
            for each in path.parent.glob(f"{path.name}*"):
                each.unlink()
            create_sqlite_database(path.parent)
        else:
            empty_database(self._url)


@pytest.fixture
def runner(launcher: WarmLauncher, store_url: str) -> ImportRunner:
    return ImportRunner(launcher, store_url)


def read_store(url: str) -> dict[str, list[str]]:
    return {name: sorted(map(repr, fetch_rows(url, sql))) for name, sql in WRITTEN.items()}


def test_every_crash_point_of_imports_is_tried() -> None:
    assert set(CRASH_POINTS) == list_crash_points("import.")


def choose_kills(url: str, counts: Counter[str], points: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Choose at which passings of each point the process dies: the first, the last, and one between.

    What is left to do depends on the moment, and not on the engine: on PostgreSQL, each point is enough once.
    """
    for point in points:
        middle = (counts[point] + 1) // 2
        for passing in {1, middle, counts[point]} if url.startswith("sqlite:") else {middle}:
            yield point, passing


def test_an_import_that_was_killed_goes_on_when_it_is_run_again(
    runner: ImportRunner, store_url: str, tmp_path: Path
) -> None:
    counts = runner.run(tmp_path / "whole")
    expected = read_store(store_url)
    assert find_inconsistencies(store_url) == []
    assert counts["import.batch_stored"] > 5
    for point, passing in choose_kills(store_url, counts, CRASH_POINTS):
        runner.empty_database()
        folder = tmp_path / f"{point}.{passing}"
        runner.run_and_kill(folder, point, passing)
        with SessionStore.open(store_url) as store:
            for session in store.list_sessions():  # what lists show is complete
                assert session.message_count == len(store.load_transcript(session.id)) > 0
        runner.run(folder)
        assert read_store(store_url) == expected, f"killed at passing {passing} of {point}"
        assert find_inconsistencies(store_url) == []


def test_an_import_of_an_export_that_was_killed_gives_the_same_bytes(
    runner: ImportRunner, store_url: str, tmp_path: Path
) -> None:
    with SessionStore.open(store_url, config=CONFIG, clock=FakeClock()) as store:
        attachments = Attachments(store, tmp_path / "first" / "attachments")
        RandomStore(store, attachments, random.Random(11)).fill(50)
        first = b"".join(format_lines(export_records(store, attachments, ExportScope())))
    path = tmp_path / "export.jsonl"
    path.write_bytes(first)
    runner.empty_database()
    counts = runner.run(tmp_path / "whole", export=path)
    for point, passing in choose_kills(store_url, counts, ["import.before_batch", "import.batch_stored"]):
        runner.empty_database()
        folder = tmp_path / f"{point}.{passing}"
        runner.run_and_kill(folder, point, passing, export=path)
        runner.run(folder, export=path)
        with SessionStore.open(store_url, config=CONFIG) as store:
            files = Attachments(store, folder / "attachments")
            exported = b"".join(format_lines(export_records(store, files, ExportScope())))
        assert exported == first, f"killed at passing {passing} of {point}"
