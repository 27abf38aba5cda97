"""Opening a store: addresses, files, and what is said when it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource, SessionStore
from palaver.domain.errors import ConfigError, StoreDamaged, StoreReadOnly, StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("form", ["sqlite:///{}", "{}"])
def test_a_file_is_opened_by_address_or_path(tmp_path: Path, form: str) -> None:
    path = tmp_path / "deep" / "down" / "palaver.db"
    with SessionStore.open(form.format(path)) as store:
        store.record_user_message(SessionSource.local_cli(), "hello")
    with SessionStore.open(path) as store:
        assert store.has_any_sessions()


def test_conversations_are_for_nobody_else_to_read(tmp_path: Path) -> None:
    path = tmp_path / "home" / "palaver.db"
    with SessionStore.open(path) as store:
        store.record_user_message(SessionSource.local_cli(), "hello")
        modes = {file.name: oct(file.stat().st_mode & 0o777) for file in path.parent.iterdir()}
    assert set(modes.values()) == {"0o600"}
    assert oct(path.parent.stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize(
    ("url", "names"),
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
def test_an_address_that_cannot_be_is_refused_without_its_password(url: str, names: str) -> None:
    with pytest.raises(ConfigError, match=names) as refused:
        SessionStore.open(url)
    assert "p%zz" not in str(refused.value)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/talk") as refused:
        SessionStore.open("postgresql://ada:hunter2@127.0.0.1:1/talk")
    assert "hunter2" not in str(refused.value)


def test_a_path_that_no_file_can_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="characters"):
        SessionStore.open(f"{tmp_path}/\ud83d.db")


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreReadOnly, match=str(tmp_path)):
        SessionStore.open(tmp_path)


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE theirs (x)')"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=30)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match="another program"):
        SessionStore.open(path)
    assert path.read_bytes()[100:] == before[100:]  # the header may say WAL now; the data is theirs


def test_a_blocking_program_does_not_pay_for_asyncio(tmp_path: Path) -> None:
    script = (
        "import sys; from palaver import SessionStore, SessionSource\n"
        "with SessionStore.open(sys.argv[1]) as store:\n"
        "    store.record_user_message(SessionSource.local_cli(), 'hello'); store.list_sessions()\n"
        "print([name for name in ('asyncio', 'psycopg', 'pydantic', 'yaml', 'rich', 'click') if name in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "p.db")],
        capture_output=True, text=True, check=True, timeout=30, env={**os.environ, "PYTHONWARNINGS": "error"},
    )  # fmt: skip
    assert told.stdout.strip() == "[]"
