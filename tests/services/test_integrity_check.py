"""The complete check of a store finds what must not be, on both engines."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from palaver.services.integrity_check import check_integrity
from palaver.storage.engines.base import Write
from support.store_content import fill_store

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore
    from palaver.storage.engines.base import Transaction


@pytest.fixture
def filled(store: SessionStore, tmp_path: Path) -> SessionStore:
    fill_store(store, tmp_path / "attachments", count=30)
    return store


def find_problems(store: SessionStore, folder: Path) -> dict[str, list[str]]:
    report = check_integrity(store, folder / "attachments")
    return {result.name: result.problems for result in report.results if result.problems}


def test_a_store_in_order_has_no_problems(filled: SessionStore, tmp_path: Path) -> None:
    titles: list[str] = []
    report = check_integrity(filled, tmp_path / "attachments", titles.append)
    assert report.is_ok, report.to_json()
    assert titles == [result.title for result in report.results]
    assert report.to_json()["checks"][-1] == {
        "name": "attachments", "title": "Attached files", "ok": True, "checked": 1, "problem_count": 0, "problems": [],
    }  # fmt: skip


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("name", "statement", "words"),
    [
        ("log", "UPDATE session SET message_count = message_count + 1 WHERE no = $1", "counts"),
        ("log", "UPDATE session SET last_seq = last_seq + 1 WHERE no = $1", "should end at entry"),
        ("log", "DELETE FROM event WHERE session_no = $1 AND seq = 2", "its last number is"),
        ("log", "DELETE FROM event WHERE session_no = $1", "has no log"),
        ("log", "UPDATE session SET input_tokens = input_tokens + 1 WHERE no = $1", "the usage"),
        ("log", "UPDATE session SET indexed_seq = last_seq + 1 WHERE no = $1", "the search index"),
        (
            "log",
            "UPDATE event SET hidden_by = 99, is_near_hidden = NULL WHERE session_no = $1 AND seq = 2",
            "lacks the mark of what is hidden at entry 2",
        ),
        ("lanes", "UPDATE session SET ended_at = 1, end_reason = 'manual' WHERE no = $1", "which has ended"),
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
    [problem] = find_problems(filled, tmp_path)["attachments"]
    assert problem.startswith("attachment a1: its file")
    assert problem.endswith("is missing")


@pytest.mark.both_engines
def test_a_missing_index_is_named(filled: SessionStore, tmp_path: Path) -> None:
    create = "CREATE INDEX event_reaction ON event (session_no, seq) WHERE kind = 'reaction'"
    filled.engine.run(Write(lambda tx: tx.execute("DROP INDEX event_reaction")))
    try:
        assert find_problems(filled, tmp_path)["schema"] == ["tables or indexes are missing: event_reaction"]
    finally:
        filled.engine.run(Write(lambda tx: tx.execute(create)))
