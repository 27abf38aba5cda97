"""Tests of finding sessions, projects and people by what a person types, and of the suggestions when that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Home


def test_a_session_is_found_by_id_by_the_beginning_of_its_id_and_by_title(home: Home) -> None:
    session_id = home.add_conversation("hi", title="My Project")
    for name in (session_id, session_id[:-3], "My Project", "my project", " my project "):
        assert home.get_json("sessions", "show", name)["session"]["id"] == session_id


def test_the_title_of_a_numbered_series_finds_the_newest(home: Home) -> None:
    home.add_conversation("hi", title="My Project")
    second = home.add_conversation("hi", title="My Project #2")
    assert home.get_json("sessions", "show", "My Project")["session"]["id"] == second


def test_an_unknown_session_suggests_similar_ones(home: Home) -> None:
    session_id = home.add_conversation("hi", title="Trip to Lisbon")
    home.add_conversation("hi", title="Garden")
    for typo in ("trip to lisbn", "lisbon", session_id[-8:]):
        error = home.get_error("sessions", "show", typo, code=3)
        assert f"No conversation matches '{typo}'. Did you mean 'Trip to Lisbon' ({session_id})?" in error
    error = home.get_json_error("sessions", "show", "lisbon", code=3)
    assert error["facts"]["suggestions"] == [{"id": session_id, "title": "Trip to Lisbon"}]
    assert "sessions list" in home.get_error("sessions", "show", "zzz", code=3)


@pytest.mark.parametrize("text", ["", " ", "\x07", "x" * 300, "#1", "%", "'"])
def test_any_text_can_be_looked_up(home: Home, text: str) -> None:
    home.add_conversation("hi", title="talk")
    assert "No conversation matches" in home.get_error("sessions", "show", text, code=3)


def test_an_unknown_session_in_an_empty_home_says_that_there_are_none(home: Home) -> None:
    assert "There are no conversations yet." in home.get_error("sessions", "show", "abc", code=3)


def test_only_visible_sessions_are_suggested(home: Home) -> None:
    home.add_conversation("hi", title="Secret plans")
    assert "Secret" not in home.get_error("sessions", "show", "secret plan", "--mine", code=3)


def test_an_ambiguous_id_lists_all_matches(home: Home) -> None:
    ids = [home.add_conversation("hi", title=f"talk {number}") for number in range(2)]
    error = home.get_error("sessions", "show", ids[0][:6], code=1)
    for number, session_id in enumerate(ids):
        assert f"{session_id}  'talk {number}'" in error
    assert set(home.get_json_error("sessions", "show", ids[0][:6], code=1)["facts"]["matches"]) == set(ids)


def test_an_unknown_project_suggests_similar_ones(home: Home) -> None:
    assert "create" in home.get_error("projects", "delete", "Travel", "--yes", code=3)
    home("projects", "create", "Travel")
    assert "Did you mean 'Travel'?" in home.get_error("projects", "rename", "Travle", "x", code=3)
    assert "You have 'Travel'." in home.get_error("projects", "color", "Kitchen", "#112233", code=3)
    assert home.get_json_error("sessions", "list", "--project", "travl", code=3) == {
        "code": "project_not_found",
        "message": "No project named 'travl'. Did you mean 'Travel'?",
        "facts": {"project": "travl", "suggestions": ["Travel"]},
    }
