"""Statements of several callers that share a connection and a commit on PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import OperationalError

from palaver import SessionStore, TurnUsage
from palaver.core.engines import postgres, postgres_batches
from palaver.core.engines.base import Read, WorkKind, Write
from palaver.core.engines.group_commit import GroupWriter
from palaver.core.errors import InvalidInput, InvalidMessage, SessionNotFound, StoreUnavailable
from palaver.core.source import SessionSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from palaver.core.engines.base import Transaction

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)

CALLERS = 8
WAIT_SECONDS = 20.0


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a single caller shares."""
    monkeypatch.setattr(postgres, "MAX_CONNECTIONS", dict.fromkeys(WorkKind, 0))


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(CALLERS) as executor:
        yield executor


def chat(number: int) -> SessionSource:
    return SessionSource("telegram", f"{number}", user_id=f"{number}")


def run_as_one_batch(store: SessionStore, threads: ThreadPoolExecutor, calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Make these calls at once, and return their results or errors."""
    futures: list[Future[Any]] = []
    batches = store.engine._batches[WorkKind.REQUEST]  # type: ignore[attr-defined]
    writer = batches._writers[0]
    submitted = threading.Semaphore(0)

    def submit(request: Any) -> None:
        GroupWriter._submit(writer, request)
        submitted.release()

    def submit_all() -> None:
        futures.extend(threads.submit(call) for call in calls)
        for _ in calls:
            assert submitted.acquire(timeout=WAIT_SECONDS)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "_submit", submit)
        patch.setattr(batches, "_next_writer", itertools.repeat(writer))
        writer.run_exclusively(submit_all)
        return [future.exception(WAIT_SECONDS) or future.result() for future in futures]


async def await_all(*awaitables: Awaitable[Any]) -> list[Any]:
    return await asyncio.gather(*awaitables, return_exceptions=True)


def read(store: SessionStore, sql: str) -> list[Any]:
    return [value for (value,) in store.engine.run(Read(lambda tx: tx.fetch_all(sql)))]


def list_messages(store: SessionStore) -> list[str]:
    return sorted(read(store, "SELECT content FROM event WHERE kind = 'message'"))


def count_transactions(store: SessionStore, text: str) -> int:
    sql = "SELECT COUNT(DISTINCT xmin::text) FROM event WHERE content LIKE '%s%%'"
    return int(read(store, sql % text)[0])


def write(statement: str, *params: object) -> Write[int]:
    """Return work that is one statement; it has no other way."""

    def fail(_tx: Transaction) -> int:
        raise AssertionError("the statement was enough")

    def execute(tx: Transaction) -> int:
        return tx.execute(statement, *params)

    return Write(fail, single_statement=execute)


def test_callers_at_once_share_a_commit(store: SessionStore, threads: ThreadPoolExecutor, shared: None) -> None:
    first = [store.record_user_message(chat(number), f"first {number}") for number in range(CALLERS)]

    def append(number: int) -> Any:
        return store.record_user_message(chat(number), f"second {number}")

    recorded = run_as_one_batch(store, threads, [lambda n=n: append(n) for n in range(CALLERS)])  # type: ignore[misc]
    assert [(each.session_id, each.seq) for each in recorded] == [(each.session_id, 3) for each in first]
    assert count_transactions(store, "second") == 1

    def answer(number: int) -> Any:
        usage = TurnUsage(turn_id=f"t{number}", model="m", input_tokens=number + 1)
        texts = ["third", "third, too"] if number % 2 else ["third"]
        return store.append_to_transcript(first[number].session_id, texts, usage=usage)

    seqs = run_as_one_batch(store, threads, [lambda n=n: answer(n) for n in range(CALLERS)])  # type: ignore[misc]
    assert seqs == [5 if number % 2 else 4 for number in range(CALLERS)]
    assert count_transactions(store, "third") == 1
    assert [store.get_session(each.session_id).usage.input_tokens for each in first] == list(range(1, CALLERS + 1))


def test_a_rollback_on_the_connection_makes_no_later_batch_fail(store: SessionStore, shared: None) -> None:
    def fail(tx: Transaction) -> None:
        tx.fetch_one("SELECT 1")
        raise ZeroDivisionError

    for number in range(6):
        store.record_user_message(chat(1), f"m{number}")
        with pytest.raises(ZeroDivisionError):
            store.engine.run(Write(fail))
        store.engine.run(Write(lambda tx: tx.fetch_one("SELECT 2")))
    assert list_messages(store) == [f"m{number}" for number in range(6)]


def test_messages_to_one_chat_in_one_batch_are_all_stored(
    store: SessionStore, threads: ThreadPoolExecutor, shared: None
) -> None:
    store.record_user_message(chat(1), "first")
    calls = [lambda n=n: store.record_user_message(chat(1), f"m{n}") for n in range(CALLERS)]
    recorded = run_as_one_batch(store, threads, calls)
    assert sorted(each.seq for each in recorded) == list(range(3, CALLERS + 3))


def test_a_locked_row_keeps_only_its_own_caller_waiting(
    store: SessionStore, store_url: str, threads: ThreadPoolExecutor, shared: None
) -> None:
    ids = [store.record_user_message(chat(number), "first").session_id for number in range(4)]
    with psycopg.connect(store_url) as other:
        other.execute("SELECT 1 FROM session WHERE id = ANY(%s) FOR UPDATE", ([ids[0], ids[2]],))
        waiting: list[Future[Any]] = [
            threads.submit(store.record_user_message, chat(0), "user"),
            threads.submit(store.append_to_transcript, ids[2], "agent", usage=TurnUsage(turn_id="t", input_tokens=1)),
        ]
        for _ in range(3):
            assert store.record_user_message(chat(1), "user").session_id == ids[1]
            store.append_to_transcript(ids[3], "agent")
        assert not any(future.done() for future in waiting)
        other.rollback()
    assert waiting[0].result(WAIT_SECONDS).session_id == ids[0]
    assert waiting[1].result(WAIT_SECONDS) == 3
    assert store.get_session(ids[2]).usage.input_tokens == 1


def test_a_failure_reaches_only_its_own_caller(store: SessionStore, threads: ThreadPoolExecutor, shared: None) -> None:
    for number in range(4):
        store.record_user_message(chat(number), "first")
    refused = write("UPDATE session SET last_seq = last_seq / $1", 0)
    results = run_as_one_batch(
        store,
        threads,
        [
            lambda: store.record_user_message(chat(0), "before"),
            lambda: store.engine.run(refused),
            lambda: store.record_user_message(chat(1), "after"),
            lambda: store.append_to_transcript("20200101_000000_00000000", "to a deleted session"),
            lambda: store.record_user_message(chat(2), "after, too"),
        ],
    )
    assert [type(results[1]), type(results[3])] == [InvalidInput, SessionNotFound]
    assert [results[number].seq for number in (0, 2, 4)] == [3, 3, 3]
    assert list_messages(store) == sorted(["first"] * 4 + ["before", "after", "after, too"])
    store.record_user_message(chat(3), "the connection is still good")


def test_a_commit_that_the_server_refuses_is_tried_one_by_one(
    store: SessionStore, store_url: str, threads: ThreadPoolExecutor, shared: None
) -> None:
    with psycopg.connect(store_url, autocommit=True) as other:
        other.execute(
            "CREATE TABLE refusing (value bigint CHECK (value <> 7), UNIQUE (value) DEFERRABLE INITIALLY DEFERRED)"
        )
        try:
            insert = "INSERT INTO refusing VALUES ($1)"
            calls = [lambda n=n: store.engine.run(write(insert, n)) for n in (1, 2, 2, 3)]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(postgres, "_CONFLICTS", ())
                results = run_as_one_batch(store, threads, calls)
            assert sorted(map(repr, results))[:3] == ["1", "1", "1"]
            assert sum(isinstance(result, psycopg.Error) for result in results) == 1
            assert sorted(read(store, "SELECT value FROM refusing")) == [1, 2, 3]
        finally:
            other.execute("DROP TABLE refusing")


def test_a_batch_whose_outcome_is_unknown_is_not_repeated(
    store: SessionStore, threads: ThreadPoolExecutor, shared: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has stored it, and the connection breaks before it can say so."""
    for number in range(CALLERS):
        store.record_user_message(chat(number), "first")
    original = postgres_batches._Pipeline._iterate_results

    def lose_results(self: Any) -> Iterator[Any]:
        yield from list(original(self))[:0]
        raise OperationalError("the connection broke")

    monkeypatch.setattr(postgres_batches._Pipeline, "_iterate_results", lose_results)
    calls = [lambda n=n: store.record_user_message(chat(n), f"m{n}") for n in range(CALLERS)]
    results = run_as_one_batch(store, threads, calls)
    assert {type(result) for result in results} == {StoreUnavailable}
    assert list_messages(store) == sorted(["first"] * CALLERS + [f"m{number}" for number in range(CALLERS)])
    monkeypatch.undo()
    assert store.record_user_message(chat(0), "again").seq == 4


def test_a_connection_that_broke_before_is_replaced(store: SessionStore, store_url: str, shared: None) -> None:
    store.record_user_message(chat(1), "first")
    with psycopg.connect(store_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name LIKE 'palaver%'"
        )
    assert store.record_user_message(chat(1), "second").seq == 3


def test_awaiting_callers_share_a_commit_without_threads(store: SessionStore, shared: None) -> None:
    async def run() -> None:
        numbers = range(CALLERS)
        await asyncio.gather(*(store.aio.record_user_message(chat(n), f"first {n}") for n in numbers))
        thread_count = threading.active_count()
        recorded = await asyncio.gather(*(store.aio.record_user_message(chat(n), f"second {n}") for n in numbers))
        assert [each.seq for each in recorded] == [3] * CALLERS
        assert threading.active_count() == thread_count
        results = await asyncio.gather(
            store.aio.record_user_message(chat(1), {"role": "user", "content": [{"type": "text", "text": 1j}]}),
            store.aio.append_to_transcript("20200101_000000_00000000", "to a deleted session"),
            store.aio.record_user_message(chat(2), "third"),
            store.aio.record_user_message(chat(CALLERS), "a new chat"),
            return_exceptions=True,
        )
        assert [type(result) for result in results[:2]] == [InvalidMessage, SessionNotFound]
        assert [result.seq for result in results[2:]] == [4, 2]  # type: ignore[union-attr]

    asyncio.run(run())
    assert count_transactions(store, "second") < CALLERS
    assert list_messages(store).count("third") == 1


def test_work_that_needs_a_second_statement_runs_on_a_connection_of_its_own(store: SessionStore, shared: None) -> None:
    def read_twice(tx: Transaction) -> tuple[object, object]:
        return tx.fetch_one("SELECT 1"), tx.fetch_one("SELECT 2")

    work = Write(read_twice, single_statement=read_twice)
    assert store.engine.run(work) == ((1,), (2,))
    assert asyncio.run(store.engine.arun(work)) == ((1,), (2,))


def test_a_few_callers_have_connections_of_their_own(store: SessionStore) -> None:
    store.record_user_message(chat(1), "first")
    asyncio.run(await_all(store.aio.record_user_message(chat(1), "second")))
    assert not [thread for thread in threading.enumerate() if thread.name.endswith("-batches")]


def test_a_closed_store_ends_its_threads(store_url: str, shared: None) -> None:
    with SessionStore.open(store_url) as store:
        asyncio.run(await_all(store.aio.record_user_message(chat(1), "first")))
        assert [thread for thread in threading.enumerate() if thread.name.endswith("-batches")]
    assert not [thread for thread in threading.enumerate() if thread.name.endswith("-batches")]
