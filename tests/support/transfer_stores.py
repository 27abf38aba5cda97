"""Empty stores, one after the other, to export from and to import into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver import GatewayConfig, SessionStore
from palaver.media.attachments import Attachments
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from pathlib import Path

    from palaver.core.clock import Clock

CONFIG = GatewayConfig(group_sessions_per_user=False)


class StoreMaker:
    """Opens empty stores, each with a folder for files. On PostgreSQL there is one at a time."""

    def __init__(self, empty_postgres: Callable[[], str] | None, stack: ExitStack) -> None:
        self._empty_postgres = empty_postgres
        self._stack = stack
        self._last: SessionStore | None = None

    def make(
        self, folder: Path, config: GatewayConfig = CONFIG, clock: Clock | None = None
    ) -> tuple[SessionStore, Attachments]:
        folder.mkdir(parents=True)
        if self._last is not None:
            self._last.close()
        url = f"sqlite:///{folder / 'palaver.db'}" if self._empty_postgres is None else self._empty_postgres()
        self._last = self._stack.enter_context(SessionStore.open(url, config=config, clock=clock or FakeClock()))
        return self._last, Attachments(self._last, folder / "attachments")
