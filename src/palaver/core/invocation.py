"""The command line of this process, so that hints and errors name a command that works where the reader types it.

After `make run`, Palaver is `.venv/bin/palaver`; with pipx, it is `palaver`; it may also be `python -m palaver`.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from functools import cache
from pathlib import Path

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
    return describe_program(sys.argv[0], sys.orig_argv[0], shutil.which(_NAME))


def describe_program(script: str, interpreter: str, installed: str | None) -> str:
    """Return what to type to run Palaver.

    `script` and `interpreter` are this process's own, as they were typed; `installed` is the `palaver` on the path.
    """
    path = Path(script)
    if path.name == _NAME:
        is_on_path = installed is not None and path.exists() and path.samefile(installed)
        return _NAME if is_on_path else shlex.quote(script)
    if path.parts[-2:] == (_NAME, "__main__.py"):
        return f"{shlex.quote(interpreter)} -m {_NAME}"
    return _NAME  # Palaver is a library here
