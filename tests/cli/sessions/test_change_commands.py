"""Tests of the commands that change a conversation: rename, pin, archive, move, undo, redo, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cli.conftest import Home


def get_session(home: Home, session_id: str) -> Any:
    return home.get_json("sessions", "show", session_id)["session"]


def test_rename_sets_changes_and_removes_a_title(home: Home) -> None:
    session_id = home.add_conversation("hi")
    assert "'Trip to Rome'" in home.get_text("sessions", "rename", session_id, "Trip", "to", "Rome")
    assert get_session(home, session_id)["title"] == "Trip to Rome"
    assert "Removed the title" in home.get_text("sessions", "rename", "trip to rome", "--clear")
    assert get_session(home, session_id)["title"] is None


def test_a_title_in_use_is_rejected_with_a_free_one_as_suggestion(home: Home) -> None:
    home.add_conversation("hi", title="Rome")
    other = home.add_conversation("hi")
    assert "'rome #2' is free" in home.get_error("sessions", "rename", other, "rome", code=1)
    assert home.get_json_error("sessions", "rename", other, "rome", code=1)["code"] == "title_taken"


@pytest.mark.parametrize("extra", [[], ["title", "--clear"]])
def test_rename_needs_either_a_title_or_clear(home: Home, extra: list[str]) -> None:
    session_id = home.add_conversation("hi")
    assert "--clear" in home.get_error("sessions", "rename", session_id, *extra, code=2)


@pytest.mark.parametrize(
    ("command", "text", "opposite", "key"),
    [("pin", "Pinned 'talk'.\n", "unpin", "pinned"), ("archive", "Archived 'talk'.\n", "unarchive", "archived")],
)
def test_pin_and_archive_can_be_repeated_and_reversed(
    home: Home, command: str, text: str, opposite: str, key: str
) -> None:
    session_id = home.add_conversation("hi", title="talk")
    assert home.get_text("sessions", command, "talk") == text
    assert get_session(home, session_id)[key] is True
    assert home.get_text("sessions", command, "talk") == "Nothing to change.\n"
    assert home.get_json("sessions", command, "talk")["changed"] is False
    reversed_change = home.get_json("sessions", opposite, "talk")
    assert (reversed_change["changed"], reversed_change["session"][key]) == (True, False)
    assert get_session(home, session_id)[key] is False


def test_move_adds_to_a_project_and_removes_from_it(home: Home) -> None:
    session_id = home.add_conversation("hi", title="talk")
    project = home.get_json("projects", "create", "Travel")["project"]["id"]
    assert "'Travel'" in home.get_text("sessions", "move", "talk", "travel")
    assert get_session(home, session_id)["project_id"] == project
    assert home.get_text("sessions", "move", "talk", "--no-project") == "Removed 'talk' from its project.\n"
    assert get_session(home, session_id)["project_id"] is None


@pytest.mark.parametrize("extra", [[], ["Travel", "--no-project"]])
def test_move_needs_either_a_project_or_no_project(home: Home, extra: list[str]) -> None:
    session_id = home.add_conversation("hi")
    assert "--no-project" in home.get_error("sessions", "move", session_id, *extra, code=2)


def test_undo_hides_turns_and_redo_shows_them_again(home: Home) -> None:
    session_id = home.add_conversation("first", "one", "second", "two", "third", "three", title="talk")
    result = home("sessions", "undo", "talk", "2")
    assert "2 turns, 4 messages" in result.stdout
    assert "'second'" in result.stdout
    assert f"redo {session_id}" in result.stderr
    assert get_session(home, session_id)["message_count"] == 2
    assert home.get_json("sessions", "redo", "talk") == {
        "session_id": session_id,
        "turns": 2,
        "messages": 4,
        "prompt": "second",
    }
    assert get_session(home, session_id)["message_count"] == 6


def test_undo_of_more_turns_than_exist_undoes_all_of_them(home: Home) -> None:
    home.add_conversation("first", "one", title="talk")
    assert "1 turn (all of them)" in home.get_text("sessions", "undo", "talk", "9")


def test_nothing_to_undo_or_redo_has_its_own_exit_code(home: Home) -> None:
    home.add_conversation("first", "one", title="talk")
    assert "redo" in home.get_error("sessions", "redo", "talk", code=6)
    home("sessions", "undo", "talk")
    assert "undo" in home.get_error("sessions", "undo", "talk", code=6)
    assert home.get_json_error("sessions", "undo", "talk", code=6)["code"] == "nothing_to_undo"


def test_delete_needs_yes_without_a_terminal(home: Home) -> None:
    session_id = home.add_conversation("hi", title="talk")
    assert "--yes" in home.get_error("sessions", "delete", "talk", code=2)
    assert get_session(home, session_id)["title"] == "talk"
    text = home.get_text("sessions", "delete", "talk", "--yes")
    assert "'talk'" in text
    assert "Telegram, Ada" in text
    home.get_error("sessions", "show", session_id, code=3)


def test_delete_in_json_prints_the_deleted_session(home: Home) -> None:
    session_id = home.add_conversation("hi")
    assert home.get_json("sessions", "delete", session_id, "--yes")["deleted"]["id"] == session_id
    assert home.get_json("sessions", "list")["sessions"] == []


def test_with_mine_the_conversations_of_others_cannot_be_changed(home: Home) -> None:
    session_id = home.add_conversation("hi", title="Ada's")
    for command in (["show"], ["pin"], ["archive"], ["rename", "x"], ["undo"], ["delete", "--yes"], ["export"]):
        name, *rest = command
        home.get_error("sessions", name, session_id, *rest, "--mine", code=3)
    assert get_session(home, session_id)["title"] == "Ada's"
