"""`palaver` as a process: what it loads, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from palaver import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Home

HEAVY = {"apsw", "fastapi", "prompt_toolkit", "psycopg", "pydantic", "pydantic_ai", "yaml", "rich"}
LOADED = "import sys, json; json.dump(sorted(sys.modules), sys.stderr)"
RUN = f"""
import atexit
atexit.register(lambda: exec({LOADED!r}))
from palaver.cli import main
main()
"""


def palaver(*args: str, env: dict[str, str] | None = None, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "palaver", *args],
        capture_output=True,
        encoding=encoding,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    )


def loaded_by(*args: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *args], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    return set(json.loads(ran.stderr))


def in_a_terminal(*args: str, keys: bytes = b"") -> tuple[int, str]:
    """Run in a terminal of its own and type the same whenever asked; the exit code and all that was shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS="80", TERM="xterm")
        os.execv(sys.executable, [sys.executable, "-m", "palaver", *args])
    shown = b""
    try:
        while piece := _read(terminal):
            shown += piece
            if keys and piece.rstrip().endswith(b":"):
                os.write(terminal, keys)
    finally:
        os.close(terminal)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGHUP)  # ends it if it still waits; one that has ended is not disturbed
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


def _read(terminal: int) -> bytes:
    """What is shown next; nothing when the program has ended, or shows nothing for half a minute."""
    ready, _, _ = select.select([terminal], [], [], 30)
    try:
        return os.read(terminal, 4096) if ready else b""
    except OSError:  # how Linux says that the other side has gone
        return b""


def test_the_version_is_said() -> None:
    ran = palaver("--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"palaver, version {__version__}\n", "")


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["sessions", "list", "--help"], ["projects", "--help"]])
def test_nothing_heavy_is_loaded_before_it_is_needed(args: list[str]) -> None:
    assert loaded_by(*args) & (HEAVY | {"palaver.config", "palaver.services.store", "asyncio"}) == set()


@pytest.mark.parametrize("args", [["sessions", "list", "--json"], ["sessions", "list"], ["projects", "list"], []])
def test_a_command_loads_only_its_database(home: Home, args: list[str]) -> None:
    home.said("hi")
    assert loaded_by("--home", str(home.path), *args) & HEAVY == {"apsw"}


def test_exit_codes_reach_the_shell(home: Home) -> None:
    where = ("--home", str(home.path))
    home.said("hi", title="talk")
    for code, args in (
        (0, ("sessions", "list")),
        (1, ("projects", "create", "x", "--colour", "red")),
        (2, ("sessions", "lst")),
        (3, ("sessions", "show", "nothing like it")),
        (6, ("sessions", "redo", "talk")),
    ):
        ran = palaver(*where, *args)
        assert ran.returncode == code, ran.stderr
        assert "Traceback" not in ran.stderr
    assert palaver(*where, "sessions", "list", env={"PALAVER_DM_SCOPE": "everybody"}).returncode == 7


def test_the_variable_names_the_home_and_the_option_wins(home: Home, tmp_path: Path) -> None:
    home.said("hi", title="talk")
    env = {"PALAVER_HOME": str(home.path)}
    assert "talk" in palaver("sessions", "list", env=env).stdout
    elsewhere = palaver("--home", str(tmp_path / "other"), "sessions", "list", env=env)
    assert elsewhere.stdout == "no conversations yet\n"


@pytest.mark.parametrize(
    "args", [["sessions", "show", "talk", "--all"], ["sessions", "show", "talk", "--all", "--json"]]
)
def test_a_reader_who_leaves_early_is_no_error(home: Home, args: list[str]) -> None:
    home.said(*["a long line " * 1000] * 40, title="talk")
    with subprocess.Popen(
        [sys.executable, "-m", "palaver", "--home", str(home.path), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # unbuffered, Python does not notice
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        complaint = process.stderr.read()
    assert complaint == b""
    assert process.returncode == 128 + signal.SIGPIPE


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110
def test_a_full_disk_behind_the_output_is_told(home: Home) -> None:
    home.said("hi")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ran = subprocess.run(
            [sys.executable, "-m", "palaver", "--home", str(home.path), "sessions", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (1, "error: No space left on device\n")


def test_output_that_cannot_carry_every_character_is_no_error(home: Home) -> None:
    home.said("你好", title="天气 café")
    env = {"PYTHONIOENCODING": "latin-1"}
    text = palaver("--home", str(home.path), "sessions", "list", env=env, encoding="latin-1")
    assert (text.returncode, text.stderr) == (0, "")
    assert "?? café" in text.stdout
    data = palaver("--home", str(home.path), "sessions", "list", "--json", env=env, encoding="ascii")
    assert json.loads(data.stdout)["sessions"][0]["title"] == "天气 café"


def test_a_table_on_a_terminal_fits_it(home: Home) -> None:
    session_id = home.said("hi", title="title " * 15)
    code, shown = in_a_terminal("--home", str(home.path), "sessions", "list")
    assert code == 0
    assert session_id in shown
    assert "\x1b[1m" in shown  # the head is bold
    assert "…" in shown


@pytest.mark.parametrize(("keys", "code", "left"), [(b"n\r", 1, 1), (b"y\r", 0, 0)])
def test_on_a_terminal_a_deletion_is_asked_about(home: Home, keys: bytes, code: int, left: int) -> None:
    home.said("hi", title="talk")
    left_with, shown = in_a_terminal("--home", str(home.path), "sessions", "delete", "talk", keys=keys)
    assert "Delete 'talk' (Telegram, Ada, 1 message) for good?" in shown
    assert left_with == code
    assert "Traceback" not in shown
    assert len(home.json("sessions", "list")["sessions"]) == left
