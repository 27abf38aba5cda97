"""Measures the memory of a real `palaver serve` under steady load.

    python -m benchmarks.memory [--minutes N] [--rate N] [--json]

One client signs in, follows the live stream, and sends a steady mix of requests: new conversations, messages that the
demo agent answers, lists, transcripts and searches. The table shows the resident set at the end of every minute. A
server that leaks nothing ends where it was after the first minute.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.corpus import make_text
from benchmarks.http import TIMEOUT_SECONDS, FilledStore, PalaverClient, Server, print_note

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

MESSAGES_PER_SESSION = 20  # then a new conversation starts
MAX_ACTIVE_SESSIONS = 10  # that get messages at the same time


@contextlib.asynccontextmanager
async def open_client(server: Server) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client that is signed in as the owner."""
    import httpx2

    async with httpx2.AsyncClient(
        base_url=server.url, headers={"Origin": server.url}, timeout=TIMEOUT_SECONDS
    ) as client:
        token = await asyncio.to_thread(server.read_sign_in_token)
        (await client.post("/api/sign-in/link", json={"token": token})).raise_for_status()
        yield client


class Load:
    """Sends one request after another, of every kind that a page sends."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._rng = random.Random(7)
        self._numbers = itertools.count()
        self._sessions: list[str] = []
        self.request_count = 0
        self.failure_count = 0

    async def send_one(self) -> None:
        import httpx2

        self.request_count += 1
        try:
            await self._send_next()
        except httpx2.TransportError:  # the machine is busy with something else
            self.failure_count += 1

    async def _send_next(self) -> None:
        number = next(self._numbers)
        match number % 4:
            case 0:
                await self._send_message(number)
            case 1:
                await self._get("/api/sessions")
            case 2 if self._sessions:
                await self._get(f"/api/sessions/{self._rng.choice(self._sessions)}/messages?limit=50")
            case _:
                word = make_text(self._rng.randrange(10_000)).split()[0][:20]
                await self._get(f"/api/search?query={word}&limit=20")

    async def _send_message(self, number: int) -> None:
        if number % (4 * MESSAGES_PER_SESSION) == 0:
            response = await self._client.post("/api/sessions", json={})
            self._sessions = [*self._sessions, response.raise_for_status().json()["id"]][-MAX_ACTIVE_SESSIONS:]
        text = make_text(number)
        body = {"content": text, "key": f"memory-{number}"}
        response = await self._client.post(f"/api/sessions/{self._rng.choice(self._sessions)}/messages", json=body)
        self._count(response)

    async def _get(self, path: str) -> None:
        self._count(await self._client.get(path))

    def _count(self, response: httpx2.Response) -> None:
        self.failure_count += response.status_code >= 400


async def measure(server: Server, minutes: float, rate: float) -> tuple[list[float], Load]:
    """Return the resident set in MiB when the server is ready, and after every minute of load."""
    async with open_client(server) as client:
        memory = [server.read_memory_mib()]
        load = Load(client)
        await load.send_one()  # creates the first conversation
        page = PalaverClient(client, server)
        page.session_id = load._sessions[0]
        follower = await page.open_follower()
        started = time.monotonic()
        tasks: set[asyncio.Task[None]] = set()
        for number in range(round(minutes * 60 * rate)):
            await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
            task = asyncio.create_task(load.send_one())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            if time.monotonic() - started >= 60 * len(memory):
                memory.append(server.read_memory_mib())
                print_note(f"minute {len(memory) - 1}: {memory[-1]:.1f} MiB")
            follower.reset()
        await asyncio.gather(*tasks)
        memory.append(server.read_memory_mib())
        follower.transport.close()
        return memory, load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=20.0, help="requests per second")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="palaver-memory-"))
    try:
        with FilledStore(folder / "home").start_palaver() as server:
            memory, load = asyncio.run(measure(server, options.minutes, options.rate))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps({"memory_mib": memory, "requests": load.request_count, "failed": load.failure_count}))
        return
    print("| ready | " + " | ".join(f"{minute} min" for minute in range(1, len(memory))) + " |")
    print("|---" * len(memory) + "|")
    print("| " + " | ".join(f"{mib:.0f} MiB" for mib in memory) + " |")
    print(f"\n{load.request_count:,} requests, {load.failure_count:,} failed.")


if __name__ == "__main__":
    main()
