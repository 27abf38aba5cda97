"""Opens a store without conversations for a benchmark, and deletes its database afterwards."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.postgres_server import DATABASE_PREFIX, PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver import SessionStore


@contextlib.contextmanager
def open_empty_store(*, on_postgres: bool) -> Iterator[SessionStore]:
    from palaver import SessionStore  # after `--src` has chosen which one

    with contextlib.ExitStack() as stack:
        if on_postgres:
            server, database = stack.enter_context(PostgresServer()), f"{DATABASE_PREFIX}empty"
            server.create_database(database)
            stack.callback(server.drop_database, database)
            url = server.build_url(database)
        else:
            url = f"sqlite:///{Path(stack.enter_context(tempfile.TemporaryDirectory())) / 'palaver.db'}"
        yield stack.enter_context(SessionStore.open(url))
