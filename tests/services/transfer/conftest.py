"""Stores to export from and to import into, on both engines."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from support.transfer_stores import StoreMaker

if TYPE_CHECKING:
    from collections.abc import Iterator

EMPTY_ALL_TABLES = """DO $$ DECLARE found RECORD; BEGIN
    SET LOCAL session_replication_role = replica;
    FOR found IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
        AND relname <> 'migration' LOOP EXECUTE format('DELETE FROM %I', found.relname); END LOOP; END $$"""


@pytest.fixture(params=["sqlite", "postgres"])
def store_maker(request: pytest.FixtureRequest) -> Iterator[StoreMaker]:
    from palaver.storage.engines import postgres_pool

    def empty_postgres() -> str:
        url: str = request.getfixturevalue("postgres_database")
        with postgres_pool.connect(url) as connection:
            connection.execute(EMPTY_ALL_TABLES)
        return url

    with ExitStack() as stack:
        yield StoreMaker(empty_postgres if request.param == "postgres" else None, stack)
