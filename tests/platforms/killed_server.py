"""`palaver serve` that is connected to local platforms, killed and started again on the same folder."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

import yaml

from palaver.core.engines.base import Read
from support.process import find_free_port, start_palaver

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from palaver import SessionStore
    from palaver.core.engines.base import Row
    from support.warm_process import WarmLauncher

    from .local_platform import LocalPlatform

TIMEOUT_SECONDS = 120.0
WORD = re.compile(r"\bword-[a-z-]+-\d+\b")


class KilledServer:
    """A server that is killed and started again on the same folder."""

    def __init__(self, launcher: WarmLauncher, home: Path, platforms: list[LocalPlatform]) -> None:
        self._launcher = launcher
        self._home = home
        self._port = find_free_port()
        settings = {
            str(local.platform): {"access": "everyone", "streaming": False, "settings": local.build_settings()}
            for local in platforms
        }
        people = {"messages_per_minute": {"guest": None}}  # two people write what many would
        (home / "config.yaml").write_text(yaml.safe_dump({"platforms": settings, "people": people}))
        for local in platforms:
            local.hook_url = f"http://127.0.0.1:{self._port}/hooks/{local.platform}"

    def start(self) -> None:
        command = ("serve", "--port", str(self._port), "--no-open")
        self._process = start_palaver(self._launcher, self._home, *command)
        # What it prints is read all the time: it would wait otherwise.
        self._reading = asyncio.create_task(asyncio.to_thread(self._process.communicate, timeout=5 * TIMEOUT_SECONDS))

    async def kill(self) -> None:
        self._process.kill()
        await self._reading


async def wait_for(read: Callable[[], object], expected: object, seconds: float = TIMEOUT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while (value := await asyncio.to_thread(read)) != expected:
        assert time.monotonic() < deadline, f"{value} instead of {expected}"
        await asyncio.sleep(0.1)


# ---- what the server has stored ------------------------------------------------------------------------------


def fetch_all(store: SessionStore, sql: str, *params: object) -> list[Row]:
    return list(store.engine.run(Read(lambda tx: tx.fetch_all(sql, *params))))


def list_live_platforms(store: SessionStore) -> set[str]:
    return {row[0] for row in fetch_all(store, "SELECT platform FROM platform_account WHERE state = 'live'")}


def count_open_work(store: SessionStore) -> int:
    [(turns,)] = fetch_all(store, "SELECT count(*) FROM turn WHERE state IN ('queued', 'running')")
    [(unsent,)] = fetch_all(store, "SELECT count(*) FROM delivery WHERE state IN ('pending', 'sending')")
    return int(turns) + int(unsent)
