"""Saved prompts: texts with placeholders, each of one person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.clock import from_micros
from palaver.core.errors import LimitReached, NotFound, PromptNameTaken
from palaver.core.ids import SavedPromptId, new_saved_prompt_id
from palaver.core.text import is_storable
from palaver.core.titles import clean_long_text, clean_title
from palaver.people.person_data import EraseAt, ExportedTable, FieldKind, Moved, PersonColumn, make_fields

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.engines.base import Row, Transaction
    from palaver.core.ids import PersonId


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


# --------------------------------------------------------------------------------------------------

_SELECT = "SELECT id, name, text, created_at, updated_at FROM saved_prompt"


def list_prompts(tx: Transaction, person_id: PersonId) -> list[SavedPrompt]:
    """List a person's saved prompts by name."""
    rows = tx.fetch_all(f"{_SELECT} WHERE person_id = $1 ORDER BY name_key LIMIT {MAX_PROMPTS}", person_id)
    return [_prompt_from_row(row) for row in rows]


def get_prompt(tx: Transaction, person_id: PersonId, prompt_id: str) -> SavedPrompt:
    row = is_storable(prompt_id) and tx.fetch_one(f"{_SELECT} WHERE id = $1 AND person_id = $2", prompt_id, person_id)
    if not row:
        raise NotFound(f"Saved prompt {prompt_id!r} not found.", prompt=prompt_id)
    return _prompt_from_row(row)


def create(tx: Transaction, person_id: PersonId, name: str, text: str, now: int) -> SavedPrompt:
    # Two at once must not both be the last one that is allowed.
    tx.fetch_one(f"SELECT id FROM person WHERE id = $1 {tx.for_update}", person_id)
    count = tx.fetch_one("SELECT COUNT(*) FROM saved_prompt WHERE person_id = $1", person_id)
    if count is not None and count[0] >= MAX_PROMPTS:
        raise LimitReached(f"You can save up to {MAX_PROMPTS} prompts. Delete one first.", limit=MAX_PROMPTS)
    clean = _clean_free_name(tx, person_id, name)
    prompt_id = new_saved_prompt_id()
    tx.execute(
        "INSERT INTO saved_prompt (id, person_id, name, name_key, text, created_at, updated_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $6)",
        prompt_id,
        person_id,
        clean,
        clean.casefold(),
        clean_prompt_text(text),
        now,
    )
    return get_prompt(tx, person_id, prompt_id)


def update(
    tx: Transaction, person_id: PersonId, prompt_id: str, name: str | None, text: str | None, now: int
) -> SavedPrompt:
    """Change the name or the text of a saved prompt (None: it stays)."""
    prompt = get_prompt(tx, person_id, prompt_id)
    clean = prompt.name if name is None else _clean_free_name(tx, person_id, name, except_id=prompt.id)
    tx.execute(
        "UPDATE saved_prompt SET name = $2, name_key = $3, text = $4, updated_at = $5 WHERE id = $1",
        prompt.id,
        clean,
        clean.casefold(),
        prompt.text if text is None else clean_prompt_text(text),
        now,
    )
    return get_prompt(tx, person_id, prompt.id)


def delete(tx: Transaction, person_id: PersonId, prompt_id: str) -> SavedPrompt:
    """Delete a saved prompt and return it."""
    prompt = get_prompt(tx, person_id, prompt_id)
    tx.execute("DELETE FROM saved_prompt WHERE id = $1", prompt.id)
    return prompt


def _clean_free_name(tx: Transaction, person_id: PersonId, name: str, except_id: str = "") -> str:
    clean = clean_title(name)
    existing = tx.fetch_one(
        "SELECT name FROM saved_prompt WHERE person_id = $1 AND name_key = $2 AND id <> $3",
        person_id,
        clean.casefold(),
        except_id,
    )
    if existing is not None:
        raise PromptNameTaken(f"You already have a prompt named {existing[0]!r}. Choose another name.", name=clean)
    return clean


def _prompt_from_row(row: Row) -> SavedPrompt:
    return SavedPrompt(
        id=SavedPromptId(row[0]),
        name=row[1],
        text=row[2],
        created_at=from_micros(row[3]),
        updated_at=from_micros(row[4]),
    )


PERSON_DATA: Final = (
    PersonColumn("saved_prompt", merge=Moved(has_unique_names=True), erase=EraseAt.CASCADE, belonging="prompts"),
)
EXPORT: Final = ExportedTable(
    table="saved_prompt",
    fields=(*make_fields("id! name! text!"), *make_fields("created_at! updated_at!", FieldKind.TIME)),
    references={"person": "t.person_id"},
    order=("created_at", "id"),
    unique=("person_id", "name_key"),
    report_kind="saved_prompts",
)
