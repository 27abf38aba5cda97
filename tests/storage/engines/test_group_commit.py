"""Group commit: whoever waits shares a transaction, and hears of it only when it is durable."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from palaver.domain.errors import StoreClosed, StoreError
from palaver.storage.engines.base import Write
from palaver.storage.engines.group_commit import MOST_TOGETHER, GroupWriter, Request
from palaver.storage.engines.sqlite import SqliteEngine
from support.gateway import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from palaver.storage.engines.base import Transaction

SOON = 10.0  # seconds; only something that hangs takes longer


class Connection:
    """Writes down every step it is asked for, and can be held or broken at any of them."""

    def __init__(self) -> None:
        self.tx = cast("Transaction", self)  # units of work only add their name to `steps`
        self.steps: list[str] = []
        self.open = False
        self.gone = False  # whether a failing unit of work takes the whole transaction along
        self.committing = threading.Event()
        self.may_commit = threading.Event()
        self.may_commit.set()
        self.trouble: dict[tuple[str, int], BaseException] = {}  # at the how many-th step of a name

    def _step(self, name: str) -> None:
        self.steps.append(name)
        error = self.trouble.get((name, self.steps.count(name)))
        if error is not None:
            raise error

    def begin(self) -> None:
        assert not self.open, "a transaction within a transaction"
        self.open = True
        self._step("begin")

    def commit(self) -> None:
        self.committing.set()
        assert self.may_commit.wait(SOON)
        self._step("commit")
        self.open = False

    def rollback(self) -> None:
        if self.open:
            self._step("rollback")
        self.open = False

    def savepoint(self) -> None:
        self._step("savepoint")

    def release(self) -> None:
        self._step("release")

    def undo(self) -> bool:
        self._step("undo")
        self.open = not self.gone
        return not self.gone


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.fixture
def writer(connection: Connection) -> Iterator[GroupWriter]:
    opened = GroupWriter(connection, "test-writer")
    yield opened
    connection.may_commit.set()
    closing(opened).join(SOON)


def closing(writer: GroupWriter, let_go: Callable[[], None] = lambda: None) -> threading.Thread:
    """Somebody is closing it."""
    thread = threading.Thread(target=writer.close, args=(let_go,), daemon=True)
    thread.start()
    return thread


def work(name: str) -> Callable[[Transaction], str]:
    def run(tx: Transaction) -> str:
        cast("Connection", tx).steps.append(name)
        return name

    return run


def failing(error: BaseException) -> Callable[[Transaction], str]:
    def run(_tx: Transaction) -> str:
        raise error

    return run


class Held:
    """The writer is kept busy by somebody's commit, so that those who come now have to wait together."""

    def __init__(self, connection: Connection, writer: GroupWriter) -> None:
        self._connection = connection
        connection.may_commit.clear()
        self._first = threading.Thread(target=writer.call, args=(work("first"),), daemon=True)
        self._first.start()
        assert connection.committing.wait(SOON)

    def release(self) -> None:
        self._connection.may_commit.set()
        self._first.join(SOON)


async def started(writer: GroupWriter, works: list[Callable[[Transaction], Any]]) -> list[asyncio.Task[Any]]:
    """Submit all of them, in this order."""
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(writer.acall(each, loop)) for each in works]
    await asyncio.sleep(0)
    return tasks


async def outcomes(tasks: list[asyncio.Task[Any]]) -> list[Any]:
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), SOON)


def test_a_blocking_caller_who_finds_the_writer_idle_writes_by_itself(
    connection: Connection, writer: GroupWriter
) -> None:
    assert writer.call(lambda _tx: threading.get_ident()) == threading.get_ident()
    assert connection.steps == ["begin", "commit"]


async def test_those_who_wait_share_one_transaction(connection: Connection, writer: GroupWriter) -> None:
    held = Held(connection, writer)
    names = [f"n{number}" for number in range(50)]
    tasks = await started(writer, [work(name) for name in names])
    held.release()
    assert await outcomes(tasks) == names
    assert connection.steps.count("commit") == 2  # the one that was held, and one for all of them
    assert [step for step in connection.steps if step in names] == names  # in the order in which they came


async def test_blocking_and_awaiting_callers_share_it_too(connection: Connection, writer: GroupWriter) -> None:
    held = Held(connection, writer)
    tasks = await started(writer, [work(f"awaiting{number}") for number in range(5)])
    heard: list[str] = []
    threads = [
        threading.Thread(target=lambda n=number: heard.append(writer.call(work(f"blocking{n}"))), daemon=True)
        for number in range(5)
    ]
    for thread in threads:
        thread.start()
    await until(lambda: writer._waiting.qsize() == 9)  # the writer holds the first of the ten
    held.release()
    await outcomes(tasks)
    for thread in threads:
        await asyncio.to_thread(thread.join, SOON)
    assert sorted(heard) == [f"blocking{number}" for number in range(5)]
    assert connection.steps.count("commit") == 2


async def test_nobody_hears_of_success_before_the_commit(connection: Connection, writer: GroupWriter) -> None:
    connection.may_commit.clear()
    tasks = await started(writer, [work(f"n{number}") for number in range(10)])
    assert await asyncio.to_thread(connection.committing.wait, SOON)
    await asyncio.sleep(0.02)
    assert not any(task.done() for task in tasks)
    connection.may_commit.set()
    assert await outcomes(tasks) == [f"n{number}" for number in range(10)]


def test_a_blocking_caller_hears_only_after_the_commit_too(connection: Connection, writer: GroupWriter) -> None:
    connection.may_commit.clear()
    heard: list[str] = []
    thread = threading.Thread(target=lambda: heard.append(writer.call(work("n"))), daemon=True)
    thread.start()
    assert connection.committing.wait(SOON)
    time.sleep(0.02)
    assert heard == []
    connection.may_commit.set()
    thread.join(SOON)
    assert heard == ["n"]


async def test_a_failed_commit_is_told_to_everybody_in_it(connection: Connection, writer: GroupWriter) -> None:
    held = Held(connection, writer)
    tasks = await started(writer, [work("a"), work("b")])
    for number in (2, 3):  # it may be tried again
        connection.trouble["commit", number] = OverflowError("disk full")
    held.release()
    assert [type(result) for result in await outcomes(tasks)] == [OverflowError, OverflowError]
    assert writer.call(work("c")) == "c"


async def test_one_callers_failure_undoes_its_own_work_alone(connection: Connection, writer: GroupWriter) -> None:
    held = Held(connection, writer)
    tasks = await started(writer, [work("a"), failing(ZeroDivisionError()), work("b"), failing(KeyError("k"))])
    held.release()
    a, first, b, second = await outcomes(tasks)
    assert (a, b) == ("a", "b")
    assert isinstance(first, ZeroDivisionError)
    assert isinstance(second, KeyError)
    assert connection.steps.count("undo") == 2
    assert connection.steps.count("commit") == 2
    last = len(connection.steps) - connection.steps[::-1].index("begin")  # others may have been given up
    assert [step for step in connection.steps[last:] if step in {"a", "b", "commit"}] == ["a", "b", "commit"]


async def test_a_rollback_that_fails_leaves_nobody_without_an_answer(
    connection: Connection, writer: GroupWriter
) -> None:
    """A disk that no longer answers fails at every step."""
    held = Held(connection, writer)
    for step in ("commit", "rollback"):
        for number in range(2, 5):
            connection.trouble[step, number - (step == "rollback")] = OverflowError("disk gone")
    tasks = await started(writer, [work("a"), work("b")])
    held.release()
    assert [isinstance(result, Exception) for result in await outcomes(tasks)] == [True, True]
    connection.trouble.clear()
    connection.open = False
    assert await outcomes(await started(writer, [work("c")])) == ["c"]


async def test_when_the_whole_transaction_is_gone_everybody_in_it_is_told(
    connection: Connection, writer: GroupWriter
) -> None:
    held = Held(connection, writer)
    connection.gone = True
    tasks = await started(writer, [work("a"), failing(OverflowError("disk full")), work("b")])
    held.release()
    assert [type(result) for result in await outcomes(tasks)] == [OverflowError] * 3
    connection.gone = False
    assert writer.call(work("c")) == "c"


async def test_a_transaction_holds_only_so_many(connection: Connection, writer: GroupWriter) -> None:
    held = Held(connection, writer)
    tasks = await started(writer, [work("n") for _ in range(MOST_TOGETHER + 10)])
    held.release()
    await outcomes(tasks)
    assert connection.steps.count("commit") == 3


def test_a_unit_of_work_may_not_start_another_one(writer: GroupWriter) -> None:
    with pytest.raises(StoreError, match="unit of work"):
        writer.call(lambda _tx: writer.call(work("inner")))
    assert writer.call(work("after")) == "after"


@pytest.mark.parametrize("step", ["begin", "commit"])
def test_a_caller_interrupted_at_any_step_leaves_no_transaction_open(
    connection: Connection, writer: GroupWriter, step: str
) -> None:
    """Ctrl-C is raised between two steps: after the database has done the first, before anybody could note it."""
    connection.trouble[step, 1] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        writer.call(work("interrupted"))
    heard: list[object] = []

    def after() -> None:
        try:
            heard.append(writer.call(work("after")))
        except AssertionError as error:
            heard.append(error)

    thread = threading.Thread(target=after, daemon=True)
    thread.start()
    thread.join(SOON)
    assert heard == ["after"]


async def test_closing_serves_those_who_came_before_and_refuses_the_rest(
    connection: Connection, writer: GroupWriter
) -> None:
    held = Held(connection, writer)
    tasks = await started(writer, [work(f"n{number}") for number in range(5)])
    close = closing(writer)
    await asyncio.sleep(0.02)
    held.release()
    await asyncio.to_thread(close.join, SOON)
    assert not close.is_alive()
    assert await outcomes(tasks) == [f"n{number}" for number in range(5)]
    with pytest.raises(StoreClosed):
        writer.call(work("late"))
    with pytest.raises(StoreClosed):
        await writer.acall(work("late"), asyncio.get_running_loop())


def test_closing_waits_for_the_caller_who_writes_by_itself(connection: Connection, writer: GroupWriter) -> None:
    held = Held(connection, writer)
    close = closing(writer, lambda: connection.steps.append("let go"))
    close.join(0.05)
    held.release()
    close.join(SOON)
    assert not close.is_alive()
    assert connection.steps == ["begin", "first", "commit", "let go"]


async def test_a_caller_who_comes_in_the_middle_of_closing_keeps_nobody_from_it(
    connection: Connection, writer: GroupWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found the store open, and submits its work when it is closed already."""
    on_its_way, closed = threading.Event(), threading.Event()
    prepare = Request.block

    def slowly(request: Request[Any]) -> None:
        on_its_way.set()
        assert closed.wait(SOON)
        prepare(request)

    connection.may_commit.clear()
    tasks = await started(writer, [work("before")])  # so that there is a writer thread, and it is busy
    assert await asyncio.to_thread(connection.committing.wait, SOON)
    monkeypatch.setattr(Request, "block", slowly)
    late = asyncio.create_task(asyncio.to_thread(writer.call, work("late")))
    assert await asyncio.to_thread(on_its_way.wait, SOON)
    close = closing(writer)
    await asyncio.sleep(0.05)
    closed.set()
    await asyncio.sleep(0.05)
    connection.may_commit.set()
    with contextlib.suppress(StoreClosed):  # or it is served: both will do
        assert await asyncio.wait_for(late, SOON) == "late"
    assert await outcomes(tasks) == ["before"]
    await asyncio.to_thread(close.join, SOON)
    assert not close.is_alive(), "close() hangs"


@pytest.fixture
def hectic() -> Iterator[None]:
    """Threads take turns as often as they can, so that every order of steps occurs."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.usefixtures("hectic")
def test_closing_while_others_submit_never_hangs() -> None:
    for number in range(150):
        writer = GroupWriter(Connection(), "test-writer")

        def block(writer: GroupWriter = writer) -> None:
            with contextlib.suppress(StoreClosed):
                while True:
                    writer.call(work("blocking"))

        def wait(writer: GroupWriter = writer) -> None:
            async def main() -> None:
                loop = asyncio.get_running_loop()
                while True:
                    await asyncio.gather(*(writer.acall(work("awaiting"), loop) for _ in range(3)))

            with contextlib.suppress(StoreClosed):
                asyncio.run(main())

        threads = [threading.Thread(target=each, daemon=True) for each in (block, block, block, wait, wait)]
        for thread in threads:
            thread.start()
        time.sleep(0.0005 * (number % 8))
        for thread in (closing(writer), *threads):
            thread.join(SOON)
            assert not thread.is_alive(), "close() or a caller hangs"


async def test_on_sqlite_fifty_callers_cost_one_commit(tmp_path: Path) -> None:
    engine = SqliteEngine.open(tmp_path / "palaver.db")
    commits = 0
    busy, go = threading.Event(), threading.Event()

    def hold(_tx: Transaction) -> None:
        busy.set()
        assert go.wait(SOON)

    def count() -> bool:
        nonlocal commits
        commits += 1
        return False

    def add(number: int) -> Callable[[Transaction], int]:
        return lambda tx: tx.run("INSERT INTO audience (created_at) VALUES ($1)", number)

    try:
        engine._writing.db.set_commit_hook(count)
        holding = asyncio.ensure_future(engine.arun(Write(hold)))
        assert await asyncio.to_thread(busy.wait, SOON)
        tasks = [asyncio.ensure_future(engine.arun(Write(add(number)))) for number in range(50)]
        await asyncio.sleep(0)
        go.set()
        await asyncio.wait_for(asyncio.gather(holding, *tasks), SOON)
        assert commits == 2  # of the one who held the others up, and of all the others together
    finally:
        engine.close()
