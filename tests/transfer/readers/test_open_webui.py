"""Open WebUI's exported chats and its database come in with files, folders, tokens and memories."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from palaver.transfer.imported import InvalidImport
from palaver.transfer.readers.open_webui import convert_message, open_reader
from support.imported_items import make_zip, read_everything

FIXTURE = Path(__file__).parent / "fixtures" / "open_webui.json"
PNG = b"\x89PNG\r\n\x1a\n"
# As in Open WebUI 0.10.2; older versions lack the last table and some columns.
SCHEMA = """
CREATE TABLE "user" (id TEXT PRIMARY KEY, email TEXT, name TEXT, role TEXT);
CREATE TABLE chat (id TEXT PRIMARY KEY, user_id TEXT, title TEXT, chat JSON, created_at BIGINT, updated_at BIGINT,
  share_id TEXT, archived BOOLEAN, pinned BOOLEAN, meta JSON, folder_id TEXT);
CREATE TABLE folder (id TEXT PRIMARY KEY, parent_id TEXT, user_id TEXT, name TEXT);
CREATE TABLE file (id TEXT PRIMARY KEY, user_id TEXT, filename TEXT, path TEXT, data JSON, meta JSON);
CREATE TABLE memory (id TEXT PRIMARY KEY, user_id TEXT, content TEXT, created_at BIGINT, updated_at BIGINT);
CREATE TABLE chat_message (id TEXT PRIMARY KEY, chat_id TEXT, user_id TEXT, role TEXT, parent_id TEXT, content JSON,
  output JSON, model_id TEXT, files JSON, done BOOLEAN, error JSON, usage JSON, created_at BIGINT, updated_at BIGINT);
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with the chats of the export, one account, a folder, a file and a memory."""
    path = tmp_path / "data" / "webui.db"
    path.parent.mkdir()
    (path.parent / "uploads").mkdir()
    (path.parent / "uploads" / "file-9_map.pdf").write_bytes(b"%PDF-1.7")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA)
        db.execute("INSERT INTO user VALUES ('u-1', 'ada@example.com', 'Ada', 'admin')")
        db.execute("INSERT INTO folder VALUES ('fold-1234-5678', NULL, 'u-1', 'Weather')")
        db.execute("INSERT INTO memory VALUES ('mem-1', 'u-1', 'Ada likes tea.', 1700000000, 1700000000)")
        db.execute(
            "INSERT INTO file (id, user_id, filename, path)"
            " VALUES ('file-9', 'u-1', 'map.pdf', '/app/backend/data/uploads/file-9_map.pdf')"
        )
        for chat in json.loads(FIXTURE.read_text()):
            insert_chat(db, chat)
        db.commit()
    return path


def insert_chat(db: sqlite3.Connection, chat: dict[str, Any]) -> None:
    db.execute(
        "INSERT INTO chat VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, '{}', ?)",
        (
            chat["id"],
            chat["user_id"],
            chat["title"],
            json.dumps(chat["chat"]),
            chat["created_at"],
            chat["updated_at"],
            chat.get("archived"),
            chat.get("pinned"),
            chat.get("folder_id"),
        ),
    )


def convert(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [each.to_dict() for each in convert_message(message, "m1", lambda _id, _name: None).messages]


def test_exported_chats_come_in_oldest_first_with_their_facts() -> None:
    old, new = read_everything(open_reader(FIXTURE)).conversations
    assert (old.facts.origin_id, old.facts.archived, old.facts.pinned) == ("chat-old", True, False)
    assert (new.facts.title, new.facts.pinned, new.facts.model) == ("Weather tools", True, "llama3.1:8b")
    [usage] = new.facts.usage
    assert (usage.model, usage.input_tokens, usage.output_tokens) == ("llama3.1:8b", 130, 30)


def test_steps_of_answers_are_read_in_both_forms() -> None:
    _, new = read_everything(open_reader(FIXTURE)).conversations
    roles = [each["role"] for each in new.visible]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant", "tool", "assistant"]
    for first, result, city, degrees in ((1, 2, "Oslo", "12 C"), (5, 6, "Rome", "25 C")):
        [call] = new.visible[first]["tool_calls"]
        assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("get_weather", {"city": city})
        assert (new.visible[result]["tool_call_id"], new.visible[result]["content"]) == (call["id"], degrees)
    assert new.visible[5]["reasoning"] == "Again the tool.\nYes."
    assert new.visible[7]["content"] == "In Rome it is 25 degrees."
    assert new.hidden_texts == ["No idea."]


def test_files_in_an_export_come_in_as_far_as_they_are_in_it() -> None:
    _, new = read_everything(open_reader(FIXTURE)).conversations
    assert new.files == [("file.png", PNG), ("map.pdf.txt", b"Oslo is north.")]


def test_an_answer_that_failed_says_so() -> None:
    old, _ = read_everything(open_reader(FIXTURE)).conversations
    assert [each["content"] for each in old.visible] == ["Hi", "[Error: Model not found]"]


def test_the_database_has_names_of_folders_files_and_memories_too(database: Path) -> None:
    for path in (database, database.parent, database.parent.parent):
        read = read_everything(open_reader(path))
        _, new = read.conversations
        assert new.facts.project is not None
        assert new.facts.project.name == "Weather"
        assert new.files == [("file.png", PNG), ("map.pdf", b"%PDF-1.7")]
        assert [(each.origin_id, each.text) for each in read.memories] == [("mem-1", "Ada likes tea.")]


def test_the_database_and_the_export_give_the_same_conversations(database: Path) -> None:
    from_database = read_everything(open_reader(database)).conversations
    from_export = read_everything(open_reader(FIXTURE)).conversations
    assert [each.visible for each in from_database] == [each.visible for each in from_export]
    assert [each.facts.usage for each in from_database] == [each.facts.usage for each in from_export]


def test_messages_that_only_the_table_of_messages_has_come_in(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.execute(
            "INSERT INTO chat_message (id, chat_id, role, parent_id, content, done, created_at)"
            " VALUES ('chat-new-m5', 'chat-new', 'user', 'm4', '\"And Paris?\"', 1, 1751000200)"
        )
        db.commit()
    _, new = read_everything(open_reader(database)).conversations
    assert [each.message.text for each in new.messages][-1] == "And Paris?"


def test_nothing_beside_the_database_changes(database: Path) -> None:
    before = {path: path.read_bytes() for path in database.parent.rglob("*") if path.is_file()}
    read_everything(open_reader(database))
    assert {path: path.read_bytes() for path in database.parent.rglob("*") if path.is_file()} == before


def test_with_several_accounts_one_must_be_chosen(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.execute("INSERT INTO user VALUES ('u-2', 'bob@example.com', 'Bob', 'user')")
        insert_chat(
            db,
            {
                "id": "bobs",
                "user_id": "u-2",
                "title": "Bob's",
                "created_at": 1,
                "updated_at": 1,
                "chat": {"messages": []},
            },
        )
        db.commit()
    with pytest.raises(
        InvalidImport, match=r"ada@example\.com \(2 conversations\), bob@example\.com \(1 conversation\)"
    ):
        open_reader(database)
    for account in ("bob@example.com", "Bob", "u-2"):
        [bobs] = read_everything(open_reader(database, account)).conversations
        assert bobs.facts.origin_id == "bobs"
    with pytest.raises(InvalidImport, match="no account eve"):
        open_reader(database, "eve")


def test_an_export_of_all_accounts_asks_for_one_too(tmp_path: Path) -> None:
    chats = json.loads(FIXTURE.read_text())
    chats[1]["user_id"] = "u-2"
    path = tmp_path / "all-chats-export.json"
    path.write_text(json.dumps(chats))
    with pytest.raises(InvalidImport, match=r"u-1 \(1 conversation\), u-2"):
        open_reader(path)
    [old] = read_everything(open_reader(path, "u-2")).conversations
    assert old.facts.origin_id == "chat-old"


def test_a_file_outside_the_folder_of_uploads_is_never_read(database: Path) -> None:
    (database.parent / "secret.txt").write_text("secret")
    with closing(sqlite3.connect(database)) as db:
        db.execute("UPDATE file SET path = '../secret.txt'")
        db.commit()
    _, new = read_everything(open_reader(database)).conversations
    assert ("map.pdf.txt", b"Oslo is north.") in new.files
    assert all(data != b"secret" for _, data in new.files)


def test_a_chat_that_is_damaged_in_the_database_is_reported(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.execute("UPDATE chat SET chat = '{\"broken' WHERE id = 'chat-old'")
        db.commit()
    read = read_everything(open_reader(database))
    assert [each.facts.origin_id for each in read.conversations] == ["chat-new"]
    assert [each.where for each in read.problems] == ["webui.db, chat chat-old"]


def test_another_database_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE t (a)")
        db.commit()
    with pytest.raises(InvalidImport, match="not the database of Open WebUI"):
        open_reader(tmp_path / "other.db")


def test_a_folder_with_neither_says_how_to_get_an_export(tmp_path: Path) -> None:
    with pytest.raises(InvalidImport, match="Settings > Data Controls > Export Chats"):
        open_reader(make_zip(tmp_path / "a.zip", {"photo.png": b"x"}))


def test_a_chat_with_a_circle_and_lost_parents_comes_in_once(tmp_path: Path) -> None:
    messages = {
        "a": {"id": "a", "parentId": "b", "role": "user", "content": "one"},
        "b": {"id": "b", "parentId": "a", "role": "assistant", "content": "two"},
        "c": {"id": "c", "parentId": "lost", "role": "user", "content": "three"},
    }
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([{"id": "x", "chat": {"history": {"messages": messages, "currentId": "c"}}}]))
    [read] = read_everything(open_reader(path)).conversations
    assert sorted(each.message.text for each in read.messages) == ["one", "three", "two"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("plain <details><summary>a</summary>b</details>", ["plain <details><summary>a</summary>b</details>"]),
        ('x <details type="reasoning"> never closed', ['x <details type="reasoning"> never closed']),
        (
            '<details type="code_interpreter" done="true" output="&quot;4&quot;">\n2+2\n</details>\nFour',
            ["", "4", "Four"],
        ),
        (
            '<details type="tool_calls" done="true" id="1" name="t" arguments="{}">\n&quot;r&quot;\n</details>',
            ["", "r"],
        ),
    ],
)
def test_steps_written_as_html_are_read(content: str, expected: list[str]) -> None:
    assert [each["content"] for each in convert({"role": "assistant", "content": content})] == expected


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.sampled_from(["a", "assistant", "reasoning"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "parentId", "output", "type", "files", "url", "usage", "error", "timestamp"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(messages=st.dictionaries(st.sampled_from("abc"), JUNK, max_size=3), junk=JUNK)
def test_no_junk_in_a_chat_breaks_the_import(
    tmp_path_factory: pytest.TempPathFactory, messages: dict[str, Any], junk: object
) -> None:
    path = tmp_path_factory.mktemp("junk") / "chats.json"
    chat = {"history": {"messages": messages, "currentId": junk}, "models": junk, "title": junk, "timestamp": junk}
    good = {"id": "good", "chat": {"messages": [{"role": "user", "content": "hi"}]}}
    path.write_text(json.dumps([{"id": "junk", "chat": chat, "folder_id": junk, "pinned": junk}, good]))
    assert len(read_everything(open_reader(path)).conversations) == 2


def test_many_unclosed_steps_take_no_time() -> None:
    [message] = convert({"role": "assistant", "content": '<details type="reasoning" ' * 50_000})
    assert len(message["content"]) > 1_000_000
    long_name = '<details type="tool_calls" ' + "a" * 1_000_000 + ">\nresult\n</details>"
    assert convert({"role": "assistant", "content": long_name})[1]["content"] == "result"
