"""The commands that change a conversation: rename, pin, archive, move, undo, redo, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cli.conftest import Home


def state(home: Home, session_id: str) -> Any:
    return home.json("sessions", "show", session_id)["session"]


def test_a_session_is_meant_by_id_by_its_beginning_and_by_title(home: Home) -> None:
    session_id = home.said("hi", title="My Project")
    for name in (session_id, session_id[:-3], "My Project", "my project", " my project "):
        assert home.json("sessions", "show", name)["session"]["id"] == session_id


def test_a_title_means_the_newest_of_its_line(home: Home) -> None:
    home.said("hi", title="My Project")
    second = home.said("hi", title="My Project #2")
    assert home.json("sessions", "show", "My Project")["session"]["id"] == second


def test_rename_gives_changes_and_takes_away_a_title(home: Home) -> None:
    session_id = home.said("hi")
    assert "'Trip to Rome'" in home.text("sessions", "rename", session_id, "Trip", "to", "Rome")
    assert state(home, session_id)["title"] == "Trip to Rome"
    assert "no title" in home.text("sessions", "rename", "trip to rome", "--clear")
    assert state(home, session_id)["title"] is None


def test_a_taken_title_is_refused_with_one_that_is_free(home: Home) -> None:
    home.said("hi", title="Rome")
    other = home.said("hi")
    assert "'rome #2' is free" in home.error("sessions", "rename", other, "rome", code=1)
    assert home.json_error("sessions", "rename", other, "rome", code=1)["code"] == "title_taken"


@pytest.mark.parametrize("extra", [[], ["title", "--clear"]])
def test_rename_wants_a_title_or_clear(home: Home, extra: list[str]) -> None:
    session_id = home.said("hi")
    assert "--clear" in home.error("sessions", "rename", session_id, *extra, code=2)


@pytest.mark.parametrize(("command", "key"), [("pin", "pinned"), ("archive", "archived")])
def test_a_mark_is_set_and_taken_away_and_twice_changes_nothing(home: Home, command: str, key: str) -> None:
    session_id = home.said("hi", title="talk")
    assert "'talk' is" in home.text("sessions", command, "talk")
    assert state(home, session_id)[key] is True
    assert "before" in home.text("sessions", command, "talk")
    assert home.json("sessions", command, "talk")["changed"] is False
    again = home.json("sessions", command, "talk", "--off")
    assert (again["changed"], again["session"][key]) == (True, False)
    assert state(home, session_id)[key] is False


def test_move_puts_into_a_project_and_out_of_it(home: Home) -> None:
    session_id = home.said("hi", title="talk")
    project = home.json("projects", "create", "Travel")["project"]["id"]
    assert "'Travel'" in home.text("sessions", "move", "talk", "travel")
    assert state(home, session_id)["project_id"] == project
    assert "no project" in home.text("sessions", "move", "talk", "--out")
    assert state(home, session_id)["project_id"] is None


@pytest.mark.parametrize("extra", [[], ["Travel", "--out"]])
def test_move_wants_a_project_or_out(home: Home, extra: list[str]) -> None:
    session_id = home.said("hi")
    assert "--out" in home.error("sessions", "move", session_id, *extra, code=2)


def test_undo_hides_turns_and_redo_brings_them_back(home: Home) -> None:
    session_id = home.said("first", "one", "second", "two", "third", "three", title="talk")
    told = home("sessions", "undo", "talk", "2")
    assert "2 turns (4 messages)" in told.stdout
    assert "'second'" in told.stdout
    assert f"redo {session_id}" in told.stderr
    assert state(home, session_id)["message_count"] == 2
    assert home.json("sessions", "redo", "talk") == {
        "session_id": session_id,
        "turns": 2,
        "messages": 4,
        "prompt": "second",
    }
    assert state(home, session_id)["message_count"] == 6


def test_undo_of_more_than_there_is_says_so(home: Home) -> None:
    home.said("first", "one", title="talk")
    assert "all there were" in home.text("sessions", "undo", "talk", "9")


def test_nothing_to_undo_or_redo_has_its_own_exit_code(home: Home) -> None:
    home.said("first", "one", title="talk")
    assert "redo" in home.error("sessions", "redo", "talk", code=6)
    home("sessions", "undo", "talk")
    assert "undo" in home.error("sessions", "undo", "talk", code=6)
    assert home.json_error("sessions", "undo", "talk", code=6)["code"] == "nothing_to_undo"


def test_delete_takes_yes_where_nobody_can_be_asked(home: Home) -> None:
    session_id = home.said("hi", title="talk")
    assert "--yes" in home.error("sessions", "delete", "talk", code=2)
    assert state(home, session_id)["title"] == "talk"
    told = home.text("sessions", "delete", "talk", "--yes")
    assert "'talk'" in told
    assert "Telegram, Ada" in told
    home.error("sessions", "show", session_id, code=3)


def test_delete_as_json_tells_what_is_gone(home: Home) -> None:
    session_id = home.said("hi")
    assert home.json("sessions", "delete", session_id, "--yes")["deleted"]["id"] == session_id
    assert home.json("sessions", "list")["sessions"] == []


def test_mine_keeps_the_hands_off_what_is_not_your_own(home: Home) -> None:
    session_id = home.said("hi", title="Ada's")
    for command in (["show"], ["pin"], ["archive"], ["rename", "x"], ["undo"], ["delete", "--yes"], ["export"]):
        name, *rest = command
        home.error("sessions", name, session_id, *rest, "--mine", code=3)
    assert state(home, session_id)["title"] == "Ada's"
