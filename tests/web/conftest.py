"""Web servers on a loopback port, each on this test's database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST

from conftest import emptied
from palaver.services.accounts import passwords
from support.web import StartWeb, Web, starting_web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def quick_passwords(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashing costs little here, where nobody guesses for years; a test of the price asks for the full one."""
    if "full_price" not in request.keywords:
        cheap = PasswordHasher.from_parameters(CHEAPEST)
        monkeypatch.setattr(passwords, "_hasher", lambda: cheap)
        monkeypatch.setattr(passwords, "NOBODYS", cheap.hash("nobody's"))


@pytest.fixture
def web_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database. SQLite, unless a test asks for another engine:
    `@pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)`.
    """
    if getattr(request, "param", "sqlite") == "postgres":
        return emptied(request.getfixturevalue("postgres_database"))
    return f"sqlite:///{tmp_path}/palaver.db"


@pytest.fixture
async def start_web(web_store: str, tmp_path: Path) -> AsyncIterator[StartWeb]:
    """Starts servers on this test's database, each with a store of its own, and stops them in the end."""
    async with starting_web(web_store, tmp_path) as start:
        yield start


@pytest.fixture
async def web(start_web: StartWeb) -> Web:
    return await start_web()
