"""What a turn costs on SQLite: few statements, and none that writes an index without need."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from palaver import TurnUsage
from palaver.core.engines.sqlite import SqliteEngine
from palaver.core.source import ChatType

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import Session, SessionSource, SessionStore
    from palaver.testing import FakeClock

    Source = Callable[..., SessionSource]

_TARGET = re.compile(r"(SELECT|INSERT INTO|UPDATE)(?:.*?\bFROM)?\s+(\w+)", re.DOTALL)
USAGE = TurnUsage(turn_id="t1", model="m", input_tokens=10, output_tokens=5)


def list_statements(store: SessionStore, act: Callable[[], object]) -> list[str]:
    """Return the statements of a write, without those that begin and end its transaction."""
    found: list[str] = []

    def note(_cursor: object, sql: str, _params: object) -> bool:
        found.append(sql.strip())
        return True

    assert isinstance(store.engine, SqliteEngine)
    db = store.engine._writer_connection.db
    db.exec_trace = note
    try:
        act()
    finally:
        db.exec_trace = None
    return [sql for sql in found if not sql.startswith(("BEGIN", "PRAGMA", "COMMIT"))]


def describe(statement: str) -> str:
    target = _TARGET.match(statement)
    assert target is not None, statement
    verb = target[1] if target[1] != "SELECT" else "SELECT FROM"
    return f"{verb} {target[2]}"


def list_changed_columns(statements: list[str]) -> set[str]:
    (update,) = (sql for sql in statements if sql.startswith("UPDATE session"))
    return set(re.findall(r"(\w+) = ", update.partition("WHERE")[0]))


def test_a_message_is_a_read_and_two_changes(store: SessionStore, dm: Source) -> None:
    store.record_user_message(dm(), "hello")
    statements = list_statements(store, lambda: store.record_user_message(dm(), "and again"))
    assert list(map(describe, statements)) == ["SELECT FROM session", "UPDATE session", "INSERT INTO event"]
    counters = {"last_seq", "message_count", "last_message_at", "redo_seq", "preview"}
    assert list_changed_columns(statements) == counters | {"last_human_at", "active_at"}


def test_a_quick_answer_changes_no_column_that_is_in_an_index(store: SessionStore, dm: Source) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id
    statements = list_statements(store, lambda: store.append_to_transcript(session_id, "hi", usage=USAGE))
    targets = ["SELECT FROM session", "INSERT INTO usage", "UPDATE session", "INSERT INTO event"]
    assert list(map(describe, statements)) == targets
    assert not list_changed_columns(statements) & {"last_human_at", "active_at", "unindexed", "auto_title"}
    again = list_statements(store, lambda: store.append_to_transcript(session_id, "hi", usage=USAGE))
    assert "input_tokens" not in list_changed_columns(again)


def test_a_late_answer_moves_the_session_up(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id
    clock.advance(minutes=1)
    store.append_to_transcript(session_id, "hi")
    assert store.get_session(session_id).active_at == clock.now()


def test_a_session_that_starts_with_a_message_is_written_once(store: SessionStore, dm: Source) -> None:
    store.get_or_create_person(dm())
    statements = list_statements(store, lambda: store.record_user_message(dm(), "hello"))
    changes = [each for each in map(describe, statements) if not each.startswith("SELECT")]
    assert changes == ["INSERT INTO session", "INSERT INTO event", "INSERT INTO event", "INSERT INTO lane"]


@pytest.mark.both_engines
@pytest.mark.parametrize("text", ["**hello** there", "", "[link](https://example.org)"])
@pytest.mark.parametrize("group", [False, True])
def test_a_first_message_leaves_the_same_session_as_a_later_one(
    store: SessionStore, dm: Source, text: str, group: bool
) -> None:
    def make(user: str) -> SessionSource:
        source = dm(user)
        return replace(source, chat_type=ChatType.GROUP, user_id=None) if group else source

    at_once = store.get_session(store.record_user_message(make("1"), text).session_id)
    in_steps = store.get_or_create_session(make("2")).session_id
    assert store.record_user_message(make("2"), text).session_id == in_steps
    assert get_facts(at_once) == get_facts(store.get_session(in_steps))
    assert list_entries(store, at_once.id) == list_entries(store, in_steps)


def list_entries(store: SessionStore, session_id: str) -> list[tuple[object, ...]]:
    return [(each.seq, each.kind, each.facts, each.at) for each in store.load_events(session_id)]


def get_facts(session: Session) -> dict[str, object]:
    own = {"id", "key", "source", "display_name"}
    return {name: value for name, value in session.to_dict().items() if name not in own}
