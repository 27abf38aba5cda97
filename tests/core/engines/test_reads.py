"""A `Read` cannot change the database, on either engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.engines.base import Read
from palaver.core.errors import StoreReadOnly

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction

pytestmark = pytest.mark.both_engines


def test_a_read_whose_first_statement_writes_is_refused(store: SessionStore) -> None:
    def write(tx: Transaction) -> int:
        return tx.execute("INSERT INTO audience (created_at) VALUES ($1)", 1)

    with pytest.raises(StoreReadOnly):
        store.engine.run(Read(write))
    assert store.engine.run(Read(lambda tx: tx.fetch_all("SELECT no FROM audience"))) == []


def test_a_read_that_writes_later_is_refused(store: SessionStore) -> None:
    def read_and_write(tx: Transaction) -> int:
        tx.fetch_all("SELECT no FROM audience")
        return tx.execute("INSERT INTO audience (created_at) VALUES ($1)", 1)

    with pytest.raises(StoreReadOnly):
        store.engine.run(Read(read_and_write))
