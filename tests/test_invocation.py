"""Tests of the command that hints and errors name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from palaver.core import invocation
from palaver.core.invocation import describe_program, format_command


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ".venv" / "bin" / "palaver"
    path.parent.mkdir(parents=True)
    path.touch(mode=0o755)
    return path


def test_a_program_outside_the_path_is_named_as_it_was_typed(script: Path) -> None:
    assert describe_program(".venv/bin/palaver", "python3", None) == ".venv/bin/palaver"
    assert describe_program(str(script), "python3", "/usr/bin/env") == quote(str(script))


def test_a_program_on_the_path_is_named_without_its_folder(script: Path) -> None:
    assert describe_program(str(script), "python3", str(script)) == "palaver"
    assert describe_program(".venv/bin/palaver", "python3", str(script)) == "palaver"


def test_a_module_is_named_with_its_interpreter() -> None:
    assert describe_program("/site-packages/palaver/__main__.py", "python3", None) == "python3 -m palaver"
    assert describe_program("/x/palaver/__main__.py", "/my env/python", None) == "'/my env/python' -m palaver"


def test_in_another_program_it_is_the_usual_name() -> None:
    assert describe_program("/usr/bin/pytest", "python3", None) == "palaver"


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("palaver", "palaver serve"),
        (".venv/bin/palaver", ".venv/bin/palaver serve"),
        ("/home/ada/palaver", "palaver serve"),
        ("'/home/ada b/python' -m palaver", "palaver serve"),
    ],
)
def test_strangers_do_not_see_the_folders_of_the_server(
    monkeypatch: pytest.MonkeyPatch, program: str, shown: str
) -> None:
    monkeypatch.setattr(invocation, "_find_program", lambda: program)
    assert format_command("serve", hide_folders=True) == shown
    assert format_command("serve") == f"{program} serve"


def test_the_hints_of_a_process_name_the_command_that_was_typed(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    command = [f"./{folder.name}/palaver", "--home", str(tmp_path), "projects", "list"]
    ran = subprocess.run(
        command, cwd=folder.parent, capture_output=True, text=True, check=False, env={**os.environ, "PATH": "/usr/bin"}
    )
    assert f"Create one with `./{folder.name}/palaver projects create NAME`." in ran.stdout
