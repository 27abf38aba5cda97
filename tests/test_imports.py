"""Modules that import each other in a circle work only if the right one comes first: a command may import any first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import palaver

# Each module is imported in a process of its own, which starts with the packages of others and nothing of ours.
IMPORT_EACH = """
import importlib, os, sys
import apsw, click, fastapi, httpx2, psycopg, pydantic, uvicorn
failed = 0
for name in sys.argv[1:]:
    if (child := os.fork()) == 0:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    failed += os.waitpid(child, 0)[1] != 0
sys.exit(failed != 0)
"""


ROOMS = ("accounts", "cli", "jobs", "operation", "transfer", "turns")  # commands import the others when they are used


def test_every_module_of_the_commands_and_what_they_use_can_be_imported_first() -> None:
    root = Path(palaver.__file__).parent
    files = [file for room in ROOMS for file in (root / room).glob("*.py")]
    assert {file.parent.name for file in files} == {*ROOMS}
    names = [f"palaver.{file.parent.name}.{file.stem}".removesuffix(".__init__") for file in files]
    result = subprocess.run([sys.executable, "-c", IMPORT_EACH, *names], capture_output=True, text=True, check=False)
    assert result.stdout == ""
    assert result.returncode == 0, result.stderr
