"""Without its extras, Palaver serves; a missing part is one line with the command that installs it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from palaver.cli.errors import EXTRA_BY_MODULE
from palaver.platforms.registry import load_manifests

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
TIMEOUT_SECONDS = 60

# Runs Palaver as if some packages were not installed.
RUN_WITHOUT = """
import sys
from importlib.machinery import PathFinder

missing, find_spec = set(sys.argv.pop(1).split(",")), PathFinder.find_spec


def find_others(name, path=None, target=None):
    return None if name.partition(".")[0] in missing else find_spec(name, path, target)


PathFinder.find_spec = find_others
from palaver.cli import main

main()
"""


def run_without(modules: str, home: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, "-c", RUN_WITHOUT, modules, "--home", str(home), *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env=clean | environ,
        check=False,
    )


MODEL_MODULES = ",".join(module for module, extra in EXTRA_BY_MODULE.items() if extra == "models")


@pytest.mark.parametrize(
    ("modules", "arguments", "environ", "command"),
    [
        (
            "psycopg",
            ["status"],
            {"PALAVER_DATABASE_URL": "postgresql://127.0.0.1:1/x"},
            "pip install 'palaver[postgres]'",
        ),
        (MODEL_MODULES, ["status"], {"PALAVER_MODEL": "openai:gpt-5"}, "pip install 'palaver[models]'"),
        (
            "openai",
            ["-m", "hi"],
            {"PALAVER_MODEL": "openai:gpt-5", "OPENAI_API_KEY": "x"},
            "pip install 'palaver[models]'",
        ),
        ("xllamacpp", ["status"], {"PALAVER_MODEL": "local"}, "pip install 'palaver[local]'"),
        ("fastapi", ["serve", "--port", "0"], {}, "pip install --force-reinstall palaver"),
        ("uvicorn", ["serve", "--port", "0"], {}, "pip install --force-reinstall palaver"),
        ("apsw", ["status"], {}, "pip install --force-reinstall palaver"),
    ],
)
def test_a_missing_part_is_one_line_with_the_command_that_installs_it(
    tmp_path: Path, modules: str, arguments: list[str], environ: dict[str, str], command: str
) -> None:
    result = run_without(modules, tmp_path, *arguments, **environ)
    assert result.returncode == 7, result.stderr
    assert result.stderr.startswith("error: ")
    assert command in result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr


def test_a_module_of_our_own_that_is_missing_is_a_bug(tmp_path: Path) -> None:
    blocked = RUN_WITHOUT.replace('name.partition(".")[0] in missing', "name in missing")
    command = [sys.executable, "-c", blocked, "palaver.app", "--home", str(tmp_path), "status"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    assert "Traceback" in result.stderr


def test_every_extra_is_named_in_the_errors() -> None:
    of_platforms = {manifest.extra for manifest in load_manifests().values()} | {"matrix-encryption"}
    assert set(EXTRA_BY_MODULE.values()) | of_platforms == set(PROJECT["optional-dependencies"])


def test_palaver_works_without_any_extra(tmp_path: Path) -> None:
    result = run_without(",".join(EXTRA_BY_MODULE), tmp_path, "-m", "Hello", PALAVER_MODEL="auto")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout
