"""Group commit: waiting callers share a transaction, and are told of success only when it is durable."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from palaver.core.engines import group_commit
from palaver.core.engines.base import Write
from palaver.core.engines.group_commit import MAX_BATCH_SIZE, GroupWriter, WriteRequest
from palaver.core.engines.sqlite import SqliteEngine
from palaver.core.errors import StoreBusy, StoreClosed, StoreError
from support.gateway import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from palaver.core.engines.base import Transaction

TIMEOUT_SECONDS = 60.0  # only something that hangs takes longer


class FakeConnection:
    """Records its steps, can be held at a commit, and can fail at any step."""

    def __init__(self) -> None:
        self.tx = cast("Transaction", self)  # units of work only add their name to `steps`
        self.steps: list[str] = []
        self.is_open = False
        self.loses_transaction = False  # whether a failing unit of work rolls back the whole transaction
        self.commit_started = threading.Event()
        self.may_commit = threading.Event()
        self.may_commit.set()
        self.failures: dict[tuple[str, int], BaseException] = {}  # (name of a step, its how many-th call) → error

    def _record(self, step: str) -> None:
        self.steps.append(step)
        error = self.failures.get((step, self.steps.count(step)))
        if error is not None:
            raise error

    def begin(self, max_wait_seconds: float | None = None) -> None:
        assert not self.is_open, "a transaction inside a transaction"
        self.is_open = True
        self._record("begin")

    def commit(self) -> None:
        self.commit_started.set()
        assert self.may_commit.wait(TIMEOUT_SECONDS)
        self._record("commit")
        self.is_open = False

    def rollback(self) -> None:
        if self.is_open:
            self._record("rollback")
        self.is_open = False

    def savepoint(self) -> None:
        self._record("savepoint")

    def release(self) -> None:
        self._record("release")

    def rollback_to_savepoint(self) -> bool:
        self._record("rollback to savepoint")
        self.is_open = not self.loses_transaction
        return not self.loses_transaction


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection()


@pytest.fixture
def writer(connection: FakeConnection) -> Iterator[GroupWriter]:
    group_writer = GroupWriter(connection, "test-writer")
    yield group_writer
    connection.may_commit.set()
    start_closing(group_writer).join(TIMEOUT_SECONDS)


def start_closing(writer: GroupWriter, close_connection: Callable[[], None] = lambda: None) -> threading.Thread:
    thread = threading.Thread(target=writer.close, args=(close_connection,), daemon=True)
    thread.start()
    return thread


def make_work(name: str) -> Callable[[Transaction], str]:
    def run(tx: Transaction) -> str:
        cast("FakeConnection", tx).steps.append(name)
        return name

    return run


def make_failing_work(error: BaseException) -> Callable[[Transaction], str]:
    def run(_tx: Transaction) -> str:
        raise error

    return run


class BlockedCommit:
    """Keeps the writer busy with a commit, so that callers who come now have to wait together."""

    def __init__(self, connection: FakeConnection, writer: GroupWriter) -> None:
        self._connection = connection
        connection.may_commit.clear()
        self._thread = threading.Thread(target=writer.call, args=(make_work("first"),), daemon=True)
        self._thread.start()
        assert connection.commit_started.wait(TIMEOUT_SECONDS)

    def release(self) -> None:
        self._connection.may_commit.set()
        self._thread.join(TIMEOUT_SECONDS)


async def submit_all(writer: GroupWriter, works: list[Callable[[Transaction], Any]]) -> list[asyncio.Task[Any]]:
    """Submit all units of work, in this order."""
    loop = asyncio.get_running_loop()
    tasks = [asyncio.ensure_future(writer.acall(work, loop)) for work in works]
    await asyncio.sleep(0)
    return tasks


async def gather_results(tasks: list[asyncio.Task[Any]]) -> list[Any]:
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), TIMEOUT_SECONDS)


def test_a_blocking_caller_that_finds_the_writer_idle_writes_by_itself(
    connection: FakeConnection, writer: GroupWriter
) -> None:
    assert writer.call(lambda _tx: threading.get_ident()) == threading.get_ident()
    assert connection.steps == ["begin", "commit"]


async def test_waiting_callers_share_one_transaction(connection: FakeConnection, writer: GroupWriter) -> None:
    blocked = BlockedCommit(connection, writer)
    names = [f"n{number}" for number in range(50)]
    tasks = await submit_all(writer, [make_work(name) for name in names])
    blocked.release()
    assert await gather_results(tasks) == names
    assert connection.steps.count("commit") == 2  # the blocked one, and one for all of these
    assert [step for step in connection.steps if step in names] == names  # in the order in which they came


async def test_blocking_and_awaiting_callers_share_one_transaction(
    connection: FakeConnection, writer: GroupWriter
) -> None:
    blocked = BlockedCommit(connection, writer)
    tasks = await submit_all(writer, [make_work(f"awaiting{number}") for number in range(5)])
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda n=number: results.append(writer.call(make_work(f"blocking{n}"))), daemon=True)
        for number in range(5)
    ]
    for thread in threads:
        thread.start()
    await wait_until(lambda: writer._queue.qsize() == 9)  # the writer holds the first of the ten
    blocked.release()
    await gather_results(tasks)
    for thread in threads:
        await asyncio.to_thread(thread.join, TIMEOUT_SECONDS)
    assert sorted(results) == [f"blocking{number}" for number in range(5)]
    assert connection.steps.count("commit") == 2


async def test_an_awaiting_caller_is_told_of_success_only_after_the_commit(
    connection: FakeConnection, writer: GroupWriter
) -> None:
    connection.may_commit.clear()
    tasks = await submit_all(writer, [make_work(f"n{number}") for number in range(10)])
    assert await asyncio.to_thread(connection.commit_started.wait, TIMEOUT_SECONDS)
    await asyncio.sleep(0.02)
    assert not any(task.done() for task in tasks)
    connection.may_commit.set()
    assert await gather_results(tasks) == [f"n{number}" for number in range(10)]


def test_a_blocking_caller_is_told_of_success_only_after_the_commit(
    connection: FakeConnection, writer: GroupWriter
) -> None:
    connection.may_commit.clear()
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(writer.call(make_work("n"))), daemon=True)
    thread.start()
    assert connection.commit_started.wait(TIMEOUT_SECONDS)
    time.sleep(0.02)
    assert results == []
    connection.may_commit.set()
    thread.join(TIMEOUT_SECONDS)
    assert results == ["n"]


async def test_a_failed_commit_reaches_every_caller_in_it(connection: FakeConnection, writer: GroupWriter) -> None:
    blocked = BlockedCommit(connection, writer)
    tasks = await submit_all(writer, [make_work("a"), make_work("b")])
    for number in (2, 3):  # the writer may try again
        connection.failures["commit", number] = OverflowError("disk full")
    blocked.release()
    assert [type(result) for result in await gather_results(tasks)] == [OverflowError, OverflowError]
    assert writer.call(make_work("c")) == "c"


async def test_a_callers_failure_rolls_back_only_its_own_work(connection: FakeConnection, writer: GroupWriter) -> None:
    blocked = BlockedCommit(connection, writer)
    tasks = await submit_all(
        writer,
        [
            make_work("a"),
            make_failing_work(ZeroDivisionError()),
            make_work("b"),
            make_failing_work(KeyError("k")),
        ],
    )
    blocked.release()
    a, first_error, b, second_error = await gather_results(tasks)
    assert (a, b) == ("a", "b")
    assert isinstance(first_error, ZeroDivisionError)
    assert isinstance(second_error, KeyError)
    assert connection.steps.count("rollback to savepoint") == 2
    assert connection.steps.count("commit") == 2
    last_begin = len(connection.steps) - connection.steps[::-1].index("begin")  # earlier ones were rolled back
    assert [step for step in connection.steps[last_begin:] if step in {"a", "b", "commit"}] == ["a", "b", "commit"]


async def test_work_that_fails_alone_is_not_done_twice(connection: FakeConnection, writer: GroupWriter) -> None:
    runs: list[str] = []

    def fail(_tx: Transaction) -> None:
        runs.append("run")
        raise ZeroDivisionError

    assert [type(each) for each in await gather_results(await submit_all(writer, [fail]))] == [ZeroDivisionError]
    assert (runs, connection.steps) == (["run"], ["begin", "rollback"])


async def test_work_that_can_be_done_later_does_not_wait_behind_a_long_lock(
    connection: FakeConnection, writer: GroupWriter
) -> None:
    loop = asyncio.get_running_loop()
    writer.blocked_since = time.monotonic() - 2 * group_commit.SHORT_LOCK_SECONDS
    with pytest.raises(StoreBusy):
        await writer.acall(make_work("later"), loop, max_wait_seconds=TIMEOUT_SECONDS)
    assert connection.steps == []
    assert await writer.acall(make_work("message"), loop) == "message"
    assert await writer.acall(make_work("later"), loop, max_wait_seconds=TIMEOUT_SECONDS) == "later"


async def test_every_caller_gets_an_error_if_even_the_rollback_fails(
    connection: FakeConnection, writer: GroupWriter
) -> None:
    """A disk that no longer answers fails at every step."""
    blocked = BlockedCommit(connection, writer)
    for step in ("commit", "rollback"):
        for number in range(2, 5):
            connection.failures[step, number - (step == "rollback")] = OverflowError("disk gone")
    tasks = await submit_all(writer, [make_work("a"), make_work("b")])
    blocked.release()
    assert [isinstance(result, Exception) for result in await gather_results(tasks)] == [True, True]
    connection.failures.clear()
    connection.is_open = False
    assert await gather_results(await submit_all(writer, [make_work("c")])) == ["c"]


async def test_every_caller_gets_the_error_if_the_whole_transaction_is_lost(
    connection: FakeConnection, writer: GroupWriter
) -> None:
    blocked = BlockedCommit(connection, writer)
    connection.loses_transaction = True
    tasks = await submit_all(writer, [make_work("a"), make_failing_work(OverflowError("disk full")), make_work("b")])
    blocked.release()
    assert [type(result) for result in await gather_results(tasks)] == [OverflowError] * 3
    connection.loses_transaction = False
    assert writer.call(make_work("c")) == "c"


async def test_a_batch_has_a_maximum_size(connection: FakeConnection, writer: GroupWriter) -> None:
    blocked = BlockedCommit(connection, writer)
    tasks = await submit_all(writer, [make_work("n") for _ in range(MAX_BATCH_SIZE + 10)])
    blocked.release()
    await gather_results(tasks)
    assert connection.steps.count("commit") == 3


def test_a_unit_of_work_may_not_start_another_one(writer: GroupWriter) -> None:
    with pytest.raises(StoreError, match="unit of work"):
        writer.call(lambda _tx: writer.call(make_work("inner")))
    assert writer.call(make_work("after")) == "after"


@pytest.mark.parametrize("step", ["begin", "commit"])
def test_a_caller_interrupted_at_any_step_leaves_no_transaction_open(
    connection: FakeConnection, writer: GroupWriter, step: str
) -> None:
    """Ctrl-C is raised between two steps: after the database has done the first, before Python could note it."""
    connection.failures[step, 1] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        writer.call(make_work("interrupted"))
    results: list[object] = []

    def call_again() -> None:
        try:
            results.append(writer.call(make_work("after")))
        except AssertionError as error:
            results.append(error)

    thread = threading.Thread(target=call_again, daemon=True)
    thread.start()
    thread.join(TIMEOUT_SECONDS)
    assert results == ["after"]


async def test_closing_serves_earlier_callers_and_refuses_later_ones(
    connection: FakeConnection, writer: GroupWriter
) -> None:
    blocked = BlockedCommit(connection, writer)
    tasks = await submit_all(writer, [make_work(f"n{number}") for number in range(5)])
    closing = start_closing(writer)
    await asyncio.sleep(0.02)
    blocked.release()
    await asyncio.to_thread(closing.join, TIMEOUT_SECONDS)
    assert not closing.is_alive()
    assert await gather_results(tasks) == [f"n{number}" for number in range(5)]
    with pytest.raises(StoreClosed):
        writer.call(make_work("late"))
    with pytest.raises(StoreClosed):
        await writer.acall(make_work("late"), asyncio.get_running_loop())


def test_closing_waits_for_a_caller_that_writes_by_itself(connection: FakeConnection, writer: GroupWriter) -> None:
    blocked = BlockedCommit(connection, writer)
    closing = start_closing(writer, lambda: connection.steps.append("close connection"))
    closing.join(0.05)
    blocked.release()
    closing.join(TIMEOUT_SECONDS)
    assert not closing.is_alive()
    assert connection.steps == ["begin", "first", "commit", "close connection"]


async def test_a_caller_that_comes_in_the_middle_of_closing_does_not_block_it(
    connection: FakeConnection, writer: GroupWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller found the store open, and submits its work when it is already closed."""
    is_submitting, is_closed = threading.Event(), threading.Event()
    close_gate = WriteRequest.close_gate

    def close_gate_slowly(request: WriteRequest[Any]) -> None:
        is_submitting.set()
        assert is_closed.wait(TIMEOUT_SECONDS)
        close_gate(request)

    connection.may_commit.clear()
    tasks = await submit_all(writer, [make_work("before")])  # so that there is a writer thread, and it is busy
    assert await asyncio.to_thread(connection.commit_started.wait, TIMEOUT_SECONDS)
    monkeypatch.setattr(WriteRequest, "close_gate", close_gate_slowly)
    late = asyncio.create_task(asyncio.to_thread(writer.call, make_work("late")))
    assert await asyncio.to_thread(is_submitting.wait, TIMEOUT_SECONDS)
    closing = start_closing(writer)
    await asyncio.sleep(0.05)
    is_closed.set()
    await asyncio.sleep(0.05)
    connection.may_commit.set()
    with contextlib.suppress(StoreClosed):  # or it is served: both are correct
        assert await asyncio.wait_for(late, TIMEOUT_SECONDS) == "late"
    assert await gather_results(tasks) == ["before"]
    await asyncio.to_thread(closing.join, TIMEOUT_SECONDS)
    assert not closing.is_alive(), "close() hangs"


@pytest.fixture
def fast_thread_switching() -> Iterator[None]:
    """Threads switch as often as they can, so that every order of steps occurs."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.slow
@pytest.mark.usefixtures("fast_thread_switching")
def test_closing_while_others_submit_never_hangs() -> None:
    for number in range(150):
        writer = GroupWriter(FakeConnection(), "test-writer")

        def call_blocking(writer: GroupWriter = writer) -> None:
            with contextlib.suppress(StoreClosed):
                while True:
                    writer.call(make_work("blocking"))

        def call_awaiting(writer: GroupWriter = writer) -> None:
            async def main() -> None:
                loop = asyncio.get_running_loop()
                while True:
                    await asyncio.gather(*(writer.acall(make_work("awaiting"), loop) for _ in range(3)))

            with contextlib.suppress(StoreClosed):
                asyncio.run(main())

        targets = (call_blocking, call_blocking, call_blocking, call_awaiting, call_awaiting)
        threads = [threading.Thread(target=target, daemon=True) for target in targets]
        for thread in threads:
            thread.start()
        time.sleep(0.0005 * (number % 8))
        for thread in (start_closing(writer), *threads):
            thread.join(TIMEOUT_SECONDS)
            assert not thread.is_alive(), "close() or a caller hangs"


async def test_fifty_callers_share_one_commit_on_sqlite(tmp_path: Path) -> None:
    engine = SqliteEngine.open(tmp_path / "palaver.db")
    commit_count = 0
    is_busy, may_continue = threading.Event(), threading.Event()

    def block(_tx: Transaction) -> None:
        is_busy.set()
        assert may_continue.wait(TIMEOUT_SECONDS)

    def count_commit() -> bool:
        nonlocal commit_count
        commit_count += 1
        return False

    def make_insert(number: int) -> Callable[[Transaction], int]:
        return lambda tx: tx.execute("INSERT INTO audience (created_at) VALUES ($1)", number)

    try:
        engine._writer_connection.db.set_commit_hook(count_commit)
        blocking = asyncio.ensure_future(engine.arun(Write(block)))
        assert await asyncio.to_thread(is_busy.wait, TIMEOUT_SECONDS)
        tasks = [asyncio.ensure_future(engine.arun(Write(make_insert(number)))) for number in range(50)]
        await asyncio.sleep(0)
        may_continue.set()
        await asyncio.wait_for(asyncio.gather(blocking, *tasks), TIMEOUT_SECONDS)
        assert commit_count == 2  # of the blocking one, and of all the others together
    finally:
        engine.close()
