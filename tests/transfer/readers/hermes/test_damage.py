"""Files that are damaged, missing or hostile: reported, and the rest comes in."""

from __future__ import annotations

import json
import logging
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from palaver.transfer.imported import ImportedMemory, ImportProblem, InvalidImport
from palaver.transfer.reader_kit.export_files import UnreadableItem
from palaver.transfer.readers.hermes import open_reader
from palaver.transfer.readers.hermes.records import sum_usage
from palaver.transfer.readers.hermes.transcripts import CHUNK_CHARS, read_members

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_folder_that_is_not_hermes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidImport, match="this is not the folder of Hermes"):
        open_reader(tmp_path)
    with pytest.raises(InvalidImport, match="no such folder"):
        open_reader(tmp_path / "missing")


def test_the_database_itself_may_be_named(build_home: Callable[[str], Path]) -> None:
    reader = open_reader(build_home("hermes-0.13.0") / "state.db")
    assert reader.count_conversations() == 8
    reader.close()


def test_a_database_that_is_none_is_reported_and_transcripts_come_in(
    build_home: Callable[[str], Path], read_folder: Callable[[Path], Any]
) -> None:
    folder = build_home("hermes-0.13.0")
    (folder / "state.db").write_bytes(b"x" * 4096)
    home = read_folder(folder)
    assert any("is not a SQLite database" in each.what for each in home.problems)
    assert len(home.conversations) == 8


def test_a_truncated_database_is_reported(
    build_home: Callable[[str], Path], read_folder: Callable[[Path], Any]
) -> None:
    folder = build_home("hermes-0.13.0")
    data = (folder / "state.db").read_bytes()
    (folder / "state.db").write_bytes(data[: len(data) // 2])
    home = read_folder(folder)
    assert any("damaged" in each.what for each in home.problems)
    assert len(home.conversations) >= 7  # from their transcripts


LINKED = ["memories/USER.md", "memories", "sessions", "cron/jobs.json", "config.yaml", "pairing", "webui", "state.db"]


@pytest.mark.parametrize("name", LINKED)
def test_no_link_leads_out_of_the_folder(
    build_home: Callable[[str], Path], read_folder: Callable[[Path], Any], tmp_path: Path, name: str
) -> None:
    """What is behind the link is a valid file of Hermes, of another person."""
    write(tmp_path / "mine" / "memories" / "MEMORY.md", "of the person who imports")
    other = build_home("hermes-0.19.0")
    write(other / "memories" / "USER.md", "the secret of another person")
    write(other / "config.yaml", "timezone: Europe/Vienna\ngateway:\n  telegram:\n    allowed_users: ['77']\n")
    write(other / "pairing" / "telegram-approved.json", json.dumps({"99": {"user_name": "of another person"}}))
    write(other / "webui" / "projects.json", json.dumps([{"project_id": "p", "name": "of another person"}]))
    expected = read_folder(tmp_path / "mine")
    link = tmp_path / "mine" / name
    if name == "memories":
        shutil.rmtree(link)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(other / name)
    found = read_folder(tmp_path / "mine")
    assert [item for item in found.items if not isinstance(item, ImportProblem | ImportedMemory)] == []
    assert {item.text for item in found.all(ImportedMemory)} <= {item.text for item in expected.all(ImportedMemory)}


def test_a_view_in_the_place_of_a_table_ends_at_once(
    build_home: Callable[[str], Path], read_folder: Callable[[Path], Any]
) -> None:
    folder = build_home("hermes-0.13.0")
    with closing(apsw.Connection(str(folder / "state.db"))) as db:
        [(columns,)] = db.execute("SELECT group_concat('x AS \"' || name || '\"') FROM pragma_table_info('sessions')")
        db.execute("ALTER TABLE sessions RENAME TO kept")
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
        db.execute(f"CREATE VIEW sessions AS {endless} SELECT {columns} FROM n")
    home = read_folder(folder)
    assert any("a view where a table is expected" in each.what for each in home.problems)


@pytest.mark.parametrize("name", ["sessions/sessions.json", "webui/projects.json", "cron/jobs.json"])
@pytest.mark.parametrize("text", ["", "{", "[1, 2", '"text"', "[[[[", "null", "\x00\x01"])
def test_any_damaged_file_leaves_the_rest(
    build_home: Callable[[str], Path], read_folder: Callable[[Path], Any], name: str, text: str
) -> None:
    folder = build_home("hermes-webui")
    write(folder / name, text)
    assert len(read_folder(folder).conversations) == 5


def test_settings_that_cannot_be_parsed_say_where_without_their_content(
    build_home: Callable[[str], Path], read_folder: Callable[[Path], Any], caplog: pytest.LogCaptureFixture
) -> None:
    folder = build_home("hermes-0.19.0")
    write(folder / "config.yaml", "platforms:\n  telegram:\n    token: 'secret-1\n  x: [\n")
    write(folder / "gateway.json", '{"telegram": {"token": "secret-2"')
    with caplog.at_level(logging.DEBUG):
        home = read_folder(folder)
    where = {each.where for each in home.problems}
    assert "gateway.json, line 1" in where
    assert any(each.startswith("config.yaml, line") for each in where)
    assert "secret" not in repr(home.items) + caplog.text


def test_a_session_id_never_leads_out_of_the_folder(tmp_path: Path, read_folder: Callable[[Path], Any]) -> None:
    write(tmp_path / "outside.jsonl", '{"role": "user", "content": "private"}\n')
    home = tmp_path / "home"
    entry = {"session_id": "../../outside", "origin": {"platform": "telegram", "chat_id": "1"}}
    write(home / "sessions" / "sessions.json", json.dumps({"agent:main:telegram:dm:1": entry}))
    assert read_folder(home).conversations == []


def test_an_attachment_outside_of_the_uploads_is_only_named(tmp_path: Path, read_folder: Callable[[Path], Any]) -> None:
    write(tmp_path / "webui" / "attachments" / "a1" / "list.txt", "milk")
    write(tmp_path / ".env", "TOKEN=secret")
    uploads = str(tmp_path / "webui" / "attachments")
    message = {
        "role": "user",
        "content": "See",
        "attachments": [{"name": "list.txt", "path": f"{uploads}/a1/list.txt"}, {"name": "x", "path": "../../.env"}],
    }
    write(tmp_path / "webui" / "sessions" / "a1.json", json.dumps({"session_id": "a1", "messages": [message]}))
    home = read_folder(tmp_path)
    (entry,) = home.entries["a1"]
    assert [b"".join(file.open_chunks()) for file in entry.files] == [b"milk"]
    assert entry.message.text == "See\n[File: x (not in the export)]"


def test_messages_of_unknown_kinds_are_reported_or_skipped(tmp_path: Path, read_folder: Callable[[Path], Any]) -> None:
    lines = [
        {"role": "session_meta", "tools": []},
        {"role": "robot", "content": "?"},
        ["no", "message"],
        {"role": "user", "content": "Hello", "timestamp": "2026-01-01T10:00:00"},
        {"role": "assistant", "content": None, "tool_calls": "broken"},
        {"role": "assistant", "content": {"odd": 1}, "tool_calls": [{"function": {}}, 5]},
        {"role": "tool", "content": [{"text": "result"}]},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    write(tmp_path / "sessions" / "20260101_100000_abcd.jsonl", text)
    home = read_folder(tmp_path)
    assert home.texts("20260101_100000_abcd") == [
        ["user", "Hello"],
        ["assistant", '{"odd": 1}'],
        ["tool", "result"],
    ]
    assert [each.where.rpartition(", ")[2] for each in home.problems] == ["line 2", "line 3"]


def test_an_object_is_read_in_pieces(tmp_path: Path) -> None:
    long = "x" * (CHUNK_CHARS + 10)
    data = {"id": 1, "messages": [{"n": number, "text": long} for number in range(3)], "after": [1, 2], "number": 12}
    path = tmp_path / "a.json"
    for indent in (None, 2):
        path.write_text(json.dumps(data, indent=indent), encoding="utf-8")
        members = list(read_members(path, ("messages",)))
        assert [key for key, _ in members] == ["id", "messages", "messages", "messages", "after", "number"]
        assert members[-1] == ("number", 12)
    path.write_text(json.dumps(data)[:-40], encoding="utf-8")
    with pytest.raises(UnreadableItem):
        list(read_members(path, ("messages",)))


def test_profiles_are_read_as_homes_of_their_own(
    build_home: Callable[[str], Path], read_folder: Callable[[Path], Any], tmp_path: Path
) -> None:
    folder = build_home("hermes-0.13.0")
    profile = folder / "profiles" / "work"
    profile.mkdir(parents=True)
    build_home("hermes-webui").rename(tmp_path / "page")
    for item in (tmp_path / "page").iterdir():
        item.rename(profile / item.name)
    home = read_folder(folder)
    tomatoes = home.conversation("work/a0a0a0a0a0a0")
    assert tomatoes.profile == "work"
    assert home.conversation("work/d3d3d3d3d3d3").parent_origin_id == "work/a0a0a0a0a0a0"
    starts = [item.created_at for item in home.conversations]
    assert starts == sorted(starts)


def test_a_snapshot_of_the_agent_is_read_if_nothing_else_is_left(
    tmp_path: Path, read_folder: Callable[[Path], Any]
) -> None:
    messages = [{"role": "system", "content": "prompt"}, {"role": "user", "content": "Hi"}]
    data = {"session_id": "20260101_100000_ab", "session_start": "2026-01-01T10:00:00", "messages": messages}
    write(tmp_path / "sessions" / "session_20260101_100000_ab.json", json.dumps(data))
    home = read_folder(tmp_path)
    assert home.texts("20260101_100000_ab") == [["user", "Hi"]]
    assert home.conversations[0].created_at.isoformat() == "2026-01-01T09:00:00+00:00"


def test_sessions_that_continue_each_other_in_a_circle_come_in(
    build_home: Callable[[str], Path], read_folder: Callable[[Path], Any]
) -> None:
    folder = build_home("hermes-0.13.0")
    with closing(apsw.Connection(str(folder / "state.db"))) as db:
        ids = [row[0] for row in db.execute("SELECT id FROM sessions ORDER BY id LIMIT 2").fetchall()]
        statement = "UPDATE sessions SET parent_session_id = ?, end_reason = 'compression' WHERE id = ?"
        db.execute(statement, (ids[0], ids[1]))
        db.execute(statement, (ids[1], ids[0]))
    assert len(read_folder(folder).conversations) == 8


@pytest.mark.parametrize(
    ("end_reason", "suspended", "expected"),
    [(None, False, True), ("agent_close", False, True), ("session_reset", False, False), (None, True, False)],
)
def test_a_chat_continues_only_a_session_that_hermes_would_continue(
    build_home: Callable[[str], Path],
    read_folder: Callable[[Path], Any],
    end_reason: str | None,
    suspended: bool,
    expected: bool,
) -> None:
    folder = build_home("hermes-0.13.0")
    path = folder / "sessions" / "sessions.json"
    routes = json.loads(path.read_text(encoding="utf-8"))
    entry = routes["agent:main:telegram:dm:201"]
    entry["suspended"] = suspended
    path.write_text(json.dumps(routes), encoding="utf-8")
    with closing(apsw.Connection(str(folder / "state.db"))) as db:
        db.execute("UPDATE sessions SET end_reason = ?, ended_at = 5 WHERE id = ?", (end_reason, entry["session_id"]))
    assert read_folder(folder).conversation(entry["session_id"]).is_current is expected


@pytest.mark.parametrize("damage", [{"input_tokens": 10**15}, {"input_tokens": 1, "actual_cost_usd": 999_999.0}])
def test_absurd_usage_does_not_end_the_import(damage: dict[str, Any]) -> None:
    rows = [{"model": "m", "billing_provider": "p", **damage}] * 3
    [usage] = sum_usage("c", rows, 0)
    assert usage.model == "m"
