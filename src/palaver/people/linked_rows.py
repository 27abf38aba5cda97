"""Marks on what a person had when their accounts were linked to another person, so that unlinking returns it.

A row of a table that names a person moves when two people become one, and its mark says whom it came from. A row that
came from a person who was linked before keeps that mark. What is created after the link has none: it stays.

Always true: every column that names a person is in `MOVED_COLUMNS`, or in `UNMOVED_COLUMNS` with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.core.engines.base import build_placeholders
from palaver.core.ids import PersonId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction


class MovedColumn(NamedTuple):
    """A column that names a person, and the SQL expression that names its row.

    Where a row can be replaced by another with the same key, the expression also has the time when it was set.
    """

    table: str
    column: str
    key: str
    base: str = "1 = 1"  # the rows in which the column names a person
    condition: str = "1 = 1"  # of these, the rows that move
    has_names: bool = False  # a person can't have two of a name, so the module of the table moves the rows

    @property
    def mark(self) -> str:
        """The name of the marks: two columns of one table are marked apart."""
        return self.table if self.column in {"person_id", "owner"} else f"{self.table}.{self.column}"


IDENTITY_KEY: Final = "platform || ':' || account"
MOVED_COLUMNS: Final = (
    MovedColumn("person", "merged_into", "id"),
    MovedColumn("identity", "person_id", IDENTITY_KEY),
    MovedColumn("attachment", "person_id", "id"),
    MovedColumn("share", "person_id", "id"),
    MovedColumn("project", "person_id", "id", has_names=True),
    MovedColumn("job", "person_id", "id", has_names=True),
    MovedColumn("saved_prompt", "person_id", "id", has_names=True),
    MovedColumn("chat_access", "person_id", "platform || ':' || account || ':' || chat_id || ':' || granted_at"),
    MovedColumn("home_channel", "set_by", "platform || ':' || set_at"),
    MovedColumn("setting", "set_by", "key || ':' || set_at"),
    MovedColumn("setting_change", "person_id", "CAST(no AS TEXT)"),
    MovedColumn("budget_limit", "set_by", "scope || ':' || subject || ':' || period || ':' || unit || ':' || set_at"),
    MovedColumn(
        "budget_limit",
        "subject",
        "period || ':' || unit || ':' || set_at",
        "scope = 'person'",
        "NOT EXISTS (SELECT 1 FROM budget_limit theirs WHERE theirs.scope = 'person'"
        " AND theirs.subject = $1 AND theirs.period = budget_limit.period AND theirs.unit = budget_limit.unit)",
    ),
    MovedColumn(
        "imported_item",
        "owner",
        "format || ':' || kind || ':' || origin_id",
        "owner <> ''",
        "NOT EXISTS (SELECT 1 FROM imported_item theirs WHERE theirs.owner = $1 AND theirs.format ="
        " imported_item.format AND theirs.kind = imported_item.kind AND theirs.origin_id = imported_item.origin_id)",
    ),
)
_ACCOUNT: Final = "belongs to the account, and a person with an account is never linked to another"
UNMOVED_COLUMNS: Final = {
    "account.person_id": _ACCOUNT,
    "api_token.person_id": _ACCOUNT,
    "known_device.person_id": _ACCOUNT,
    "passkey.person_id": _ACCOUNT,
    "passkey_challenge.person_id": _ACCOUNT,
    "sign_in.person_id": _ACCOUNT,
    "sign_in_link.person_id": _ACCOUNT,
    "audience_member.person_id": "a person can be a member for two reasons: see `person_merge.py`",
    "budget_window.subject": "what was used is added, and taken away again: see `budget_windows.py`",
    "chat_access.granted_by": "says who granted it, under the id of that time",
    "erasure.person_id": "an erased person is not linked",
    "event.person_id": "says who wrote it, under the id of that time",
    "link_code.person_id": "is deleted",
    "link_code.claim_person_id": "is deleted",
    "linked_row.person_id": "says whom a row came from",
    "memory.person_id": "says who asked for it; it belongs to an audience",
    "memory_turn.person_id": "follows its conversation",
    "message_rate.person_id": "is deleted",
    "model_call.owner": "is a process",
    "named_lease.owner": "is a process",
    "preview.owner": "is a process",
    "read_mark.person_id": "follows its conversation",
    "turn.person_id": "follows its conversation while it is open; later it says who asked",
    "turn.stopped_by": "says who stopped it, under the id of that time",
}


def move(tx: Transaction, to_id: PersonId, from_id: PersonId, moved: MovedColumn) -> None:
    """Mark the rows of one person, and give them to another unless the module of the table does that."""
    table, column, key, base, condition, has_names = moved
    is_moved = f"{column} = $2 AND {base} AND {condition}"
    tx.execute(
        f"INSERT INTO linked_row (table_name, row_key, person_id) SELECT '{moved.mark}', {key}, $2 FROM {table}"
        f" WHERE {is_moved} AND $1 <> $2 AND NOT EXISTS (SELECT 1 FROM linked_row marked"
        f" WHERE marked.table_name = '{moved.mark}' AND marked.row_key = {key}) ON CONFLICT DO NOTHING",
        to_id,
        from_id,
    )
    if not has_names:
        tx.execute(f"UPDATE {table} SET {column} = $1 WHERE {is_moved}", to_id, from_id)


def list_group(tx: Transaction, person_id: PersonId) -> list[PersonId]:
    """List a person, and those who were linked to them before they themselves were linked to another."""
    group = [person_id]
    for each in group:  # grows while it is read
        group += [PersonId(key) for key in list_keys(tx, each, "person.merged_into")]
    return group


def give_back(tx: Transaction, group: Sequence[PersonId], from_id: PersonId, moved: MovedColumn) -> None:
    """Return the rows that came from a person, or from the rest of their group, and that another has now."""
    table, column, key, base, _, _ = moved
    tx.execute(
        f"UPDATE {table} SET {column} = $2 WHERE {column} = $1 AND {base} AND {key} IN (SELECT row_key FROM linked_row"
        f" WHERE table_name = '{moved.mark}' AND person_id IN ({build_placeholders(len(group), first=2)}))",
        from_id,
        *group,
    )


def list_keys(tx: Transaction, person_id: PersonId, mark: str) -> list[str]:
    """List the marked rows of one kind that came from a person."""
    rows = tx.fetch_all("SELECT row_key FROM linked_row WHERE person_id = $1 AND table_name = $2", person_id, mark)
    return [key for (key,) in rows]


def find_origin(tx: Transaction, platform: str, account: str) -> PersonId | None:
    """Return the person whom an account belonged to before it was linked; None if it was not, or long ago."""
    row = tx.fetch_one(
        "SELECT person_id FROM linked_row WHERE table_name = 'identity' AND row_key = $1", f"{platform}:{account}"
    )
    return PersonId(row[0]) if row else None


def rename_account(tx: Transaction, platform: str, old_id: str, new_id: str) -> None:
    """Keep the mark of an account that is stored under another id."""
    tx.execute(
        "UPDATE linked_row SET row_key = $2 WHERE table_name = 'identity' AND row_key = $1",
        f"{platform}:{old_id}",
        f"{platform}:{new_id}",
    )


def remove_account(tx: Transaction, platform: str, account: str) -> None:
    """Forget where an account came from, because it is removed."""
    tx.execute("DELETE FROM linked_row WHERE table_name = 'identity' AND row_key = $1", f"{platform}:{account}")


def delete_marks(tx: Transaction, person_id: PersonId) -> None:
    """Forget what a person had, and whom they were linked to, because they have it again."""
    tx.execute(
        "DELETE FROM linked_row WHERE person_id = $1 OR (table_name = 'person.merged_into' AND row_key = $1)", person_id
    )
