"""`palaver projects`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.conftest import Home


def test_without_projects_the_list_says_how_to_make_one(home: Home) -> None:
    assert "projects create" in home.text("projects", "list")
    assert home.json("projects", "list") == {"projects": []}


def test_a_project_is_made_renamed_coloured_and_listed(home: Home) -> None:
    assert "'Travel'" in home.text("projects", "create", "Travel", "--colour", "#3b82f6")
    assert "'Journeys'" in home.text("projects", "rename", "travel", "Journeys")
    assert "#112233" in home.text("projects", "colour", "Journeys", "#112233")
    [project] = home.json("projects", "list")["projects"]
    assert (project["name"], project["colour"], project["session_count"]) == ("Journeys", "#112233", 0)
    listed = home.text("projects", "list")
    assert project["id"] in listed
    assert "#112233" in listed
    assert "Journeys" in listed


def test_every_change_answers_in_json_too(home: Home) -> None:
    made = home.json("projects", "create", "A")["project"]
    assert home.json("projects", "rename", made["id"], "B")["project"]["name"] == "B"
    assert home.json("projects", "colour", "B", "#abcdef")["project"]["colour"] == "#abcdef"
    assert home.json("projects", "delete", "B", "--yes")["deleted"]["id"] == made["id"]


def test_a_deleted_project_leaves_its_conversations(home: Home) -> None:
    session_id = home.said("hi", title="talk")
    home("projects", "create", "Travel")
    home("sessions", "move", "talk", "Travel")
    assert "--yes" in home.error("projects", "delete", "Travel", code=2)
    assert "1 conversation stays" in home.text("projects", "delete", "Travel", "--yes")
    assert home.json("sessions", "show", session_id)["session"]["project_id"] is None


def test_a_project_that_is_not_there_is_looked_for_nearby(home: Home) -> None:
    assert "create" in home.error("projects", "delete", "Travel", "--yes", code=3)
    home("projects", "create", "Travel")
    assert "did you mean 'Travel'?" in home.error("projects", "rename", "Travle", "x", code=3)
    assert "you have 'Travel'" in home.error("projects", "colour", "Kitchen", "#112233", code=3)
    assert home.json_error("sessions", "list", "--project", "travl", code=3) == {
        "code": "no_such_project",
        "message": "there is no project 'travl'; did you mean 'Travel'?",
        "facts": {"project": "travl", "suggestions": ["Travel"]},
    }


def test_a_bad_colour_or_a_taken_name_is_refused(home: Home) -> None:
    home("projects", "create", "Travel")
    assert "#3b82f6" in home.error("projects", "create", "Home", "--colour", "red", code=1)
    assert "already" in home.error("projects", "create", "TRAVEL", code=1)
