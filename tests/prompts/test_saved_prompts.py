"""Saved prompts, the instructions of projects, and the steps of setting up that were skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import InvalidInput, LimitReached, NotFound, PromptNameTaken
from palaver.prompts import table as saved_prompts
from palaver.prompts.service import SavedPromptOperations

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore
    from palaver.sessions.view import SessionView


@pytest.fixture
def views(store: SessionStore, dm: Callable[..., SessionSource]) -> tuple[SessionView, SessionView]:
    ada, bob = (store.get_or_create_person(dm(name)).principal for name in ("ada", "bob"))
    return store.seen_by(ada), store.seen_by(bob)


@pytest.mark.both_engines
def test_a_person_saves_changes_and_deletes_prompts(views: tuple[SessionView, SessionView]) -> None:
    ada, _ = views
    prompt = ada.part(SavedPromptOperations).create(" Explain ", "Explain {{topic}}.\n")
    assert (prompt.name, prompt.text) == ("Explain", "Explain {{topic}}.")
    ada.part(SavedPromptOperations).create("Apology", "Write to {{name}}.")
    assert [each.name for each in ada.part(SavedPromptOperations).list()] == ["Apology", "Explain"]
    assert ada.part(SavedPromptOperations).update(prompt.id, text="In short: {{topic}}").name == "Explain"
    with pytest.raises(PromptNameTaken):
        ada.part(SavedPromptOperations).create("EXPLAIN", "x")
    ada.part(SavedPromptOperations).delete(prompt.id)
    assert [each.name for each in ada.part(SavedPromptOperations).list()] == ["Apology"]


@pytest.mark.parametrize("text", ["", "  \n", "x" * 20_001])
def test_a_prompt_needs_a_text_of_a_sensible_length(views: tuple[SessionView, SessionView], text: str) -> None:
    with pytest.raises(InvalidInput, match="text: "):
        views[0].part(SavedPromptOperations).create("Name", text)


def test_prompts_belong_to_one_person(views: tuple[SessionView, SessionView]) -> None:
    ada, bob = views
    prompt = ada.part(SavedPromptOperations).create("Secret plan", "text")
    assert bob.part(SavedPromptOperations).list() == []
    for prompt_id in (prompt.id, "sp_none"):
        with pytest.raises(NotFound):
            bob.part(SavedPromptOperations).update(prompt_id, name="x")
        with pytest.raises(NotFound):
            bob.part(SavedPromptOperations).delete(prompt_id)
    assert bob.part(SavedPromptOperations).create("Secret plan", "of Bob").text == "of Bob"
    assert [each.text for each in ada.part(SavedPromptOperations).list()] == ["text"]


def test_the_number_of_prompts_is_limited(
    views: tuple[SessionView, SessionView], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_prompts, "MAX_PROMPTS", 2)
    for name in ("one", "two"):
        views[0].part(SavedPromptOperations).create(name, "text")
    with pytest.raises(LimitReached, match="up to 2"):
        views[0].part(SavedPromptOperations).create("three", "text")


def test_a_project_has_instructions_until_they_are_emptied(views: tuple[SessionView, SessionView]) -> None:
    ada, _ = views
    project = ada.projects.create("Garden")
    assert project.instructions is None
    assert ada.projects.update(project.id, instructions=" Answer in rhymes. ").instructions == "Answer in rhymes."
    assert ada.projects.update(project.id, name="Allotment").instructions == "Answer in rhymes."
    assert ada.projects.update(project.id, instructions="").instructions is None
