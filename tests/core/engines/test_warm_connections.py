"""The connections that tests leave to each other carry nothing over, and broken ones are not used again."""

from __future__ import annotations

import psycopg
import pytest

from palaver.core.engines.postgres_connection import connect


def test_a_kept_connection_is_reset(postgres_database: str) -> None:
    with (
        connect(postgres_database) as first,
        connect(postgres_database) as other,
    ):
        first.execute("SET statement_timeout = 7000")
        first.execute("LISTEN palaver")
        other.execute("NOTIFY palaver, '1'")
    first.close()  # twice: it is kept once
    with (
        connect(postgres_database) as second,
        connect(postgres_database) as third,
    ):
        assert second is first
        assert third is not first
        assert second.execute("SHOW statement_timeout").fetchall() == [("30s",)]
        assert second.execute("SELECT * FROM pg_listening_channels()").fetchall() == []
        assert list(second.notifies(timeout=0)) == []


def test_a_connection_in_a_transaction_is_not_kept(postgres_database: str) -> None:
    connection = connect(postgres_database)
    connection.execute("BEGIN")
    connection.close()
    assert connection.closed


@pytest.mark.parametrize("is_kept_first", [False, True])
def test_a_connection_that_the_server_has_closed_is_not_used_again(postgres_database: str, is_kept_first: bool) -> None:
    with psycopg.connect(postgres_database) as killer:
        broken = connect(postgres_database)
        pid = broken.info.backend_pid
        if is_kept_first:
            broken.close()
        killer.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        broken.close()
    with connect(postgres_database) as connection:
        assert connection.info.backend_pid != pid
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.usefixtures("new_connections")
def test_no_connection_is_kept_for_a_test_that_does_not_want_it(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        pass
    assert connection.closed
