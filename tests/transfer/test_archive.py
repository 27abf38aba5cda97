"""The archive of a person: everything about them, and nothing of other people."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.core.errors import PalaverError, TooManyAttempts
from palaver.media.attachments import Attachments
from palaver.memory.service import MemoryOperations
from palaver.sessions.export import DocumentFormat
from palaver.transfer.archive import (
    MAX_EXPORTS_PER_PERIOD,
    PersonArchives,
    PersonExports,
    iterate_document_files,
    iterate_sessions,
    iterate_zip,
    write_folder,
)
from palaver.transfer.documents import Documents

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.testing import FakeClock

    Source = Callable[..., SessionSource]

SECRET = "zebra-4711"


async def _yield_bytes(data: bytes) -> AsyncIterator[bytes]:
    yield data


def read_zip(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.both_engines
async def test_an_archive_has_everything_of_a_person_and_nothing_of_others(
    open_store: OpenStore, dm: Source, tmp_path: Path
) -> None:
    store = open_store(GatewayConfig(group_sessions_per_user=False))
    files = Attachments(store, tmp_path / "attachments")
    ada, bob = (store.get_or_create_person(dm(name)).principal for name in ("ada", "bob"))
    own = store.record_user_message(dm("ada"), "my own trip").session_id
    store.append_to_transcript(own, "**Bon voyage**")
    store.record_user_message(dm("bob"), f"my secret is {SECRET}")
    for user in ("ada", "bob"):
        club = SessionSource("telegram", "club", chat_type="group", user_id=user, user_name=user.title())
        store.record_user_message(club, f"{user} is in the club")
    await files.receive(ada, "notes.txt", _yield_bytes(b"ada's notes"))
    await files.receive(bob, f"{SECRET}.txt", _yield_bytes(SECRET.encode()))
    store.seen_by(ada).part(MemoryOperations).remember("Ada likes trains")
    store.seen_by(bob).part(MemoryOperations).remember(f"Bob likes {SECRET}")
    store.seen_by(bob).projects.create(f"Project {SECRET}")

    content = read_zip(b"".join(PersonArchives(store, files).iterate(ada)))
    assert {"README.txt", "account.json", "memories.json", "jobs.json", "usage.json", "palaver.jsonl"} <= content.keys()
    for name, data in content.items():
        assert SECRET.encode() not in data + name.encode(), name
        assert ".." not in f"/{name}".split("/")
        assert not name.startswith("/")
    everything = b"".join(content.values()).decode()
    for text in ("my own trip", "<strong>Bon voyage</strong>", "bob is in the club", "Ada likes trains"):
        assert text in everything
    assert [data for name, data in content.items() if name.startswith("files/")] == [b"ada's notes"]
    assert len([name for name in content if name.startswith("conversations/html/")]) == 3
    people = [json.loads(line) for line in content["palaver.jsonl"].splitlines() if b'"type":"person"' in line]
    assert [person["name"] for person in people if "accounts" in person] == ["Ada"]
    account = json.loads(content["account.json"])
    assert [(each["platform"], each["account"]) for each in account["chat_accounts"]] == [("telegram", "ada")]


def test_several_conversations_become_files_with_an_index(
    sqlite_store: SessionStore, dm: Source, tmp_path: Path
) -> None:
    store = sqlite_store
    principal = store.get_or_create_person(dm()).principal
    for title in ("../../evil", "Same", "]( <b>"):
        store.reset_session(store.record_user_message(dm(), title).session_key)
    view, documents, now = store.seen_by(principal), Documents(store, None), store.clock.now()

    def iterate(document_format: DocumentFormat) -> list[str]:
        files = iterate_document_files(documents, principal, iterate_sessions(view), document_format, now)
        return sorted(read_zip(b"".join(iterate_zip(files))))

    names = iterate(DocumentFormat.MARKDOWN)
    assert len(names) == 4
    assert names[-1] == "index.md"
    assert all("/" not in name for name in names)
    folder = tmp_path / "out"
    files = iterate_document_files(documents, principal, iterate_sessions(view), DocumentFormat.HTML, now)
    assert write_folder(folder, files) == 4
    index = (folder / "index.html").read_text()
    assert "&lt;b&gt;" in index
    for path in folder.iterdir():
        assert path.name == "index.html" or f'href="{path.name}"' in index
        assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(PalaverError, match="not an empty folder"):
        write_folder(folder, [])


def test_a_person_downloads_one_archive_at_a_time_and_a_few_in_an_hour(
    sqlite_store: SessionStore, dm: Source, clock: FakeClock
) -> None:
    principal = sqlite_store.get_or_create_person(dm()).principal
    exports = PersonExports(PersonArchives(sqlite_store, None), clock)
    running = exports.start(principal)
    next(running)
    with pytest.raises(TooManyAttempts, match="already"):
        exports.start(principal)
    other = sqlite_store.get_or_create_person(dm("bob")).principal
    list(exports.start(other))
    running.close()  # type: ignore[attr-defined]
    for _ in range(MAX_EXPORTS_PER_PERIOD - 1):
        list(exports.start(principal))
    with pytest.raises(TooManyAttempts, match="within an hour"):
        exports.start(principal)
    clock.advance(hours=1)
    list(exports.start(principal))
