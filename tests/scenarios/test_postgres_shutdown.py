"""A server obeys SIGTERM while PostgreSQL is away, and while it is there and does not answer."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import psycopg
import pytest

from palaver.core.engines import postgres_pool
from palaver.core.engines.base import Read
from palaver.core.engines.postgres import PostgresEngine
from palaver.core.errors import StoreBusy, StoreUnavailable
from support.gateway import wait_until
from support.postgres_server import run_server
from support.process import SIGN_IN_LINK, find_free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.warm_process import WarmLauncher, WarmProcess

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

# The default of most supervisors is 90 s, after which they kill a process.
EXIT_SECONDS = 60.0


class Server:
    """A PostgreSQL server of this module's own, which a test may stop or pause."""

    def __init__(self, server: Any, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self.url = server.get_uri()

    def stop(self) -> None:
        self._server.stop()

    def pause(self) -> None:
        """Pause all its processes: connections stay, and nothing answers."""
        for pid in self._list_processes():
            os.kill(pid, signal.SIGSTOP)

    def restore(self) -> None:
        for pid in self._list_processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._server.start()

    def _list_processes(self) -> list[int]:
        with suppress(FileNotFoundError):
            main = int((self._folder / "postmaster.pid").read_text().splitlines()[0])
            children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
            return [main, *map(int, children)]
        return []


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server() as (found, folder):
        own = Server(found, folder)
        try:
            yield own
        finally:
            own.restore()


async def test_work_on_a_server_that_does_not_answer_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_pool, "BUSY_TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(postgres_pool, "MAX_WORK_SECONDS", 0.5)
    engine = PostgresEngine.open(f"{server.url}&connect_timeout=2")
    read = Read(lambda tx: tx.fetch_one("SELECT 7"))
    try:
        assert await engine.arun(read) == (7,)
        await asyncio.to_thread(server.pause)
        results = await asyncio.gather(*(engine.arun(read) for _ in range(12)), return_exceptions=True)
        assert {type(result) for result in results} == {StoreBusy, StoreUnavailable}  # not started, and broken off
        await asyncio.to_thread(server.restore)
        await wait_until(lambda: try_to_run(engine, read))
    finally:
        await asyncio.to_thread(engine.close)


def try_to_run(engine: PostgresEngine, work: Read[Any]) -> bool:
    with suppress(StoreUnavailable):
        return bool(engine.run(work) == (7,))
    return False


@pytest.fixture
async def process(server: Server, launcher: WarmLauncher, tmp_path: Path) -> AsyncIterator[WarmProcess]:
    """A `palaver serve` on the server."""
    process = launcher.launch(
        *("--home", str(tmp_path), "serve", "--port", str(find_free_port()), "--no-open", "--link"),
        env=os.environ | {"PALAVER_MODEL": "demo", "PYTHONUNBUFFERED": "1", "PALAVER_DATABASE_URL": server.url},
    )
    try:
        yield process
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)


async def read_sign_in_link(process: WarmProcess) -> tuple[str, str]:
    """Wait until a server is ready; return its URL, and the secret that signs its owner in."""
    while not (link := SIGN_IN_LINK.search(line := await asyncio.to_thread(process.stdout.readline))):
        assert line, process.stderr.read()
    url, _, secret = link[0].partition("/sign-in#")
    return url, secret


async def end(process: WarmProcess) -> None:
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(EXIT_SECONDS):
        assert await asyncio.to_thread(process.wait) == 0


@pytest.mark.parametrize("fault", ["stop", "pause"])
async def test_a_server_ends_after_sigterm_although_postgresql_does_not_answer(
    server: Server, process: WarmProcess, fault: str
) -> None:
    url, _ = await read_sign_in_link(process)
    async with httpx2.AsyncClient(base_url=url) as client:
        assert (await client.get("/readyz")).is_success
        await asyncio.to_thread(getattr(server, fault))
        with suppress(httpx2.HTTPError):  # work that needs the store is in progress
            assert not (await client.get("/readyz", timeout=3)).is_success
    await end(process)


async def test_a_server_ends_after_sigterm_although_a_thread_waits_for_postgresql(
    server: Server, process: WarmProcess
) -> None:
    """Some work is done on threads of the event loop, which waits for them when it ends."""
    url, secret = await read_sign_in_link(process)
    async with httpx2.AsyncClient(base_url=url) as client:
        assert (await client.post("/api/sign-in/link", json={"token": secret})).is_success
        with psycopg.connect(server.url) as locking, psycopg.connect(server.url, autocommit=True) as watching:
            locking.execute("LOCK TABLE setting_change")
            request = asyncio.create_task(client.get("/api/settings/history"))
            is_waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
            await wait_until(lambda: watching.execute(is_waiting).fetchone() is not None)
            await asyncio.to_thread(server.pause)
            try:
                await end(process)
            finally:
                await asyncio.to_thread(server.restore)
        with suppress(httpx2.HTTPError):
            await request
