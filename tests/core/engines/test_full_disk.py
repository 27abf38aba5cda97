"""A full disk: nothing is lost, reading and deleting go on, and so does everything when there is space again."""

from __future__ import annotations

import subprocess
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import apsw
import pytest

from palaver import SessionSource, SessionStore
from palaver.core.engines import sqlite as sqlite_engine, sqlite_presence as disk_reserve
from palaver.core.errors import StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DISK_BYTES = 16 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    mount = subprocess.run(command, check=False, capture_output=True, text=True)
    if mount.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {mount.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the log and the reserve fit the small disk."""
    monkeypatch.setattr(disk_reserve, "RESERVE_BYTES", 3 * 1024 * 1024)
    monkeypatch.setattr(sqlite_engine, "CHECKPOINT_PAGES", 300)


def fill(store: SessionStore) -> dict[str, int]:
    """Store messages until the disk is full; return how many there are by conversation."""
    counts: dict[str, int] = {}
    for number in range(10_000):
        source = SessionSource("telegram", f"chat{number // 5}", user_id="ada")
        try:
            session_id = store.record_user_message(source, f"{number} " + "word " * 4000).session_id
        except StoreFull:
            return counts
        counts[session_id] = counts.get(session_id, 0) + 1
    raise AssertionError("the disk is not full")


def fill_rest(folder: Path) -> None:
    """Let another program take what is left."""
    with (folder / "of-another-program").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.mark.usefixtures("small_sizes")
def test_conversations_can_be_deleted_on_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "palaver.db"
    with SessionStore.open(path) as store:
        store.engine.maintain()
        counts = fill(store)
        fill_rest(small_disk)
        for session_id in list(counts)[:-1]:
            store.delete_session(session_id)
            del counts[session_id]
        assert [session.id for session in store.list_sessions()] == list(counts)
        [(session_id, count)] = counts.items()
        assert len(store.load_transcript(session_id)) == count
    with closing(apsw.Connection(str(path))) as db:
        assert db.execute("PRAGMA integrity_check").get == "ok"


@pytest.mark.usefixtures("small_sizes")
def test_everything_stored_is_there_and_the_store_goes_on_when_there_is_space(small_disk: Path) -> None:
    with SessionStore.open(small_disk / "palaver.db") as store:
        store.engine.maintain()
        (small_disk / "large").write_bytes(bytes(2 * disk_reserve.RESERVE_BYTES))
        counts = fill(store)
        fill_rest(small_disk)
        with pytest.raises(StoreFull):
            store.record_user_message(SessionSource("telegram", "late", user_id="ada"), "late " * 4000)
        assert len(store.search("word", limit=5)) <= 5  # what is indexed
        assert {each: len(store.load_transcript(each)) for each in counts} == counts
        store.delete_session(next(iter(counts)))
        (small_disk / "large").unlink()
        store.record_user_message(SessionSource("telegram", "late", user_id="ada"), "late " * 4000)
        store.engine.maintain()


def test_a_reserve_is_kept_only_where_there_is_much_more_space(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, expected in ((small_disk, False), (tmp_path, True)):
        with SessionStore.open(folder / "palaver.db") as store:
            assert not (folder / "palaver.db-reserve").exists()
            store.engine.maintain()
            assert (folder / "palaver.db-reserve").exists() == expected
    assert (tmp_path / "palaver.db-reserve").stat().st_size == disk_reserve.RESERVE_BYTES
    assert (tmp_path / "palaver.db-reserve").stat().st_mode & 0o777 == 0o600
