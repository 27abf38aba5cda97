"""Palaver as a separate process."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.warm_process import WarmLauncher, WarmProcess

TIMEOUT_SECONDS = 90.0  # longer than the lease of a dead worker, after which its turn is recovered
SIGN_IN_LINK = re.compile(r"https?://\S+/sign-in#\S+")


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start_palaver(launcher: WarmLauncher, home: Path, *arguments: str) -> WarmProcess:
    """Start a command of Palaver; the demo agent answers."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return launcher.launch(
        *("--home", str(home), *arguments),
        env=environment | {"PALAVER_MODEL": "demo", "PYTHONUNBUFFERED": "1"},
    )


@asynccontextmanager
async def run_server(launcher: WarmLauncher, home: Path, port: int) -> AsyncIterator[str]:
    """Run `palaver serve` inside the block, then kill it; yields the sign-in link that it prints."""
    process = start_palaver(launcher, home, "serve", "--port", str(port), "--no-open", "--link")
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not (link := SIGN_IN_LINK.search(line := await asyncio.to_thread(process.stdout.readline))):
                assert line, "the server has ended"
        yield link[0]
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)
