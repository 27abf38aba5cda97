"""A saved prompt: its fields, how each is given and stored, and its JSON."""

from __future__ import annotations

from dataclasses import field, fields
from datetime import datetime  # noqa: TC003 - read at run time: the columns derive from it
from typing import TYPE_CHECKING, Annotated, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.ids import SavedPromptId  # noqa: TC001
from palaver.core.titles import clean_long_text, clean_title
from palaver.core.wire import Doc, FormFieldJson, Time, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


MAX_PROMPT_CHARS: Final = 20_000
MAX_PROMPTS: Final = 500  # of one person


@dataclass(frozen=True, slots=True)
class PromptField:
    """A field of a saved prompt that its person gives."""

    clean: Callable[[str], str]  # as it is stored; raises InvalidInput
    help: str
    max_chars: int = 1000
    is_required: bool = True
    example: str | None = None


def _declare(declaration: PromptField) -> Any:
    return field(metadata={"prompt_field": declaration})


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPrompt:
    """A saved prompt of one person. `{{word}}` in its text is a placeholder."""

    id: SavedPromptId
    name: str = _declare(PromptField(clean_title, "The new name."))
    text: str = _declare(
        PromptField(
            lambda text: clean_long_text("text", text, MAX_PROMPT_CHARS),
            "The new text; - reads it from standard input.",
            max_chars=MAX_PROMPT_CHARS,
            example="Explain {{topic}} to {{audience}}.",
        )
    )
    created_at: datetime
    updated_at: datetime


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
    fields: Annotated[list[FormFieldJson], Doc("What a prompt can have besides its name and its text.")]


PROMPT_FIELDS: Final[Mapping[str, PromptField]] = {
    each.name: each.metadata["prompt_field"] for each in fields(SavedPrompt) if each.metadata
}


def list_form_fields() -> list[FormFieldJson]:
    return [
        {"name": name, "label": name.capitalize(), "help": declared.help, "max_chars": declared.max_chars}
        for name, declared in PROMPT_FIELDS.items()
        if not declared.is_required
    ]
