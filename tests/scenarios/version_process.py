"""A process that changes the version of a message, and kills itself after a number of statements.

Run as a script: database URL, session id, `start` or `choose`, number of the message, number of statements.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from palaver import SessionStore
from palaver.core.engines.base import Write
from palaver.sessions import message_table as message_log, table as sessions, versions_table as versions
from palaver.sessions.message import Message


class KillingTransaction:
    """Passes everything on, and kills the process after so many statements."""

    def __init__(self, tx: Any, statements: int) -> None:
        self._tx = tx
        self._left = statements

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._tx, name)
        if name not in {"execute", "execute_many", "fetch_one", "fetch_all"}:
            return value

        def run(*arguments: Any) -> Any:
            result = value(*arguments)
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run


def main(url: str, session_id: str, action: str, seq: str, statements: str) -> None:
    def run(real_tx: Any) -> None:
        no = sessions.get(real_tx, session_id).no
        tx: Any = KillingTransaction(real_tx, int(statements))
        if action == "choose":
            versions.choose_version(tx, no, int(seq), 1, 1_000_000)
        else:
            versions.start_version(tx, no, int(seq), 1_000_000)
            message_log.append_messages(tx, session_id, [Message("user", "new")], 1_000_000, from_human=True)

    with SessionStore.open(url) as store:
        store.engine.run(Write(run))


if __name__ == "__main__":
    main(*sys.argv[1:])
