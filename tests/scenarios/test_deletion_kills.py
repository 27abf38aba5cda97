"""`kill -9` while a long conversation is deleted: no reader sees a part of it, and any server deletes the rest."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from palaver import SessionSource, SessionStore
from palaver.domain.crash_points import CrashPoint
from palaver.domain.errors import SessionNotFound
from palaver.services.attachments import Attachments
from palaver.services.cleanup import Cleanup
from palaver.storage.session_deletion import ROWS_PER_PIECE
from support.inbox import list_rows

sys.path.insert(0, str(Path(__file__).parent))

from store_harness import find_inconsistencies, wait_for_disconnect

if TYPE_CHECKING:
    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("deletion_process.py")
POINT = "deletion.before_piece"
MESSAGES = 2 * ROWS_PER_PIECE + 10

# At which passing the process is killed: nothing but hidden, in the middle, and only the row of the session left.
CASES = [*(("sqlite", passing) for passing in (1, 2, 4)), *(("postgres", passing) for passing in (1, 3))]


def test_the_point_is_the_only_one_of_deletions() -> None:
    assert [point for point in get_args(CrashPoint) if point.startswith("deletion.")] == [POINT]


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
    killed = launcher.run_script(SCRIPT, store_url, long_id, POINT, str(passing))
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
