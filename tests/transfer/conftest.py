"""Stores to export from and to import into, on both engines."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from conftest import empty_database
from support.transfer_stores import StoreMaker

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def store_maker(request: pytest.FixtureRequest) -> Iterator[StoreMaker]:
    def empty_postgres() -> str:
        return empty_database(request.getfixturevalue("postgres_database"))

    with ExitStack() as stack:
        yield StoreMaker(empty_postgres if request.param == "postgres" else None, stack)
