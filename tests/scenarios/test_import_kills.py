"""`kill -9` during an import: run again, the store is the same as after an import that was not interrupted."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from palaver import GatewayConfig, SessionStore
from palaver.domain.crash_points import CrashPoint
from palaver.services.attachments import Attachments
from palaver.services.transfer.exporter import Exporter, ExportScope
from palaver.testing import FakeClock
from support.random_store import RandomStore

sys.path.insert(0, str(Path(__file__).parent))

from store_harness import fetch_rows, find_inconsistencies, wait_for_disconnect

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

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


def run_import(
    url: str, folder: Path, *, export: Path | None = None, crash_at: list[Any] | None = None
) -> dict[str, int]:
    """Run an import in a process of its own; empty if it was killed."""
    arguments = {
        "url": url,
        "folder": str(folder),
        "export": None if export is None else str(export),
        "crash_at": crash_at,
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), json.dumps(arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    if crash_at is not None:
        assert done.returncode in {0, -signal.SIGKILL}, done.stderr
        return json.loads(done.stdout) if done.returncode == 0 else {}
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def read_store(url: str) -> dict[str, list[str]]:
    wait_for_disconnect(url)
    return {name: sorted(map(repr, fetch_rows(url, sql))) for name, sql in WRITTEN.items()}


def test_every_crash_point_of_imports_is_tried() -> None:
    assert set(CRASH_POINTS) == {point for point in get_args(CrashPoint) if point.startswith("import.")}


def choose_passings(counts: dict[str, int], point: str) -> list[int]:
    """Choose at which passings of a point the process dies: the first, the last, and some between."""
    count = counts[point]
    return sorted(passing for passing in {1, 2, count // 2, count} if 1 <= passing <= count)


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_an_import_that_was_killed_goes_on_when_it_is_run_again(
    store_url: str, empty_store: Callable[[], None], tmp_path: Path, point: str
) -> None:
    counts = run_import(store_url, tmp_path / "whole")
    expected = read_store(store_url)
    assert find_inconsistencies(store_url) == []
    assert counts["import.batch_stored"] > 5
    for passing in choose_passings(counts, point):
        empty_store()
        folder = tmp_path / f"killed{passing}"
        assert run_import(store_url, folder, crash_at=[point, passing]) == {}, "it is killed there"
        with SessionStore.open(store_url) as store:
            for session in store.list_sessions():  # what lists show is complete
                assert session.message_count == len(store.load_transcript(session.id)) > 0
        run_import(store_url, folder)
        assert read_store(store_url) == expected
        assert find_inconsistencies(store_url) == []


@pytest.mark.parametrize("point", ["import.before_batch", "import.batch_stored"])
def test_an_import_of_an_export_that_was_killed_gives_the_same_bytes(
    store_url: str, empty_store: Callable[[], None], tmp_path: Path, point: str
) -> None:
    with SessionStore.open(store_url, config=CONFIG, clock=FakeClock()) as store:
        attachments = Attachments(store, tmp_path / "first" / "attachments")
        RandomStore(store, attachments, random.Random(11)).fill(50)
        first = b"".join(Exporter(store, attachments).export_lines(ExportScope.everything()))
    path = tmp_path / "export.jsonl"
    path.write_bytes(first)
    empty_store()
    counts = run_import(store_url, tmp_path / "whole", export=path)
    for passing in choose_passings(counts, point):
        empty_store()
        folder = tmp_path / f"killed{passing}"
        assert run_import(store_url, folder, export=path, crash_at=[point, passing]) == {}, "it is killed there"
        wait_for_disconnect(store_url)
        run_import(store_url, folder, export=path)
        wait_for_disconnect(store_url)
        with SessionStore.open(store_url, config=CONFIG) as store:
            exporter = Exporter(store, Attachments(store, folder / "attachments"))
            assert b"".join(exporter.export_lines(ExportScope.everything())) == first


@pytest.fixture
def empty_store(store_url: str) -> Callable[[], None]:
    """Empties the test's database."""
    from palaver.storage.engines import postgres_pool

    def empty() -> None:
        wait_for_disconnect(store_url)
        if store_url.startswith("sqlite:"):
            path = Path(store_url.removeprefix("sqlite:///"))
            for each in path.parent.glob(f"{path.name}*"):
                each.unlink()
            return
        with postgres_pool.connect(store_url) as connection:
            connection.execute(EMPTY_ALL_TABLES)

    return empty


EMPTY_ALL_TABLES = """DO $$ DECLARE found RECORD; BEGIN
    SET LOCAL session_replication_role = replica;
    FOR found IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
        AND relname <> 'migration' LOOP EXECUTE format('DELETE FROM %I', found.relname); END LOOP; END $$"""
