"""For modules whose tests need SQLite only, and both engines now and then.

A module imports `store_url` if other tests run most of its statements on PostgreSQL too. Its tests use SQLite then, and
those that run the others are marked with `BOTH_ENGINES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conftest import create_database

if TYPE_CHECKING:
    from pathlib import Path

BOTH_ENGINES = pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database: SQLite, unless a test is marked with `BOTH_ENGINES`."""
    return create_database(request, tmp_path)
