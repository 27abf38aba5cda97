"""Settings that owners change while Palaver runs, and the history of these changes. Values are JSON texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Transaction, fetch_number
from palaver.settings.encryption import ChangeItem, SettingsChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.ids import PersonId

_CHANGE: Final = Columns(SettingsChange, without=["items"], number="c.no", person_name="p.name")
MAX_CHANGES: Final = 500  # of the history; older ones are deleted when a new one is made


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsState:
    version: int
    key_id: str | None  # names the key that secrets are encrypted with


@dataclass(frozen=True, slots=True)
class SettingRow:
    key: str
    value: str  # JSON
    set_by: PersonId | None
    set_at: int


def load_state(tx: Transaction) -> SettingsState:
    row = tx.fetch_one("SELECT version, key_id FROM setting_state WHERE id = 1")
    version, key_id = row or (0, None)
    return SettingsState(version=version, key_id=key_id)


def lock_state(tx: Transaction) -> SettingsState:
    """Return the state; other changes of settings wait until this transaction has ended."""
    tx.lock_name("settings")
    return load_state(tx)


def save_state(tx: Transaction, state: SettingsState) -> None:
    sql = """INSERT INTO setting_state (id, version, key_id) VALUES (1, $1, $2)
        ON CONFLICT (id) DO UPDATE SET version = excluded.version, key_id = excluded.key_id"""
    tx.execute(sql, state.version, state.key_id)


def list_all(tx: Transaction) -> list[SettingRow]:
    rows = tx.fetch_all("SELECT key, value, set_by, set_at FROM setting ORDER BY key")
    return [SettingRow(*row) for row in rows]


def apply_items(tx: Transaction, items: Sequence[ChangeItem], person_id: PersonId | None, now: int) -> None:
    """Store the new values, and remove those that are no longer set."""
    for item in items:
        if item.stored_after is None:
            tx.execute("DELETE FROM setting WHERE key = $1", item.key)
        else:
            sql = (
                "INSERT INTO setting (key, value, set_by, set_at) VALUES ($1, $2, $3, $4)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value, set_by = excluded.set_by,"
                " set_at = excluded.set_at"
            )
            tx.execute(sql, item.key, item.stored_after, person_id, now)


def add_change(
    tx: Transaction,
    items: Sequence[ChangeItem],
    *,
    person_id: PersonId | None,
    origin: str,
    undoes: int | None,
    now: int,
) -> int:
    """Add a change to the history, and return its number. The oldest ones make room for it."""
    sql = "INSERT INTO setting_change (person_id, origin, undoes, changed_at) VALUES ($1, $2, $3, $4) RETURNING no"
    no = fetch_number(tx, sql, person_id, origin, undoes, now)
    sql = "INSERT INTO setting_change_item (change_no, key, before, after) VALUES ($1, $2, $3, $4)"
    tx.execute_many(sql, [(no, item.key, item.stored_before, item.stored_after) for item in items])
    tx.execute("DELETE FROM setting_change WHERE no <= $1", no - MAX_CHANGES)
    return no


def list_changes(tx: Transaction, *, before: int | None, limit: int) -> list[SettingsChange]:
    """Return the newest changes, or those before a number, newest first."""
    sql = f"""SELECT {_CHANGE.format_select("c")} FROM setting_change c LEFT JOIN person p ON p.id = c.person_id
        WHERE c.no < $1 ORDER BY c.no DESC LIMIT $2"""
    rows = tx.fetch_all(sql, 2**62 if before is None else before, limit)
    select_items = "SELECT key, before, after FROM setting_change_item WHERE change_no = $1 ORDER BY key"
    return [
        _CHANGE.decode(row, items=tuple(ChangeItem(*item) for item in tx.fetch_all(select_items, row[0])))
        for row in rows
    ]


def find_change(tx: Transaction, number: int) -> SettingsChange | None:
    found = list_changes(tx, before=number + 1, limit=1)
    return found[0] if found and found[0].number == number else None


def list_items(tx: Transaction) -> list[tuple[int, ChangeItem]]:
    """Return the items of the history with the numbers of their changes."""
    rows = tx.fetch_all("SELECT change_no, key, before, after FROM setting_change_item ORDER BY change_no, key")
    return [(no, ChangeItem(key, before, after)) for no, key, before, after in rows]


def replace_values(tx: Transaction, rows: Sequence[SettingRow]) -> None:
    """Write the values of these settings again, such as with another key; who set them and when stays."""
    tx.execute_many("UPDATE setting SET value = $1 WHERE key = $2", [(row.value, row.key) for row in rows])


def replace_items(tx: Transaction, items: Sequence[tuple[int, ChangeItem]]) -> None:
    sql = "UPDATE setting_change_item SET before = $1, after = $2 WHERE change_no = $3 AND key = $4"
    tx.execute_many(sql, [(item.stored_before, item.stored_after, no, item.key) for no, item in items])
