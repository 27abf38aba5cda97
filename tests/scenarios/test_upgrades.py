"""Two versions of Palaver on one store, as real processes: the newer one is a copy of the program, one step ahead."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import psycopg
import pytest

import palaver
from palaver.core.engines import migrate
from palaver.core.engines.open import open_engine
from palaver.core.errors import SchemaTooNew
from support.gateway import wait_until
from support.process import find_free_port, run_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.warm_process import WarmLauncher

NEW_TABLE = "CREATE TABLE newer (no BIGINT);\n"


@dataclass(frozen=True)
class NewerProgram:
    """A version of Palaver with one more migration."""

    folder: Path
    home: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        return subprocess.Popen(
            [sys.executable, "-m", "palaver", "--home", str(self.home), *arguments],
            env=environment | {"PYTHONPATH": str(self.folder), "PALAVER_MODEL": "demo", "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        output, errors = await asyncio.to_thread(process.communicate, timeout=90)
        return process.returncode, output, errors

    @asynccontextmanager
    async def serve(self, port: int) -> AsyncIterator[None]:
        process = self.start("serve", "--port", str(port), "--no-open")
        try:
            await wait_until(lambda: process.poll() is not None or is_ready(port))
            assert process.poll() is None, process.communicate()
            yield
        finally:
            process.kill()
            await asyncio.to_thread(process.communicate)


def make_newer(folder: Path, home: Path, script: str) -> NewerProgram:
    source = Path(palaver.__file__).parent
    ignored = shutil.ignore_patterns("static", "__pycache__")
    shutil.copytree(source, folder / "palaver", ignore=ignored)
    static = source / "web" / "static"
    if static.exists():
        (folder / "palaver" / "web" / "static").symlink_to(static)
    (folder / "palaver" / "core" / "migrations" / "9998_newer.sql").write_text(script, encoding="utf-8")
    return NewerProgram(folder, home)


@pytest.fixture
def home(tmp_path: Path, store_url: str) -> Iterator[Path]:
    """A home folder whose database is the one of the test."""
    folder = tmp_path / "home"
    folder.mkdir()
    open_engine(store_url).close()
    (folder / "config.yaml").write_text(f"database_url: {json.dumps(store_url)}\n", encoding="utf-8")
    yield folder
    if not store_url.startswith("sqlite:"):
        with psycopg.connect(store_url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS newer")
            connection.execute("DELETE FROM migration WHERE name = '9998_newer'")


def get(port: int, path: str) -> tuple[int, dict[str, Any]]:
    with httpx2.Client() as client:
        response = client.get(f"http://127.0.0.1:{port}{path}")
        return response.status_code, response.json()


def is_ready(port: int) -> bool:
    try:
        return get(port, "/readyz")[0] == 200
    except httpx2.HTTPError:
        return False


def is_upgraded(url: str) -> bool:
    try:
        open_engine(url).close()
    except SchemaTooNew:
        return True
    return False


@pytest.mark.both_engines
@pytest.mark.usefixtures("new_connections")
async def test_a_command_of_a_newer_version_changes_nothing_below_a_running_server(
    launcher: WarmLauncher, tmp_path: Path, home: Path, store_url: str
) -> None:
    newer = make_newer(tmp_path / "newer", home, NEW_TABLE)
    port = find_free_port()
    async with run_server(launcher, home, port):
        code, _, errors = await newer.run("sessions", "list")
        assert code == 5
        assert "upgrade --yes" in errors
        assert "serve" in errors
        code, _, errors = await newer.run("upgrade", "--yes")
        assert code == 5
        assert "Stop that first" in errors
        assert await asyncio.to_thread(is_ready, port)
    assert not is_upgraded(store_url)
    results = await asyncio.gather(newer.run("upgrade", "--yes"), newer.run("upgrade", "--yes"))
    assert [code for code, _, _ in results] == [0, 0], results
    assert is_upgraded(store_url)
    assert (await newer.run("sessions", "list"))[0] == 0


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
@pytest.mark.usefixtures("new_connections")
async def test_a_newer_server_takes_over_and_the_older_one_says_that_it_has_stopped(
    launcher: WarmLauncher, tmp_path: Path, home: Path
) -> None:
    newer = make_newer(tmp_path / "newer", home, NEW_TABLE)
    old_port, new_port = find_free_port(), find_free_port()
    async with run_server(launcher, home, old_port), newer.serve(new_port):
        status, answer = await asyncio.to_thread(get, old_port, "/readyz")
        assert status == 503
        assert "newer version of Palaver" in answer["error"]["message"]
        assert (await asyncio.to_thread(get, old_port, "/api/sessions"))[0] in {401, 503}
        assert await asyncio.to_thread(is_ready, new_port)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_a_newer_server_on_a_file_waits_until_the_older_one_was_stopped(
    launcher: WarmLauncher, tmp_path: Path, home: Path, store_url: str
) -> None:
    newer = make_newer(tmp_path / "newer", home, NEW_TABLE)
    async with run_server(launcher, home, find_free_port()):
        code, _, errors = await newer.run("serve", "--port", str(find_free_port()), "--no-open")
        assert code == 5
        assert "Stop that first" in errors
    assert not is_upgraded(store_url)
    async with newer.serve(find_free_port()):
        pass
    assert is_upgraded(store_url)


@pytest.mark.both_engines
@pytest.mark.usefixtures("new_connections")
async def test_a_compatible_upgrade_interrupts_no_server(launcher: WarmLauncher, tmp_path: Path, home: Path) -> None:
    newer = make_newer(tmp_path / "newer", home, f"{migrate.OLDER_MAY_WRITE}\n{NEW_TABLE}")
    old_port, new_port = find_free_port(), find_free_port()
    async with run_server(launcher, home, old_port), newer.serve(new_port):
        assert await asyncio.to_thread(is_ready, old_port)
        assert await asyncio.to_thread(is_ready, new_port)
    async with run_server(launcher, home, old_port):  # an older server also starts again
        assert await asyncio.to_thread(is_ready, old_port)
