"""The command line of this process, so that hints and errors name a command that works where the reader types it.

After `make run`, Palaver is `.venv/bin/palaver`; with pipx, it is `palaver`; it may also be `python -m palaver`.
"""

# Every command is named first, so that the imports of `pathlib` and `shutil` would take a tenth of `palaver --version`.
# ruff: noqa: PTH110, PTH113, PTH118, PTH119, PTH121
from __future__ import annotations

import os
import shlex
import sys
from functools import cache

_NAME = "palaver"


def format_command(arguments: str = "", *, hide_folders: bool = False) -> str:
    """Return the command line that runs Palaver with these arguments.

    With `hide_folders`, for strangers, an absolute path becomes the bare name: it would name folders of the server.
    """
    program = _find_program()
    if hide_folders and program.lstrip("'").startswith("/"):
        program = _NAME
    return f"{program} {arguments}".rstrip()


@cache
def _find_program() -> str:
    programs = (os.path.join(folder, _NAME) for folder in os.get_exec_path())
    installed = next((program for program in programs if os.path.isfile(program) and os.access(program, os.X_OK)), None)
    return describe_program(sys.argv[0], sys.orig_argv[0], installed)


def describe_program(script: str, interpreter: str, installed: str | None) -> str:
    """Return what to type to run Palaver.

    `script` and `interpreter` are this process's own, as they were typed; `installed` is the `palaver` on the path.
    """
    folder, name = os.path.split(script)
    if name == _NAME:
        is_on_path = installed is not None and os.path.exists(script) and os.path.samefile(script, installed)
        return _NAME if is_on_path else shlex.quote(script)
    if (os.path.basename(folder), name) == (_NAME, "__main__.py"):
        return f"{shlex.quote(interpreter)} -m {_NAME}"
    return _NAME  # Palaver is a library here
