"""Tests of `palaver projects`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.conftest import Home


def test_an_empty_list_says_how_to_create_a_project(home: Home) -> None:
    assert "projects create" in home.get_text("projects", "list")
    assert home.get_json("projects", "list") == {"projects": []}


def test_a_project_is_created_renamed_colored_and_listed(home: Home) -> None:
    assert "'Travel'" in home.get_text("projects", "create", "Travel", "--color", "#3b82f6")
    assert "'Journeys'" in home.get_text("projects", "rename", "travel", "Journeys")
    assert "#112233" in home.get_text("projects", "color", "Journeys", "#112233")
    [project] = home.get_json("projects", "list")["projects"]
    assert (project["name"], project["color"], project["session_count"]) == ("Journeys", "#112233", 0)
    text = home.get_text("projects", "list")
    assert project["id"] in text
    assert "#112233" in text
    assert "Journeys" in text


def test_every_change_can_print_json(home: Home) -> None:
    project = home.get_json("projects", "create", "A")["project"]
    assert home.get_json("projects", "rename", project["id"], "B")["project"]["name"] == "B"
    assert home.get_json("projects", "color", "B", "#abcdef")["project"]["color"] == "#abcdef"
    assert home.get_json("projects", "delete", "B", "--yes")["deleted"]["id"] == project["id"]


def test_deleting_a_project_keeps_its_conversations(home: Home) -> None:
    session_id = home.add_conversation("hi", title="talk")
    home("projects", "create", "Travel")
    home("sessions", "move", "talk", "Travel")
    assert "--yes" in home.get_error("projects", "delete", "Travel", code=2)
    assert home.get_text("projects", "delete", "Travel", "--yes") == "Deleted project 'Travel'.\n"
    assert home.get_json("sessions", "show", session_id)["session"]["project_id"] is None


def test_an_invalid_color_or_a_name_in_use_is_rejected(home: Home) -> None:
    home("projects", "create", "Travel")
    assert "#3b82f6" in home.get_error("projects", "create", "Home", "--color", "red", code=1)
    assert "already" in home.get_error("projects", "create", "TRAVEL", code=1)
