"""The complete check of a store finds what must not be, on both engines."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.engines.base import Write
from palaver.operation.integrity_check import check_integrity, list_problems, repair_store
from support.store_content import fill_store

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction

NO_FILES = Path("/nonexistent")


@pytest.fixture
def filled(store: SessionStore, tmp_path: Path) -> SessionStore:
    fill_store(store, tmp_path / "attachments", count=30)
    return store


def find_problems(store: SessionStore, folder: Path) -> dict[str, list[str]]:
    results = check_integrity(store, folder / "attachments")
    return {result.title: result.problems for result in results if result.problems}


def test_a_store_in_order_has_no_problems(filled: SessionStore, tmp_path: Path) -> None:
    results = list(check_integrity(filled, tmp_path / "attachments"))
    assert all(result.is_ok for result in results), results
    assert results[-1].title == "Attached files"


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("name", "statement", "words"),
    [
        (
            "Logs, counters and search index",
            "UPDATE session SET message_count = message_count + 1 WHERE no = $1",
            "counts",
        ),
        (
            "Logs, counters and search index",
            "UPDATE session SET last_seq = last_seq + 1 WHERE no = $1",
            "should end at entry",
        ),
        (
            "Logs, counters and search index",
            "DELETE FROM event WHERE session_no = $1 AND seq = 2",
            "its last number is",
        ),
        ("Logs, counters and search index", "DELETE FROM event WHERE session_no = $1", "has no log"),
        (
            "Logs, counters and search index",
            "UPDATE session SET input_tokens = input_tokens + 1 WHERE no = $1",
            "the usage",
        ),
        (
            "Logs, counters and search index",
            "UPDATE session SET indexed_seq = last_seq + 1 WHERE no = $1",
            "the search index",
        ),
        (
            "Logs, counters and search index",
            "UPDATE event SET hidden_by = 99, is_near_hidden = NULL WHERE session_no = $1 AND seq = 2",
            "lacks the mark of what is hidden at entry 2",
        ),
        (
            "Chats and their conversations",
            "UPDATE session SET ended_at = 1, end_reason = 'manual' WHERE no = $1",
            "which has ended",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    filled: SessionStore, tmp_path: Path, name: str, statement: str, words: str
) -> None:
    find_no = "SELECT l.session_no FROM lane l JOIN session s ON s.no = l.session_no WHERE s.message_count > 1 LIMIT 1"

    def break_store(tx: Transaction) -> None:
        [(no,)] = tx.fetch_all(find_no)
        tx.execute(statement, no)

    filled.engine.run(Write(break_store))
    problems = find_problems(filled, tmp_path)
    assert any(words in problem for problem in problems[name]), problems


def test_a_missing_file_is_named(filled: SessionStore, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "attachments")
    [problem] = find_problems(filled, tmp_path)["Attached files"]
    assert problem.startswith("attachment a1: its file")
    assert problem.endswith("is missing")


@pytest.mark.both_engines
def test_a_missing_index_is_named(filled: SessionStore, tmp_path: Path) -> None:
    create = "CREATE INDEX event_reaction ON event (session_no, seq) WHERE kind = 'reaction'"
    filled.engine.run(Write(lambda tx: tx.execute("DROP INDEX event_reaction")))
    try:
        assert find_problems(filled, tmp_path)["Tables and indexes"] == [
            "tables or indexes are missing: event_reaction"
        ]
    finally:
        filled.engine.run(Write(lambda tx: tx.execute(create)))


# -- repairs ------------------------------------------------------------------------------------------------

DERIVED_DAMAGE = {
    "message count": "UPDATE session SET message_count = message_count + 1 WHERE no = $1",
    "end of the log": "UPDATE session SET last_seq = last_seq - 1, indexed_seq = 0, unindexed = 1 WHERE no = $1",
    "preview": "UPDATE session SET preview = 'something else' WHERE no = $1",
    "last message": "UPDATE session SET last_message_at = 1 WHERE no = $1",
    "tokens": "UPDATE session SET input_tokens = input_tokens + 1 WHERE no = $1",
    "cost": "UPDATE session SET cost_nanos = COALESCE(cost_nanos, 0) + 5, cost_status = 'actual' WHERE no = $1",
    "index ahead": "UPDATE session SET indexed_seq = last_seq + 1 WHERE no = $1",
    "index behind": "UPDATE session SET indexed_seq = 0, unindexed = 0 WHERE no = $1",
    "marks": "UPDATE event SET is_near_hidden = NULL WHERE session_no = $1",
}
LOST_ENTRIES = {
    "a hole": "DELETE FROM event WHERE session_no = $1 AND seq = 2",
    "no end": "UPDATE session SET last_seq = last_seq + 1 WHERE no = $1",
    "no log": "DELETE FROM event WHERE session_no = $1",
}
_LOG_COLUMNS = "session_no, seq, kind, created_at, role, content, body, person_id, hidden_by, edited_by, version_of"


def read_log(store: SessionStore) -> list[tuple[object, ...]]:
    return store.engine.run(
        Write(lambda tx: tx.fetch_all(f"SELECT {_LOG_COLUMNS} FROM event ORDER BY session_no, seq"))
    )


def damage_session(store: SessionStore, statement: str) -> int:
    """Damage a conversation in which something is hidden."""
    source = SessionSource("telegram", "77", user_id="77")
    for text in ("one", "two", "three"):
        receipt = store.record_user_message(source, text)
        store.append_to_transcript(receipt.session_id, {"role": "assistant", "content": f"answer to {text}"})
    store.undo(receipt.session_id)
    store.search("answer")  # so that everything is indexed

    def run(tx: Transaction) -> int:
        row = tx.fetch_one("SELECT no FROM session WHERE id = $1", receipt.session_id)
        assert row is not None
        tx.execute(statement, row[0])
        return int(row[0])

    return store.engine.run(Write(run))


@pytest.mark.both_engines
@pytest.mark.parametrize("damage", DERIVED_DAMAGE)
def test_what_is_derived_is_repaired_from_the_log(store: SessionStore, tmp_path: Path, damage: str) -> None:
    damage_session(store, DERIVED_DAMAGE[damage])
    [result] = [result for result in check_integrity(store, NO_FILES) if not result.is_ok]
    assert result.is_repairable
    log = read_log(store)
    changes = list(repair_store(store))
    assert changes
    assert not any("something else" in change for change in changes)
    assert all(result.is_ok for result in check_integrity(store, NO_FILES))
    assert read_log(store) == log
    assert list(repair_store(store)) == []
    assert len(store.search("answer")) > 0


@pytest.mark.both_engines
@pytest.mark.parametrize("damage", LOST_ENTRIES)
def test_a_log_that_has_lost_entries_is_left_as_it_is(store: SessionStore, damage: str) -> None:
    damage_session(store, LOST_ENTRIES[damage])
    [result] = [result for result in check_integrity(store, NO_FILES) if not result.is_ok]
    assert not result.is_repairable
    log = read_log(store)
    assert list(repair_store(store)) == []
    assert list_problems(store)[1] != []
    assert read_log(store) == log


@pytest.mark.both_engines
def test_a_repair_that_was_interrupted_is_continued(store: SessionStore) -> None:
    for number in range(3):
        store.record_user_message(SessionSource("telegram", str(number), user_id=str(number)), "hello")
    store.engine.run(Write(lambda tx: tx.execute("UPDATE session SET message_count = 9")))
    changes = repair_store(store)
    next(changes)
    changes.close()  # type: ignore[attr-defined]
    assert len(list(repair_store(store))) == 2
    assert all(result.is_ok for result in check_integrity(store, NO_FILES))


@pytest.mark.both_engines
def test_a_repair_beside_people_who_write_counts_every_message(store: SessionStore) -> None:
    source = SessionSource("telegram", "77", user_id="77")
    session_id = store.record_user_message(source, "first").session_id

    def write_messages() -> None:
        for number in range(20):
            store.append_to_transcript(session_id, {"role": "user", "content": f"message {number}"})

    writer = threading.Thread(target=write_messages)
    writer.start()
    try:
        for _ in range(10):
            store.engine.run(Write(lambda tx: tx.execute("UPDATE session SET message_count = message_count + 5")))
            list(repair_store(store))
    finally:
        writer.join()
    assert list_problems(store) == ([], [])
    assert len(store.load_transcript(session_id)) == 21
