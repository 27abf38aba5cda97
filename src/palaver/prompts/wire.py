"""A saved prompt as JSON, for the API and `palaver prompts --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from palaver.core.wire import Doc, Time, TypedDict, build_json
from palaver.prompts.table import PROMPT_FIELDS

if TYPE_CHECKING:
    from palaver.prompts.table import SavedPrompt


class SavedPromptJson(TypedDict):
    """A saved prompt. `{{word}}` in its text is a placeholder."""

    id: str
    name: str
    text: str
    created_at: Time
    updated_at: Time


class FormFieldJson(TypedDict):
    """A text that a form asks for, besides the fields that have a place of their own there."""

    name: str
    label: str
    help: str
    max_chars: int


class SavedPromptsJson(TypedDict):
    """Your saved prompts, sorted by name."""

    prompts: list[SavedPromptJson]
    fields: Annotated[list[FormFieldJson], Doc("What a prompt can have besides its name and its text.")]


def list_form_fields() -> list[FormFieldJson]:
    return [
        {"name": name, "label": name.capitalize(), "help": declared.help, "max_chars": declared.max_chars}
        for name, declared in PROMPT_FIELDS.items()
        if not declared.is_required
    ]


def prompt_to_json(prompt: SavedPrompt) -> SavedPromptJson:
    return build_json(SavedPromptJson, prompt)
