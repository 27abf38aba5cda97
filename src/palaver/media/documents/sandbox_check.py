"""Closes itself like the process that reads documents, and prints which system calls of a hostile document still work.

python -m palaver.media.documents.sandbox_check      {"possible": []}
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import TYPE_CHECKING, Final

from palaver.media.documents.sandbox import close_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

CHECK_COMMAND: Final = (sys.executable, "-P", "-m", "palaver.media.documents.sandbox_check")


def _open_file() -> None:
    os.close(os.open(sys.executable, os.O_RDONLY))


def _open_socket() -> None:
    socket.socket().close()


def _start_process() -> None:
    if os.fork() == 0:
        os._exit(0)


_ATTEMPTS: Final[dict[str, Callable[[], None]]] = {"open": _open_file, "socket": _open_socket, "fork": _start_process}


def _is_possible(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except (OSError, AttributeError):
        return False
    return True


def main() -> None:
    """Close this process and print what it still can do."""
    close_sandbox()
    possible = [name for name, attempt in _ATTEMPTS.items() if _is_possible(attempt)]
    os.write(1, json.dumps({"possible": possible}).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
