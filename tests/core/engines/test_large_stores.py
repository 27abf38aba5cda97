"""Migrations of a large store: the work of each grows with the number of rows and not faster, from every version."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import apsw
import psycopg
import pytest

from palaver.core.engines import migrate
from palaver.core.engines.postgres_migration import DIALECT as POSTGRES
from palaver.core.engines.sqlite import DIALECT as SQLITE

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS: Final = 20_000  # in one conversation, most of them hidden
SESSIONS: Final = 2_000
MAX_STEPS_PER_ROW: Final = 150  # of SQLite's program, in one migration
MAX_VISITS_PER_ROW: Final = 25  # of rows by the steps of PostgreSQL's plans, in one statement
STEPS_PER_CALL: Final = 1000
LAST_CHANGE = re.compile(r"^(?:UPDATE|DELETE|INSERT)\b[^;]*;?\s*\Z", re.MULTILINE)


def fill(run: Any, events: int, sessions: int) -> None:
    """Store one long conversation and many short ones, with columns that every version has."""
    run("INSERT INTO audience (no, created_at) VALUES (1, 1)")
    run(
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {sessions})"
        " INSERT INTO session (id, key, platform, chat_type, source, audience_no, shared, created_at, start_reason,"
        " last_seq, indexed_seq) SELECT 's' || i, 'k' || i, 'web', 'dm', '{}', 1, 0, 1, 'first', 1, 1 FROM n"
    )
    run(
        "INSERT INTO event (session_no, seq, kind, created_at, role, content)"
        " SELECT no, 1, 'message', 1, 'user', 'hello' FROM session WHERE no > 1"
    )
    run(
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {events})"
        " INSERT INTO event (session_no, seq, kind, created_at, role, content, hidden_by)"
        f" SELECT 1, i, 'message', 1, 'user', 'hello', CASE WHEN i % 3 > 0 THEN {events} END FROM n"
    )


def upgrade_sqlite(applied: int, events: int, sessions: int) -> None:
    """Fill a store that has the first migrations and apply the others; interrupt one that takes too many steps."""
    db = apsw.Connection(":memory:")
    migrations = list(migrate.load_migrations(SQLITE).values())
    db.execute(migrate.CREATE_MIGRATION_TABLE)
    for script in migrations[:applied]:
        db.execute(script).fetchall()
    fill(db.execute, events, sessions)
    for script in migrations[applied:]:
        calls_left = iter(range(MAX_STEPS_PER_ROW * (events + sessions) // STEPS_PER_CALL))
        db.set_progress_handler(partial(_is_used_up, calls_left), STEPS_PER_CALL)
        db.execute(script).fetchall()
    db.close()


def _is_used_up(calls_left: Iterator[int]) -> bool:
    return next(calls_left, None) is None


@pytest.mark.parametrize("applied", range(2, len(migrate.load_migrations(SQLITE))))
def test_each_migration_of_a_large_file_does_a_bounded_amount_of_work_for_each_row(applied: int) -> None:
    upgrade_sqlite(applied, EVENTS, SESSIONS)


@pytest.mark.soak
def test_a_million_events_are_upgraded_with_a_bounded_amount_of_work_for_each() -> None:
    upgrade_sqlite(2, 1_000_000, 100_000)


# -- PostgreSQL ---------------------------------------------------------------------------------------------


@pytest.fixture
def connection(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("CREATE DATABASE large")
        try:
            with psycopg.connect(postgres.replace("/postgres?", "/large?"), autocommit=True) as opened:
                opened.execute("SET session_replication_role = replica")
                yield opened
        finally:
            admin.execute("DROP DATABASE large WITH (FORCE)")


def count_visits(plan: dict[str, Any]) -> int:
    """Return how many rows all steps of an executed plan have looked at."""
    removed = sum(value for key, value in plan.items() if key.startswith("Rows Removed"))
    own = int((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    return own + sum(count_visits(part) for part in plan.get("Plans", []))


def upgrade_postgres(connection: psycopg.Connection, applied: int, *, is_analyzed: bool) -> dict[str, int]:
    """Fill a store that has the first migrations, apply the others, and return the rows that their changes visited."""
    migrations = list(migrate.load_migrations(POSTGRES).items())
    connection.execute(migrate.CREATE_MIGRATION_TABLE)
    for _, script in migrations[:applied]:
        connection.execute(script)
    fill(connection.execute, EVENTS, SESSIONS)
    if is_analyzed:
        connection.execute("ANALYZE")
    visits = {}
    for name, script in migrations[applied:]:
        change = LAST_CHANGE.search(script)
        connection.execute(script if change is None else script[: change.start()])
        if change is not None:
            row = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {change[0]}").fetchone()
            assert row is not None
            visits[name] = count_visits(row[0][0]["Plan"])
    return visits


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_each_change_of_a_large_database_visits_a_bounded_number_of_rows(
    connection: psycopg.Connection, is_analyzed: bool
) -> None:
    visits = upgrade_postgres(connection, 2, is_analyzed=is_analyzed)
    assert {"0010_share_expiry_and_search_people", "0012_hidden_ranges"} <= visits.keys()
    assert {name: count for name, count in visits.items() if count > MAX_VISITS_PER_ROW * (EVENTS + SESSIONS)} == {}
