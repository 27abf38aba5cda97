"""Rows that are deleted when they are old: each table module declares its own, and the cleanup derives its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from palaver.core.engines.base import Transaction


class OldRows(NamedTuple):
    max_age: timedelta
    has_older: Callable[[Transaction, int], bool]  # than a moment
    delete_older: Callable[[Transaction, int, int], int]  # the oldest, at most so many; returns how many
    batch_size: int | None = None  # deleted in one transaction; None: as many as of most tables


def declare_old_rows(table: str, time: str, max_age: timedelta, *, key: str = "no", only: str = "") -> OldRows:
    """Declare the rows whose column `time` is older than `max_age`; `only` those that it describes."""
    old = f"FROM {table} WHERE {only and f'{only} AND '}{time} < $1"

    def has_older(tx: Transaction, before: int) -> bool:
        return tx.fetch_one(f"SELECT 1 {old} LIMIT 1", before) is not None

    def delete_older(tx: Transaction, before: int, limit: int) -> int:
        delete = f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} {old} ORDER BY {time} LIMIT $2)"
        return tx.execute(delete, before, limit)

    return OldRows(max_age, has_older, delete_older)
