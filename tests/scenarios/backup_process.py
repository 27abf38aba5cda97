"""A process that forks `palaver` commands which kill themselves at a crash point; one JSON line in, one out.

Run as a script. `test_backup_kills.py` is its other end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from importlib import import_module

from palaver.cli.program import program
from palaver.core.crash_points import set_crash_hook

for module in ("palaver.operation.restores", "palaver.operation.store_migration", "palaver.core.engines.postgres"):
    import_module(module)  # so that a fork spends its time at its work


def run_command(args: list[str], crash_at: str | None, crash_number: int, journal: str) -> int:
    """Run a command in a fork; return its exit code, or the signal that killed it as a negative number."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    passed: Counter[str] = Counter()
    file = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def pass_crash_point(name: str) -> None:
        passed[name] += 1
        os.write(file, f"{name}\n".encode())
        if name == crash_at and passed[name] == crash_number:
            os.kill(os.getpid(), signal.SIGKILL)

    set_crash_hook(pass_crash_point)
    os.dup2(2, 1)
    try:
        program.main(args)
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 0)
    os._exit(99)


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(json.dumps(run_command(**request)) + "\n")
        sys.stdout.flush()
