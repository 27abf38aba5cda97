"""On PostgreSQL the first message of a chat starts its session, and adds its person, in one statement."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

from conftest import empty_database
from palaver import GatewayConfig, SessionSource, TurnUsage
from palaver.core.engines.base import Read
from palaver.core.engines.postgres_connection import PostgresTransaction
from palaver.sessions import lanes_table as lanes
from palaver.sessions.keys import DmScope
from palaver.sessions.message import Message
from palaver.sessions.model import StartReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction

    MakeSource = Callable[..., SessionSource]

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)

TABLES = ("audience", "person", "identity", "audience_member", "session", "lane", "event", "lane_move", "sender_id")
CALLERS = 8
_RANDOM_ID = re.compile(r"(?<=p_)[0-9a-f]+|(?<=\d{8}_\d{6}_)[0-9a-f]{8}")


def load_rows(store: SessionStore) -> dict[str, list[Any]]:
    """Load what is stored, without random parts of ids and without serial numbers, which depend on earlier tests."""
    sql = "SELECT (to_jsonb(t) - '{no,session_no,audience_no}'::text[])::text FROM %s t ORDER BY 1"

    def load(tx: Transaction, table: str) -> list[str]:
        return [_RANDOM_ID.sub("", text) for (text,) in tx.fetch_all(sql % table)]

    return store.engine.run(Read(lambda tx: {table: load(tx, table) for table in TABLES}))


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is sent to PostgreSQL from now on."""
    sent: list[str] = []
    original = PostgresTransaction.fetch_one

    def fetch_one(self: PostgresTransaction, sql: str, *params: object) -> Any:
        sent.append(sql)
        return original(self, sql, *params)

    def fail(*_: object) -> None:
        raise AssertionError("only one statement is needed")

    monkeypatch.setattr(PostgresTransaction, "fetch_one", fetch_one)
    for name in ("fetch_all", "execute", "execute_many", "lock_name"):
        monkeypatch.setattr(PostgresTransaction, name, fail)
    return sent


def test_a_turn_that_starts_a_session_takes_two_statements(
    store: SessionStore, dm: MakeSource, statements: list[str]
) -> None:
    recorded = store.record_user_message(dm("ada"), "hello")
    usage = TurnUsage(turn_id="t1", model="m", input_tokens=1)
    assert store.append_to_transcript(recorded.session_id, "hi", usage=usage) == 3
    assert len(statements) == 2
    assert (recorded.start_reason, recorded.seq) == (StartReason.FIRST, 2)


MESSAGES: dict[str, tuple[SessionSource, Message]] = {
    "text": (
        SessionSource("telegram", "1", user_id="1", user_name="Ann", chat_name="Ann"),
        Message("user", "What is **this**?", None, "m1"),
    ),
    "no name": (SessionSource("slack", "C1", user_id="U1"), Message("user", "hello")),
    "group": (
        SessionSource("telegram", "-1", chat_type="group", user_id="1", user_name="A\x00B", chat_name="All"),
        Message("user", "hello"),
    ),
    "thread of one": (SessionSource("matrix", "!r:x", user_id="@a:x", thread_id="t"), Message("user", "hello")),
    "terminal": (SessionSource.local_cli(), Message("user", "hello")),
    "program": (SessionSource("webhook", "w1"), Message("user", "ping")),
    "answer": (
        SessionSource("telegram", "2", user_id="2"),
        Message("assistant", None, None, None, {"tool_calls": [{"id": "a"}, {"id": "b"}]}),
    ),
    "several ids": (SessionSource("whatsapp", "49170", user_id="49170", user_id_alt="77@lid"), Message("user", "a")),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_same_rows_are_stored_as_step_by_step(
    name: str, store_url: str, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, message = MESSAGES[name]
    in_one = (store.record_user_message(source, message), load_rows(store))
    empty_database(store_url)
    monkeypatch.setattr(lanes, "_describe_first_session", lambda _arrival: None)
    by_steps = (store.record_user_message(source, message), load_rows(store))
    assert in_one[1] == by_steps[1]
    assert len(in_one[1]["event"]) == 2
    assert in_one[0].seq == by_steps[0].seq
    assert in_one[0].start_reason == by_steps[0].start_reason
    assert in_one[0].session_key == by_steps[0].session_key


def test_a_known_person_keeps_their_audience_in_another_chat(store: SessionStore, dm: MakeSource) -> None:
    person = store.get_or_create_person(dm("ada"))
    store.record_user_message(dm("ada"), "hello")
    group = SessionSource("telegram", "-5", chat_type="group", user_id=dm("ada").user_id)
    session_id = store.record_user_message(group, "in a group").session_id
    assert store.get_or_create_person(group).id == person.id
    assert {each.id for each in store.seen_by(person.principal).list()} >= {session_id}
    assert len(load_rows(store)["audience"]) == 1


def test_a_shared_lane_or_one_of_a_person_is_left_to_the_steps(open_store: OpenStore, dm: MakeSource) -> None:
    for scope in (DmScope.PERSON, DmScope.SHARED, DmScope.PLATFORM):
        store = open_store(GatewayConfig(dm_scope=scope))
        entry = store.get_or_create_session(dm("ada"))
        recorded = store.record_user_message(dm("ada"), "hello")
        assert (recorded.session_id, recorded.session_key) == (entry.session_id, entry.session_key)


def test_a_lane_whose_session_was_deleted_gets_another(store: SessionStore, dm: MakeSource) -> None:
    first = store.record_user_message(dm("ada"), "hello")
    store.delete_session(first.session_id)
    second = store.record_user_message(dm("ada"), "again")
    assert second.session_id != first.session_id
    assert [message["content"] for message in store.load_transcript(second.session_id)] == ["again"]


def test_callers_who_write_the_first_message_at_once_share_one_session(store: SessionStore, dm: MakeSource) -> None:
    start = threading.Barrier(CALLERS)
    seqs: list[int] = []

    def write(number: int) -> None:
        start.wait(10)
        seqs.append(store.record_user_message(dm("ada"), f"message {number}").seq)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = load_rows(store)
    assert sorted(seqs) == list(range(2, CALLERS + 2))
    assert (len(rows["session"]), len(rows["lane"]), len(rows["person"])) == (1, 1, 1)


def test_a_chat_that_is_new_again_starts_although_the_store_knows_it(
    store: SessionStore, store_url: str, dm: MakeSource
) -> None:
    """The store only guesses which statement will be enough."""
    store.record_user_message(dm("ada"), "hello")
    empty_database(store_url)
    assert store.record_user_message(dm("ada"), "again").start_reason is StartReason.FIRST


def test_later_messages_use_the_shorter_statement(store: SessionStore, dm: MakeSource, statements: list[str]) -> None:
    for _ in range(3):
        store.record_user_message(dm("ada"), "hello")
    assert ["palaver_start_session" in sql for sql in statements] == [True, False, False]
