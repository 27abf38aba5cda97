"""A real `palaver serve` that tests attack: started, killed and started again on one folder, and read from outside."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
import time
from contextlib import AsyncExitStack, closing
from typing import TYPE_CHECKING, Any, Self

import httpx2
import pytest
import yaml

from platforms.webhook.receiver import SECRET
from support.process import SIGN_IN_LINK, TIMEOUT_SECONDS, find_free_port

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable
    from pathlib import Path

    from support.warm_process import WarmLauncher

OPEN_TURNS = "SELECT COUNT(*) FROM turn WHERE state IN ('queued', 'running')"
QUESTIONS = "SELECT content FROM event WHERE kind = 'message' AND role = 'user'"


class AttackedServer:
    """The server, its owner, and what is in its database."""

    def __init__(self, launcher: WarmLauncher, home: Path, **config: Any) -> None:
        self.home = home
        self.url = f"http://127.0.0.1:{find_free_port()}"
        self._launcher = launcher
        self._stack = AsyncExitStack()
        home.mkdir()
        webhook = {"access": "everyone", "settings": {"secret": SECRET}}
        config = {"model": "demo", "platforms": {"webhook": webhook}} | config
        (home / "config.yaml").write_text(yaml.safe_dump(config))

    async def __aenter__(self) -> Self:
        self.owner = await self.open_client(Origin=self.url)
        link = await self.start()
        response = await self.owner.post("/api/sign-in/link", json={"token": link.partition("#")[2]})
        assert response.is_success, response.text
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()
        await self._stack.aclose()

    async def start(self) -> str:
        """Start the server; return the sign-in link that it prints."""
        port = self.url.rpartition(":")[2]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        self.process = self._launcher.launch(
            *("--home", str(self.home), "serve", "--port", port, "--no-open", "--link"),
            env=kept | {"PYTHONUNBUFFERED": "1"},
        )
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not (link := SIGN_IN_LINK.search(line := await asyncio.to_thread(self.process.stdout.readline))):
                if not line:
                    pytest.fail(f"the server has ended: {self.process.communicate()}")
        # What it prints is read all the time: it would wait otherwise.
        self._reading = asyncio.create_task(asyncio.to_thread(self.process.communicate, timeout=3600.0))
        return link[0]

    async def kill(self) -> None:
        """Kill the server; nothing that it has printed is a traceback."""
        self.process.kill()
        await self._check_output()

    async def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        await self._check_output()

    async def _check_output(self) -> None:
        assert "Traceback" not in "".join(await self._reading)

    async def open_client(self, **headers: str) -> httpx2.AsyncClient:
        client = httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=TIMEOUT_SECONDS)
        return await self._stack.enter_async_context(client)

    async def open_token_client(self, *scopes: str) -> httpx2.AsyncClient:
        response = await self.owner.post("/api/me/tokens", json={"name": "a program", "scopes": scopes})
        assert response.is_success, response.text
        return await self.open_client(Authorization=f"Bearer {response.json()['secret']}")

    async def create_session(self) -> str:
        response = await self.owner.post("/api/sessions", json={})
        assert response.is_success, response.text
        return str(response.json()["id"])

    def fetch(self, sql: str, *values: Any) -> list[Any]:
        """Read the database; rows of one value are returned as that value."""
        with closing(sqlite3.connect(f"file:{self.home}/palaver.db?mode=ro", uri=True, timeout=60)) as database:
            rows = database.execute(sql, values).fetchall()
        return [row[0] if len(row) == 1 else row for row in rows]

    async def wait_until_answered(self, seconds: float = 300.0) -> None:
        await self.wait_for(lambda: self.fetch(OPEN_TURNS) == [0], seconds)

    async def wait_for(self, condition: Callable[[], bool], seconds: float = 300.0) -> None:
        deadline = time.monotonic() + seconds
        while not await asyncio.to_thread(condition):
            assert time.monotonic() < deadline, self.fetch("SELECT state, COUNT(*) FROM turn GROUP BY state")
            await asyncio.sleep(0.1)


def print_counts(request: pytest.FixtureRequest, counts: Counter[str]) -> None:
    """Print what an attack has counted, below its seed."""
    text = ", ".join(f"{count} {name}" for name, count in counts.items())
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        sys.stderr.write(f"\n{request.node.name}: {text}\n")
