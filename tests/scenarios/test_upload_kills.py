"""`kill -9` of a server while a person imports a file on the page: after its next start, everything is there once."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionStore
from scenarios.kill_cases import build_cases
from scenarios.store_harness import find_inconsistencies, wait_for_disconnect
from support.crashing import list_crash_points

if TYPE_CHECKING:
    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("upload_process.py")
PASSINGS = {
    "upload.received": (1,),
    "upload.saved": (1,),
    "upload.confirmed": (1,),
    "import.before_batch": (1, 3),
    "import.batch_stored": (1, 5),
}
# The imports have kill tests of their own on PostgreSQL; the states of uploads are files.
POINTS = [(point, passing) for point, passings in PASSINGS.items() for passing in passings]
CASES = build_cases(POINTS, {*(("sqlite", *point) for point in POINTS), ("postgres", "import.batch_stored", 5)})


def test_the_table_has_every_crash_point() -> None:
    assert list_crash_points("upload.") <= set(PASSINGS)


def run_process(launcher: WarmLauncher, url: str, folder: Path, crash_at: list[Any] | None = None) -> int:
    arguments = json.dumps({"url": url, "folder": str(folder), "crash_at": crash_at})
    done = launcher.run_script(SCRIPT, arguments)
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode


@pytest.mark.parametrize(("store_url", "point", "passing"), CASES, indirect=["store_url"])
def test_an_import_on_the_page_goes_on_after_a_kill(
    launcher: WarmLauncher, store_url: str, tmp_path: Path, point: str, passing: int
) -> None:
    assert run_process(launcher, store_url, tmp_path, [point, passing]) == -signal.SIGKILL
    wait_for_disconnect(store_url)
    assert run_process(launcher, store_url, tmp_path) == 0
    wait_for_disconnect(store_url)
    with SessionStore.open(store_url) as store:
        titles = {session.id: session.title for session in store.list_sessions(limit=50)}
        assert sorted(titles.values(), key=str) == [f"Trip {number}" for number in range(8)]
        for session_id, title in titles.items():
            texts = [message["content"] for message in store.load_transcript(session_id)]
            assert texts == [f"question {str(title).removeprefix('Trip ')}", "answer"]
    assert find_inconsistencies(store_url) == []
    left = [path.name for path in (tmp_path / "imports").iterdir() if path.suffix != ".json"]
    # Bytes that nothing knows are deleted after a day.
    assert len(left) == (1 if point == "upload.received" else 0)
