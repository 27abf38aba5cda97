"""How much space the files of one person may take, and the space that stays free on the disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.core import files as disk_space
from palaver.core.engines.base import Write
from palaver.core.errors import StoreFull
from palaver.media import table as attachment_rows
from palaver.media.attachments import Attachments
from palaver.sessions import speech as attachment_domain
from palaver.sessions.speech import FileQuotaReached, FileUsage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.people.model import Principal

MEGABYTE = 1_000_000
pytestmark = pytest.mark.both_engines


def make_principal(store: SessionStore, user: str = "1") -> Principal:
    return store.get_or_create_person(SessionSource("telegram", user, user_id=user)).principal


async def stream(data: bytes) -> AsyncIterator[bytes]:
    yield data


@pytest.fixture
def store(open_store: OpenStore) -> SessionStore:
    return open_store(GatewayConfig(max_file_mb_per_person=1))


@pytest.fixture
def files(store: SessionStore, tmp_path: Path) -> Attachments:
    return Attachments(store, tmp_path / "attachments")


async def test_a_person_stores_no_more_than_their_share(store: SessionStore, files: Attachments) -> None:
    ada, ben = make_principal(store, "1"), make_principal(store, "2")
    await files.receive(ada, "a.txt", stream(b"a" * 600_000))
    with pytest.raises(FileQuotaReached, match="use 1 of 1 MB") as error:
        await files.receive(ada, "b.txt", stream(b"b" * 600_000))
    assert error.value.facts == {"what": "bytes", "used_bytes": 1_200_000, "limit_bytes": MEGABYTE}
    with pytest.raises(FileQuotaReached):
        files.store_blocking(ada.person_id, "b.txt", [b"b" * 600_000])
    await files.receive(ben, "b.txt", stream(b"b" * 600_000))
    assert await files.get_usage(ada) == FileUsage(600_000, 1)


async def test_equal_files_are_counted_once(store: SessionStore, files: Attachments) -> None:
    ada = make_principal(store)
    for _ in range(3):
        await files.receive(ada, "a.txt", stream(b"a" * 600_000))
    assert await files.get_usage(ada) == FileUsage(600_000, 3)


async def test_deleted_files_give_their_space_back(store: SessionStore, files: Attachments) -> None:
    ada = make_principal(store)
    first = await files.receive(ada, "a.txt", stream(b"a" * 600_000))
    [(no, _)] = store.engine.run(Write(lambda tx: attachment_rows.list_by_id(tx, [first.id])))
    assert store.engine.run(Write(lambda tx: attachment_rows.delete_unused(tx, [no]))) == 1
    assert await files.get_usage(ada) == FileUsage(0, 0)
    await files.receive(ada, "b.txt", stream(b"b" * 600_000))


async def test_uploads_at_the_same_time_share_the_space(
    open_store: OpenStore, store: SessionStore, files: Attachments, tmp_path: Path
) -> None:
    other = Attachments(open_store(GatewayConfig(max_file_mb_per_person=1)), tmp_path / "attachments")
    ada = make_principal(store)
    results = await asyncio.gather(
        *(
            (files if number % 2 else other).receive(ada, "a.txt", stream(bytes([97 + number]) * 400_000))
            for number in range(8)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(each, FileQuotaReached) for each in results) == 6
    assert await files.get_usage(ada) == FileUsage(800_000, 2)
    assert not list((tmp_path / "attachments").glob(".upload-*"))


async def test_the_number_of_files_is_limited(
    store: SessionStore, files: Attachments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachment_domain, "MAX_FILES_PER_PERSON", 2)
    ada = make_principal(store)
    for _ in range(2):
        await files.receive(ada, "a.txt", stream(b"a"))
    with pytest.raises(FileQuotaReached, match="up to 2 files"):
        await files.receive(ada, "a.txt", stream(b"a"))


async def test_files_leave_space_on_the_disk(
    store: SessionStore, files: Attachments, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ada = make_principal(store)
    monkeypatch.setattr(disk_space, "get_room", lambda _folder: 0)
    with pytest.raises(StoreFull, match="nearly full"):
        await files.receive(ada, "a.txt", stream(b"a"))
    with pytest.raises(StoreFull, match="nearly full"):
        files.store_blocking(ada.person_id, "a.txt", [b"a"])
    assert not [path for path in (tmp_path / "attachments").rglob("*") if path.is_file()]
    monkeypatch.undo()
    await files.receive(ada, "a.txt", stream(b"a"))


def test_a_small_disk_keeps_a_part_of_it_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(total: int, free: int) -> int:
        monkeypatch.setattr("shutil.disk_usage", lambda _path: type("Usage", (), {"total": total, "free": free}))
        return disk_space.get_room(tmp_path / "missing" / "folder")

    assert measure(100 * 10**9, 2 * 10**9) == 1_500_000_000
    assert measure(10**9, 10**8) == 50_000_000
    assert measure(100 * 10**9, 4 * 10**8) < 0
