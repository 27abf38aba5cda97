"""Several processes on one database: nothing is lost, doubled or mixed up, and nobody hears of a lock."""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from palaver import SessionStore

sys.path.insert(0, str(Path(__file__).parent))

from harness import Crew, Worker, disorder, rows, together, wait_for_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    hired = Crew()
    yield hired
    hired.dismiss()


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that nobody has opened yet, made anew by each call of `blank`."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/new.db"
        return
    server = request.getfixturevalue("postgres")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE brandnew")
        try:
            yield server.replace("/postgres?", "/brandnew?")
        finally:
            connection.execute("DROP DATABASE brandnew WITH (FORCE)")


def blank(url: str) -> None:
    if url.startswith("sqlite:"):
        for file in Path(url.removeprefix("sqlite:///")).parent.glob("new.db*"):
            file.unlink()
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


def texts_in_order(store: SessionStore, session_id: str) -> list[str]:
    return [message["content"] for message in store.load_transcript(session_id)]


def test_four_processes_write_at_once_and_nothing_is_lost(crew: Crew, store_url: str) -> None:
    with SessionStore.open(store_url) as store, crew.hired(4, store_url) as team:
        at = time.monotonic() + 0.05
        for number, worker in enumerate(team):
            lanes = ["common1", "common2", f"own{number}", "ada@club"]
            worker.ask("talk", writer=f"w{number}", lanes=lanes, count=60, threads=3, at=at)
        threads = [thread for worker in team for thread in worker.answer()]

        logs: dict[str, dict[int, str]] = {}
        for thread in threads:
            for _, session_id, seq, text in thread:
                assert seq not in logs.setdefault(session_id, {}), "one number was given twice"
                logs[session_id][seq] = text
            for session_id in {each[1] for each in thread}:
                numbers = [seq for _, where, seq, _ in thread if where == session_id]
                assert numbers == sorted(numbers), "what one writer says stays in its order"
        assert len(logs) == 2 + 4 + 1  # one session for each lane
        for session_id, log in logs.items():
            assert texts_in_order(store, session_id) == [log[seq] for seq in sorted(log)]
        assert sum(map(len, logs.values())) == 4 * 3 * (60 + 20)
        assert disorder(store_url) == []


@pytest.mark.parametrize("new_url", ["sqlite", "postgres"], indirect=True)
def test_processes_open_a_new_database_at_the_same_moment(crew: Crew, new_url: str) -> None:
    with crew.hired(4) as team:
        for _ in range(10):
            blank(new_url)
            together(team, "open_store", url=new_url)
            entered = together(team, "enter", lane="ada")
            assert len({session_id for session_id, _ in entered}) == 1
            names = [name for (name,) in rows(new_url, "SELECT name FROM migration ORDER BY name")]
            assert len(names) == len(set(names)) > 0
            for worker in team:
                worker.call("close_store")


def test_processes_that_enter_a_new_lane_at_the_same_moment_share_one_session(crew: Crew, store_url: str) -> None:
    with crew.hired(4, store_url) as team:
        for number in range(10):
            for lane in (f"person{number}", f"person{number}@place{number}"):
                entered = together(team, "enter", lane=lane)
                assert len({session_id for session_id, _ in entered}) == 1
                assert [is_new for _, is_new in entered].count(True) == 1
    assert rows(store_url, "SELECT COUNT(*) FROM session") == [(20,)]
    assert rows(store_url, "SELECT COUNT(*), COUNT(DISTINCT person_id) FROM identity") == [(20, 20)]
    assert disorder(store_url) == []


def test_processes_that_ask_for_the_owner_at_the_same_moment_get_one_person(crew: Crew, store_url: str) -> None:
    with crew.hired(4, store_url) as team:
        assert len(set(together(team, "owner"))) == 1
    assert rows(store_url, "SELECT COUNT(*) FROM person WHERE role = 'owner'") == [(1,)]


@pytest.mark.parametrize("lane", ["ada", "ada@club"])
def test_one_process_resets_while_another_writes(crew: Crew, store_url: str, lane: str) -> None:
    with SessionStore.open(store_url) as store, crew.hired(2, store_url) as (writer, resetter):
        first, _ = writer.call("enter", lane=lane)
        at = time.monotonic() + 0.05
        writer.ask("talk", writer="w", lanes=[lane], count=120, threads=1, at=at)
        resetter.ask("reset", lane=lane, count=25, at=at)
        [said] = writer.answer()
        sessions = [first, *resetter.answer()]

        assert [each for each in said if each[1] not in sessions] == []
        for session_id in sessions:
            written = [text for _, where, _, text in said if where == session_id]
            assert texts_in_order(store, session_id) == written
        order = [sessions.index(where) for _, where, _, text in said if not text.startswith("re")]
        assert order == sorted(order), "a message never goes back to a session that was left"
        for session_id in sessions[:-1]:
            kinds = [event.kind.value for event in store.events(session_id)]
            assert kinds.count("ended") == 1
            late = [event.message for event in store.events(session_id, after=kinds.index("ended") + 1)]
            assert [each for each in late if each is not None and each.role == "user"] == []
        assert disorder(store_url) == []


def test_one_process_deletes_while_another_writes(crew: Crew, store_url: str) -> None:
    with SessionStore.open(store_url) as store, crew.hired(2, store_url) as (writer, deleter):
        deleter.ask("delete", lane="ada", count=25)
        said = [(*writer.call("say", lane="ada", text=f"n{number}"), f"n{number}") for number in range(100)]
        deleter.answer()
        last, _ = writer.call("enter", lane="ada")
        kept = [text for session_id, _, text in said if session_id == last]
        assert texts_in_order(store, last) == kept
        assert rows(store_url, "SELECT COUNT(*) FROM event WHERE kind = 'message'") == [(len(kept),)]
        assert disorder(store_url) == []


def test_four_processes_do_anything_to_the_same_conversations(crew: Crew, store_url: str) -> None:
    with crew.hired(4, store_url) as team:
        at = time.monotonic() + 0.05
        for number, worker in enumerate(team):
            worker.ask("chaos", lanes=["ada", "bob", "ada@club", "bob@club"], count=120, seed=number, at=at)
        answers: list[dict[str, int]] = [worker.answer() for worker in team]
    names = {name.partition(":")[2] for each in answers for name in each}
    expected = {"NoSuchSession", "NothingToUndo", "NothingToRedo", "NothingToRestore", "TitleTaken"}
    assert names <= expected
    assert disorder(store_url) == []


def test_what_one_process_stored_another_finds(crew: Crew, store_url: str) -> None:
    with crew.hired(2, store_url) as (one, other), SessionStore.open(store_url) as store:
        for number in range(20):
            speaker, listener = (one, other) if number % 2 else (other, one)
            session_id, seq = speaker.call("say", lane="ada", text=f"needle{number}")
            assert listener.call("load", session_id=session_id)[-1] == f"needle{number}"
            assert [(hit.session_id, hit.seq) for hit in store.search(f"needle{number}")] == [(session_id, seq)]


def test_a_process_that_sleeps_with_an_open_store_hinders_nobody(crew: Crew, store_url: str) -> None:
    with crew.hired(2, store_url) as (sleeper, writer):
        sleeper.call("say", lane="ada", text="good night")
        [said] = writer.call("talk", writer="w", lanes=["ada"], count=50, threads=1)
        numbers = [seq for _, _, seq, _ in said]
        assert all(after - before == 1 for before, after in pairwise(numbers))


def test_a_worker_that_dies_in_the_middle_takes_nothing_with_it(crew: Crew, store_url: str) -> None:
    with SessionStore.open(store_url) as store:
        with Worker() as doomed:
            doomed.call("open_store", url=store_url)
            session_id, _ = doomed.call("say", lane="ada", text="remember")
            doomed.ask("talk", writer="w", lanes=["ada"], count=100_000, threads=2)
            heard: list[Any] = []
            while len(heard) < 20:
                heard = store.load_transcript(session_id)
        assert texts_in_order(store, session_id)[0] == "remember"
        store.append_to_transcript(session_id, "and on it goes")
        assert texts_in_order(store, session_id)[-1] == "and on it goes"
        store.close()
    wait_for_clients(store_url)
    assert disorder(store_url) == []
