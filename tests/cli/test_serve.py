"""Tests of `palaver serve` as a process: its output, its address, its end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from palaver.web.sockets import DEFAULT_PORT, MAX_PORTS_TRIED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.warm_process import WarmLauncher

TIMEOUT_SECONDS = 60


class ServerProcess:
    """A server process that has printed its sign-in link."""

    def __init__(self, launcher: WarmLauncher, home: Path, *options: str, port: int | None = 0) -> None:
        chosen_port = () if port is None else ("--port", str(port))
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self.process = launcher.launch(
            *("--home", str(home), "serve", *chosen_port, "--no-open", *options),
            env=environment | {"PALAVER_MODEL": "demo", "PYTHONUNBUFFERED": "1"},
        )
        self._kill_timer = threading.Timer(TIMEOUT_SECONDS, self.process.kill)
        self._kill_timer.start()
        self.output = ""
        while "/sign-in#" not in self.output and (line := self.process.stdout.readline()):
            self.output += line

    @property
    def sign_in_token(self) -> str:
        match = re.search(r"http://\S+/sign-in#(\S+)", self.output)
        assert match is not None, self.output
        return match[1]

    @property
    def url(self) -> str:
        match = re.search(r"is running at (http://localhost:\d+)", self.output)
        assert match is not None, self.output
        return match[1]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal, wait for the end, and return the exit code and the log."""
        self.process.send_signal(number)
        _, log = self.process.communicate(timeout=TIMEOUT_SECONDS)
        self._kill_timer.cancel()
        assert self.process.returncode is not None
        return self.process.returncode, log


@pytest.fixture
def start_server(launcher: WarmLauncher, tmp_path: Path) -> Iterator[Callable[..., ServerProcess]]:
    servers: list[ServerProcess] = []

    def start(*options: str, port: int | None = 0) -> ServerProcess:
        servers.append(ServerProcess(launcher, tmp_path / "home", *options, port=port))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.process.kill()
            server.stop()


def run_serve(launcher: WarmLauncher, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `palaver serve` until it ends by itself."""
    args = ["--home", str(home), "serve", "--no-open", *options]
    process = launcher.launch(*args, env=os.environ | {"PALAVER_MODEL": "demo"})
    output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    return subprocess.CompletedProcess(args, process.wait(), output, errors)


@contextmanager
def sign_in(server: ServerProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, headers={"Origin": server.url}, timeout=TIMEOUT_SECONDS) as client:
        response = client.post("/api/sign-in/link", json={"token": server.sign_in_token})
        assert response.is_success, response.text
        yield client


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_server_prints_its_address_and_a_sign_in_link_and_stops_on_a_signal(
    start_server: Callable[..., ServerProcess], number: signal.Signals
) -> None:
    server = start_server()
    with sign_in(server) as owner:
        session_id = owner.post("/api/sessions", json={}).json()["id"]
        response = owner.post(f"/api/sessions/{session_id}/messages", json={"content": "hello", "key": "k"})
        assert response.json()["outcome"] == "accepted"
    code, log = server.stop(number)
    assert code == 0
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events == ["server_ready", "server_stopping", "server_stopped"]
    assert server.sign_in_token not in log


def test_the_server_says_what_is_wrong_with_an_account_and_starts_all_the_same(
    start_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    text = "platforms: {telegram: {settings: {bot_token: your-token-hunter2}}}\n"
    (tmp_path / "home" / "config.yaml").write_text(text, encoding="utf-8")
    server = start_server()
    assert "Telegram can't be connected. platforms.telegram.settings.bot_token is not valid: " in server.output
    with sign_in(server) as owner:
        account = owner.get("/api/platforms").json()["accounts"][0]
        while account["state"] == "off":  # it is stored a moment after the start
            account = owner.get("/api/platforms").json()["accounts"][0]
    assert (account["platform"], account["state"]) == ("telegram", "refused")
    _, log = server.stop()
    warnings = [entry for entry in map(json.loads, log.splitlines()) if entry["event"] == "platform_account_refused"]
    assert [entry["platform"] for entry in warnings] == ["telegram"]
    assert "hunter2" not in f"{server.output} {log} {account}"


def test_two_servers_can_use_the_same_data(start_server: Callable[..., ServerProcess]) -> None:
    first, second = start_server(), start_server()
    assert first.url != second.url
    with sign_in(first) as first_client, sign_in(second) as second_client:
        session_id = first_client.post("/api/sessions", json={"title": "Shared"}).json()["id"]
        assert second_client.get(f"/api/sessions/{session_id}").json()["title"] == "Shared"
    assert first.stop()[0] == second.stop()[0] == 0


def test_a_port_in_use_is_an_error_that_says_how_to_choose_another(
    launcher: WarmLauncher, start_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    port = start_server().url.rpartition(":")[2]
    ran = run_serve(launcher, tmp_path / "home", "--port", port)
    assert ran.returncode == 7
    assert f"Palaver is already running at http://localhost:{port}. For a sign-in link to it, run" in ran.stderr
    assert "choose another port with --port" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_error_about_a_chosen_port_names_the_program_that_uses_it(launcher: WarmLauncher, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ran = run_serve(launcher, tmp_path / "home", "--port", str(port))
    assert ran.returncode == 7
    assert f"Port {port} is already in use by" in ran.stderr
    assert not sys.platform.startswith("linux") or f"(process {os.getpid()})" in ran.stderr
    assert "web.port" in ran.stderr


def test_without_a_chosen_port_the_next_free_one_is_used_and_a_second_server_is_not_started(
    launcher: WarmLauncher, start_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # another program uses it already
            stack.enter_context(socket.create_server(("127.0.0.1", DEFAULT_PORT)))
        server = start_server(port=None)
        port = int(server.url.rpartition(":")[2])
        assert DEFAULT_PORT < port < DEFAULT_PORT + MAX_PORTS_TRIED
        assert f"Port {DEFAULT_PORT} is already in use by " in server.output
        assert f", so Palaver uses port {port}." in server.output
        other = run_serve(launcher, tmp_path / "home")
    assert (other.returncode, other.stderr) == (0, "")
    assert f"Palaver is already running at {server.url}\n" in other.stdout
    assert "choose a port with --port" in other.stdout
    server.output = server.output.partition("Sign in")[0] + other.stdout
    with sign_in(server) as client:  # the owner has no password yet, so there was a new link
        assert client.get("/api/me").is_success


def test_the_server_is_not_reachable_from_other_machines_before_the_owner_has_a_password(
    launcher: WarmLauncher, tmp_path: Path
) -> None:
    ran = run_serve(launcher, tmp_path, "--host", "0.0.0.0", "--port", "0")
    assert ran.returncode == 7
    assert "no owner has a password or a passkey yet" in ran.stderr


def test_a_new_link_to_a_running_server_from_another_process(
    launcher: WarmLauncher, start_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server = start_server()
    with sign_in(server):  # the first link is used up
        other = run_serve(launcher, tmp_path / "home", "--link")
    assert (other.returncode, other.stderr) == (0, "")
    assert f"Palaver is already running at {server.url}\n" in other.stdout
    server.output = server.output.splitlines()[0] + other.stdout
    with sign_in(server) as client:
        assert client.get("/api/me").is_success


def test_a_server_that_was_killed_is_not_taken_for_a_running_one(
    start_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    killed = start_server()
    killed.stop(signal.SIGKILL)
    (announcement,) = (tmp_path / "home" / "servers").iterdir()
    server = start_server("--link")
    assert "already running" not in server.output
    server.stop()
    announcement.unlink(missing_ok=True)
    assert list((tmp_path / "home" / "servers").iterdir()) == []


def test_an_unusable_folder_for_files_is_named_at_the_start(
    start_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "attachments").write_text("not a folder")
    server = start_server()
    with sign_in(server) as client:
        assert client.get("/api/sessions").status_code == 200
    _, log = server.stop()
    [warning] = [line for line in map(json.loads, log.splitlines()) if line["event"] == "attachments_unavailable"]
    assert warning["error"].startswith(f"Files can't be stored in {tmp_path}/home/attachments: ")
