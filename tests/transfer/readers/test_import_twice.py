"""The files of each program come into a store as they were there, and a second import changes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.transfer.archive import iterate_sessions
from palaver.transfer.imported import InvalidImport
from palaver.transfer.importer import Importer
from palaver.transfer.readers import open_reader
from support.imported_items import make_zip

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.sessions.model import Session
    from support.transfer_stores import StoreMaker

FIXTURES = Path(__file__).parent / "fixtures"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def make_chatgpt_files(folder: Path) -> Path:
    files = {"conversations.json": (FIXTURES / "chatgpt.json").read_text(), "file_00000000aaaa.dat": PNG}
    return make_zip(folder / "chatgpt.zip", files)


def make_claude_files(folder: Path) -> Path:
    memories = [{"conversations_memory": "Ada likes tea."}]
    files = {"conversations.json": (FIXTURES / "claude.json").read_text(), "memories.json": memories}
    return make_zip(folder / "claude.zip", files)


def make_open_webui_files(folder: Path) -> Path:
    return Path(shutil.copy(FIXTURES / "open_webui.json", folder / "chats.json"))


def make_openclaw_files(folder: Path) -> Path:
    sessions = folder / "openclaw" / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    shutil.copy(FIXTURES / "openclaw.jsonl", sessions / "one.jsonl")
    entry = {"sessionId": "one", "deliveryContext": {"channel": "telegram", "to": "telegram:4242"}}
    (sessions / "sessions.json").write_text(json.dumps({"agent:main:main": entry}))
    (folder / "openclaw" / "credentials").mkdir()
    (folder / "openclaw" / "credentials" / "telegram-allowFrom.json").write_text('{"allowFrom": ["4242"]}')
    (folder / "openclaw" / "workspace").mkdir()
    (folder / "openclaw" / "workspace" / "MEMORY.md").write_text("- Ada likes tea")
    return folder / "openclaw"


FORMATS = {
    "chatgpt": make_chatgpt_files,
    "claude": make_claude_files,
    "open-webui": make_open_webui_files,
    "openclaw": make_openclaw_files,
}


def list_sessions(store: SessionStore) -> list[Session]:
    return list(iterate_sessions(store.seen_by(store.get_owner().principal, everything=True)))


def read_store(store: SessionStore) -> dict[str, Any]:
    """Return everything that an import may write and people can see."""
    return {
        session.id: (session.title, session.message_count, store.load_transcript(session.id))
        for session in list_sessions(store)
    }


@pytest.mark.both_engines
@pytest.mark.parametrize("import_format", FORMATS)
def test_a_second_import_changes_nothing(store_maker: StoreMaker, tmp_path: Path, import_format: str) -> None:
    path = FORMATS[import_format](tmp_path)
    store, attachments = store_maker.make(tmp_path / "store")
    importer = Importer(store, attachments)
    reports = []
    seen = []
    for _ in range(2):
        for is_dry_run in (True, False):
            reader = open_reader(import_format, path)
            try:
                reports.append(importer.import_files(reader, store.get_owner(), dry_run=is_dry_run))
            finally:
                reader.close()
        seen.append(read_store(store))
    first_dry, first, second_dry, second = (report.counts for report in reports)
    assert (first_dry, second_dry) == (first, second)
    assert first["conversations"] == len(seen[0]) > 0
    assert seen[0] == seen[1]
    assert second["conversations"] == second["messages"] == second["files"] == 0


def test_the_next_message_on_telegram_continues_the_conversation(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, attachments = store_maker.make(tmp_path / "store")
    reader = open_reader("openclaw", make_openclaw_files(tmp_path))
    try:
        Importer(store, attachments).import_files(reader, store.get_owner())
    finally:
        reader.close()
    entry = store.get_or_create_session(SessionSource("telegram", "4242", user_id="4242", user_name="Ada"))
    texts = [message["content"] for message in store.load_transcript(entry.session_id)]
    assert "Add bread" in texts


def test_only_formats_with_accounts_take_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidImport, match="no accounts"):
        open_reader("chatgpt", make_chatgpt_files(tmp_path), "ada")
    open_reader("open-webui", make_open_webui_files(tmp_path), "u-1").close()


def test_an_image_of_chatgpt_is_an_attachment(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, attachments = store_maker.make(tmp_path / "store")
    reader = open_reader("chatgpt", make_chatgpt_files(tmp_path))
    try:
        report = Importer(store, attachments).import_files(reader, store.get_owner())
    finally:
        reader.close()
    assert report.counts["files"] == 1
    parts = [
        part
        for session in list_sessions(store)
        for message in store.load_transcript(session.id)
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    assert [(part["name"], part["media_type"]) for part in parts if part["type"] == "attachment"] == [
        ("curve.png", "image/png")
    ]
