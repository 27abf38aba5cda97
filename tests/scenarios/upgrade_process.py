"""A process that upgrades a database and kills itself in its first migration, or right after it.

Run as a script: database URL, and when: `applied` (before the migration is recorded), `recorded` (before the commit) or
`committed` (when the next one begins).
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from palaver.core.engines import migrate
from palaver.core.engines.open import open_engine


def main(url: str, moment: str) -> None:
    apply = migrate.apply_migration
    started: list[str] = []

    def kill(at: str) -> None:
        if at == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def apply_migration(tx: Any, name: str, script: str, now: int, run_script: Any) -> None:
        if started:
            kill("committed")
        started.append(name)

        def run(text: str) -> None:
            run_script(text)
            kill("applied")

        apply(tx, name, script, now, run)
        kill("recorded")

    migrate.apply_migration = apply_migration
    open_engine(url).close()


if __name__ == "__main__":
    main(*sys.argv[1:])
