"""Tests of `palaver sessions show`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from palaver import SessionSource, TurnUsage
from palaver.core.engines.base import Write

if TYPE_CHECKING:
    from cli.conftest import Home

CALL = {
    "role": "assistant",
    "content": None,
    "reasoning": "let me look",
    "tool_calls": [{"id": "c1", "function": {"name": "trains", "arguments": '{"to": "Lisbon"}'}}],
}
RESULT = {
    "role": "tool",
    "tool_call_id": "c1",
    "tool_name": "trains",
    "content": "\n".join(f"at {hour}:30" for hour in range(30)),
}


def test_show_prints_a_header_and_every_message_with_its_speaker(home: Home) -> None:
    session_id = home.add_conversation(
        "when does it leave?",
        "at 8:30.\n\nShall I book?",
        title="Lisbon",
        usage=TurnUsage(turn_id="t", model="gpt", input_tokens=1200, output_tokens=30, cost="0.0123"),
    )
    text = home.get_text("sessions", "show", "Lisbon")
    for fact in ("Lisbon", session_id, "Telegram, Ada", "2 messages", "1,200 tokens in", "$0.0123", "gpt"):
        assert fact in text
    assert "] Ada · " in text
    assert "    when does it leave?" in text
    assert "] agent · " in text
    assert "    at 8:30.\n\n    Shall I book?" in text


def test_only_the_last_messages_are_shown_with_a_count_of_the_others(home: Home) -> None:
    home.add_conversation(*(f"line {number}" for number in range(30)), title="long")
    text = home.get_text("sessions", "show", "long")
    assert "line 29" in text
    assert "line 9\n" not in text
    assert "10 earlier messages" in text
    assert "line 0" in home.get_text("sessions", "show", "long", "--all")
    short = home.get_text("sessions", "show", "long", "--limit", "1")
    assert "line 28" not in short
    assert "29 earlier messages" in short


def test_tool_calls_and_results_are_shown_and_a_long_result_is_cut(home: Home) -> None:
    home.add_conversation("when?", CALL, "at 8:30", title="trains")
    with home.open_store() as store:
        store.append_to_transcript(home.get_json("sessions", "show", "trains")["session"]["id"], RESULT)
    text = home.get_text("sessions", "show", "trains")
    assert '→ trains({"to": "Lisbon"})' in text
    assert "(thinking) let me look" in text
    assert "tool trains" in text
    assert "at 9:30" in text
    assert "at 10:30" not in text
    assert "20 more lines (use --all to show everything)" in text
    assert "at 29:30" in home.get_text("sessions", "show", "trains", "--all")


def test_a_message_with_parts_shows_its_text_and_names_the_attachments(home: Home) -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}]}
    home.add_conversation("hi", "hello", title="cats")
    with home.open_store() as store:
        store.record_user_message(home.ada, parts)
    text = home.get_text("sessions", "show", "cats")
    assert "    look\n    [image_url]" in text


def test_a_damaged_entry_is_shown_as_unreadable_among_the_others(home: Home) -> None:
    session_id = home.add_conversation("the first", "the second", "the third", title="cats")
    with home.open_store() as store:
        store.engine.run(Write(lambda tx: tx.execute("UPDATE event SET body = '{' WHERE content = 'the second'")))
    text = home.get_text("sessions", "show", "cats")
    assert "unreadable" in text
    assert "the third" in text
    assert "(stored_kind: 'message', reason: 'invalid_json')" in home.get_text("sessions", "show", "cats", "--log")
    assert "unreadable" in home.get_text("sessions", "export", session_id, "--format", "markdown")


def test_a_shared_conversation_names_each_speaker(home: Home) -> None:
    for name in ("Ada", "Bob"):
        source = SessionSource(
            "slack", "C1", chat_type="channel", chat_name="family", thread_id="7", user_id=name, user_name=name
        )
        with home.open_store() as store:
            session_id = store.record_user_message(source, f"I am {name}").session_id
    text = home.get_text("sessions", "show", session_id)
    assert "Slack, family" in text
    assert "] Ada · " in text
    assert "] Bob · " in text
    assert "shared by several people" in text


def test_the_log_shows_undone_messages_and_all_other_events(home: Home) -> None:
    home.add_conversation("first", "one", "second", "two", title="talk")
    home("sessions", "undo", "talk")
    assert "second" not in home.get_text("sessions", "show", "talk")
    log = home.get_text("sessions", "show", "talk", "--log")
    assert "second" in log
    assert "hidden" in log
    assert "started" in log
    assert "renamed" in log
    assert "title: 'talk'" in log
    assert "undone" in log
    last = home.get_text("sessions", "show", "talk", "--log", "--limit", "1")
    assert "undone" in last
    assert "renamed" not in last


def test_a_conversation_with_everything_undone_points_to_the_log(home: Home) -> None:
    home.add_conversation("first", "one", title="talk")
    home("sessions", "undo", "talk")
    assert "--log" in home.get_text("sessions", "show", "talk")


def test_json_contains_the_messages_or_the_log(home: Home) -> None:
    session_id = home.add_conversation("hello", CALL, title="talk")
    home("sessions", "undo", "talk")
    assert home.get_json("sessions", "show", "talk")["messages"] == []
    home("sessions", "redo", "talk")
    document = home.get_json("sessions", "show", "talk")
    assert document["session"]["id"] == session_id
    first, second = document["messages"]
    assert (first["kind"], first["message"]["content"], first["hidden"]) == ("message", "hello", False)
    assert second["message"]["tool_calls"] == CALL["tool_calls"]
    events = home.get_json("sessions", "show", "talk", "--log")["events"]
    kinds = [event["kind"] for event in events]
    assert kinds == ["started", "message", "message", "renamed", "undone", "redone"]
    assert [event["person"] and event["person"]["name"] for event in events][3:] == [None, "owner", "owner"]


def test_the_header_shows_pin_project_and_end(home: Home) -> None:
    first = home.add_conversation("hello", title="talk", ago=timedelta(hours=2))
    home.add_conversation("a new one")
    home("sessions", "pin", "talk")
    home("projects", "create", "Travel")
    home("sessions", "move", "talk", "Travel")
    header = home.get_text("sessions", "show", first)
    assert "pinned" in header
    assert "project Travel" in header
    assert "ended" in header
    assert "forced" in header
    assert "active 2 h ago" in header


def test_no_text_of_a_conversation_can_control_the_terminal(home: Home) -> None:
    evil = "\x1b[31mred\x1b[0m \x1b]0;owned\x07\x9b2J\x00\x08 \u202egnp.exe \x1b]52;c;aGk=\x1b\\end\r\nnext"
    source = SessionSource("telegram", "666", user_id="6", user_name="\x1b[2JEve\x07\u202e")
    session_id = home.add_conversation(evil, {"role": "tool", "tool_name": "a\x1b[1mb", "content": evil}, source=source)
    with home.open_store() as store:
        call = {"name": "\x1b[5mx", "arguments": {"\x1b[6m": "\x07"}}
        store.append_to_transcript(session_id, {"role": "assistant", "content": "", "tool_calls": [call]})
    results = [
        home("sessions", "list"),
        home("sessions", "show", session_id),
        home("sessions", "show", session_id, "--log"),
        home("sessions", "search", "next"),
        home("sessions", "export", session_id, "--format", "markdown"),
        home("sessions", "export", session_id),
        home("sessions", "show", session_id, "--json"),
        home("sessions", "pin", session_id),
        home("sessions", "undo", session_id),
        home("sessions", "delete", session_id, "--yes"),
    ]
    for result in results:
        for char in result.output:
            assert char in "\n\t" or char.isprintable(), (char, result.output)
            assert char != "\u202e"
    assert "red" in results[1].stdout
    assert "next" in results[1].stdout
    assert "owned" not in results[1].stdout
