"""The table of saved prompts: each belongs to one person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.columns import Columns, insert_row, update_row
from palaver.core.engines.base import Transaction, fetch_number
from palaver.core.errors import LimitReached, NotFound, PromptNameTaken
from palaver.core.ids import PersonId, new_saved_prompt_id
from palaver.core.text import is_storable
from palaver.people.person_data import EraseAt, ExportedTable, Moved, PersonColumn, derive_fields
from palaver.prompts.model import MAX_PROMPTS, PROMPT_FIELDS, SavedPrompt

if TYPE_CHECKING:
    from collections.abc import Mapping


COLUMNS: Final = Columns(SavedPrompt)
_SELECT = f"SELECT {COLUMNS.format_select()} FROM saved_prompt"


def clean_fields(given: Mapping[str, str | None]) -> dict[str, object]:
    """Return given fields as columns of the table; raises InvalidInput for one that is not valid."""
    columns: dict[str, object] = {}
    for name, value in given.items():
        declared = PROMPT_FIELDS[name]
        is_empty = value is None or (not declared.is_required and not value.strip())
        columns[name] = None if is_empty or value is None else declared.clean(value)
    if "name" in columns:
        columns["name_key"] = str(columns["name"]).casefold()
    return columns


def list_prompts(tx: Transaction, person_id: PersonId) -> list[SavedPrompt]:
    rows = tx.fetch_all(f"{_SELECT} WHERE person_id = $1 ORDER BY name_key LIMIT {MAX_PROMPTS}", person_id)
    return [COLUMNS.decode(row) for row in rows]


def get_prompt(tx: Transaction, person_id: PersonId, prompt_id: str) -> SavedPrompt:
    row = is_storable(prompt_id) and tx.fetch_one(f"{_SELECT} WHERE id = $1 AND person_id = $2", prompt_id, person_id)
    if not row:
        raise NotFound(f"Saved prompt {prompt_id!r} not found.", prompt=prompt_id)
    return COLUMNS.decode(row)


def create(tx: Transaction, person_id: PersonId, given: Mapping[str, str | None], now: int) -> SavedPrompt:
    # Two at once must not both be the last one that is allowed.
    tx.fetch_one(f"SELECT id FROM person WHERE id = $1 {tx.for_update}", person_id)
    if fetch_number(tx, "SELECT COUNT(*) FROM saved_prompt WHERE person_id = $1", person_id) >= MAX_PROMPTS:
        raise LimitReached(f"You can save up to {MAX_PROMPTS} prompts. Delete one first.", limit=MAX_PROMPTS)
    columns = clean_fields(given)
    _check_name_free(tx, person_id, columns)
    prompt_id = new_saved_prompt_id()
    times = {"created_at": now, "updated_at": now}
    insert_row(tx, "saved_prompt", {"id": prompt_id, "person_id": person_id, **columns, **times})
    return get_prompt(tx, person_id, prompt_id)


def update(
    tx: Transaction, person_id: PersonId, prompt_id: str, given: Mapping[str, str | None], now: int
) -> SavedPrompt:
    prompt = get_prompt(tx, person_id, prompt_id)
    columns = clean_fields(given)
    _check_name_free(tx, person_id, columns, except_id=prompt.id)
    update_row(tx, "saved_prompt", "id", prompt.id, {**columns, "updated_at": now})
    return get_prompt(tx, person_id, prompt.id)


def delete(tx: Transaction, person_id: PersonId, prompt_id: str) -> SavedPrompt:
    prompt = get_prompt(tx, person_id, prompt_id)
    tx.execute("DELETE FROM saved_prompt WHERE id = $1", prompt.id)
    return prompt


def _check_name_free(tx: Transaction, person_id: PersonId, columns: Mapping[str, object], except_id: str = "") -> None:
    if "name" not in columns:
        return
    sql = "SELECT name FROM saved_prompt WHERE person_id = $1 AND name_key = $2 AND id <> $3"
    existing = tx.fetch_one(sql, person_id, columns["name_key"], except_id)
    if existing is not None:
        (name,) = existing
        raise PromptNameTaken(f"You already have a prompt named {name!r}. Choose another name.", name=columns["name"])


PERSON_DATA: Final = (
    PersonColumn("saved_prompt", merge=Moved(has_unique_names=True), erase=EraseAt.CASCADE, belonging="prompts"),
)
EXPORT: Final = ExportedTable(
    table="saved_prompt",
    fields=derive_fields(COLUMNS),
    references={"person": "t.person_id"},
    order=("created_at", "id"),
    unique=("person_id", "name_key"),
    report_kind="saved_prompts",
)
