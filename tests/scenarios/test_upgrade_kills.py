"""`kill -9` in every migration of an upgrade: each is applied completely or not at all, and the next start goes on."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import psycopg
import pytest

from palaver.core.engines import migrate
from palaver.core.engines.base import Read
from palaver.core.engines.open import open_engine
from palaver.core.engines.postgres_migration import DIALECT as POSTGRES
from palaver.core.engines.sqlite import DIALECT as SQLITE
from palaver.operation.integrity_check import find_engine_problems, find_schema_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow]
SCRIPT = Path(__file__).with_name("upgrade_process.py")
FIRST_MIGRATIONS = 8
EVENTS = 300


def make_older_store(url: str) -> int:
    """Make a store of an older version with a conversation; return how many migrations it lacks."""
    is_sqlite = url.startswith("sqlite:")
    scripts = migrate.load_migrations(SQLITE if is_sqlite else POSTGRES)
    applied = list(scripts)[:FIRST_MIGRATIONS]
    statements = [
        "CREATE TABLE migration (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)",
        *(scripts[name] for name in applied),
        *(f"INSERT INTO migration (name, applied_at) VALUES ('{name}', 1)" for name in applied),
        "INSERT INTO audience (no, created_at) VALUES (1, 1)",
        "INSERT INTO session (no, id, key, platform, chat_type, source, audience_no, shared, created_at, start_reason,"
        " last_seq, message_count, indexed_seq)"
        f" VALUES (1, 's1', 'k1', 'web', 'dm', '{{}}', 1, 0, 1, 'first', {EVENTS}, {EVENTS // 3}, 0)",
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {EVENTS})"
        " INSERT INTO event (session_no, seq, kind, created_at, role, content, hidden_by)"
        f" SELECT 1, i, 'message', 1, 'user', 'hello', CASE WHEN i % 3 > 0 THEN {EVENTS} END FROM n",
    ]
    if is_sqlite:
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as db:
            db.execute("PRAGMA journal_mode = WAL")
            for statement in statements:
                db.execute(statement).fetchall()
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
    return len(scripts) - FIRST_MIGRATIONS


def fetch(url: str, statement: str) -> list[Any]:
    if url.startswith("sqlite:"):
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as db:
            return db.execute(statement).fetchall()
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


@pytest.fixture(params=["sqlite", "postgres"])
def older_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/older.db"
        return
    server: str = request.getfixturevalue("postgres")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE older")
        try:
            yield server.replace("/postgres?", "/older?")
        finally:
            connection.execute("DROP DATABASE older WITH (FORCE)")


@pytest.mark.parametrize("moment", ["applied", "recorded", "committed"])
def test_an_upgrade_that_is_killed_again_and_again_goes_on_where_it_was(
    launcher: WarmLauncher, older_url: str, moment: str
) -> None:
    lacking = make_older_store(older_url)
    log = fetch(older_url, "SELECT seq, content, hidden_by FROM event ORDER BY seq")
    counts = [FIRST_MIGRATIONS]
    for _ in range(lacking):
        ended = launcher.run_script(SCRIPT, older_url, moment)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        [(count,)] = fetch(older_url, "SELECT COUNT(*) FROM migration")
        counts.append(count)
    is_committed = moment == "committed"
    assert counts == [FIRST_MIGRATIONS + number * is_committed for number in range(lacking + (not is_committed))]
    with closing(open_engine(older_url)) as engine:
        assert find_engine_problems(engine) + find_schema_problems(engine) == []
        assert engine.run(Read(lambda tx: tx.fetch_one("SELECT COUNT(*) FROM migration"))) == (
            FIRST_MIGRATIONS + lacking,
        )
    assert fetch(older_url, "SELECT seq, content, hidden_by FROM event ORDER BY seq") == log
