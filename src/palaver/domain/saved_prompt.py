"""Saved prompts: texts that a person sends again and again. `{{topic}}` in them is a placeholder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.domain.errors import InvalidInput
from palaver.domain.text import make_storable

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.ids import SavedPromptId

MAX_PROMPT_CHARS: Final = 20_000
MAX_PROMPTS: Final = 500  # of one person
MAX_PROJECT_INSTRUCTION_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPrompt:
    """A saved prompt of one person."""

    id: SavedPromptId
    name: str
    text: str
    created_at: datetime
    updated_at: datetime


def clean_prompt_text(text: str) -> str:
    """Return the text as it is stored; raises `InvalidInput` for one that is empty or too long."""
    return _clean_text("text", text, MAX_PROMPT_CHARS)


def clean_project_instructions(text: str) -> str | None:
    """Return the instructions of a project as they are stored; None: without any."""
    return _clean_text("instructions", text, MAX_PROJECT_INSTRUCTION_CHARS) if text.strip() else None


def _clean_text(key: str, text: str, max_chars: int) -> str:
    clean = make_storable(text).strip()
    if not clean:
        raise InvalidInput(f"{key}: it is empty. Write something.", key=key)
    if len(clean) > max_chars:
        raise InvalidInput(f"{key}: it has {len(clean)} characters; at most {max_chars} are allowed.", key=key)
    return clean
