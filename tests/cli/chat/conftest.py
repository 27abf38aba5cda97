"""Terminals for the tests of the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.chat.terminal import Terminals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.warm_process import WarmLauncher


@pytest.fixture
def terminals(launcher: WarmLauncher, tmp_path: Path) -> Iterator[Terminals]:
    terminals = Terminals(launcher, tmp_path / "home")
    yield terminals
    terminals.kill_all()
