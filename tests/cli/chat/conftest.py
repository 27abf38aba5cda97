"""Terminals for the tests of the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.chat.terminal import Terminals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    terminals = Terminals(tmp_path / "home")
    yield terminals
    terminals.kill_all()
