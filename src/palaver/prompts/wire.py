"""A saved prompt as JSON, for the API and `palaver prompts --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.wire import Time, TypedDict, build_json

if TYPE_CHECKING:
    from palaver.prompts.table import SavedPrompt


class SavedPromptJson(TypedDict):
    """A saved prompt. `{{word}}` in its text is a placeholder."""

    id: str
    name: str
    text: str
    created_at: Time
    updated_at: Time


class SavedPromptsJson(TypedDict):
    """Your saved prompts, sorted by name."""

    prompts: list[SavedPromptJson]


def prompt_to_json(prompt: SavedPrompt) -> SavedPromptJson:
    return build_json(SavedPromptJson, prompt)
