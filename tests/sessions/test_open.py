"""Opening a store: addresses, files, and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource, SessionStore
from palaver.core.errors import ConfigError, StoreDamaged, StoreReadOnly, StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("form", ["sqlite:///{}", "{}"])
def test_a_database_file_is_opened_by_url_or_path(tmp_path: Path, form: str) -> None:
    path = tmp_path / "deep" / "down" / "palaver.db"
    with SessionStore.open(form.format(path)) as store:
        store.record_user_message(SessionSource.local_cli(), "hello")
    with SessionStore.open(path) as store:
        assert store.has_any_sessions()


def test_other_users_of_the_machine_cannot_read_the_database(tmp_path: Path) -> None:
    path = tmp_path / "home" / "palaver.db"
    with SessionStore.open(path) as store:
        store.record_user_message(SessionSource.local_cli(), "hello")
        modes = {file.name: oct(file.stat().st_mode & 0o777) for file in path.parent.iterdir()}
    assert set(modes.values()) == {"0o600"}
    assert oct(path.parent.stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://localhost/x", "mysql"),
        ("sqlite::memory:", "sqlite"),
        (":memory:", "memory"),
        ("sqlite:///", "memory"),
        ("postgresql://[::1", "postgresql://user@host"),
        ("postgresql://u:p%zz@localhost/x", "percent-encoded"),
        ("postgresql://localhost/x?nope=1", "postgresql://user@host"),
    ],
)
def test_an_invalid_url_is_refused_without_showing_its_password(url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        SessionStore.open(url)
    assert "p%zz" not in str(refused.value)


def test_an_unreachable_server_is_named_without_its_password() -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/talk") as refused:
        SessionStore.open("postgresql://ada:hunter2@127.0.0.1:1/talk")
    assert "hunter2" not in str(refused.value)


def test_an_impossible_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="characters"):
        SessionStore.open(f"{tmp_path}/\ud83d.db")


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreReadOnly, match=str(tmp_path)):
        SessionStore.open(tmp_path)


def test_a_database_of_another_program_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE other (x)')"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=30)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match="another program"):
        SessionStore.open(path)
    assert path.read_bytes()[100:] == before[100:]  # the header may say WAL now; the data is unchanged


def test_a_blocking_program_does_not_import_asyncio(tmp_path: Path) -> None:
    script = (
        "import sys; from palaver import SessionStore, SessionSource\n"
        "with SessionStore.open(sys.argv[1]) as store:\n"
        "    store.record_user_message(SessionSource.local_cli(), 'hello'); store.list_sessions()\n"
        "print([name for name in ('asyncio', 'psycopg', 'pydantic', 'yaml', 'rich', 'click') if name in sys.modules])"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "p.db")],
        capture_output=True, text=True, check=True, timeout=30, env={**os.environ, "PYTHONWARNINGS": "error"},
    )  # fmt: skip
    assert completed.stdout.strip() == "[]"
