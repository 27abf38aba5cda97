"""Saved prompts: texts that a person sends again and again. `{{topic}}` in them is a placeholder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.titles import clean_long_text

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.ids import SavedPromptId

MAX_PROMPT_CHARS: Final = 20_000
MAX_PROMPTS: Final = 500  # of one person


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
    return clean_long_text("text", text, MAX_PROMPT_CHARS)
