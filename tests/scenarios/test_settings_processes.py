"""Settings in several processes: a change of one is in force in the others, and a killed one leaves all or nothing."""

from __future__ import annotations

import os
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from palaver import SessionStore
from scenarios.store_harness import StoreProcess
from support.crashing import list_crash_points
from support.settings import API_KEY, SettingsTown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]

TIMEOUT_SECONDS = 60.0
VALUES = {"turns.max_running": 3, "turns.max_queued": 4, "providers.lab.api_key": API_KEY}
# What is stored after a process was killed there.
CHANGE_POINTS = {"settings.before_change": False, "settings.changed": True}
ROTATION_POINTS = (
    "settings.key_written",
    "settings.before_rotation",
    "settings.rotated",
    "settings.before_key_cleanup",
)


def test_the_tables_have_every_crash_point() -> None:
    points = list_crash_points("settings.")
    assert {*CHANGE_POINTS, *ROTATION_POINTS} == points


@pytest.mark.parametrize("point", CHANGE_POINTS)
def test_a_process_that_is_killed_leaves_all_of_a_change_or_nothing(
    launcher: WarmLauncher, store_url: str, tmp_path: Path, point: str
) -> None:
    with StoreProcess(launcher) as victim, pytest.raises(EOFError):
        victim.call("change_settings", url=store_url, home=str(tmp_path), values=VALUES, crash_at=point)
    with SessionStore.open(store_url) as store:
        town = SettingsTown(store, tmp_path)
        changes = town.editor.list_history(town.owner)
        assert (len(town.load().values), len(changes)) == ((3, 1) if CHANGE_POINTS[point] else (0, 0))
        town.set(VALUES)
        assert town.load().settings.agent.providers["lab"].api_key == API_KEY
        assert len(town.editor.list_history(town.owner)) == 1


@pytest.mark.parametrize("point", ROTATION_POINTS)
def test_a_process_that_is_killed_while_it_rotates_the_key_loses_no_secret(
    launcher: WarmLauncher, store_url: str, tmp_path: Path, point: str
) -> None:
    with StoreProcess(launcher) as process:
        process.call("change_settings", url=store_url, home=str(tmp_path), values=VALUES)
    with StoreProcess(launcher) as victim, pytest.raises(EOFError):
        victim.call("change_settings", url=store_url, home=str(tmp_path), rotate=True, crash_at=point)
    with StoreProcess(launcher) as process, SessionStore.open(store_url) as store:
        town = SettingsTown(store, tmp_path)
        assert town.load().problems == ()
        assert town.load().settings.agent.providers["lab"].api_key == API_KEY
        process.call("change_settings", url=store_url, home=str(tmp_path), rotate=True)
        assert town.load().settings.agent.providers["lab"].api_key == API_KEY
        assert len((tmp_path / "settings.key").read_text().split()) == 1


def test_processes_that_change_settings_at_once_lose_nothing(
    launcher: WarmLauncher, store_url: str, tmp_path: Path
) -> None:
    keys = [f"personalities.p{number}" for number in range(4)]
    processes = [StoreProcess(launcher) for _ in keys]
    try:
        for process, key in zip(processes, keys, strict=True):
            values = {key: "x", f"providers.{key[-2:]}.api_key": API_KEY}
            process.start_call("change_settings", url=store_url, home=str(tmp_path), values=values)
        for process in processes:
            process.finish_call()
    finally:
        for process in processes:
            process.__exit__(None, None, None)
    with SessionStore.open(store_url) as store:
        town = SettingsTown(store, tmp_path)
        assert sorted(town.load().settings.agent.personalities) == ["p0", "p1", "p2", "p3"]
        assert town.load().problems == ()
        assert len(town.editor.list_history(town.owner)) == 4


@contextmanager
def run_server(launcher: WarmLauncher, home: Path, url: str) -> Iterator[httpx2.Client]:
    """Run `palaver serve`, and yield a client of its owner."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    process = launcher.launch(
        *("--home", str(home), "serve", "--port", "0", "--no-open", "--link"),
        env=environment | {"PALAVER_DATABASE_URL": url, "PYTHONUNBUFFERED": "1"},
    )
    try:
        output = ""
        while "/sign-in#" not in output and (line := process.stdout.readline()):
            output += line
        address, token = re.findall(r"(http://\S+)/sign-in#(\S+)", output)[0]
        with httpx2.Client(base_url=address, headers={"Origin": address}, timeout=TIMEOUT_SECONDS) as client:
            assert client.post("/api/sign-in/link", json={"token": token}).is_success
            yield client
    finally:
        process.kill()
        process.communicate()


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def get_busy_policy(client: httpx2.Client) -> str:
    """Return the policy with which this server accepts messages now."""
    return str(client.get("/api/policies").json()["default"]["busy_policy"])


def get_model(client: httpx2.Client) -> str:
    return str(client.get("/api/models").json()["default"])


def test_a_change_of_one_process_is_in_force_in_the_others(
    launcher: WarmLauncher, store_url: str, tmp_path: Path
) -> None:
    home, other_home = tmp_path / "home", tmp_path / "other"
    with run_server(launcher, home, store_url) as here, run_server(launcher, other_home, store_url) as there:
        assert get_busy_policy(there) == "queue"
        body = {"set": {"turns.busy_policy": "reject", "model": "demo"}}
        assert here.patch("/api/settings", json=body).is_success
        assert (get_busy_policy(here), get_model(here)) == ("reject", "demo")
        wait_until(lambda: get_busy_policy(there) == "reject")
        assert get_model(there) == "demo"
        ran = launcher.launch(
            *("--home", str(home), "config", "set", "turns.busy_policy", "steer"),
            env={**os.environ, "PALAVER_DATABASE_URL": store_url},
        )
        assert "turns.busy_policy = steer" in ran.communicate()[0]
        wait_until(lambda: get_busy_policy(here) == get_busy_policy(there) == "steer")
