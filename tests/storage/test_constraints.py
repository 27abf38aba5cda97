"""What must never be true, the database itself refuses, whatever program writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import psycopg
import pytest

from palaver.domain.errors import StoreBusy
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore

# PostgreSQL's engine takes a broken uniqueness for somebody who was quicker, tries again, and gives up as busy.
REFUSED = (apsw.ConstraintError, psycopg.IntegrityError, StoreBusy)


class Raw:
    """Statements past the library, on a store with two sessions: number 1 of ada's and number 2 of bob's."""

    def __init__(self, store: SessionStore, dm: Callable[..., SessionSource]) -> None:
        self._engine = store._engine
        self.ids = [store.record_user_message(dm(user), "hello").session_id for user in ("ada", "bob")]
        store.search("hello")  # so that the index has nothing left to do behind our back
        self.no = [self.all(f"SELECT no FROM session WHERE id = '{session_id}'")[0][0] for session_id in self.ids]

    def run(self, sql: str, *params: object) -> int:
        return self._engine.run(Write(lambda tx: tx.run(sql, *params)))

    def all(self, sql: str) -> list[tuple[Any, ...]]:
        return self._engine.run(Read(lambda tx: tx.all(sql)))

    def refuses(self, sql: str, *params: object) -> None:
        """Whether it refuses, and whether nothing has changed."""
        tables = ("session", "event", "turn", "delivery", "person", "route", "usage", "identity", "project")
        before = [self.all(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]
        with pytest.raises(REFUSED):
            self.run(sql, *params)
        assert [self.all(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables] == before

    def turn(self, name: str, session: int, state: str) -> None:
        self.run(TURN, name, session, state)

    def delivery(self, name: str, session: int, turn: int | None, address: str) -> None:
        self.run(DELIVERY, name, session, turn, address, "pending")


TURN = (
    "INSERT INTO turn (id, session_no, kind, input_seq, state, round, due_at, created_at, lease_owner, lease_until,"
    " ended_at) SELECT $1, $2, 'answer', 2, $3, 0, 0, 0, CASE WHEN $3 = 'running' THEN 'w' END,"
    " CASE WHEN $3 = 'running' THEN 0 END, CASE WHEN $3 IN ('queued', 'running') THEN NULL ELSE 0 END"
)
RUN = "UPDATE turn SET state = 'running', lease_owner = 'w' WHERE id = $1"
END = "UPDATE turn SET state = 'done', lease_owner = NULL, ended_at = 0 WHERE id = $1"
DELIVERY = (
    "INSERT INTO delivery (id, kind, platform, session_no, turn_no, address, state, content, due_at, created_at)"
    " VALUES ($1, 'answer', 'telegram', $2, $3, $4, $5, 'x', 0, 0)"
)
EVENT = "INSERT INTO event (session_no, seq, kind, at) VALUES ($1, $2, 'message', 0)"


@pytest.fixture
def raw(store: SessionStore, dm: Callable[..., SessionSource]) -> Raw:
    return Raw(store, dm)


def test_one_session_runs_one_turn(raw: Raw) -> None:
    one, other = raw.no
    raw.turn("first", one, "running")
    raw.refuses(TURN, "second", one, "running")
    raw.turn("waits", one, "queued")
    raw.refuses(RUN, "waits")
    raw.turn("elsewhere", other, "running")
    raw.run(END, "first")
    raw.run(RUN, "waits")


def test_a_running_turn_has_an_owner_and_an_ended_one_its_end(raw: Raw) -> None:
    one, _ = raw.no
    raw.turn("t", one, "queued")
    raw.refuses("UPDATE turn SET state = 'running' WHERE id = $1", "t")
    raw.refuses("UPDATE turn SET lease_owner = 'w' WHERE id = $1", "t")
    raw.refuses("UPDATE turn SET state = 'done' WHERE id = $1", "t")
    raw.refuses("UPDATE turn SET wish = 'dance' WHERE id = $1", "t")
    raw.delivery("d", one, None, "telegram:ada")
    raw.refuses("UPDATE delivery SET state = 'sending' WHERE id = $1", "d")


def test_one_turn_is_delivered_once_to_one_address(raw: Raw) -> None:
    one, _ = raw.no
    raw.turn("t", one, "done")
    [(turn,)] = raw.all("SELECT no FROM turn")
    raw.delivery("first", one, turn, "telegram:ada")
    raw.refuses(DELIVERY, "again", one, turn, "telegram:ada", "pending")
    raw.refuses(DELIVERY, "again", one, turn, "telegram:ada", "sent")
    raw.delivery("elsewhere", one, turn, "web:ada")
    raw.delivery("a job's", one, None, "telegram:ada")  # what no turn brought may be said twice
    raw.delivery("another job's", one, None, "telegram:ada")


def test_one_number_of_a_log_is_given_once(raw: Raw) -> None:
    one, other = raw.no
    raw.refuses(EVENT, one, 2)
    raw.run(EVENT, one, 3)
    raw.run(EVENT, other, 3)


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        (
            "INSERT INTO turn (id, session_no, kind, input_seq, state, round, due_at, created_at, ended_at)"
            " VALUES ('x', $1, 'answer', 2, $2, 0, 0, 0, 0)",
            ["paused"],
        ),
        (
            "INSERT INTO delivery (id, kind, platform, session_no, address, state, content, due_at, created_at)"
            " VALUES ('x', 'answer', 'p', $1, 'a', $2, 'x', 0, 0)",
            ["lost"],
        ),
        ("UPDATE session SET cost_status = $2 WHERE no = $1", ["guessed"]),
        ("UPDATE session SET shared = $2 WHERE no = $1", [2]),
        ("UPDATE session SET unindexed = $2 WHERE no = $1", [2]),
        ("UPDATE session SET message_count = $2 WHERE no = $1", [-1]),
        ("UPDATE session SET title = $2 WHERE no = $1", ["no place in any line"]),
        ("UPDATE session SET ended_at = $2 WHERE no = $1", [1]),
        ("UPDATE session SET end_reason = $2 WHERE no = $1", ["idle"]),
        ("UPDATE session SET audience_no = NULL WHERE no = $1 AND $2 = 0", [0]),
        (
            "INSERT INTO usage (session_no, turn_id, model, at, input_tokens, output_tokens, cache_read_tokens,"
            " cache_write_tokens, reasoning_tokens, cost_status) VALUES ($1, 't', 'm', 0, 0, 0, 0, 0, 0, $2)",
            ["guessed"],
        ),
    ],
)
def test_a_state_that_does_not_exist_is_refused(raw: Raw, sql: str, params: list[object]) -> None:
    raw.refuses(sql, raw.no[0], *params)


def test_a_role_that_does_not_exist_is_refused(raw: Raw) -> None:
    raw.refuses("UPDATE person SET role = 'king'")


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO event (session_no, seq, kind, at) VALUES (999, 1, 'message', 0)",
        "INSERT INTO turn (id, session_no, kind, input_seq, state, round, due_at, created_at)"
        " VALUES ('x', 999, 'answer', 1, 'queued', 0, 0, 0)",
        "INSERT INTO delivery (id, kind, platform, session_no, address, state, content, due_at, created_at)"
        " VALUES ('x', 'answer', 'p', 999, 'a', 'pending', 'x', 0, 0)",
        "UPDATE route SET session_no = 999",
        "UPDATE route SET audience_no = 999",
        "UPDATE session SET audience_no = 999",
        "UPDATE session SET project_no = 999",
        "UPDATE session SET parent_no = 999",
        "INSERT INTO identity (platform, account, person_id, created_at) VALUES ('x', 'y', 'nobody', 0)",
        "INSERT INTO project (id, person_id, name, name_key, created_at) VALUES ('x', 'nobody', 'n', 'n', 0)",
        "DELETE FROM audience",
    ],
)
def test_what_belongs_to_nothing_is_refused(raw: Raw, sql: str) -> None:
    raw.refuses(sql)


def test_a_session_id_an_account_and_a_title_belong_to_one(raw: Raw) -> None:
    one, other = raw.no
    raw.refuses("UPDATE session SET id = $1", raw.ids[0])
    raw.refuses("UPDATE identity SET account = 'ada'")
    raw.run("UPDATE session SET title = 'Plans', title_base = 'plans', title_number = 1")  # two people, two titles
    raw.refuses("UPDATE session SET audience_no = (SELECT audience_no FROM session WHERE no = $1)", one)
    raw.run("UPDATE session SET title_number = 2 WHERE no = $1", other)
    raw.run("UPDATE session SET audience_no = (SELECT audience_no FROM session WHERE no = $1)", one)


def test_a_turn_of_a_model_is_counted_once(raw: Raw) -> None:
    sql = (
        "INSERT INTO usage (session_no, turn_id, model, at, input_tokens, output_tokens, cache_read_tokens,"
        " cache_write_tokens, reasoning_tokens, cost_status) VALUES ($1, 't', $2, 0, 1, 0, 0, 0, 0, 'unknown')"
    )
    raw.run(sql, raw.no[0], "m")
    raw.refuses(sql, raw.no[0], "m")
    raw.run(sql, raw.no[0], "another")
    raw.run(sql, raw.no[1], "m")


def test_a_deleted_session_takes_along_what_belongs_to_it_and_leaves_its_cost(raw: Raw, store: SessionStore) -> None:
    one, other = raw.no
    store.search("hello")  # so that it is indexed
    store.update_session(raw.ids[0], turn_id="t", input_tokens=5)
    child = store.fork(raw.ids[0]).id
    raw.turn("t", one, "running")
    [(turn,)] = raw.all("SELECT no FROM turn")
    raw.delivery("d", one, turn, "telegram:ada")
    store.delete_session(raw.ids[0])
    for table in ("event", "turn", "delivery"):
        assert raw.all(f"SELECT COUNT(*) FROM {table} WHERE session_no = {one}") == [(0,)]
    assert raw.all(f"SELECT COUNT(*) FROM event WHERE session_no = {other}") != [(0,)]
    assert raw.all("SELECT COUNT(*) FROM route WHERE session_no IS NULL") == [(1,)]
    assert raw.all(f"SELECT parent_no FROM session WHERE id = '{child}'") == [(None,)]
    assert raw.all("SELECT session_no, input_tokens FROM usage") == [(one, 5)]
    assert {hit.session_id for hit in store.search("hello")} == {child, raw.ids[1]}


def test_the_number_of_a_deleted_session_is_never_given_again(raw: Raw, store: SessionStore) -> None:
    newest = store.fork(raw.ids[1]).id
    [(number,)] = raw.all(f"SELECT no FROM session WHERE id = '{newest}'")
    store.delete_session(newest)
    again = store.fork(raw.ids[1]).id
    assert raw.all(f"SELECT no FROM session WHERE id = '{again}'")[0][0] > number
