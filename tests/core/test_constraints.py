"""The database itself refuses what must never be true, whichever program writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import psycopg
import pytest

from palaver.core.engines.base import Read, Write
from palaver.core.errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore

pytestmark = pytest.mark.both_engines


# PostgreSQL's engine takes a unique violation for a conflict with a faster process, tries again, and gives up as busy.
CONSTRAINT_ERRORS = (apsw.ConstraintError, psycopg.IntegrityError, StoreBusy)


class RawStore:
    """Runs plain statements on a store with two sessions: one of Ada's and one of Bob's."""

    def __init__(self, store: SessionStore, dm: Callable[..., SessionSource]) -> None:
        self._engine = store._engine
        self.ids = [store.record_user_message(dm(user), "hello").session_id for user in ("ada", "bob")]
        store.search("hello")  # so that the indexer has nothing left to write in the background
        self.nos = [
            self.fetch_all(f"SELECT no FROM session WHERE id = '{session_id}'")[0][0] for session_id in self.ids
        ]

    def execute(self, sql: str, *params: object) -> int:
        return self._engine.run(Write(lambda tx: tx.execute(sql, *params)))

    def fetch_all(self, sql: str) -> list[tuple[Any, ...]]:
        return self._engine.run(Read(lambda tx: tx.fetch_all(sql)))

    def expect_refusal(self, sql: str, *params: object) -> None:
        """Assert that the database refuses a statement, and that nothing has changed."""
        tables = ("session", "event", "turn", "delivery", "person", "lane", "usage", "identity", "project")
        before = [self.fetch_all(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]
        with pytest.raises(CONSTRAINT_ERRORS):
            self.execute(sql, *params)
        assert [self.fetch_all(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables] == before

    def insert_turn(self, name: str, session: int, state: str) -> None:
        self.execute(INSERT_TURN, name, session, state)

    def insert_delivery(self, name: str, session: int, turn: int | None, address: str) -> None:
        self.execute(INSERT_DELIVERY, name, session, turn, address, "pending")


INSERT_TURN = (
    "INSERT INTO turn (id, session_no, kind, input_seq, state, queue_round, due_at, created_at, lease_owner,"
    " lease_until, ended_at) SELECT $1, $2, 'answer', 2, $3, 0, 0, 0, CASE WHEN $3 = 'running' THEN 'w' END,"
    " CASE WHEN $3 = 'running' THEN 0 END, CASE WHEN $3 IN ('queued', 'running') THEN NULL ELSE 0 END"
)
START_TURN = "UPDATE turn SET state = 'running', lease_owner = 'w' WHERE id = $1"
END_TURN = "UPDATE turn SET state = 'done', lease_owner = NULL, ended_at = 0 WHERE id = $1"
INSERT_DELIVERY = (
    "INSERT INTO delivery (id, kind, platform, account, session_no, turn_no, address, state, content, due_at,"
    " created_at) VALUES ($1, 'answer', 'telegram', '', $2, $3, $4, $5, 'x', 0, 0)"
)
INSERT_EVENT = "INSERT INTO event (session_no, seq, kind, created_at) VALUES ($1, $2, 'message', 0)"


@pytest.fixture
def raw(store: SessionStore, dm: Callable[..., SessionSource]) -> RawStore:
    return RawStore(store, dm)


def test_a_session_has_one_running_turn(raw: RawStore) -> None:
    one, other = raw.nos
    raw.insert_turn("first", one, "running")
    raw.expect_refusal(INSERT_TURN, "second", one, "running")
    raw.insert_turn("waits", one, "queued")
    raw.expect_refusal(START_TURN, "waits")
    raw.insert_turn("elsewhere", other, "running")
    raw.execute(END_TURN, "first")
    raw.execute(START_TURN, "waits")


def test_a_running_turn_has_an_owner_and_an_ended_turn_has_an_end(raw: RawStore) -> None:
    one, _ = raw.nos
    raw.insert_turn("t", one, "queued")
    raw.expect_refusal("UPDATE turn SET state = 'running' WHERE id = $1", "t")
    raw.expect_refusal("UPDATE turn SET lease_owner = 'w' WHERE id = $1", "t")
    raw.expect_refusal("UPDATE turn SET state = 'done' WHERE id = $1", "t")
    raw.expect_refusal("UPDATE turn SET stop_request = 'dance' WHERE id = $1", "t")
    raw.insert_delivery("d", one, None, "telegram:ada")
    raw.expect_refusal("UPDATE delivery SET state = 'sending' WHERE id = $1", "d")


def test_a_turn_has_one_delivery_for_each_address(raw: RawStore) -> None:
    one, _ = raw.nos
    raw.insert_turn("t", one, "done")
    [(turn,)] = raw.fetch_all("SELECT no FROM turn")
    raw.insert_delivery("first", one, turn, "telegram:ada")
    raw.expect_refusal(INSERT_DELIVERY, "again", one, turn, "telegram:ada", "pending")
    raw.expect_refusal(INSERT_DELIVERY, "again", one, turn, "telegram:ada", "sent")
    raw.insert_delivery("elsewhere", one, turn, "web:ada")
    raw.insert_delivery("a job's", one, None, "telegram:ada")  # a delivery that belongs to no turn may be repeated
    raw.insert_delivery("another job's", one, None, "telegram:ada")


def test_a_seq_is_used_once_in_a_session(raw: RawStore) -> None:
    one, other = raw.nos
    raw.expect_refusal(INSERT_EVENT, one, 2)
    raw.execute(INSERT_EVENT, one, 3)
    raw.execute(INSERT_EVENT, other, 3)


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        (
            "INSERT INTO turn (id, session_no, kind, input_seq, state, queue_round, due_at, created_at, ended_at)"
            " VALUES ('x', $1, 'answer', 2, $2, 0, 0, 0, 0)",
            ["paused"],
        ),
        (
            "INSERT INTO delivery (id, kind, platform, account, session_no, address, state, content, due_at,"
            " created_at) VALUES ('x', 'answer', 'p', '', $1, 'a', $2, 'x', 0, 0)",
            ["lost"],
        ),
        ("UPDATE session SET cost_status = $2 WHERE no = $1", ["guessed"]),
        ("UPDATE session SET shared = $2 WHERE no = $1", [2]),
        ("UPDATE session SET unindexed = $2 WHERE no = $1", [2]),
        ("UPDATE session SET message_count = $2 WHERE no = $1", [-1]),
        ("UPDATE session SET title = $2 WHERE no = $1", ["a title without a base"]),
        ("UPDATE session SET ended_at = $2 WHERE no = $1", [1]),
        ("UPDATE session SET end_reason = $2 WHERE no = $1", ["idle"]),
        ("UPDATE session SET audience_no = NULL WHERE no = $1 AND $2 = 0", [0]),
        (
            "INSERT INTO usage (session_no, turn_id, model, created_at, input_tokens, output_tokens, cache_read_tokens,"
            " cache_write_tokens, reasoning_tokens, cost_status) VALUES ($1, 't', 'm', 0, 0, 0, 0, 0, 0, $2)",
            ["guessed"],
        ),
    ],
)
def test_an_invalid_state_is_refused(raw: RawStore, sql: str, params: list[object]) -> None:
    raw.expect_refusal(sql, raw.nos[0], *params)


def test_an_invalid_role_is_refused(raw: RawStore) -> None:
    raw.expect_refusal("UPDATE person SET role = 'king'")


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO event (session_no, seq, kind, created_at) VALUES (999, 1, 'message', 0)",
        "INSERT INTO turn (id, session_no, kind, input_seq, state, queue_round, due_at, created_at)"
        " VALUES ('x', 999, 'answer', 1, 'queued', 0, 0, 0)",
        "INSERT INTO delivery (id, kind, platform, account, session_no, address, state, content, due_at,"
        " created_at) VALUES ('x', 'answer', 'p', '', 999, 'a', 'pending', 'x', 0, 0)",
        "UPDATE lane SET session_no = 999",
        "UPDATE lane SET audience_no = 999",
        "UPDATE session SET audience_no = 999",
        "UPDATE session SET project_no = 999",
        "UPDATE session SET parent_no = 999",
        "INSERT INTO identity (platform, account, person_id, created_at) VALUES ('x', 'y', 'unknown', 0)",
        "INSERT INTO project (id, person_id, name, name_key, created_at) VALUES ('x', 'unknown', 'n', 'n', 0)",
        "DELETE FROM audience",
    ],
)
def test_a_reference_to_nothing_is_refused(raw: RawStore, sql: str) -> None:
    raw.expect_refusal(sql)


def test_session_ids_accounts_and_titles_are_unique(raw: RawStore) -> None:
    one, other = raw.nos
    raw.expect_refusal("UPDATE session SET id = $1", raw.ids[0])
    raw.expect_refusal("UPDATE identity SET account = 'ada'")
    raw.execute(
        "UPDATE session SET title = 'Plans', title_base = 'plans', title_number = 1"
    )  # the same title for two people
    raw.expect_refusal("UPDATE session SET audience_no = (SELECT audience_no FROM session WHERE no = $1)", one)
    raw.execute("UPDATE session SET title_number = 2 WHERE no = $1", other)
    raw.execute("UPDATE session SET audience_no = (SELECT audience_no FROM session WHERE no = $1)", one)


def test_the_usage_of_a_turn_and_model_is_recorded_once(raw: RawStore) -> None:
    sql = (
        "INSERT INTO usage (session_no, turn_id, model, created_at, input_tokens, output_tokens, cache_read_tokens,"
        " cache_write_tokens, reasoning_tokens, cost_status) VALUES ($1, 't', $2, 0, 1, 0, 0, 0, 0, 'unknown')"
    )
    raw.execute(sql, raw.nos[0], "m")
    raw.expect_refusal(sql, raw.nos[0], "m")
    raw.execute(sql, raw.nos[0], "another")
    raw.execute(sql, raw.nos[1], "m")


def test_deleting_a_session_deletes_what_belongs_to_it_but_not_its_usage(raw: RawStore, store: SessionStore) -> None:
    one, other = raw.nos
    store.search("hello")  # so that it is indexed
    store.update_session(raw.ids[0], turn_id="t", input_tokens=5)
    fork_id = store.fork(raw.ids[0]).id
    raw.insert_turn("t", one, "running")
    [(turn,)] = raw.fetch_all("SELECT no FROM turn")
    raw.insert_delivery("d", one, turn, "telegram:ada")
    store.delete_session(raw.ids[0])
    for table in ("event", "turn", "delivery"):
        assert raw.fetch_all(f"SELECT COUNT(*) FROM {table} WHERE session_no = {one}") == [(0,)]
    assert raw.fetch_all(f"SELECT COUNT(*) FROM event WHERE session_no = {other}") != [(0,)]
    assert raw.fetch_all("SELECT COUNT(*) FROM lane WHERE session_no IS NULL") == [(1,)]
    assert raw.fetch_all(f"SELECT parent_no FROM session WHERE id = '{fork_id}'") == [(None,)]
    assert raw.fetch_all("SELECT session_no, input_tokens FROM usage") == [(one, 5)]
    assert {hit.session_id for hit in store.search("hello")} == {fork_id, raw.ids[1]}


def test_the_number_of_a_deleted_session_is_never_reused(raw: RawStore, store: SessionStore) -> None:
    deleted_id = store.fork(raw.ids[1]).id
    [(number,)] = raw.fetch_all(f"SELECT no FROM session WHERE id = '{deleted_id}'")
    store.delete_session(deleted_id)
    new_id = store.fork(raw.ids[1]).id
    assert raw.fetch_all(f"SELECT no FROM session WHERE id = '{new_id}'")[0][0] > number
