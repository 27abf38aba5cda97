"""`kill -9` while a person is erased: access is gone at once, and any process goes on until nothing is left."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore
from palaver.media.attachments import Attachments
from palaver.operation.cleanup import Cleanup
from palaver.operation.erasure import Erasures
from palaver.sessions.indexer import catch_up_index
from scenarios.kill_cases import build_cases
from scenarios.store_harness import find_inconsistencies, wait_for_disconnect
from support.crashing import list_crash_points
from support.erased_people import MARK, OTHER_MARK, find_everywhere, leave_traces, make_private, quote_and_copy
from support.inbox import list_rows

if TYPE_CHECKING:
    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("erasure_process.py")

# At which passing of each point the process is killed: in different steps. `make test` tries a few of them.
PASSINGS = {
    "erase.started": (1,),
    "erase.before_batch": (1, 9),
    "erase.batch_stored": (2, 5, 8, 12, 20),
    "erase.before_file_deletion": (1,),
}
CASES = build_cases(
    [(point, passing) for point, passings in PASSINGS.items() for passing in passings],
    {
        *(("sqlite", point, 1) for point in ("erase.started", "erase.before_batch", "erase.before_file_deletion")),
        *(("sqlite", "erase.batch_stored", passing) for passing in (2, 8, 20)),
        *(("postgres", "erase.batch_stored", passing) for passing in (5, 12)),
    },
)


def test_the_table_has_every_crash_point() -> None:
    assert set(PASSINGS) == list_crash_points("erase.")


async def fill_store(url: str, folder: Path) -> str:
    with SessionStore.open(url) as store:
        attachments = Attachments(store, folder)
        ada = await leave_traces(store, attachments, MARK)
        bob = await leave_traces(store, attachments, OTHER_MARK)
        await quote_and_copy(store, attachments, MARK, bob, OTHER_MARK)
        await catch_up_index(store.engine)
        return ada.id


async def finish(url: str, folder: Path, person_id: str, *, by_cleanup: bool) -> None:
    """Go on, as the cleanup of a server does, or as an owner who erases the person again."""
    with SessionStore.open(url) as store:
        attachments = Attachments(store, folder)
        if by_cleanup:
            await Cleanup(store, attachments).run_once()
        else:
            await Erasures(store, attachments).erase(store.get_owner().principal, person_id)


@pytest.mark.parametrize(("store_url", "point", "passing"), CASES, indirect=["store_url"])
def test_an_erasure_goes_on_after_a_kill(
    launcher: WarmLauncher, store_url: str, tmp_path: Path, point: str, passing: int
) -> None:
    folder = tmp_path / "attachments"
    person_id = asyncio.run(fill_store(store_url, folder))
    killed = launcher.run_script(SCRIPT, store_url, str(folder), person_id, point, str(passing))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    wait_for_disconnect(store_url)
    with SessionStore.open(store_url) as store:
        assert list_rows(store, "SELECT 1 FROM identity WHERE person_id = $1", person_id) == []
        assert list_rows(store, "SELECT 1 FROM account WHERE person_id = $1", person_id) == []
        assert list_rows(store, "SELECT COUNT(*) FROM erasure WHERE ended_at IS NULL") == [(1,)]
    asyncio.run(finish(store_url, folder, person_id, by_cleanup=passing % 2 == 0))
    with SessionStore.open(store_url) as store:
        assert find_everywhere(store, folder, MARK) == []
        assert find_everywhere(store, folder, person_id) == []
        assert find_everywhere(store, folder, OTHER_MARK) != []
        assert list_rows(store, "SELECT COUNT(*) FROM erasure WHERE ended_at IS NOT NULL") == [(1,)]
        assert store.get_or_create_person(make_private(OTHER_MARK)).role.value == "member"
    assert find_inconsistencies(store_url) == []
