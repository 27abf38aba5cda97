"""Marks on what a person had when their accounts were linked to another person, so that unlinking returns it.

A row of a table that names a person moves when two people become one, and its mark says whom it came from. A row that
came from a person who was linked before keeps that mark. What is created after the link has none: it stays. Which
columns move is declared beside each table (`person_data.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.engines.base import Transaction, build_placeholders, fetch_value
from palaver.core.ids import PersonId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.people.person_data import Moved, PersonColumn


IDENTITY_KEY: Final = "platform || ':' || account"


def move_rows(tx: Transaction, to_id: PersonId, from_id: PersonId, column: PersonColumn, moved: Moved) -> None:
    """Mark the rows of one person, and give them to another, unless their names may have to change."""
    table, name, mark, key = column.table, column.column, column.mark, moved.key
    is_moved = f"{name} = $2 AND {column.only}" + (f" AND NOT EXISTS ({moved.unless})" if moved.unless else "")
    sql = f"""INSERT INTO linked_row (table_name, row_key, person_id) SELECT '{mark}', {key}, $2 FROM {table}
        WHERE {is_moved} AND $1 <> $2 AND NOT EXISTS (SELECT 1 FROM linked_row marked
        WHERE marked.table_name = '{mark}' AND marked.row_key = {key}) ON CONFLICT DO NOTHING"""
    tx.execute(sql, to_id, from_id)
    if not moved.has_unique_names:
        tx.execute(f"UPDATE {table} SET {name} = $1 WHERE {is_moved}", to_id, from_id)


def return_rows(
    tx: Transaction, group: Sequence[PersonId], from_id: PersonId, column: PersonColumn, moved: Moved
) -> None:
    """Return the rows that came from a person, or from the rest of their group, and that another has now."""
    sql = f"""UPDATE {column.table} SET {column.column} = $2 WHERE {column.column} = $1 AND {column.only}
        AND {moved.key} IN (SELECT row_key FROM linked_row WHERE table_name = '{column.mark}'
        AND person_id IN ({build_placeholders(len(group), first=2)}))"""
    tx.execute(sql, from_id, *group)


def list_group(tx: Transaction, person_id: PersonId) -> list[PersonId]:
    """List a person, and those who were linked to them before they themselves were linked to another."""
    group = [person_id]
    for each in group:  # grows while it is read
        group += [PersonId(key) for key in list_keys(tx, each, "person.merged_into")]
    return group


def list_keys(tx: Transaction, person_id: PersonId, mark: str) -> list[str]:
    """List the marked rows of one kind that came from a person."""
    rows = tx.fetch_all("SELECT row_key FROM linked_row WHERE person_id = $1 AND table_name = $2", person_id, mark)
    return [key for (key,) in rows]


def find_origin(tx: Transaction, platform: str, account: str) -> PersonId | None:
    """Return the person whom an account belonged to before it was linked; None if it was not, or long ago."""
    sql = "SELECT person_id FROM linked_row WHERE table_name = 'identity' AND row_key = $1"
    origin: PersonId | None = fetch_value(tx, sql, f"{platform}:{account}")
    return origin


def rename_account(tx: Transaction, platform: str, old_id: str, new_id: str) -> None:
    """Keep the mark of an account that is stored under another id."""
    sql = "UPDATE linked_row SET row_key = $2 WHERE table_name = 'identity' AND row_key = $1"
    tx.execute(sql, f"{platform}:{old_id}", f"{platform}:{new_id}")


def remove_account(tx: Transaction, platform: str, account: str) -> None:
    """Forget where an account came from, because it is removed."""
    tx.execute("DELETE FROM linked_row WHERE table_name = 'identity' AND row_key = $1", f"{platform}:{account}")


def delete_marks(tx: Transaction, person_id: PersonId) -> None:
    """Forget what a person had, and whom they were linked to, because they have it again."""
    tx.execute(
        "DELETE FROM linked_row WHERE person_id = $1 OR (table_name = 'person.merged_into' AND row_key = $1)", person_id
    )
