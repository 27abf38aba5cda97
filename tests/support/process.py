"""Palaver as a process of its own."""

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

PATIENCE = 90.0  # seconds; a turn is taken over when the lease of the dead has ended
LINK = re.compile(r"https?://\S+/sign-in#\S+")


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


async def palaver(home: Path, *arguments: str) -> asyncio.subprocess.Process:
    """A command that has begun; the demo agent answers."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "palaver", "--home", str(home), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=kept | {"PALAVER_MODEL": "demo", "PYTHONUNBUFFERED": "1"},
    )


@asynccontextmanager
async def served(home: Path, port: int) -> AsyncIterator[str]:
    """`palaver serve` until it is killed; the link it prints."""
    process = await palaver(home, "serve", "--port", str(port), "--no-open", "--link")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            while not (found := LINK.search((await process.stdout.readline()).decode())):
                assert process.returncode is None
        yield found[0]
    finally:
        process.kill()
        await process.communicate()
