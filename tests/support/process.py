"""Palaver as a separate process."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import re
import socket
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from support.warm_process import WarmLauncher, WarmProcess

TIMEOUT_SECONDS = 90.0  # longer than the lease of a dead worker, after which its turn is recovered
SIGN_IN_LINK = re.compile(r"https?://\S+/sign-in#\S+")


# Below the ports that the kernel itself gives to servers and connections, so that none of those takes a port between
# the moment it was found and the start of its server, or while that server starts again.
_FIRST_PORT, _LAST_PORT = 15_000, 32_000
_PORTS_OF_A_PROCESS = 100


def find_free_port() -> int:
    """Return a port of this machine that nothing listens on, for a server that has to be told its port."""
    for port in itertools.islice(_choose_ports(), _PORTS_OF_A_PROCESS):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("all ports of this process are in use")


@cache
def _choose_ports() -> Iterator[int]:
    """Choose ports that no other process of tests uses: it listens on the first of its ports for as long as it runs."""
    for first in range(_FIRST_PORT, _LAST_PORT, _PORTS_OF_A_PROCESS):
        with suppress(OSError):
            held_server = socket.create_server(("127.0.0.1", first))
            atexit.register(held_server.close)
            return itertools.cycle(range(first + 1, first + _PORTS_OF_A_PROCESS))
    raise AssertionError(f"all ports from {_FIRST_PORT} to {_LAST_PORT} are in use")


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
