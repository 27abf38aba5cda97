"""Tests of `palaver prompts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver import SessionSource
from palaver.prompts.service import SavedPromptOperations

if TYPE_CHECKING:
    from cli.conftest import Home


def test_prompts_are_added_listed_shown_changed_and_removed(home: Home) -> None:
    assert "prompts add" in home.get_text("prompts", "list")
    assert home.get_json("prompts", "list") == {"prompts": []}
    assert home.get_text("prompts", "add", "Explain", "Explain {{topic}}\nin short.") == "Saved the prompt 'Explain'.\n"
    apology = home.get_json("prompts", "add", "Apology", "Write to {{name}}.")["prompt"]
    listed = home.get_json("prompts", "list")["prompts"]
    assert [each["name"] for each in listed] == ["Apology", "Explain"]
    assert listed[0] == apology
    assert "Explain {{topic}} in short." in home.get_text("prompts", "list")
    assert home.get_text("prompts", "show", "explain") == "Explain {{topic}}\nin short.\n"
    assert home.get_json("prompts", "show", apology["id"]) == {"prompt": apology}
    assert "'Sorry'" in home.get_text("prompts", "edit", "apology", "--name", "Sorry")
    edited = home.get_json("prompts", "edit", "Sorry", "--text", "Dear {{name}}")["prompt"]
    assert (edited["id"], edited["name"], edited["text"]) == (apology["id"], "Sorry", "Dear {{name}}")
    assert home.get_json("prompts", "remove", "Sorry", "--yes")["deleted"]["id"] == apology["id"]
    assert [each["name"] for each in home.get_json("prompts", "list")["prompts"]] == ["Explain"]


def test_mistakes_are_explained(home: Home) -> None:
    home("prompts", "add", "Explain", "Explain {{topic}}.")
    assert "already have a prompt" in home.get_error("prompts", "add", "EXPLAIN", "x", code=1)
    assert "Did you mean 'Explain'?" in home.get_error("prompts", "show", "Explian", code=3)
    assert "prompts list" in home.get_error("prompts", "remove", "zebra", "--yes", code=3)
    assert "--name" in home.get_error("prompts", "edit", "Explain", code=2)
    assert "empty" in home.get_error("prompts", "add", "Nothing", "  ", code=1)
    assert "20000" in home.get_error("prompts", "add", "Long", "x" * 20_001, code=1)
    assert "--yes" in home.get_error("prompts", "remove", "Explain", code=2)


def test_prompts_of_other_people_are_not_listed_found_or_changed(home: Home) -> None:
    with home.open_store() as store:
        eve = store.get_or_create_person(SessionSource("telegram", "eve", user_id="eve"))
        prompt = store.seen_by(eve.principal).part(SavedPromptOperations).create("Secret plan", "of Eve")
    assert home.get_json("prompts", "list") == {"prompts": []}
    for name in ("Secret plan", prompt.id):
        for command in (["show", name], ["edit", name, "--text", "x"], ["remove", name, "--yes"]):
            assert "of Eve" not in home.get_error("prompts", *command, code=3)
    with home.open_store() as store:
        assert [each.text for each in store.seen_by(eve.principal).part(SavedPromptOperations).list()] == ["of Eve"]
