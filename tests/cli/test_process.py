"""Tests of `palaver` as a process: imports, exit codes, output to pipes and terminals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import palaver
from cli.pseudo_terminal import run_in_terminal
from palaver import __version__

if TYPE_CHECKING:
    from cli.conftest import Home
    from support.warm_process import WarmLauncher

HEAVY_MODULES = {"apsw", "fastapi", "prompt_toolkit", "psycopg", "pydantic", "pydantic_ai", "yaml", "rich"}
# Libraries that take megabytes and that a server needs for some people, platforms or models only.
SELDOM_USED_MODULES = {
    *("aiohttp", "anthropic", "argon2", "cryptography", "discord", "google", "httpx2", "lxml", "markdown_it", "nh3"),
    *("nio", "openai", "prompt_toolkit", "psycopg", "prometheus_client", "pydantic_ai", "pypdfium2", "python_calamine"),
    *("segno", "slack_sdk", "telegram", "webauthn", "xllamacpp", "cronsim", "difflib", "gzip", "webbrowser"),
}
PRINT_MODULES_CODE = "import sys, json; json.dump(sorted(sys.modules), sys.stderr)"
PRINT_NEW_MODULES_CODE = (
    "import atexit, json; atexit.register(lambda: json.dump(sorted(set(sys.modules) - before), sys.stderr))"
)
RUN_AND_PRINT_MODULES_CODE = f"""
import atexit
atexit.register(lambda: exec({PRINT_MODULES_CODE!r}))
from palaver.cli import main
main()
"""
RUN_ALL_AND_PRINT_MODULES_CODE = f"""
import atexit, json, sys
atexit.register(lambda: exec({PRINT_MODULES_CODE!r}))
from palaver.cli import main
for command in json.loads(sys.argv[1]):
    sys.argv[1:] = command
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
"""

IMPORT_EACH_MODULE_FIRST_CODE = """
import importlib, pathlib, sys
folder = pathlib.Path(sys.argv[1])
for path in sorted(folder.rglob("*.py")):
    name = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
    for loaded in [each for each in sys.modules if each.partition(".")[0] == "palaver"]:
        del sys.modules[loaded]
    try:
        path.name == "__main__.py" or importlib.import_module(name)
    except ImportError as error:
        print(name, error)
"""


def run_palaver(
    *args: str, env: dict[str, str] | None = None, encoding: str = "utf-8"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "palaver", *args],
        capture_output=True,
        encoding=encoding,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    )


def list_loaded_modules(*commands: list[str]) -> set[str]:
    """Run these commands in one new process, and return the modules that it has loaded by then."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN_ALL_AND_PRINT_MODULES_CODE, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PALAVER_MODEL": "demo"},  # without a file, settings need no parser
    )
    return set(json.loads(ran.stderr))


def test_version_is_printed() -> None:
    ran = run_palaver("--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"palaver, version {__version__}\n", "")


def test_version_and_help_import_no_heavy_modules() -> None:
    loaded = list_loaded_modules(["--version"], ["--help"], ["sessions", "list", "--help"], ["projects", "--help"])
    assert "palaver.cli.sessions" in loaded
    assert loaded & (HEAVY_MODULES | {"palaver.config", "palaver.sessions.store", "asyncio"}) == set()


def test_version_alone_imports_no_commands() -> None:
    assert list_loaded_modules(["--version"]) & {"click", "inspect", "typing", "palaver.cli.program"} == set()


def test_version_is_the_same_after_an_option() -> None:
    ran = run_palaver("--home", "unused", "--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"palaver, version {__version__}\n", "")


def test_version_after_an_option_imports_little_besides_click() -> None:
    loaded = list_loaded_modules(["--home", "unused", "--version"])
    assert loaded & {"pathlib", "shutil", "tempfile", "urllib.parse"} == set()


def test_a_list_loads_no_libraries_that_it_does_not_use(home: Home) -> None:
    home.add_conversation("hi")
    loaded = list_loaded_modules(["--home", str(home.path), "sessions", "list", "--json"])
    assert loaded & {"difflib", "shutil", "tempfile", "typing_extensions"} == set()


def test_a_command_that_waits_for_nothing_needs_no_event_loop(home: Home) -> None:
    home.add_conversation("hi")
    assert "asyncio" not in list_loaded_modules(["--home", str(home.path), "sessions", "list"])


def test_a_command_imports_only_its_database(home: Home) -> None:
    home.add_conversation("hi")
    home_option = ["--home", str(home.path)]
    loaded = list_loaded_modules(
        [*home_option, "sessions", "list", "--json"],
        [*home_option, "sessions", "list"],
        [*home_option, "projects", "list"],
        home_option,  # a chat
    )
    assert "palaver.cli.chat.chat_runner" in loaded
    assert loaded & HEAVY_MODULES == {"apsw"}


def test_a_server_loads_libraries_that_few_need_when_they_are_used(tmp_path: Path) -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            RUN_AND_PRINT_MODULES_CODE,
            "--home",
            str(tmp_path),
            "serve",
            "--port",
            "0",
            "--no-open",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PALAVER_MODEL": "demo"},
    ) as server:
        assert server.stdout is not None
        [url] = next(
            found for line in server.stdout if (found := re.findall(r"(http\S+)/sign-in#", line))
        )  # it is ready
        with urllib.request.urlopen(f"{url}/readyz") as response:
            assert response.status == 200
        server.terminate()
        errors = server.communicate()[1]
    loaded = set(json.loads(errors.splitlines()[-1]))
    assert {"fastapi", "palaver.web.app"} <= loaded
    exports = {"palaver.transfer.exporter", "palaver.transfer.html_export", "palaver.transfer.own_format"}
    others = {"palaver.transfer.importer", "palaver.platforms.email.headers", "pydantic.v1"}
    assert loaded & (exports | others) == set()
    assert {name.partition(".")[0] for name in loaded} & SELDOM_USED_MODULES == set()


@pytest.mark.soak
def test_every_module_can_be_imported_first() -> None:
    """Whether modules import each other in a circle depends on the first of them."""
    folder = str(Path(palaver.__file__).parent)
    code = [sys.executable, "-c", IMPORT_EACH_MODULE_FIRST_CODE, folder]
    result = subprocess.run(code, capture_output=True, text=True, check=True)
    assert result.stdout == ""


def test_a_warm_process_has_imported_what_an_answer_needs(launcher: WarmLauncher, home: Home) -> None:
    """Otherwise every process of the test suite imports it again; `PRELOADED_MODULES` has to name it."""
    code = f"import sys; before = set(sys.modules); {PRINT_NEW_MODULES_CODE}; from palaver.cli import main; main()"
    environ = os.environ | {"PALAVER_MODEL": "demo"}
    process = launcher.launch("--home", str(home.path), "-m", "hi", env=environ, code=code)
    _, errors = process.communicate()
    assert [name for name in json.loads(errors) if name.startswith("palaver.")] == []


def test_exit_codes_reach_the_shell(launcher: WarmLauncher, home: Home) -> None:
    home_option = ("--home", str(home.path))
    home.add_conversation("hi", title="talk")
    for code, args, env in (
        (0, ("sessions", "list"), {}),
        (1, ("projects", "create", "x", "--color", "red"), {}),
        (2, ("sessions", "lst"), {}),
        (3, ("sessions", "show", "nothing like it"), {}),
        (6, ("sessions", "redo", "talk"), {}),
        (7, ("sessions", "list"), {"PALAVER_DM_SCOPE": "everybody"}),
    ):
        process = launcher.launch(*home_option, *args, env={**os.environ, **env})
        _, errors = process.communicate()
        assert process.returncode == code, errors
        assert "Traceback" not in errors


def test_the_home_option_overrides_the_variable(home: Home, tmp_path: Path) -> None:
    home.add_conversation("hi", title="talk")
    env = {"PALAVER_HOME": str(home.path)}
    assert "talk" in run_palaver("sessions", "list", env=env).stdout
    other = run_palaver("--home", str(tmp_path / "other"), "sessions", "list", env=env)
    assert other.stdout == "No conversations yet.\n"


@pytest.mark.parametrize(
    "args", [["sessions", "show", "talk", "--all"], ["sessions", "show", "talk", "--all", "--json"]]
)
def test_a_closed_pipe_is_not_an_error(home: Home, args: list[str]) -> None:
    home.add_conversation(*["a long line " * 1000] * 40, title="talk")
    with subprocess.Popen(
        [sys.executable, "-m", "palaver", "--home", str(home.path), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # unbuffered Python does not notice the closed pipe
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == b""
    assert process.returncode == 128 + signal.SIGPIPE


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("command", [["sessions", "list"], ["--version"]])
def test_a_full_disk_behind_stdout_is_reported(home: Home, command: list[str]) -> None:
    home.add_conversation("hi")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ran = subprocess.run(
            [sys.executable, "-m", "palaver", *command],
            stdout=full,
            env=os.environ | {"PALAVER_HOME": str(home.path)},
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (1, "error: No space left on device\n")


def test_an_encoding_without_some_characters_is_not_an_error(home: Home) -> None:
    home.add_conversation("你好", title="天气 café")
    env = {"PYTHONIOENCODING": "latin-1"}
    text = run_palaver("--home", str(home.path), "sessions", "list", env=env, encoding="latin-1")
    assert (text.returncode, text.stderr) == (0, "")
    assert "?? café" in text.stdout
    data = run_palaver("--home", str(home.path), "sessions", "list", "--json", env=env, encoding="ascii")
    assert json.loads(data.stdout)["sessions"][0]["title"] == "天气 café"


def test_a_table_fits_the_terminal(launcher: WarmLauncher, home: Home) -> None:
    session_id = home.add_conversation("hi", title="title " * 15)
    code, output = run_in_terminal(launcher, "--home", str(home.path), "sessions", "list")
    assert code == 0
    assert session_id in output
    assert "\x1b[1m" in output  # the header is bold
    assert "…" in output


@pytest.mark.parametrize(("keys", "code", "session_count"), [(b"n\r", 1, 1), (b"y\r", 0, 0)])
def test_on_a_terminal_delete_asks_for_confirmation(
    launcher: WarmLauncher, home: Home, keys: bytes, code: int, session_count: int
) -> None:
    home.add_conversation("hi", title="talk")
    exit_code, output = run_in_terminal(launcher, "--home", str(home.path), "sessions", "delete", "talk", keys=keys)
    assert "Permanently delete 'talk' (Telegram, Ada, 1 message)?" in output
    assert exit_code == code
    assert "Traceback" not in output
    assert len(home.get_json("sessions", "list")["sessions"]) == session_count
