"""Faults: every error is a specific one, nothing stored is lost, and the store works again afterwards."""

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
from palaver.core.engines import integrity, postgres_pool, sqlite as sqlite_engine
from palaver.core.engines.base import Read, Write
from palaver.core.errors import (
    ConfigError,
    PalaverError,
    SchemaTooNew,
    SessionNotFound,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from scenarios.store_harness import CommandFailed, StoreProcess, fetch_rows, find_inconsistencies
from support.process import find_free_port

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow, pytest.mark.both_engines, pytest.mark.usefixtures("new_connections")]

Source = Callable[..., SessionSource]
HANG_SECONDS = 60.0  # only something that hangs takes longer


@pytest.fixture
def process(launcher: WarmLauncher) -> Iterator[StoreProcess]:
    with StoreProcess(launcher) as started:
        yield started


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users of the machine can write."""
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
            recorded = store.record_user_message(dm(), f"word{number} " + "and more " * 40)
            store.append_to_transcript(recorded.session_id, f"answer{number}")
        store.search("word1")
    return path


# -- full disks -----------------------------------------------------------------------------------------------


def test_a_full_disk_is_reported_and_loses_nothing(process: StoreProcess, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/full.db"
    process.call("open_store", url=url)
    session_id, _ = process.call("record_message", lane="ada", text="before")
    process.call("limit_file_size", max_bytes=1_500_000)
    recorded = process.call("record_until_full", lane="ada", max_messages=1000)
    assert recorded < 1000
    with pytest.raises(CommandFailed) as failed:
        process.call("record_message", lane="ada", text="x" * 1_500_000)
    assert failed.value.kind in {"StoreFull", "StoreUnavailable"}
    assert "full.db" in failed.value.text
    assert len(process.call("load_texts", session_id=session_id)) == 1 + recorded

    process.call("limit_file_size", max_bytes=None)
    process.call("record_message", lane="ada", text="after the fault")
    assert process.call("load_texts", session_id=session_id)[-1] == "after the fault"
    assert find_inconsistencies(url) == []


def test_a_new_database_on_a_full_disk_is_reported(process: StoreProcess, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    process.call("limit_file_size", max_bytes=60_000)
    with pytest.raises(CommandFailed) as failed:
        process.call("open_store", url=url)
    assert failed.value.kind in {"StoreFull", "StoreUnavailable"}
    process.call("limit_file_size", max_bytes=None)
    process.call("open_store", url=url)
    process.call("record_message", lane="ada", text="after the fault")
    assert find_inconsistencies(url) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=False, capture_output=True, text=True
    )
    if mount.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {mount.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_file_system_raises_store_full(process: StoreProcess, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_500_000))
    process.call("open_store", url=f"sqlite:///{small_disk}/full.db")
    session_id, _ = process.call("record_message", lane="ada", text="before")
    recorded = process.call("record_until_full", lane="ada", max_messages=1000)
    with pytest.raises(CommandFailed) as failed:
        process.call("record_message", lane="ada", text="x" * 4_000_000)
    assert failed.value.kind == "StoreFull"
    ballast.unlink()
    process.call("record_message", lane="ada", text="after the fault")
    assert len(process.call("load_texts", session_id=session_id)) == 1 + recorded + 1


def test_checkpoints_continue_after_a_full_disk(process: StoreProcess, tmp_path: Path) -> None:
    """Otherwise the WAL grows for as long as the process lives."""
    wal = tmp_path / "full.db-wal"
    process.call("set_checkpoint_pages", pages=200)
    process.call("open_store", url=f"sqlite:///{tmp_path}/full.db")
    process.call("record_until_full", lane="ada", max_messages=50)
    process.call("limit_file_size", max_bytes=2_000_000)
    assert process.call("record_until_full", lane="ada", max_messages=1000) < 1000
    process.call("limit_file_size", max_bytes=None)
    for _ in range(12):
        assert process.call("record_until_full", lane="ada", max_messages=50) == 50
        time.sleep(0.02)
    assert wal.stat().st_size < 12_000_000  # of thirty million bytes written since


# -- missing permissions --------------------------------------------------------------------------------------


def create_database(folder: Path) -> Path:
    path = folder / "palaver.db"
    with SessionStore.open(path) as store:
        store.record_user_message(SessionSource("telegram", "ada", user_id="ada"), "hello")
    return path


def open_and_record(process: StoreProcess, path: Path) -> None:
    process.call("open_store", url=str(path))
    process.call("record_message", lane="ada", text="hello")


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
    "restrict", [make_file_read_only, make_folder_read_only, make_both_read_only, make_file_unreadable]
)
def test_a_database_that_cannot_be_written_is_reported(
    process: StoreProcess, open_folder: Path, restrict: Callable[[Path], None]
) -> None:
    path = create_database(open_folder)
    before = path.read_bytes()
    restrict(path)
    process.call("drop_root")
    with pytest.raises(CommandFailed) as failed:  # when it is opened, or at the latest with the first message
        open_and_record(process, path)
    assert failed.value.kind in {"StoreReadOnly", "StoreUnavailable"}
    assert str(path) in failed.value.text
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_created_is_reported(process: StoreProcess, open_folder: Path) -> None:
    open_folder.chmod(0o555)
    process.call("drop_root")
    with pytest.raises(CommandFailed) as failed:
        process.call("open_store", url=f"{open_folder}/subfolder/palaver.db")
    assert failed.value.kind == "StoreReadOnly"
    assert f"{open_folder}/subfolder" in failed.value.text


# -- damaged and foreign files --------------------------------------------------------------------------------


def test_a_file_that_is_not_a_database_is_rejected_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("This is a text file.\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match=r"notes\.txt"):
        SessionStore.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_database_of_another_program_is_rejected_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE session (url TEXT); INSERT INTO session VALUES ('https://example.org')")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match=r"places\.sqlite"):
        SessionStore.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["places.sqlite"]


def test_a_folder_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "palaver.db").mkdir()
    with pytest.raises((StoreUnavailable, StoreReadOnly), match=r"palaver\.db"):
        SessionStore.open(tmp_path / "palaver.db")


def use_everything(store: SessionStore, source: SessionSource) -> None:
    """Read and change everything in a store."""
    for session in store.list_sessions():
        store.load_transcript(session.id)
        store.export(session.id)
    store.search("word1")
    recorded = store.record_user_message(source, "hello")
    store.append_to_transcript(recorded.session_id, "hi")
    store.undo(recorded.session_id)
    store.reset_session(recorded.session_key)


def truncate(fraction: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * fraction)]


def overwrite_pages(data: bytes) -> bytes:
    """Overwrite every page but the first, which holds the schema."""
    return data[:4096] + b"\xa5" * (len(data) - 4096)


def overwrite_schema(data: bytes) -> bytes:
    return data[:100] + b"\xa5" * 3996 + data[4096:]


@pytest.mark.parametrize(
    "damage",
    [truncate(0.02), truncate(0.3), truncate(0.5), truncate(0.9), overwrite_pages, overwrite_schema],
    ids=["2%", "30%", "50%", "90%", "overwritten pages", "overwritten schema"],
)
def test_a_damaged_database_is_reported(used_file: Path, dm: Source, damage: Callable[[bytes], bytes]) -> None:
    used_file.write_bytes(damage(used_file.read_bytes()))
    before = used_file.read_bytes()
    with pytest.raises(StoreDamaged, match=r"used\.db"), SessionStore.open(used_file) as store:
        use_everything(store, dm())
    assert used_file.read_bytes() == before


@pytest.mark.parametrize("seed", range(6))
def test_a_lost_page_raises_only_errors_of_palaver(
    used_file: Path, dm: Source, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_engine, "READER_CLOSE_SECONDS", 0.01)
    data = bytearray(used_file.read_bytes())
    for page in range(1 + seed, len(data) // 4096, 6):
        damaged = bytearray(data)
        damaged[page * 4096 : (page + 1) * 4096] = bytes(4096)
        used_file.write_bytes(damaged)
        with contextlib.suppress(PalaverError), SessionStore.open(used_file) as store:
            use_everything(store, dm())
        for side_file in used_file.parent.glob("used.db-*"):
            side_file.unlink()


def test_a_store_on_a_damaged_database_can_be_closed(used_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The readers that met the damage have ended: closing does not wait for them."""
    monkeypatch.setattr(sqlite_engine, "READER_CLOSE_SECONDS", 3600.0)
    monkeypatch.setattr(integrity, "_check_pages", lambda *_: None)  # in a large file, it does not reach this page
    [(page,)] = fetch_rows(f"sqlite:///{used_file}", "SELECT rootpage FROM sqlite_master WHERE name = 'search_data'")
    data = used_file.read_bytes()
    used_file.write_bytes(data[: (page - 1) * 4096] + bytes(4096) + data[page * 4096 :])
    store = SessionStore.open(used_file)
    with pytest.raises(StoreDamaged):
        store.search("word1")
    call_with_timeout(store.close)


def test_a_database_of_a_newer_version_is_rejected_and_not_changed(
    open_store: Callable[[], SessionStore], store_url: str
) -> None:
    store = open_store()
    store._engine.run(Write(lambda tx: tx.execute("INSERT INTO migration (name, applied_at) VALUES ('9999_x', 0)")))
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


# -- unreachable servers --------------------------------------------------------------------------------------


def test_an_unreachable_server_is_reported_without_the_password() -> None:
    port = find_free_port()
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
def test_an_invalid_address_is_reported_without_the_password(url: str) -> None:
    with pytest.raises((ConfigError, StoreUnavailable)) as caught:
        SessionStore.open(url)
    assert "hunter2" not in str(caught.value)


@pytest.fixture
def url_with_wrong_password(postgres_database: str) -> Iterator[str]:
    """The address of a server that asks for a password, with a wrong one."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        [(rules,)] = connection.execute("SHOW hba_file").fetchall()
        file = Path(rules)
        before = file.read_text()
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        file.write_text(f"local all guarded scram-sha-256\n{before}")
        connection.execute("SELECT pg_reload_conf()")
        server_info = conninfo_to_dict(postgres_database)
        try:
            yield f"postgresql://guarded:hunter2@/postgres?host={server_info['host']}"
        finally:
            file.write_text(before)
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("DROP OWNED BY guarded")
            connection.execute("DROP ROLE guarded")


def test_a_wrong_password_is_reported_and_not_repeated(url_with_wrong_password: str) -> None:
    with pytest.raises(StoreUnavailable, match="password") as caught:
        SessionStore.open(url_with_wrong_password)
    assert "hunter2" not in str(caught.value)


class Proxy:
    """Forwards bytes between a client and the server until it is cut."""

    def __init__(self, server: str) -> None:
        server_info = conninfo_to_dict(server)
        self._server_path = f"{server_info['host']}/.s.PGSQL.{server_info.get('port', 5432)}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._is_open = True
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres:hunter2@127.0.0.1:{self._listener.getsockname()[1]}/postgres?sslmode=disable"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if not self._is_open:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._server_path)
                self._sockets += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Drop every connection and refuse new ones."""
        self._is_open = False
        for end in self._sockets:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._sockets.clear()

    def restore(self) -> None:
        self._is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_store_reports_a_lost_server_and_reconnects(
    store_url: str, dm: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_pool, "OUTAGE_WAIT_SECONDS", 0.4)
    with Proxy(store_url) as proxy, SessionStore.open(proxy.url) as store:
        recorded = store.record_user_message(dm(), "before")
        proxy.cut()
        for _ in range(2):
            with pytest.raises(StoreUnavailable) as caught:
                store.append_to_transcript(recorded.session_id, "not stored")
            assert "hunter2" not in str(caught.value)
        with pytest.raises(StoreUnavailable):
            store.load_transcript(recorded.session_id)
        proxy.restore()
        until = time.monotonic() + HANG_SECONDS
        while True:
            try:
                store.append_to_transcript(recorded.session_id, "after")
                break
            except StoreError:
                assert time.monotonic() < until, "the store does not reconnect"
        assert [each["content"] for each in store.load_transcript(recorded.session_id)] == ["before", "after"]


# -- closing --------------------------------------------------------------------------------------------------


def test_a_closed_store_raises_store_closed(open_store: Callable[[], SessionStore], dm: Source) -> None:
    store = open_store()
    recorded = store.record_user_message(dm(), "hello")
    view = store.seen_by(store.get_or_create_person(dm()).principal)
    store.load_transcript(recorded.session_id)
    store.close()
    store.close()
    attempts: list[Callable[[], object]] = [
        lambda: store.load_transcript(recorded.session_id),
        lambda: store.get_or_create_session(dm()),
        lambda: store.record_user_message(dm(), "late"),
        lambda: store.append_to_transcript(recorded.session_id, "late"),
        lambda: store.search("hello"),
        view.list,
        lambda: view.rename(recorded.session_id, "late"),
        lambda: asyncio.run(await_with_timeout(store.aio.load_transcript(recorded.session_id))),
        lambda: asyncio.run(await_with_timeout(store.aio.append_to_transcript(recorded.session_id, "late"))),
    ]
    for attempt in attempts:
        with pytest.raises(StoreClosed):
            attempt()


async def await_with_timeout(awaitable: Any) -> object:
    return await asyncio.wait_for(awaitable, HANG_SECONDS)


def call_with_timeout(call: Callable[[], object]) -> None:
    """Call a function that may hang; raise what it raises."""
    errors: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
            errors.append(None)
        except BaseException as error:  # noqa: BLE001  (raised below)
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANG_SECONDS)
    assert errors, "the call hangs"
    if errors[0] is not None:
        raise errors[0]


class Callers:
    """Threads that use a store, blocking and awaiting, until it raises an error."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self.errors: Counter[type[BaseException]] = Counter()
        self._store = store
        self._session_id = session_id
        kinds = [self._write, self._read, self._write, self._read, self._await, self._await]
        self._threads = [threading.Thread(target=self._call_until_error, args=(kind,), daemon=True) for kind in kinds]
        for thread in self._threads:
            thread.start()

    def _call_until_error(self, call: Callable[[], None]) -> None:
        until = time.monotonic() + HANG_SECONDS / 2
        try:
            while time.monotonic() < until:
                call()
            raise TimeoutError
        except BaseException as error:  # noqa: BLE001  (checked by the test)
            self.errors[type(error)] += 1

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

    def have_ended(self) -> bool:
        for thread in self._threads:
            thread.join(HANG_SECONDS)
        return not any(thread.is_alive() for thread in self._threads)


def test_closing_a_store_ends_all_its_callers_with_store_closed(store_url: str, dm: Source) -> None:
    for number in range(8):
        store = SessionStore.open(store_url)
        session_id = store.get_or_create_session(dm()).session_id
        callers = Callers(store, session_id)
        time.sleep(0.003 * number)
        call_with_timeout(store.close)
        assert callers.have_ended(), "a caller hangs"
        assert set(callers.errors) == {StoreClosed}
    assert find_inconsistencies(store_url) == []


# -- isolation of callers -------------------------------------------------------------------------------------


async def test_a_failure_in_a_batch_affects_no_other_caller(store: SessionStore, dm: Source) -> None:
    session_id = store.get_or_create_session(dm()).session_id

    def fail(_tx: Transaction) -> None:
        raise ZeroDivisionError

    def change_and_fail(tx: Transaction) -> None:
        tx.execute("UPDATE session SET message_count = 1000 WHERE id = $1", session_id)
        fail(tx)

    works: list[Any] = []
    for number in range(30):
        works += [
            store.aio.append_to_transcript(session_id, f"n{number}"),
            store.aio.append_to_transcript("20200101_000000_00000000", "no session"),
            store._engine.arun(Write(change_and_fail)),
            store._engine.arun(Read(fail)),
        ]
    results = await asyncio.wait_for(asyncio.gather(*works, return_exceptions=True), HANG_SECONDS)
    assert not [each for each in results[0::4] if not isinstance(each, int)]
    assert {type(each) for each in results[1::4]} == {SessionNotFound}
    assert {type(each) for each in results[2::4]} == {type(each) for each in results[3::4]} == {ZeroDivisionError}
    stored = [message["content"] for message in store.load_transcript(session_id)]
    assert sorted(stored) == sorted(f"n{number}" for number in range(30))
    assert store.get_session(session_id).message_count == 30


async def test_any_exception_reaches_its_caller_and_no_other(store: SessionStore) -> None:
    """Some exceptions, such as StopIteration, cannot be set on a future."""

    def stop(_tx: Transaction) -> None:
        raise StopIteration

    works = [store._engine.arun(Write(each)) for each in (lambda _tx: 1, stop, lambda _tx: 2, stop, lambda _tx: 3)]
    tasks = [asyncio.ensure_future(work) for work in works]
    _, hanging = await asyncio.wait(tasks, timeout=HANG_SECONDS)
    for task in hanging:
        task.cancel()
    assert not hanging
    assert [task.result() for task in tasks[0::2]] == [1, 2, 3]
    assert all(isinstance(task.exception(), Exception) for task in tasks[1::2])


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_store_works_after_an_interrupted_unit_of_work(
    store: SessionStore, dm: Source, kind: type[BaseException]
) -> None:
    session_id = store.get_or_create_session(dm()).session_id

    def work(tx: Transaction) -> None:
        tx.execute("UPDATE session SET message_count = 1000 WHERE id = $1", session_id)
        raise kind

    with pytest.raises(kind):
        store._engine.run(Write(work))
    store.append_to_transcript(session_id, "afterwards")
    assert store.get_session(session_id).message_count == 1


def test_interrupted_work_in_a_batch_affects_no_other_caller(store: SessionStore, dm: Source) -> None:
    session_id = store.get_or_create_session(dm()).session_id
    busy, go = threading.Event(), threading.Event()
    results: dict[int, object] = {}

    def hold(_tx: Transaction) -> None:
        busy.set()
        assert go.wait(HANG_SECONDS)

    def interrupted(_tx: Transaction) -> None:
        raise KeyboardInterrupt

    def call(number: int) -> None:
        try:
            if number % 3 == 0:
                store._engine.run(Write(interrupted))
            results[number] = store.append_to_transcript(session_id, f"n{number}")
        except BaseException as error:  # noqa: BLE001  (checked below)
            results[number] = type(error)

    threads = [threading.Thread(target=store._engine.run, args=(Write(hold),), daemon=True)]
    threads[0].start()
    assert busy.wait(HANG_SECONDS)
    threads += [threading.Thread(target=call, args=(number,), daemon=True) for number in range(9)]
    for thread in threads[1:]:
        thread.start()
    time.sleep(0.05)  # until all of them wait
    go.set()
    for thread in threads:
        thread.join(HANG_SECONDS)
        assert not thread.is_alive()
    assert {results[number] for number in (0, 3, 6)} == {KeyboardInterrupt}
    assert all(isinstance(results[number], int) for number in (1, 2, 4, 5, 7, 8))
    assert store.get_session(session_id).message_count == 6


def test_the_store_works_after_ctrl_c_at_any_moment(process: StoreProcess, store_url: str) -> None:
    process.call("open_store", url=store_url)
    assert process.call("interrupt_writes", times=150, seed=7) == 150


async def test_a_canceled_caller_affects_no_other_caller(store: SessionStore, dm: Source) -> None:
    session_id = store.get_or_create_session(dm()).session_id
    busy, go = threading.Event(), threading.Event()

    def hold(_tx: Transaction) -> None:
        busy.set()
        assert go.wait(HANG_SECONDS)

    holding = asyncio.ensure_future(store._engine.arun(Write(hold)))
    assert await asyncio.to_thread(busy.wait, HANG_SECONDS)
    writes = [
        asyncio.ensure_future(await_with_timeout(store.aio.append_to_transcript(session_id, f"n{number}")))
        for number in range(12)
    ]
    await asyncio.sleep(0.02)
    for write in writes[::2]:
        write.cancel()
    await asyncio.sleep(0)
    go.set()
    await asyncio.wait_for(holding, HANG_SECONDS)
    results = await asyncio.wait_for(asyncio.gather(*writes, return_exceptions=True), HANG_SECONDS)
    assert all(isinstance(each, int) for each in results[1::2])
    stored = [message["content"] for message in await store.aio.load_transcript(session_id)]
    assert {f"n{number}" for number in range(1, 12, 2)} <= set(stored)
    assert len(stored) == len(set(stored))
    assert store.append_to_transcript(session_id, "afterwards")


def test_an_event_loop_that_ends_early_affects_no_other_caller(store: SessionStore, dm: Source) -> None:
    session_id = store.get_or_create_session(dm()).session_id

    async def start_and_leave() -> None:
        for number in range(20):
            task = asyncio.ensure_future(await_with_timeout(store.aio.append_to_transcript(session_id, f"n{number}")))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.sleep(0)

    for _ in range(5):
        asyncio.run(start_and_leave())
    seq = store.append_to_transcript(session_id, "afterwards")
    assert [
        event.seq for event in store.load_events(session_id) if event.message and "afterwards" in event.message.text
    ] == [seq]


def test_an_open_store_does_not_keep_its_process_alive(store_url: str) -> None:
    program = (
        "import asyncio, sys\n"
        "from palaver import SessionSource, SessionStore\n"
        "store = SessionStore.open(sys.argv[1])\n"
        "recorded = store.record_user_message(SessionSource('telegram', 'ada', user_id='ada'), 'hello')\n"
        "asyncio.run(asyncio.wait_for(store.aio.append_to_transcript(recorded.session_id, 'hi'), 20))\n"
        "print('stored')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, store_url],
        check=False,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        env={**os.environ, "PYTHONDEVMODE": "0"},
    )
    assert (result.returncode, result.stdout) == (0, "stored\n"), result.stderr
    with SessionStore.open(store_url) as store:
        assert [session.message_count for session in store.list_sessions()] == [2]
