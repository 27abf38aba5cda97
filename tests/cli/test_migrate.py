"""`palaver migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conftest import empty_database
from palaver import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Home


@pytest.fixture
def server_url(postgres_database: str) -> str:
    return empty_database(postgres_database)


def test_a_store_is_moved_and_every_table_is_counted(home: Home, server_url: str, tmp_path: Path) -> None:
    home.add_conversation("Hello", "Hi", title="Lisbon")
    plan = home.get_text("migrate", home.path / "palaver.db", server_url, "--dry-run")
    assert plan.endswith("would be copied. Nothing was changed.\n")
    result = home("migrate", f"sqlite:{home.path / 'palaver.db'}", server_url)
    assert result.stdout.splitlines()[0].split() == ["TABLE", "ROWS", "CHECKSUM"]
    assert result.stdout.endswith("rows copied and compared.\n")
    assert "set database_url" in result.stderr
    with SessionStore.open(server_url) as store:
        assert [session.title for session in store.list_sessions()] == ["Lisbon"]
    back = home.get_json("migrate", server_url, tmp_path / "back.db")
    assert {"table": "session", "rows": 1}.items() <= next(
        table for table in back["tables"] if table["table"] == "session"
    ).items()


def test_a_target_with_content_is_refused(home: Home, server_url: str) -> None:
    home.add_conversation("Hello", "Hi")
    with SessionStore.open(server_url) as store:
        store.get_owner()
    assert "is not empty" in home.get_error("migrate", home.path / "palaver.db", server_url, code=1)


@pytest.mark.parametrize(
    ("source", "target", "code"),
    [("a.db", "b.db", 1), ("mysql://x", "postgresql://127.0.0.1:1/z", 7), ("a.db", "nope://x", 7)],
)
def test_other_addresses_are_refused(home: Home, source: str, target: str, code: int) -> None:
    assert home.get_error("migrate", source, target, code=code)


def test_a_source_that_does_not_exist_is_not_created(home: Home, server_url: str, tmp_path: Path) -> None:
    error = home.get_error("migrate", tmp_path / "none.db", server_url, code=1)
    assert "does not exist" in error
    assert not (tmp_path / "none.db").exists()
