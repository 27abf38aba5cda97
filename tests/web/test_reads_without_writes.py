"""Reading needs no write: every read is answered while another process holds the write lock, and on a full disk."""

from __future__ import annotations

import asyncio
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from palaver.core.engines import sqlite_file
from palaver.core.engines.base import Read, Write
from palaver.core.engines.sqlite import SqliteEngine
from palaver.people.model import Scope
from palaver.sessions import indexer
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.web import build_api_document
from web.test_isolation import STREAMS, create_resources, fill_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx2

    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Transaction
    from support.web import WebServer

    Source = Callable[..., SessionSource]

pytestmark = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # PostgreSQL has no lock of all rows
UNKNOWN_IDS = {"secret": "0" * 43, "model": "no-such-model", "platform": "no-such-platform"}
PARAMS = {"search_messages": {"query": "unindexed"}}


@pytest.fixture(autouse=True)
def wait_for_locks_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whatever waits for the write lock hang, and keep the index behind, so that a search has something to do."""
    monkeypatch.setattr(sqlite_file, "LOCK_TIMEOUT_SECONDS", 3600.0)
    monkeypatch.setattr(indexer, "QUIET_SECONDS", 3600.0)


@contextmanager
def hold_write_lock(store_url: str) -> Iterator[None]:
    with closing(apsw.Connection(store_url.removeprefix("sqlite:///"), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
        db.set_busy_timeout(60_000)
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")


def forget_last_use(tx: Transaction) -> None:
    """Make the time of the last use of every credential due to be written."""
    tx.execute("UPDATE sign_in SET last_seen_at = last_seen_at - 3600000000")
    tx.execute("UPDATE api_token SET last_used_at = NULL")


def list_reads() -> list[tuple[str, str]]:
    paths = build_api_document()["paths"]
    reads = [(operation["get"]["operationId"], path) for path, operation in paths.items() if "get" in operation]
    return [(name, path) for name, path in reads if name not in STREAMS]


async def read_everything(clients: list[httpx2.AsyncClient], ids: dict[str, str]) -> dict[str, Any]:
    """Send every GET request of the API with each client; return the statuses by the name of the request."""
    statuses: dict[str, Any] = {}
    async with asyncio.timeout(TIMEOUT_SECONDS):
        for name, path in list_reads():
            for client in clients:
                response = await client.get(fill_path(path, UNKNOWN_IDS | ids), params=PARAMS.get(name))
                statuses.setdefault(name, []).append(response.status_code)
    return statuses


async def test_every_read_is_answered_while_another_process_holds_the_write_lock(
    web: WebServer, store_url: str
) -> None:
    two = await create_resources(web)
    clients = [two.ada, await web.sign_in(), await web.open_token_client(*Scope)]
    await web.create_conversation(two.ada, "unindexed words")
    await web.gateway.store.engine.arun(Write(forget_last_use))
    with hold_write_lock(store_url):
        statuses = await read_everything(clients, two.ids)
    assert {name for name, each in statuses.items() if max(each) >= 500} <= {"list_available_models", "check_readiness"}
    assert statuses["search_messages"] == [200, 200, 200]
    assert statuses["list_sessions"] == [200, 200, 200]


async def test_the_last_use_is_written_when_the_lock_is_free(web: WebServer, store_url: str) -> None:
    ada = await web.sign_in("ada")
    engine = web.gateway.store.engine
    await engine.arun(Write(forget_last_use))
    read = Read(lambda tx: tx.fetch_one("SELECT MAX(last_seen_at) FROM sign_in"))
    before = engine.run(read)
    with hold_write_lock(store_url):
        for _ in range(3):
            assert (await ada.get("/api/me")).is_success
        assert engine.run(read) == before
    await wait_until(lambda: engine.run(read) != before)


async def test_a_read_mark_does_not_wait_for_the_lock(web: WebServer, store_url: str) -> None:
    ada = await web.sign_in("ada")
    session_id = await web.create_conversation(ada, "hello")
    with hold_write_lock(store_url):
        async with asyncio.timeout(TIMEOUT_SECONDS):
            response = await ada.put(f"/api/sessions/{session_id}/read", json={"seq": 1})
    assert (response.status_code, response.json()["error"]["code"]) == (503, "store_busy")


def test_a_search_in_the_terminal_does_not_wait_for_the_lock(store: SessionStore, store_url: str, dm: Source) -> None:
    store.record_user_message(dm(), "indexed words")
    assert len(store.search("words")) == 1
    store.record_user_message(dm(), "later words")
    with hold_write_lock(store_url):
        assert len(store.search("words")) == 1
    assert len(store.search("words")) == 2


async def test_a_full_database_refuses_messages_with_words_and_goes_on_when_there_is_space(web: WebServer) -> None:
    """SQLite's own limit of pages: the same error as a full disk, also where nothing can be mounted."""
    ada = await web.sign_in("ada")
    session_id = await web.create_conversation(ada, "before")
    engine = web.gateway.store.engine
    assert isinstance(engine, SqliteEngine)
    db = engine._writer_connection.db
    engine._writer.run_exclusively(lambda: db.execute("PRAGMA max_page_count = 1").fetchall())  # as many as there are
    await engine.arun(Write(forget_last_use))
    url = f"/api/sessions/{session_id}/messages"
    refused = await ada.post(url, json={"content": "x" * 30_000, "key": "1"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (507, "store_full")
    assert "Free some space" in refused.json()["error"]["message"]
    assert str(engine.path.parent) not in refused.text
    for path in ("/api/me", "/api/sessions", url, f"/api/sessions/{session_id}/export", "/api/search?query=before"):
        assert (await ada.get(path)).status_code == 200, path
    engine._writer.run_exclusively(lambda: db.execute("PRAGMA max_page_count = 1000000").fetchall())
    assert (await ada.post(url, json={"content": "x" * 30_000, "key": "1"})).status_code == 202
