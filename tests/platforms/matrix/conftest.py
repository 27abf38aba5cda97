"""Fixtures for Matrix: a real homeserver, people with accounts there, and an account for Palaver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import httpx2
import pytest

from palaver.platforms.manifest import AccountPlace
from palaver.platforms.matrix.adapter import MatrixAdapter
from palaver.platforms.matrix.manifest import MatrixSettings

from .homeserver import Person, share_synapse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def synapse() -> Iterator[str]:
    """The URL of a homeserver that runs during the test session."""
    with share_synapse() as url:
        yield url


class Register(Protocol):
    async def __call__(self, name: str, *, is_admin: bool = False) -> Person: ...


@pytest.fixture
async def register(synapse: str) -> AsyncIterator[Register]:
    """Creates accounts on the homeserver."""
    async with httpx2.AsyncClient(timeout=60) as http:

        async def register(name: str, *, is_admin: bool = False) -> Person:
            return await Person.register(synapse, http, name, is_admin=is_admin)

        yield register


@pytest.fixture
async def bot(register: Register) -> Person:
    """The account that Palaver uses."""
    return await register("Palaver")


@pytest.fixture
async def ada(register: Register) -> Person:
    return await register("Ada")


@pytest.fixture
async def ben(register: Register) -> Person:
    return await register("Ben")


class MakeAdapter(Protocol):
    def __call__(
        self, bot: Person, *, url: str | None = None, folder: Path | None = None, **settings: object
    ) -> MatrixAdapter: ...


@pytest.fixture
async def make_adapter(tmp_path: Path) -> AsyncIterator[MakeAdapter]:
    """Makes adapters for an account, as after each start of the gateway, and closes them after the test."""
    adapters: list[MatrixAdapter] = []

    def make(bot: Person, *, url: str | None = None, folder: Path | None = None, **settings: object) -> MatrixAdapter:
        sign_in = {} if "password" in settings else {"access_token": bot.access_token}
        fields = {"homeserver": url or bot.url, "encryption": False, **sign_in, **settings}
        place = AccountPlace(account="", folder=folder or tmp_path / "matrix", webhook_url=None)
        adapters.append(MatrixAdapter(MatrixSettings.model_validate(fields), place))
        return adapters[-1]

    yield make
    for adapter in adapters:
        await adapter.close()
