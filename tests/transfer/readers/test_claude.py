"""Claude's data export comes in with its blocks as messages, its projects and its memories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from palaver.transfer.imported import InvalidImport
from palaver.transfer.readers.claude import open_reader
from support.imported_items import ReadConversation, make_zip, read_everything

FIXTURE = Path(__file__).parent / "fixtures" / "claude.json"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return make_zip(
        tmp_path / "data-2026-batch-0000.zip",
        {
            "conversations.json": FIXTURE.read_text(),
            "users.json": [{"uuid": "acc-1", "full_name": "Ada", "email_address": "ada@example.com"}],
            "projects/p-1.json": {
                "uuid": "p-1",
                "name": "Home",
                "prompt_template": "Be kind",
                "docs": [{"filename": "a.md", "content": "x"}],
            },
            "memories.json": [
                {
                    "conversations_memory": "**Work context**\n\nAda works at a bank.\n\n- likes tea",
                    "project_memories": {},
                }
            ],
            "design_chats/d1.json": {"uuid": "d1"},
        },
    )


def read_blocks(tmp_path: Path, blocks: object, *, sender: str = "assistant") -> ReadConversation:
    message = {"uuid": "m1", "sender": sender, "content": blocks, "text": "", "created_at": "2026-01-01T00:00:00Z"}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"uuid": "c1", "created_at": "2026-01-01T00:00:00Z", "chat_messages": [message]}]))
    [read] = read_everything(open_reader(path)).conversations
    return read


def test_an_export_comes_in_oldest_first_with_its_facts(export: Path) -> None:
    old, calendar = read_everything(open_reader(export)).conversations
    assert (old.facts.title, calendar.facts.title) == (None, "Calendar tips")
    assert calendar.facts.project is not None
    assert calendar.facts.project.name == "Home"
    assert [each["content"] for each in old.visible] == ["Hello", "Hi! How can I help?"]


def test_the_blocks_of_an_answer_become_messages_in_order(export: Path) -> None:
    _, calendar = read_everything(open_reader(export)).conversations
    assert [(each["role"], each["content"]) for each in calendar.visible] == [
        ("user", "Help me with my calendar\n\n[File: week.png (not in the export)]"),
        ("assistant", ""),
        ("tool", "3 events"),
        ("assistant", "You have three events."),
        ("tool", "Failed"),
        ("assistant", "Here is a plan."),
        ("user", "Thanks!"),
    ]
    _, first, result, second, failed, *_ = calendar.visible
    assert first["reasoning"] == "Let me look at the calendar."
    assert first["tool_calls"][0]["id"] == result["tool_call_id"] == "toolu_01"
    assert second["reasoning"] == "Three events."
    assert second["tool_calls"][0]["id"] == failed["tool_call_id"]
    assert failed["is_error"] is True
    assert calendar.hidden_texts == ["First try."]


def test_pasted_text_comes_in_as_a_file(export: Path) -> None:
    _, calendar = read_everything(open_reader(export)).conversations
    assert calendar.files == [("pasted.txt", b"Mon: gym")]


def test_memories_come_in_one_by_one_and_the_rest_is_reported(export: Path) -> None:
    read = read_everything(open_reader(export))
    assert [each.text for each in read.memories] == ["Work context: Ada works at a bank.", "Work context: likes tea"]
    assert len({each.origin_id for each in read.memories}) == 2
    assert [each.what for each in read.problems] == [
        "Not imported from this project: 1 document and the instructions.",
        "Not imported: 1 design chat.",
    ]


def test_a_folder_with_several_zip_files_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    make_zip(folder / "conversations-000.zip", {"conversations.json": FIXTURE.read_text()})
    make_zip(folder / "memories-000.zip", {"memories/acc.json": {"conversations_memory": "Ada likes tea."}})
    read = read_everything(open_reader(folder))
    assert len(read.conversations) == 2
    assert [each.text for each in read.memories] == ["Ada likes tea."]


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], [("assistant", "a\n\nb")]),
        ([{"type": "tool_result", "tool_use_id": "gone", "content": "r"}], [("tool", "r")]),
        ([{"type": "tool_use", "name": "t", "input": None}], [("assistant", "")]),
        ([{"type": "token_budget"}, {"type": "flag"}], []),
        ([{"type": "voice_note", "title": "Note", "text": "spoken"}], [("assistant", "spoken")]),
        ([{"type": "new", "x": 1}], [("assistant", '```json\n{\n "type": "new",\n "x": 1\n}\n```')]),
        (
            [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "data": "x"}]}],
            [("tool", '```json\n{\n "type": "image",\n "data": "x"\n}\n```')],
        ),
        (None, []),
        ([None, 3, "x"], []),
    ],
)
def test_every_type_of_block_is_read(tmp_path: Path, blocks: object, expected: list[tuple[str, str]]) -> None:
    read = read_blocks(tmp_path, blocks)
    assert [(each["role"], each["content"]) for each in read.visible] == expected


def test_messages_without_ids_or_with_equal_ids_all_come_in(tmp_path: Path) -> None:
    messages: list[Any] = [
        {"sender": "human", "text": "one"},
        {"uuid": "x", "sender": "assistant", "text": "two"},
        {"uuid": "x", "sender": "human", "text": "three"},
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"uuid": "c1", "chat_messages": messages}]))
    [read] = read_everything(open_reader(path)).conversations
    assert [each["content"] for each in read.visible] == ["one", "two", "three"]


def test_messages_in_a_circle_are_survived(tmp_path: Path) -> None:
    messages = [
        {"uuid": "a", "sender": "human", "text": "one", "parent_message_uuid": "b"},
        {"uuid": "b", "sender": "assistant", "text": "two", "parent_message_uuid": "a"},
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"uuid": "c1", "chat_messages": messages}]))
    [read] = read_everything(open_reader(path)).conversations
    assert len(read.messages) == 2


def test_a_damaged_file_of_projects_does_not_stop_the_import(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"conversations.json": FIXTURE.read_text(), "projects.json": "[{"})
    read = read_everything(open_reader(path))
    assert len(read.conversations) == 2
    assert [each.where for each in read.problems] == ["projects.json"]


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["m1", "text", "tool_use", "human"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["uuid", "sender", "content", "type", "text", "attachments", "files", "input", "created_at"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(messages=st.lists(JUNK, max_size=4), leaf=JUNK)
def test_no_junk_in_a_conversation_breaks_the_import(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Any], leaf: object
) -> None:
    path = tmp_path_factory.mktemp("junk") / "conversations.json"
    junk = {"uuid": "junk", "chat_messages": messages, "current_leaf_message_uuid": leaf, "name": leaf}
    good = {"uuid": "good", "chat_messages": [{"sender": "human", "text": "hi"}]}
    path.write_text(json.dumps([junk, good]))
    assert len(read_everything(open_reader(path)).conversations) == 2


def test_a_wrong_zip_file_says_how_to_get_the_export(tmp_path: Path) -> None:
    with pytest.raises(InvalidImport, match="Settings > Privacy > Export data"):
        open_reader(make_zip(tmp_path / "a.zip", {"users.json": []}))
