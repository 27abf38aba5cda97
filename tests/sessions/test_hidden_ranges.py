"""Readers of a log step over hidden events, and miss nothing that is visible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from palaver import SessionSource
from palaver.core.engines import migrate
from palaver.core.engines.base import Read, Write
from palaver.core.engines.sqlite import SqliteTransaction
from palaver.core.errors import NothingToRedo
from palaver.operation import invariants
from palaver.sessions import (
    hidden_ranges,
    log_table as events,
    message_edits,
    table as sessions,
    versions_table as versions,
)

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.core.engines.base import Row, Transaction

NOW = 1_000_000
# SQLite has a faster statement of its own, with the same result.
MARKING_FILES = {
    "sqlite": ("0012_hidden_ranges.sql", "0012_hidden_ranges.sqlite.sql"),
    "postgres": ("0012_hidden_ranges.sql",),
}


def read_marking_statement(file_name: str) -> str:
    """Return the statement with which the migration marks the logs that are there already."""
    script = (migrate.FOLDER / file_name).read_text(encoding="utf-8")
    return script[script.index("UPDATE event") :].strip().removesuffix(";")


class LogMachine(RuleBasedStateMachine):
    """A log in which anything is hidden and shown. A plain select of what is not hidden says what readers must find."""

    store: SessionStore
    run_number = 0

    def __init__(self) -> None:
        super().__init__()
        LogMachine.run_number += 1
        source = SessionSource("telegram", f"p{self.run_number}", user_id=f"p{self.run_number}")
        self.id = self.store.get_or_create_session(source).session_id
        self.no = self.store.engine.run(Read(lambda tx: sessions.get(tx, self.id).no))

    def list_messages(self, condition: str) -> list[int]:
        sql = f"SELECT seq FROM event WHERE session_no = $1 AND kind = 'message' AND {condition} ORDER BY seq"
        return [int(seq) for (seq,) in self.store.engine.run(Read(lambda tx: tx.fetch_all(sql, self.no)))]

    @rule(answer_count=st.integers(0, 2))
    def say(self, answer_count: int) -> None:
        seq = self.store.append_to_transcript(self.id, {"role": "user", "content": "q"})
        for _ in range(answer_count):
            self.store.append_to_transcript(self.id, {"role": "assistant", "content": "a", "answers": seq})

    @rule()
    def post(self) -> None:
        """A job sends a message, which stays when what is around it is hidden."""
        self.store.append_to_transcript(
            self.id, {"role": "assistant", "content": "post", "sent_by": {"kind": "job", "name": "news"}}
        )

    @precondition(lambda self: self.list_messages("role = 'user' AND hidden_by IS NULL"))
    @rule(index=st.integers(0, 9))
    def ask_again(self, index: int) -> None:
        questions = self.list_messages("role = 'user' AND hidden_by IS NULL")
        seq = questions[-1 - index % len(questions)]
        self.store.engine.run(Write(lambda tx: versions.start_version(tx, self.no, seq, NOW)))
        self.say(1)

    @rule(index=st.integers(0, 9), step=st.integers(1, 9))
    def choose(self, index: int, step: int) -> None:
        log = self.store.engine.run(Read(lambda tx: events.list_messages(tx, self.no)))
        infos = list(self.store.engine.run(Read(lambda tx: versions.load_infos(tx, self.no, log))).values())
        if infos:
            info = infos[index % len(infos)]
            number = (info.number - 1 + step) % info.count + 1
            if number != info.number:
                self.store.engine.run(Write(lambda tx: versions.choose_version(tx, self.no, info.group, number, NOW)))

    @precondition(lambda self: self.list_messages("role = 'user' AND hidden_by IS NULL"))
    @rule(turns=st.integers(1, 3))
    def undo(self, turns: int) -> None:
        self.store.undo(self.id, turns)

    @rule()
    def redo(self) -> None:
        try:
            self.store.redo(self.id)
        except NothingToRedo:
            return

    @precondition(lambda self: self.list_messages("hidden_by IS NULL"))
    @rule(index=st.integers(0, 9))
    def delete(self, index: int) -> None:
        messages = self.list_messages("hidden_by IS NULL")
        place = message_edits.MessagePlace(self.no, messages[-1 - index % len(messages)])
        actor = message_edits.Actor("telegram", None)
        self.store.engine.run(
            Write(lambda tx: message_edits.delete_message(tx, place, actor, NOW, first_seq=place.seq))
        )

    @rule(kept=st.integers(0, 3))
    def rewrite(self, kept: int) -> None:
        transcript = self.store.load_transcript(self.id)[:kept]
        self.store.rewrite_transcript(self.id, [*transcript, {"role": "user", "content": "rewritten"}])

    @rule()
    def migrate(self) -> None:
        """The log comes from a version without marks."""

        def run(tx: Transaction) -> None:
            marks = []
            for file_name in MARKING_FILES[tx.name]:
                tx.execute("UPDATE event SET is_near_hidden = NULL WHERE session_no = $1", self.no)
                tx.execute(read_marking_statement(file_name))
                marks.append(tx.fetch_all("SELECT no FROM event WHERE is_near_hidden = 1 ORDER BY no"))
            assert marks[0] == marks[-1]

        self.store.engine.run(Write(run))

    @invariant()
    def readers_find_what_is_visible(self) -> None:
        visible = self.list_messages("hidden_by IS NULL")
        assert len(self.store.load_transcript(self.id)) == len(visible)
        assert [
            event.seq for event in self.store.engine.run(Read(lambda tx: events.list_messages(tx, self.no)))
        ] == visible

        def run(tx: Transaction) -> tuple[list[int], list[Row], list[Row]]:
            plain = tx.fetch_all(
                "SELECT seq FROM event WHERE session_no = $1 AND hidden_by IS NULL ORDER BY seq", self.no
            )
            backwards = hidden_ranges.iterate_backwards(tx, self.no, events.END_OF_LOG, 1)
            return [seq for (seq,) in plain], list(backwards), list(hidden_ranges.iterate_forwards(tx, self.no, 0, 1))

        plain, backwards, forwards = self.store.engine.run(Read(run))
        assert [row[0] for row in backwards] == plain[::-1]
        assert [row[0] for row in forwards] == plain
        problems = self.store.engine.run(Read(lambda tx: invariants.find_wrong_counters(tx, self.no - 1, self.no, 5)))
        assert problems == []


def make_log(new_store: SessionStore) -> LogMachine:
    class Machine(LogMachine):
        store = new_store

    return Machine()


@pytest.fixture
def short_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows at a time, so that most reads end in a hidden range."""
    monkeypatch.setattr(hidden_ranges, "_SPARE_ROWS", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("short_reads")
def test_readers_step_over_what_is_hidden_and_miss_nothing(sqlite_store: SessionStore) -> None:
    class Machine(LogMachine):
        store = sqlite_store

    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=25, max_examples=settings().max_examples))


@pytest.mark.both_engines
@pytest.mark.usefixtures("short_reads")
def test_logs_from_before_the_marks_are_read_alike(store: SessionStore) -> None:
    log = make_log(store)
    for change in (
        *(lambda: log.say(1), lambda: log.say(2), lambda: log.ask_again(1), lambda: log.ask_again(0), log.post),
        *(lambda: log.say(0), lambda: log.choose(0, 1), lambda: log.say(1), lambda: log.undo(1), log.redo),
        *(lambda: log.choose(0, 1), lambda: log.delete(1), lambda: log.rewrite(2), lambda: log.ask_again(0)),
    ):
        change()  # type: ignore[no-untyped-call]
        log.readers_find_what_is_visible()
        log.migrate()
        log.readers_find_what_is_visible()


def test_the_rows_read_do_not_depend_on_the_number_of_versions(
    sqlite_store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SessionSource("telegram", "ada", user_id="ada")
    session_id = sqlite_store.get_or_create_session(source).session_id
    no = sqlite_store.engine.run(Read(lambda tx: sessions.get(tx, session_id).no))

    def ask(text: str) -> int:
        seq = sqlite_store.append_to_transcript(session_id, {"role": "user", "content": text})
        sqlite_store.append_to_transcript(session_id, {"role": "assistant", "content": "a", "answers": seq})
        return seq

    def ask_again(seq: int, count: int) -> int:
        for _ in range(count):
            sqlite_store.engine.run(Write(lambda tx, seq=seq: versions.start_version(tx, no, seq, NOW)))  # type: ignore[misc]
            seq = ask("again")
        return seq

    def count_rows() -> int:
        rows_read = 0

        def run(tx: Transaction) -> None:
            nonlocal rows_read
            fetch_all = tx.fetch_all

            def count(sql: str, *params: object) -> list[Row]:
                nonlocal rows_read
                rows = fetch_all(sql, *params)
                rows_read += len(rows)
                return rows

            monkeypatch.setattr(type(tx), "fetch_all", lambda _tx, sql, *params: count(sql, *params))
            assert len(events.list_messages(tx, no, limit=20)) == 20
            monkeypatch.undo()

        sqlite_store.engine.run(Read(run))
        return rows_read

    for number in range(20):
        last = ask(f"q{number}")
    last = ask_again(last, 20)
    few = count_rows()
    ask_again(last, 60)
    assert count_rows() == few


def test_a_whole_transcript_steps_over_other_versions(sqlite_store: SessionStore) -> None:
    log = make_log(sqlite_store)

    def count_steps() -> int:
        """Return how many steps SQLite takes to load the transcript, in units of 100."""
        steps = 0

        def count() -> bool:
            nonlocal steps
            steps += 1
            return False

        def run(tx: Transaction) -> int:
            assert isinstance(tx, SqliteTransaction)
            tx.connection.set_progress_handler(count, 100)
            message_count = len(events.load_transcript(tx, log.id))
            tx.connection.set_progress_handler(None)
            return message_count

        assert sqlite_store.engine.run(Read(run)) == 20
        return steps

    for _ in range(10):
        log.say(1)
    for _ in range(60):
        log.ask_again(0)
    few = count_steps()
    for _ in range(120):
        log.ask_again(0)
    assert count_steps() <= few + 3


def test_a_log_in_which_nothing_was_hidden_is_loaded_with_one_statement(
    sqlite_store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(sqlite_store)
    for _ in range(150):
        log.say(1)
    statements: list[str] = []
    fetch_all = SqliteTransaction.fetch_all

    def collect(tx: SqliteTransaction, sql: str, *params: object) -> list[Row]:
        statements.append(sql)
        return fetch_all(tx, sql, *params)

    monkeypatch.setattr(SqliteTransaction, "fetch_all", collect)
    assert len(sqlite_store.load_transcript(log.id)) == 300
    assert len(statements) == 1
