"""`palaver serve` as a process: what it prints, how it is reached, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 60


class Server:
    """A server process, once it says where it is."""

    def __init__(self, home: Path, *options: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "palaver", "--home", str(home), "serve", "--port", "0", "--no-open", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=kept | {"PALAVER_MODEL": "demo", "PYTHONUNBUFFERED": "1"},
        )
        self._giving_up = threading.Timer(PATIENCE, self.process.kill)
        self._giving_up.start()
        self.said = ""
        while "/sign-in#" not in self.said and (line := self._out.readline()):
            self.said += line

    @property
    def _out(self) -> Any:
        return self.process.stdout

    @property
    def link(self) -> str:
        found = re.search(r"http://\S+/sign-in#(\S+)", self.said)
        assert found is not None, self.said
        return found[1]

    @property
    def url(self) -> str:
        found = re.search(r"is at (http://localhost:\d+)", self.said)
        assert found is not None, self.said
        return found[1]

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Ask it to end; its exit code and what it logged."""
        self.process.send_signal(number)
        _, logged = self.process.communicate(timeout=PATIENCE)
        self._giving_up.cancel()
        return self.process.returncode, logged


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def run(*options: str) -> Server:
        servers.append(Server(tmp_path / "home", *options))
        return servers[-1]

    yield run
    for server in servers:
        if server.process.poll() is None:
            server.process.kill()
            server.end()


@contextmanager
def signed_in(server: Server) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, headers={"Origin": server.url}, timeout=PATIENCE) as client:
        answer = client.post("/api/sign-in/link", json={"token": server.link})
        assert answer.is_success, answer.text
        yield client


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_lets_the_owner_in_and_ends_when_asked(
    start: Callable[..., Server], number: signal.Signals
) -> None:
    server = start()
    with signed_in(server) as owner:
        session_id = owner.post("/api/sessions", json={}).json()["id"]
        said = owner.post(f"/api/sessions/{session_id}/messages", json={"content": "hello", "key": "k"})
        assert said.json()["outcome"] == "accepted"
    code, logged = server.end(number)
    assert code == 0
    events = [json.loads(line)["event"] for line in logged.splitlines()]
    assert events == ["serve.ready", "serve.stopping", "serve.stopped"]
    assert server.link not in logged


def test_two_servers_on_the_same_data_work_side_by_side(start: Callable[..., Server]) -> None:
    first, second = start(), start()
    assert first.url != second.url
    with signed_in(first) as here, signed_in(second) as there:
        session_id = here.post("/api/sessions", json={"title": "Shared"}).json()["id"]
        assert there.get(f"/api/sessions/{session_id}").json()["title"] == "Shared"
    assert first.end()[0] == second.end()[0] == 0


def test_a_port_in_use_is_told_with_the_way_to_choose_another(start: Callable[..., Server], tmp_path: Path) -> None:
    port = start().url.rpartition(":")[2]
    ran = subprocess.run(
        [sys.executable, "-m", "palaver", "--home", str(tmp_path / "home"), "serve", "--port", port, "--no-open"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=os.environ | {"PALAVER_MODEL": "demo"},
    )
    assert ran.returncode == 7
    assert f"port {port} on 127.0.0.1 is in use already; choose another with --port" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_it_does_not_listen_beyond_this_machine_before_the_owner_has_a_way_to_sign_in(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "palaver", "--home", str(tmp_path), "serve", "--host", "0.0.0.0", "--port", "0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=os.environ | {"PALAVER_MODEL": "demo"},
    )
    assert ran.returncode == 7
    assert "nobody who owns this gateway has a password or a passkey" in ran.stderr
