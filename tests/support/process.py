"""Palaver as a separate process."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TIMEOUT_SECONDS = 90.0  # longer than the lease of a dead worker, after which its turn is recovered
SIGN_IN_LINK = re.compile(r"https?://\S+/sign-in#\S+")


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def start_palaver(home: Path, *arguments: str) -> asyncio.subprocess.Process:
    """Start a command of Palaver; the demo agent answers."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "palaver", "--home", str(home), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment | {"PALAVER_MODEL": "demo", "PYTHONUNBUFFERED": "1"},
    )


@asynccontextmanager
async def run_server(home: Path, port: int) -> AsyncIterator[str]:
    """Run `palaver serve` inside the block, then kill it; yields the sign-in link that it prints."""
    process = await start_palaver(home, "serve", "--port", str(port), "--no-open", "--link")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not (link := SIGN_IN_LINK.search((await process.stdout.readline()).decode())):
                assert process.returncode is None
        yield link[0]
    finally:
        process.kill()
        await process.communicate()
