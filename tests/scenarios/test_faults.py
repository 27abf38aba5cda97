"""When something breaks: the error has a name, the old state stands, and the store works again afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import apsw
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from palaver import SessionSource, SessionStore
from palaver.domain.errors import (
    ConfigError,
    NoSuchSession,
    PalaverError,
    SchemaTooNew,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from palaver.storage.engines import postgres as postgres_engine
from palaver.storage.engines import sqlite as sqlite_engine
from palaver.storage.engines.base import Read, Write

sys.path.insert(0, str(Path(__file__).parent))

from harness import Refused, Worker, disorder, rows

if TYPE_CHECKING:
    from palaver.storage.engines.base import Transaction

pytestmark = pytest.mark.slow

Source = Callable[..., SessionSource]
SOON = 15.0  # seconds; only something that hangs takes longer


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users of the machine can reach."""
    folder = Path(tempfile.mkdtemp(prefix="palaver-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


@pytest.fixture
def used_file(tmp_path: Path, dm: Source) -> Path:
    """A database file with a conversation in it, closed."""
    path = tmp_path / "used.db"
    with SessionStore.open(path) as store:
        for number in range(40):
            said = store.record_user_message(dm(), f"word{number} " + "and more " * 40)
            store.append_to_transcript(said.session_id, f"answer{number}")
        store.search("word1")
    return path


# -- no room -------------------------------------------------------------------------------------------------


def test_a_full_disk_is_named_and_what_was_stored_stands(worker: Worker, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/full.db"
    worker.call("open_store", url=url)
    session_id, _ = worker.call("say", lane="ada", text="before")
    worker.call("limit_file_size", most=1_500_000)
    kept = worker.call("fill", lane="ada", most=1000)
    assert kept < 1000
    with pytest.raises(Refused) as refused:
        worker.call("say", lane="ada", text="x" * 1_500_000)
    assert refused.value.kind in {"StoreFull", "StoreUnavailable"}
    assert "full.db" in refused.value.text
    assert len(worker.call("load", session_id=session_id)) == 1 + kept

    worker.call("limit_file_size", most=None)
    worker.call("say", lane="ada", text="room again")
    assert worker.call("load", session_id=session_id)[-1] == "room again"
    assert disorder(url) == []


def test_a_new_database_on_a_full_disk_is_refused_by_name(worker: Worker, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    worker.call("limit_file_size", most=60_000)
    with pytest.raises(Refused) as refused:
        worker.call("open_store", url=url)
    assert refused.value.kind in {"StoreFull", "StoreUnavailable"}
    worker.call("limit_file_size", most=None)
    worker.call("open_store", url=url)
    worker.call("say", lane="ada", text="room again")
    assert disorder(url) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=False, capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_really_full_disk_gives_store_full(worker: Worker, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_500_000))
    worker.call("open_store", url=f"sqlite:///{small_disk}/full.db")
    session_id, _ = worker.call("say", lane="ada", text="before")
    kept = worker.call("fill", lane="ada", most=1000)
    with pytest.raises(Refused) as refused:
        worker.call("say", lane="ada", text="x" * 4_000_000)
    assert refused.value.kind == "StoreFull"
    ballast.unlink()
    worker.call("say", lane="ada", text="room again")
    assert len(worker.call("load", session_id=session_id)) == 1 + kept + 1


def test_after_a_full_disk_the_log_is_written_back_again(worker: Worker, tmp_path: Path) -> None:
    """Otherwise it grows for as long as the process lives."""
    log = tmp_path / "full.db-wal"
    worker.call("write_back_every", pages=200)
    worker.call("open_store", url=f"sqlite:///{tmp_path}/full.db")
    worker.call("fill", lane="ada", most=50)
    worker.call("limit_file_size", most=2_000_000)
    assert worker.call("fill", lane="ada", most=1000) < 1000
    worker.call("limit_file_size", most=None)
    for _ in range(12):
        assert worker.call("fill", lane="ada", most=50) == 50
        time.sleep(0.02)
    assert log.stat().st_size < 12_000_000  # of thirty million bytes written since


# -- no permission -------------------------------------------------------------------------------------------


def database_in(folder: Path) -> Path:
    path = folder / "palaver.db"
    with SessionStore.open(path) as store:
        store.record_user_message(SessionSource("telegram", "ada", user_id="ada"), "hello")
    return path


def open_and_say(worker: Worker, path: Path) -> None:
    worker.call("open_store", url=str(path))
    worker.call("say", lane="ada", text="may I?")


def make_file_read_only(path: Path) -> None:
    path.chmod(0o444)


def make_folder_read_only(path: Path) -> None:
    path.chmod(0o666)
    path.parent.chmod(0o555)


def make_both_read_only(path: Path) -> None:
    path.chmod(0o444)
    path.parent.chmod(0o555)


def make_file_unreadable(path: Path) -> None:
    path.chmod(0o000)


@pytest.mark.parametrize(
    "forbid", [make_file_read_only, make_folder_read_only, make_both_read_only, make_file_unreadable]
)
def test_a_place_that_may_not_be_written_is_named(
    worker: Worker, open_folder: Path, forbid: Callable[[Path], None]
) -> None:
    path = database_in(open_folder)
    before = path.read_bytes()
    forbid(path)
    worker.call("become_nobody")
    with pytest.raises(Refused) as refused:  # when it is opened, or at the latest when something is to be stored
        open_and_say(worker, path)
    assert refused.value.kind in {"StoreReadOnly", "StoreUnavailable"}
    assert str(path) in refused.value.text
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_named(worker: Worker, open_folder: Path) -> None:
    open_folder.chmod(0o555)
    worker.call("become_nobody")
    with pytest.raises(Refused) as refused:
        worker.call("open_store", url=f"{open_folder}/deeper/palaver.db")
    assert refused.value.kind == "StoreReadOnly"
    assert f"{open_folder}/deeper" in refused.value.text


# -- not what it should be -----------------------------------------------------------------------------------


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary, today I became a database.\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match=r"notes\.txt"):
        SessionStore.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE session (url TEXT); INSERT INTO session VALUES ('https://example.org')")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match=r"places\.sqlite"):
        SessionStore.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["places.sqlite"]


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "palaver.db").mkdir()
    with pytest.raises((StoreUnavailable, StoreReadOnly), match=r"palaver\.db"):
        SessionStore.open(tmp_path / "palaver.db")


def everything(store: SessionStore, source: SessionSource) -> None:
    """Look at and change everything there is."""
    for session in store.list_sessions():
        store.load_transcript(session.id)
        store.export(session.id)
    store.search("word1")
    said = store.record_user_message(source, "still there?")
    store.append_to_transcript(said.session_id, "who knows")
    store.undo(said.session_id)
    store.reset_session(said.session_key)


def cut(kept: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * kept)]


def overwrite_pages(data: bytes) -> bytes:
    """Every page but the first one, which holds the schema, is noise."""
    return data[:4096] + b"\xa5" * (len(data) - 4096)


def overwrite_schema(data: bytes) -> bytes:
    return data[:100] + b"\xa5" * 3996 + data[4096:]


@pytest.mark.parametrize(
    "harm",
    [cut(0.02), cut(0.3), cut(0.5), cut(0.9), overwrite_pages, overwrite_schema],
    ids=["a stub", "cut at 30%", "cut in half", "cut at 90%", "pages of noise", "a schema of noise"],
)
def test_a_damaged_database_is_named(used_file: Path, dm: Source, harm: Callable[[bytes], bytes]) -> None:
    used_file.write_bytes(harm(used_file.read_bytes()))
    before = used_file.read_bytes()
    with pytest.raises(StoreDamaged, match=r"used\.db"), SessionStore.open(used_file) as store:
        everything(store, dm())
    assert used_file.read_bytes() == before


@pytest.mark.parametrize("seed", range(6))
def test_a_lost_page_never_gives_an_error_without_a_name(
    used_file: Path, dm: Source, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_engine, "READER_PATIENCE", 0.01)
    data = bytearray(used_file.read_bytes())
    for page in range(1 + seed, len(data) // 4096, 6):
        harmed = bytearray(data)
        harmed[page * 4096 : (page + 1) * 4096] = bytes(4096)
        used_file.write_bytes(harmed)
        with contextlib.suppress(PalaverError), SessionStore.open(used_file) as store:
            everything(store, dm())
        for beside in used_file.parent.glob("used.db-*"):
            beside.unlink()


def test_a_store_on_a_damaged_database_can_be_closed(used_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who met the damage are gone: closing does not wait for them."""
    monkeypatch.setattr(sqlite_engine, "READER_PATIENCE", 3600.0)
    [(page,)] = rows(f"sqlite:///{used_file}", "SELECT rootpage FROM sqlite_master WHERE name = 'search_data'")
    data = used_file.read_bytes()
    used_file.write_bytes(data[: (page - 1) * 4096] + bytes(4096) + data[page * 4096 :])
    store = SessionStore.open(used_file)
    with pytest.raises(StoreDamaged):
        store.search("word1")
    in_time(store.close)


def test_a_database_from_a_newer_palaver_is_refused_and_left_alone(
    open_store: Callable[[], SessionStore], store_url: str
) -> None:
    store = open_store()
    store._engine.run(Write(lambda tx: tx.run("INSERT INTO migration (name, applied_at) VALUES ('9999_x', 0)")))
    store.close()
    path = Path(store_url.removeprefix("sqlite:///"))
    before = path.read_bytes() if path.exists() else b""
    try:
        with pytest.raises(SchemaTooNew, match="9999_x"):
            SessionStore.open(store_url)
        assert (path.read_bytes() if path.exists() else b"") == before
    finally:
        if store_url.startswith("postgres"):
            with psycopg.connect(store_url, autocommit=True) as connection:
                connection.execute("DELETE FROM migration WHERE name = '9999_x'")


# -- a server that is away -----------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{port}/talk") as caught:
        SessionStore.open(f"postgresql://ada:hunter2@127.0.0.1:{port}/talk")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@127.0.0.1:port/talk",
        "postgresql://ada:hunter2%zz@127.0.0.1/talk",
        "postgresql://ada:hunter2@127.0.0.1/talk?nonsense=1",
        "postgresql://ada:hunter2@[::1/talk",
        "mysql://ada:hunter2@127.0.0.1/talk",
    ],
)
def test_an_address_that_is_none_is_named_without_the_password(url: str) -> None:
    with pytest.raises((ConfigError, StoreUnavailable)) as caught:
        SessionStore.open(url)
    assert "hunter2" not in str(caught.value)


@pytest.fixture
def guarded(postgres_database: str) -> Iterator[str]:
    """An address with a password that the server asks for."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        [(rules,)] = connection.execute("SHOW hba_file").fetchall()
        file = Path(rules)
        before = file.read_text()
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        file.write_text(f"local all guarded scram-sha-256\n{before}")
        connection.execute("SELECT pg_reload_conf()")
        place = conninfo_to_dict(postgres_database)
        try:
            yield f"postgresql://guarded:hunter2@/postgres?host={place['host']}"
        finally:
            file.write_text(before)
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("DROP OWNED BY guarded")
            connection.execute("DROP ROLE guarded")


def test_a_wrong_password_is_named_and_not_told(guarded: str) -> None:
    with pytest.raises(StoreUnavailable, match="password") as caught:
        SessionStore.open(guarded)
    assert "hunter2" not in str(caught.value)


class Wire:
    """Carries bytes between a client and the server until it is cut."""

    def __init__(self, server: str) -> None:
        place = conninfo_to_dict(server)
        self._to = f"{place['host']}/.s.PGSQL.{place.get('port', 5432)}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._whole = True
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres:hunter2@127.0.0.1:{self._listener.getsockname()[1]}/postgres?sslmode=disable"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if not self._whole:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._to)
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Drop every connection and refuse new ones."""
        self._whole = False
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._ends.clear()

    def mend(self) -> None:
        self._whole = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_server_that_goes_away_is_named_and_comes_back(
    store_url: str, dm: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_engine, "PATIENCE", 0.4)
    with Wire(store_url) as wire, SessionStore.open(wire.url) as store:
        said = store.record_user_message(dm(), "before")
        wire.cut()
        for _ in range(2):
            with pytest.raises(StoreUnavailable) as caught:
                store.append_to_transcript(said.session_id, "into the void")
            assert "hunter2" not in str(caught.value)
        with pytest.raises(StoreUnavailable):
            store.load_transcript(said.session_id)
        wire.mend()
        until = time.monotonic() + SOON
        while True:
            try:
                store.append_to_transcript(said.session_id, "after")
                break
            except StoreError:
                assert time.monotonic() < until, "the store does not find the server again"
        assert [each["content"] for each in store.load_transcript(said.session_id)] == ["before", "after"]


# -- closing -------------------------------------------------------------------------------------------------


def test_a_closed_store_says_so(open_store: Callable[[], SessionStore], dm: Source) -> None:
    store = open_store()
    said = store.record_user_message(dm(), "hello")
    view = store.seen_by(store.person_for(dm()).principal)
    store.load_transcript(said.session_id)
    store.close()
    store.close()
    attempts: list[Callable[[], object]] = [
        lambda: store.load_transcript(said.session_id),
        lambda: store.get_or_create_session(dm()),
        lambda: store.record_user_message(dm(), "late"),
        lambda: store.append_to_transcript(said.session_id, "late"),
        lambda: store.search("hello"),
        view.list,
        lambda: view.rename(said.session_id, "late"),
        lambda: asyncio.run(awaited(store.aio.load_transcript(said.session_id))),
        lambda: asyncio.run(awaited(store.aio.append_to_transcript(said.session_id, "late"))),
    ]
    for attempt in attempts:
        with pytest.raises(StoreClosed):
            attempt()


async def awaited(what: Any) -> object:
    return await asyncio.wait_for(what, SOON)


def in_time(call: Callable[[], object]) -> None:
    """Make a call that may hang, or fail."""
    errors: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
            errors.append(None)
        except BaseException as error:  # noqa: BLE001  (raised below)
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SOON)
    assert errors, "the call hangs"
    if errors[0] is not None:
        raise errors[0]


class Callers:
    """Threads that use a store, blocking and awaiting, until it answers with an error."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self.ends: Counter[type[BaseException]] = Counter()
        self._store = store
        self._session_id = session_id
        kinds = [self._write, self._read, self._write, self._read, self._await, self._await]
        self._threads = [threading.Thread(target=self._until_the_end, args=(kind,), daemon=True) for kind in kinds]
        for thread in self._threads:
            thread.start()

    def _until_the_end(self, act: Callable[[], None]) -> None:
        until = time.monotonic() + 3
        try:
            while time.monotonic() < until:
                act()
            raise TimeoutError
        except BaseException as error:  # noqa: BLE001  (looked at by the test)
            self.ends[type(error)] += 1

    def _write(self) -> None:
        self._store.append_to_transcript(self._session_id, "blocking")

    def _read(self) -> None:
        self._store.load_transcript(self._session_id, 3)

    def _await(self) -> None:
        async def main() -> None:
            while True:
                writes = [self._store.aio.append_to_transcript(self._session_id, "awaiting") for _ in range(4)]
                await asyncio.gather(*writes, self._store.aio.load_transcript(self._session_id, 3))

        asyncio.run(main())

    def ended(self) -> bool:
        for thread in self._threads:
            thread.join(SOON)
        return not any(thread.is_alive() for thread in self._threads)


def test_closing_while_others_work_ends_each_of_them_by_name(store_url: str, dm: Source) -> None:
    for number in range(8):
        store = SessionStore.open(store_url)
        session_id = store.get_or_create_session(dm()).session_id
        callers = Callers(store, session_id)
        time.sleep(0.003 * number)
        in_time(store.close)
        assert callers.ended(), "a caller hangs"
        assert set(callers.ends) == {StoreClosed}
    assert disorder(store_url) == []


# -- one caller's trouble is its own ---------------------------------------------------------------------------


async def test_a_failure_in_a_batch_is_nobody_elses(store: SessionStore, dm: Source) -> None:
    session_id = store.get_or_create_session(dm()).session_id

    def fail(_tx: Transaction) -> None:
        raise ZeroDivisionError

    def spoil(tx: Transaction) -> None:
        tx.run("UPDATE session SET message_count = 1000 WHERE id = $1", session_id)
        fail(tx)

    works: list[Any] = []
    for number in range(30):
        works += [
            store.aio.append_to_transcript(session_id, f"n{number}"),
            store.aio.append_to_transcript("20200101_000000_00000000", "nowhere"),
            store._engine.arun(Write(spoil)),
            store._engine.arun(Read(fail)),
        ]
    results = await asyncio.wait_for(asyncio.gather(*works, return_exceptions=True), SOON)
    assert all(isinstance(each, int) for each in results[0::4])
    assert {type(each) for each in results[1::4]} == {NoSuchSession}
    assert {type(each) for each in results[2::4]} == {type(each) for each in results[3::4]} == {ZeroDivisionError}
    stored = [message["content"] for message in store.load_transcript(session_id)]
    assert sorted(stored) == sorted(f"n{number}" for number in range(30))
    assert store.get_session(session_id).message_count == 30


async def test_whatever_work_raises_reaches_its_caller_and_no_other(store: SessionStore) -> None:
    """Some exceptions cannot be put into a future as they are."""

    def stop(_tx: Transaction) -> None:
        raise StopIteration

    works = [store._engine.arun(Write(each)) for each in (lambda _tx: 1, stop, lambda _tx: 2, stop, lambda _tx: 3)]
    tasks = [asyncio.ensure_future(work) for work in works]
    _, hanging = await asyncio.wait(tasks, timeout=3)
    for task in hanging:
        task.cancel()
    assert not hanging
    assert [task.result() for task in tasks[0::2]] == [1, 2, 3]
    assert all(isinstance(task.exception(), Exception) for task in tasks[1::2])


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_unit_of_work_that_is_torn_out_leaves_the_store_usable(
    store: SessionStore, dm: Source, kind: type[BaseException]
) -> None:
    session_id = store.get_or_create_session(dm()).session_id

    def work(tx: Transaction) -> None:
        tx.run("UPDATE session SET message_count = 1000 WHERE id = $1", session_id)
        raise kind

    with pytest.raises(kind):
        store._engine.run(Write(work))
    store.append_to_transcript(session_id, "and on it goes")
    assert store.get_session(session_id).message_count == 1


def test_work_that_is_torn_out_of_a_batch_harms_nobody(store: SessionStore, dm: Source) -> None:
    session_id = store.get_or_create_session(dm()).session_id
    busy, go = threading.Event(), threading.Event()
    ends: dict[int, object] = {}

    def hold(_tx: Transaction) -> None:
        busy.set()
        assert go.wait(SOON)

    def interrupted(_tx: Transaction) -> None:
        raise KeyboardInterrupt

    def call(number: int) -> None:
        try:
            if number % 3 == 0:
                store._engine.run(Write(interrupted))
            ends[number] = store.append_to_transcript(session_id, f"n{number}")
        except BaseException as error:  # noqa: BLE001  (looked at below)
            ends[number] = type(error)

    threads = [threading.Thread(target=store._engine.run, args=(Write(hold),), daemon=True)]
    threads[0].start()
    assert busy.wait(SOON)
    threads += [threading.Thread(target=call, args=(number,), daemon=True) for number in range(9)]
    for thread in threads[1:]:
        thread.start()
    time.sleep(0.05)  # so that they wait together
    go.set()
    for thread in threads:
        thread.join(SOON)
        assert not thread.is_alive()
    assert {ends[number] for number in (0, 3, 6)} == {KeyboardInterrupt}
    assert all(isinstance(ends[number], int) for number in (1, 2, 4, 5, 7, 8))
    assert store.get_session(session_id).message_count == 6


def test_the_store_survives_ctrl_c_at_any_moment(worker: Worker, store_url: str) -> None:
    times = 150 if store_url.startswith("sqlite:") else 50
    worker.call("open_store", url=store_url)
    assert worker.call("interrupt", times=times, seed=7) == times


async def test_a_caller_who_gives_up_hinders_nobody(store: SessionStore, dm: Source) -> None:
    session_id = store.get_or_create_session(dm()).session_id
    busy, go = threading.Event(), threading.Event()

    def hold(_tx: Transaction) -> None:
        busy.set()
        assert go.wait(SOON)

    holding = asyncio.ensure_future(store._engine.arun(Write(hold)))
    assert await asyncio.to_thread(busy.wait, SOON)
    writes = [
        asyncio.ensure_future(awaited(store.aio.append_to_transcript(session_id, f"n{number}"))) for number in range(12)
    ]
    await asyncio.sleep(0.02)
    for write in writes[::2]:
        write.cancel()
    await asyncio.sleep(0)
    go.set()
    await asyncio.wait_for(holding, SOON)
    results = await asyncio.wait_for(asyncio.gather(*writes, return_exceptions=True), SOON)
    assert all(isinstance(each, int) for each in results[1::2])
    stored = [message["content"] for message in await store.aio.load_transcript(session_id)]
    assert {f"n{number}" for number in range(1, 12, 2)} <= set(stored)
    assert len(stored) == len(set(stored))
    assert store.append_to_transcript(session_id, "and on it goes")


def test_an_event_loop_that_ends_too_early_hinders_nobody(store: SessionStore, dm: Source) -> None:
    session_id = store.get_or_create_session(dm()).session_id

    async def leave() -> None:
        for number in range(20):
            task = asyncio.ensure_future(awaited(store.aio.append_to_transcript(session_id, f"n{number}")))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.sleep(0)

    for _ in range(5):
        asyncio.run(leave())
    seq = store.append_to_transcript(session_id, "and on it goes")
    assert [event.seq for event in store.events(session_id) if event.message and "goes" in event.message.text] == [seq]


def test_a_store_left_open_does_not_keep_its_process_alive(store_url: str) -> None:
    program = (
        "import asyncio, sys\n"
        "from palaver import SessionSource, SessionStore\n"
        "store = SessionStore.open(sys.argv[1])\n"
        "said = store.record_user_message(SessionSource('telegram', 'ada', user_id='ada'), 'hello')\n"
        "asyncio.run(asyncio.wait_for(store.aio.append_to_transcript(said.session_id, 'hi'), 20))\n"
        "print('stored')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, store_url],
        check=False,
        capture_output=True,
        text=True,
        timeout=SOON,
        env={**os.environ, "PYTHONDEVMODE": "0"},
    )
    assert (ended.returncode, ended.stdout) == (0, "stored\n"), ended.stderr
    with SessionStore.open(store_url) as store:
        assert [session.message_count for session in store.list_sessions()] == [2]
