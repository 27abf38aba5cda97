"""Several processes on one database: nothing is lost, duplicated or mixed up, and no lock becomes visible."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import settings

from palaver import SessionStore
from scenarios.store_harness import (
    ProcessPool,
    StoreProcess,
    call_together,
    fetch_rows,
    find_inconsistencies,
    wait_for_disconnect,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]


@pytest.fixture(scope="module")
def pool(launcher: WarmLauncher) -> Iterator[ProcessPool]:
    pool = ProcessPool(launcher)
    yield pool
    pool.close()


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that was never opened; `clear_database` makes it new again."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/new.db"
        return
    server = request.getfixturevalue("postgres")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE new_database")
        try:
            yield server.replace("/postgres?", "/new_database?")
        finally:
            connection.execute("DROP DATABASE new_database WITH (FORCE)")


def clear_database(url: str) -> None:
    if url.startswith("sqlite:"):
        for file in Path(url.removeprefix("sqlite:///")).parent.glob("new.db*"):
            file.unlink()
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


def load_texts(store: SessionStore, session_id: str) -> list[str]:
    return [message["content"] for message in store.load_transcript(session_id)]


def test_four_processes_that_write_at_once_lose_nothing(pool: ProcessPool, store_url: str) -> None:
    with SessionStore.open(store_url) as store, pool.borrow(4, store_url) as processes:
        at = time.monotonic() + 0.05
        for number, process in enumerate(processes):
            lanes = ["common1", "common2", f"own{number}", "ada@club"]
            process.start_call("write_messages", writer=f"w{number}", lanes=lanes, count=60, threads=3, at=at)
        threads = [thread for process in processes for thread in process.finish_call()]

        logs: dict[str, dict[int, str]] = {}
        for thread in threads:
            for _, session_id, seq, text in thread:
                assert seq not in logs.setdefault(session_id, {}), "each number is used once"
                logs[session_id][seq] = text
            for session_id in {each[1] for each in thread}:
                numbers = [seq for _, session, seq, _ in thread if session == session_id]
                assert numbers == sorted(numbers), "the messages of one writer stay in order"
        assert len(logs) == 2 + 4 + 1  # one session for each lane
        for session_id, log in logs.items():
            assert load_texts(store, session_id) == [log[seq] for seq in sorted(log)]
        assert sum(map(len, logs.values())) == 4 * 3 * (60 + 20)
        assert find_inconsistencies(store_url) == []


@pytest.mark.parametrize("new_url", ["sqlite", "postgres"], indirect=True)
def test_processes_can_open_a_new_database_at_the_same_moment(pool: ProcessPool, new_url: str) -> None:
    with pool.borrow(4) as processes:
        for _ in range(settings().max_examples // 4):
            clear_database(new_url)
            call_together(processes, "open_store", url=new_url)
            entries = call_together(processes, "get_or_create_session", lane="ada")
            assert len({session_id for session_id, _ in entries}) == 1
            names = [name for (name,) in fetch_rows(new_url, "SELECT name FROM migration ORDER BY name")]
            assert len(names) == len(set(names)) > 0
            for process in processes:
                process.call("close_store")


def test_processes_that_use_a_new_lane_at_the_same_moment_share_one_session(pool: ProcessPool, store_url: str) -> None:
    with pool.borrow(4, store_url) as processes:
        for number in range(10):
            for lane in (f"person{number}", f"person{number}@chat{number}"):
                entries = call_together(processes, "get_or_create_session", lane=lane)
                assert len({session_id for session_id, _ in entries}) == 1
                assert [is_new for _, is_new in entries].count(True) == 1
    assert fetch_rows(store_url, "SELECT COUNT(*) FROM session") == [(20,)]
    assert fetch_rows(store_url, "SELECT COUNT(*), COUNT(DISTINCT person_id) FROM identity") == [(20, 20)]
    assert find_inconsistencies(store_url) == []


def test_processes_that_ask_for_the_owner_at_the_same_moment_get_one_person(pool: ProcessPool, store_url: str) -> None:
    with pool.borrow(4, store_url) as processes:
        assert len(set(call_together(processes, "get_owner"))) == 1
    assert fetch_rows(store_url, "SELECT COUNT(*) FROM person WHERE role = 'owner'") == [(1,)]


@pytest.mark.parametrize("lane", ["ada", "ada@club"])
def test_one_process_resets_while_another_writes(pool: ProcessPool, store_url: str, lane: str) -> None:
    with SessionStore.open(store_url) as store, pool.borrow(2, store_url) as (writer, resetter):
        first, _ = writer.call("get_or_create_session", lane=lane)
        at = time.monotonic() + 0.05
        writer.start_call("write_messages", writer="w", lanes=[lane], count=120, threads=1, at=at)
        resetter.start_call("reset_repeatedly", lane=lane, count=25, at=at)
        [written] = writer.finish_call()
        sessions = [first, *resetter.finish_call()]

        assert [each for each in written if each[1] not in sessions] == []
        for session_id in sessions:
            texts = [text for _, session, _, text in written if session == session_id]
            assert load_texts(store, session_id) == texts
        order = [sessions.index(session) for _, session, _, text in written if not text.startswith("re")]
        assert order == sorted(order), "no message goes to a session after the lane has left it"
        for session_id in sessions[:-1]:
            kinds = [event.kind.value for event in store.load_events(session_id)]
            assert kinds.count("ended") == 1
            late = [event.message for event in store.load_events(session_id, after=kinds.index("ended") + 1)]
            assert [each for each in late if each is not None and each.role == "user"] == []
        assert find_inconsistencies(store_url) == []


def test_one_process_deletes_while_another_writes(pool: ProcessPool, store_url: str) -> None:
    with SessionStore.open(store_url) as store, pool.borrow(2, store_url) as (writer, deleter):
        deleter.start_call("delete_repeatedly", lane="ada", count=25)
        recorded = [
            (*writer.call("record_message", lane="ada", text=f"n{number}"), f"n{number}") for number in range(100)
        ]
        deleter.finish_call()
        last, _ = writer.call("get_or_create_session", lane="ada")
        remaining = [text for session_id, _, text in recorded if session_id == last]
        assert load_texts(store, last) == remaining
        assert fetch_rows(store_url, "SELECT COUNT(*) FROM event WHERE kind = 'message'") == [(len(remaining),)]
        assert find_inconsistencies(store_url) == []


def test_random_operations_of_four_processes_on_the_same_conversations_keep_the_database_consistent(
    pool: ProcessPool, store_url: str
) -> None:
    with pool.borrow(4, store_url) as processes:
        lanes = ["ada", "bob", "ada@club", "bob@club"]
        at = time.monotonic() + 0.05
        for number, process in enumerate(processes):
            process.start_call("run_random_operations", lanes=lanes, count=120, seed=number, at=at)
        errors: list[dict[str, int]] = [process.finish_call() for process in processes]
    names = {name.partition(":")[2] for each in errors for name in each}
    expected = {"SessionNotFound", "NothingToUndo", "NothingToRedo", "NothingToRestore", "TitleTaken"}
    assert names <= expected
    assert find_inconsistencies(store_url) == []


def test_one_process_finds_what_another_has_stored(pool: ProcessPool, store_url: str) -> None:
    with pool.borrow(2, store_url) as (one, other), SessionStore.open(store_url) as store:
        for number in range(20):
            writer, reader = (one, other) if number % 2 else (other, one)
            session_id, seq = writer.call("record_message", lane="ada", text=f"needle{number}")
            assert reader.call("load_texts", session_id=session_id)[-1] == f"needle{number}"
            assert [(hit.session_id, hit.seq) for hit in store.search(f"needle{number}")] == [(session_id, seq)]


def test_an_idle_process_with_an_open_store_blocks_no_writer(pool: ProcessPool, store_url: str) -> None:
    with pool.borrow(2, store_url) as (idle, writer):
        idle.call("record_message", lane="ada", text="hello")
        [written] = writer.call("write_messages", writer="w", lanes=["ada"], count=50, threads=1)
        numbers = [seq for _, _, seq, _ in written]
        assert all(after - before == 1 for before, after in pairwise(numbers))


def test_a_process_that_dies_while_it_writes_does_no_harm(launcher: WarmLauncher, store_url: str) -> None:
    with SessionStore.open(store_url) as store:
        with StoreProcess(launcher) as doomed:
            doomed.call("open_store", url=store_url)
            session_id, _ = doomed.call("record_message", lane="ada", text="first")
            doomed.start_call("write_messages", writer="w", lanes=["ada"], count=100_000, threads=2)
            messages: list[Any] = []
            while len(messages) < 20:
                messages = store.load_transcript(session_id)
        assert load_texts(store, session_id)[0] == "first"
        store.append_to_transcript(session_id, "last")
        assert load_texts(store, session_id)[-1] == "last"
        store.close()
    wait_for_disconnect(store_url)
    assert find_inconsistencies(store_url) == []
