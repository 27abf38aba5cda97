"""Web servers on a loopback port, each on this test's database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST

from palaver.accounts import sign_in as passwords
from support.web import StartWebServer, WebServer, web_server_factory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def use_cheap_password_hashing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords cheaply and refuse at once, to keep tests fast; tests marked `real_hashing` use the real cost."""
    monkeypatch.setattr(passwords, "REFUSAL_DELAY_SECONDS", 0)
    if "real_hashing" not in request.keywords:
        cheap = PasswordHasher.from_parameters(CHEAPEST)
        monkeypatch.setattr(passwords, "_create_hasher", lambda: cheap)
        monkeypatch.setattr(passwords, "DUMMY_HASH", cheap.hash("dummy"))


@pytest.fixture
async def start_web(store_url: str, tmp_path: Path) -> AsyncIterator[StartWebServer]:
    """Start servers on this test's database, each with its own store, and stop them at the end."""
    async with web_server_factory(store_url, tmp_path) as start:
        yield start


@pytest.fixture
async def web(start_web: StartWebServer) -> WebServer:
    return await start_web()
