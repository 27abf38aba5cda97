"""ChatGPT's data export comes in as people saw it there, with every other version of a message hidden."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from palaver.transfer.imported import InvalidImport
from palaver.transfer.readers.chatgpt import convert_message, open_reader
from support.imported_items import make_zip, read_everything

if TYPE_CHECKING:
    from support.imported_items import ReadConversation

FIXTURE = Path(__file__).parent / "fixtures" / "chatgpt.json"
PNG = b"\x89PNG\r\n\x1a\n"


def load_fixture() -> list[dict[str, Any]]:
    return json.loads(FIXTURE.read_text())  # type: ignore[no-any-return]


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return make_zip(
        tmp_path / "export.zip",
        {
            "chat.html": "<html>",
            "user.json": {"id": "user-1"},
            "conversations-000.json": load_fixture()[:1],
            "conversations-001.json": load_fixture()[1:],
            "file_00000000aaaa.dat": PNG,
            "dalle-generations/file-Plot77-1b2c.webp": b"RIFF....WEBP",
            "67c0aaaa-0001/audio/file_0000voice-x.wav": b"RIFF",
            "conversation_asset_file_names.json": {"file_00000000aaaa.dat": "curve-original.png"},
        },
    )


def make_message(content: object, *, role: str = "assistant", recipient: str = "all", **fields: Any) -> dict[str, Any]:
    return {"author": {"role": role, **fields.pop("author", {})}, "content": content, "recipient": recipient, **fields}


def make_conversation(nodes: dict[str, Any], current: object, **fields: Any) -> dict[str, Any]:
    return {"conversation_id": "c1", "create_time": 1700000000, "mapping": nodes, "current_node": current, **fields}


def make_node(parent: object, text: str, **fields: Any) -> dict[str, Any]:
    return {"parent": parent, "message": make_message({"content_type": "text", "parts": [text]}, role="user", **fields)}


def read_one(tmp_path: Path, conversation: object) -> ReadConversation:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([conversation]))
    [read] = read_everything(open_reader(path)).conversations
    return read


def test_an_export_comes_in_oldest_first_with_its_facts(export: Path) -> None:
    read = read_everything(open_reader(export))
    tiramisu, plot = read.conversations
    assert read.problems == []
    assert (tiramisu.facts.origin_id, tiramisu.facts.title) == ("64bb0000-0002", "Tiramisu")
    assert (tiramisu.facts.archived, tiramisu.facts.pinned) == (True, False)
    assert tiramisu.facts.project is not None
    assert tiramisu.facts.project.name == "ChatGPT project 6812ab34"
    assert (plot.facts.pinned, plot.facts.model, plot.facts.source) == (True, "gpt-5", None)
    assert plot.facts.created_at == datetime.fromtimestamp(1741000000.25, UTC)


def test_tool_calls_reasoning_and_results_keep_their_places(export: Path) -> None:
    tiramisu, plot = read_everything(open_reader(export)).conversations
    assert [(each["role"], each["content"]) for each in plot.visible] == [
        ("user", "Plot the curve in this photo.\n\n[File: notes.pdf (not in the export)]"),
        ("assistant", ""),
        ("assistant", ""),
        ("tool", "<Figure>"),
        ("assistant", ""),
        ("assistant", "Here it is."),
        ("user", "Thanks, and now in red"),
        ("assistant", "In red it wou"),
    ]
    assert plot.visible[1]["reasoning"] == "Reading\n\nThe curve is a parabola."
    [call] = plot.visible[2]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])["code"]) == ("python", "plot(x**2)")
    assert plot.visible[3]["tool_call_id"] == call["id"]
    assert plot.visible[7]["interrupted"] is True
    [search] = tiramisu.visible[1]["tool_calls"]
    assert json.loads(search["function"]["arguments"]) == {"search_query": [{"q": "tiramisu"}]}
    assert tiramisu.visible[2]["content"] == "Tiramisu <https://example.com/t>\n\nMascarpone."


def test_other_versions_and_hidden_instructions_come_in_hidden(export: Path) -> None:
    _, plot = read_everything(open_reader(export)).conversations
    assert plot.hidden_texts == ["I am Ada.\n\nBe brief.", "I cannot see it."]


def test_files_are_found_under_each_kind_of_name(export: Path) -> None:
    _, plot = read_everything(open_reader(export)).conversations
    assert plot.files == [
        ("curve.png", PNG),
        ("file-Plot77-1b2c.webp", b"RIFF....WEBP"),
        ("file_0000voice-x.wav", b"RIFF"),
    ]
    [problem] = plot.problems
    assert "notes.pdf" in problem.what


def test_a_folder_and_a_bare_file_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder" / "conversations.json", tmp_path / "renamed.json", tmp_path / "uploaded"):
        path.write_text(FIXTURE.read_text())
    for path in (tmp_path / "folder", tmp_path / "renamed.json", tmp_path / "uploaded"):
        assert len(read_everything(open_reader(path)).conversations) == 2


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"content_type": "text", "parts": ["a", "b"]}, "a\n\nb"),
        ({"content_type": "text", "parts": ["a", None, {"text": "b"}, 3]}, "a\n\nb"),
        ({"content_type": "code", "language": "python", "text": "x = 1"}, "```python\nx = 1\n```"),
        ({"content_type": "code", "language": "unknown", "text": "a ``` b"}, "````\na ``` b\n````"),
        ({"content_type": "tether_quote", "title": "T", "url": "u", "text": "q"}, "T <u>\n\nq"),
        ({"content_type": "tether_browsing_display", "result": "r", "summary": "s"}, "s\n\nr"),
        ({"content_type": "sonic_webpage", "url": "u", "snippet": "s"}, "u\n\ns"),
        ({"content_type": "system_error", "name": "Timeout", "text": "slow"}, "Timeout\n\nslow"),
        ({"content_type": "multimodal_text", "parts": [{"content_type": "audio_transcription", "text": "hi"}]}, "hi"),
        ({"content_type": "new_kind", "text": "hi"}, "hi"),
        ({"content_type": "new_kind", "widget": {"a": 1}}, '```json\n{\n "widget": {\n  "a": 1\n }\n}\n```'),
    ],
)
def test_every_type_of_content_has_a_text(content: dict[str, Any], text: str) -> None:
    [converted] = convert_message(make_message(content), "n1", None, lambda _id, _name: None).messages
    assert converted.text == text


@pytest.mark.parametrize(
    ("content", "reasoning"),
    [
        ({"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}, {"content": "d"}]}, "s\n\nc\n\nd"),
        ({"content_type": "thoughts", "thoughts": "plain"}, "plain"),
        ({"content_type": "reasoning_recap", "content": "Thought for 3s"}, "Thought for 3s"),
    ],
)
def test_reasoning_is_no_text(content: dict[str, Any], reasoning: str) -> None:
    [converted] = convert_message(make_message(content), "n1", None, lambda _id, _name: None).messages
    assert (converted.text, converted.extra["reasoning"]) == ("", reasoning)


@pytest.mark.parametrize("content", [None, {}, {"content_type": "text"}, {"content_type": "text", "parts": [""]}, 7])
def test_empty_messages_do_not_come_in(content: object) -> None:
    assert convert_message(make_message(content), "n1", None, lambda _id, _name: None).messages == []


def test_two_equal_messages_stay_two(tmp_path: Path) -> None:
    nodes = {"1": make_node(None, "Done."), "2": make_node("1", "Done.")}
    assert len(read_one(tmp_path, make_conversation(nodes, "2")).visible) == 2


def test_without_a_current_node_the_newest_message_is_shown(tmp_path: Path) -> None:
    nodes = {
        "1": make_node(None, "q", create_time=1700000001),
        "2": make_node("1", "new", create_time=1700000009),
        "3": make_node("1", "old", create_time=1700000002),
    }
    read = read_one(tmp_path, make_conversation(nodes, None))
    assert [each["content"] for each in read.visible] == ["q", "new"]
    assert read.hidden_texts == ["old"]


def test_a_tree_with_children_only_is_read(tmp_path: Path) -> None:
    nodes = {"1": {**make_node(None, "q"), "children": ["2"]}, "2": {**make_node(None, "a")}}
    del nodes["2"]["parent"]
    assert [each["content"] for each in read_one(tmp_path, make_conversation(nodes, "2")).visible] == ["q", "a"]


@pytest.mark.parametrize("time", [None, "soon", float("nan"), float("inf"), -5, 1e300, 0, True, 10**400, "9999-99-99"])
def test_a_message_without_a_sensible_time_gets_that_of_the_one_before_it(tmp_path: Path, time: object) -> None:
    nodes = {"1": make_node(None, "q", create_time=1700000001), "2": make_node("1", "a", create_time=time)}
    read = read_one(tmp_path, make_conversation(nodes, "2", create_time=time, update_time=time))
    assert {each.at for each in read.messages} == {datetime.fromtimestamp(1700000001, UTC)}
    assert read.facts.created_at == datetime.fromtimestamp(1700000001, UTC)
    assert read.facts.active_at is None


def test_text_that_cannot_be_stored_is_replaced(tmp_path: Path) -> None:
    nodes = {"1": make_node(None, "lone \ud83d and nul \0")}
    [message] = read_one(tmp_path, make_conversation(nodes, "1", title="t\ud83d" * 99)).visible
    assert message["content"].encode()
    assert "\0" not in message["content"]


def test_deep_nesting_in_one_message_loses_only_that_message(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = {"a": deep}
    nodes = {
        "1": make_node(None, "q"),
        "2": {"parent": "1", "message": make_message({"content_type": "w", "deep": deep})},
    }
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([make_conversation(nodes, "2")]))
    [read] = read_everything(open_reader(path)).conversations
    assert read.visible[0]["content"] == "q"


def test_a_damaged_conversation_is_reported_and_the_rest_comes_in(tmp_path: Path) -> None:
    good = json.dumps(make_conversation({"1": make_node(None, "q")}, "1"))
    path = tmp_path / "conversations.json"
    path.write_text(f'[{{"mapping": oops}}, {good}, {{"no": "mapping"}}, "text"]')
    read = read_everything(open_reader(path))
    assert len(read.conversations) == 1
    assert [each.where for each in read.problems] == [
        "conversations.json, item 1",
        "conversations.json, item 3",
        f"conversations.json, byte {path.stat().st_size - 1}",
    ]


def test_one_conversation_in_two_files_comes_in_once_in_its_newest_version(tmp_path: Path) -> None:
    old = make_conversation({"1": make_node(None, "old")}, "1", update_time=1700000001)
    new = make_conversation({"1": make_node(None, "new")}, "1", update_time=1700000002)
    path = make_zip(tmp_path / "a.zip", {"conversations-000.json": [new], "conversations-001.json": [old]})
    [read] = read_everything(open_reader(path)).conversations
    assert [each["content"] for each in read.visible] == ["new"]
    [folded] = read.facts.folded
    assert folded.startswith("conversations-001.json, item 1: the same conversation as conversations-000.json, item 1")


def test_a_conversation_without_an_id_gets_the_same_one_in_every_run(tmp_path: Path) -> None:
    conversation = make_conversation({"1": make_node(None, "q")}, "1", conversation_id=None)
    first, second = (read_one(tmp_path, conversation).facts.origin_id for _ in range(2))
    assert first == second != ""


@pytest.mark.parametrize("files", [{}, {"users.json": [], "photo.png": b"x"}])
def test_a_wrong_zip_file_says_how_to_get_the_export(tmp_path: Path, files: dict[str, object]) -> None:
    with pytest.raises(InvalidImport, match="Settings > Data controls > Export data"):
        open_reader(make_zip(tmp_path / "a.zip", files))


@pytest.mark.parametrize("text", ["", "hello", "{", "[[[", '"text"', "null"])
def test_a_file_with_anything_else_in_it_is_refused_or_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(text)
    try:
        read = read_everything(open_reader(path))
    except InvalidImport:
        return
    assert read.conversations == []
    assert read.problems


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.sampled_from(["1", "2", "text", "assistant"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["message", "author", "role", "content", "content_type", "parts", "metadata", "parent", "children"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(mapping=st.dictionaries(st.sampled_from(["1", "2", "3"]), JUNK, max_size=3), current=JUNK)
def test_no_junk_in_a_conversation_breaks_the_import(
    tmp_path_factory: pytest.TempPathFactory, mapping: dict[str, Any], current: object
) -> None:
    path = tmp_path_factory.mktemp("junk") / "conversations.json"
    good = {**make_conversation({"1": make_node(None, "q")}, "1"), "conversation_id": "good"}
    path.write_text(json.dumps([make_conversation(mapping, current), good]))
    read = read_everything(open_reader(path))
    assert "good" in {each.facts.origin_id for each in read.conversations}
