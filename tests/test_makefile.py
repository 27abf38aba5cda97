"""Tests of what `make run` prints, with stand-ins for the programs that it calls."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOISE = "for number in 1 2 3 4 5; do echo noise $number; done"
# The folder with the programs comes first on the path, so that these are used.
PYTHON = f"""#!/bin/sh
{NOISE}
mkdir -p .venv/bin
for name in python uv palaver; do ln -sf "$PROGRAMS/$name" .venv/bin/$name; done
"""
NPM = f"""#!/bin/sh
{NOISE}
[ -z "$FAILS" ] || {{ echo the build is broken >&2; exit 1; }}
case $1 in
    ci) mkdir -p node_modules && touch node_modules/.package-lock.json ;;
    exec) mkdir -p ../src/palaver/web/static && touch ../src/palaver/web/static/index.html ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that is not set up yet."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in {
        "python3": PYTHON,
        "npm": NPM,
        "python": f"#!/bin/sh\n{NOISE}\ntouch .venv/bin/uv\n",
        "uv": f"#!/bin/sh\n{NOISE}\n",
        "palaver": '#!/bin/sh\necho "the link of $0 $*"\n',
    }.items():
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    folder = tmp_path / "checkout"
    (folder / "frontend").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-model.txt"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / "frontend" / name, folder / "frontend" / name)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PROGRAMS", str(programs))
    return folder


def run_make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", *arguments, "PYTHON=python3"]
    environment = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def test_the_first_start_names_its_steps_and_later_starts_print_the_link_alone(checkout: Path) -> None:
    first = run_make(checkout, "run")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines() == [
        "Setting up Python…",
        "Installing Python packages and a small model…",
        "Installing packages for the page…",
        "Building the page…",
        "Starting Palaver…",
        "the link of .venv/bin/palaver serve",
    ]
    assert "noise 5" in (checkout / "build" / "page.log").read_text(encoding="utf-8")
    assert run_make(checkout, "run").stdout == "the link of .venv/bin/palaver serve\n"
    assert run_make(checkout, "chat").stdout == "the link of .venv/bin/palaver \n"


def test_a_step_that_fails_shows_the_end_of_its_log_and_names_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "yes")
    failed = run_make(checkout, "run")
    assert failed.returncode != 0
    assert "the link" not in failed.stdout
    log = checkout / "build" / "page-packages.log"
    assert "noise 5\nthe build is broken\n" in failed.stderr
    assert (
        f"Installing packages for the page failed. These are the last lines; everything is in {log}." in failed.stderr
    )
    monkeypatch.delenv("FAILS")
    assert run_make(checkout, "run").stdout.endswith("the link of .venv/bin/palaver serve\n")
