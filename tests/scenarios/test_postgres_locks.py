"""A row or a lock that something else holds on PostgreSQL stops only the work that needs it, and only for a while."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from palaver import SessionSource, SessionStore
from palaver.core.engines import postgres_connection, postgres_pool
from palaver.core.engines.base import Read, WorkKind, Write, write_kind
from palaver.core.engines.postgres import PostgresEngine
from palaver.core.errors import StoreBusy
from palaver.platforms.loopback import LOOPBACK
from palaver.testing import ScriptedAgent
from scenarios.gateway_harness import FakePlatform, GatewayLauncher, load_final_state
from support.gateway import wait_until
from support.web import web_server_factory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.web import StartWebServer

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("store_url", ["postgres"], indirect=True)]


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(postgres_connection.TIME_LIMITS, "lock_timeout", 500)
    monkeypatch.setattr(postgres_pool, "BUSY_TIMEOUT_SECONDS", 1.0)


@pytest.fixture
async def start_web(store_url: str, tmp_path: Path) -> AsyncIterator[StartWebServer]:
    async with web_server_factory(store_url, tmp_path) as start:
        yield start


@contextmanager
def hold_lock(url: str, sql: str, *params: object) -> Iterator[psycopg.Connection]:
    """Lock rows on another connection, as an administrator who forgets to commit."""
    with psycopg.connect(url) as other:
        other.execute(sql, params)
        yield other
        other.rollback()


async def test_messages_to_a_locked_conversation_fail_with_a_named_error_and_hold_up_nobody(
    start_web: StartWebServer, store_url: str
) -> None:
    web = await start_web(ScriptedAgent("Good morning."))
    ada, ben = await web.sign_in("ada"), await web.sign_in("ben")
    locked = await web.create_conversation(ada, "hello")
    with hold_lock(store_url, "SELECT 1 FROM session WHERE id = %s FOR UPDATE", locked):
        sends = [
            asyncio.create_task(
                ada.post(f"/api/sessions/{locked}/messages", json={"content": "more", "key": f"locked-{number}"})
            )
            for number in range(20)
        ]
        other_id = await web.create_conversation(ben, "about penguins")
        assert [each["id"] for each in (await ben.get("/api/sessions")).json()["sessions"]] == [other_id]
        assert (await ben.get("/api/search", params={"query": "penguins"})).is_success
        assert (await ben.get("/readyz")).is_success
        second_id = await web.create_conversation(ada, "something else")  # her own other conversations work, too
        responses = await asyncio.gather(*sends)
    assert {response.status_code for response in responses} == {503}
    assert {response.json()["error"]["code"] for response in responses} == {"store_busy"}
    assert all(int(response.headers["Retry-After"]) > 0 for response in responses)
    for session_id in (locked, second_id):
        await web.send_message(ada, session_id, "again")


async def test_twenty_changes_that_wait_for_a_lock_leave_connections_to_every_other_kind_of_work(
    store_url: str,
) -> None:
    with SessionStore.open(store_url) as store:
        locked = store.record_user_message(SessionSource.local_cli(), "hello").session_id
        other = store.record_user_message(SessionSource(LOOPBACK, "ben", user_id="ben"), "hello").session_id
        with hold_lock(store_url, "SELECT 1 FROM session WHERE id = %s FOR UPDATE", locked):
            waiting = [asyncio.create_task(append_as(WorkKind.REQUEST, store, locked)) for _ in range(20)]
            for kind in (WorkKind.TURN, WorkKind.BACKGROUND):
                await asyncio.create_task(append_as(kind, store, other))
            assert len(await store.aio.load_transcript(locked)) == 1
            assert not any(task.done() and task.exception() is None for task in waiting)
            results = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(result) for result in results} == {StoreBusy}
        await store.aio.append_to_transcript(locked, "x")


async def append_as(kind: WorkKind, store: SessionStore, session_id: str) -> None:
    write_kind.set(kind)
    await store.aio.append_to_transcript(session_id, "x")


def test_a_transaction_that_stands_still_loses_its_locks_and_its_work_runs_again(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres_connection.TIME_LIMITS, "idle_in_transaction_session_timeout", 200)
    engine = PostgresEngine.open(store_url)
    attempts = 0

    def work(tx: Any) -> int:
        nonlocal attempts
        attempts += 1
        tx.lock_name("a lock that everyone needs")
        if attempts == 1:  # as if this process were paused here
            with psycopg.connect(store_url) as other:
                other.execute("SELECT pg_advisory_xact_lock(hashtextextended('a lock that everyone needs', 0))")
        return int(tx.fetch_one("SELECT 7")[0])

    try:
        assert engine.run(Write(work)) == 7
        assert attempts == 2
    finally:
        engine.close()


def test_a_long_statement_has_no_time_limit_and_any_other_has_one(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres_connection.TIME_LIMITS, "statement_timeout", 200)
    engine = PostgresEngine.open(store_url)
    try:
        for work in (Read, Write):
            with pytest.raises(StoreBusy):
                engine.run(work(lambda tx: tx.fetch_one("SELECT pg_sleep(30)")))
            engine.run(work(lambda tx: tx.fetch_one("SELECT pg_sleep(0.3)"), is_long=True))
    finally:
        engine.close()


def is_paused(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"


@pytest.mark.parametrize("claim", ["message", "loop"])
async def test_a_process_that_is_paused_while_it_claims_turns_does_not_stop_the_answers_of_another(
    gateway_launcher: GatewayLauncher, store_url: str, tmp_path: Path, claim: str
) -> None:
    platform = FakePlatform(store_url, tmp_path)
    paused = gateway_launcher.start(platform.build_options(pauses_in_claim=claim, lease_seconds=2.0))
    platform.add_messages("plain first", user="ada")
    platform.send_messages(paused)
    await wait_until(lambda: is_paused(paused.pid))
    other = gateway_launcher.start(platform.build_options(lease_seconds=2.0))
    platform.add_messages("plain second", user="bob")
    platform.add_messages("plain third", user="eve")
    platform.send_messages(other)
    platform.wait_for_acknowledgements(other)
    other.wait_until_idle()
    assert is_paused(paused.pid), "the other process has answered everything meanwhile"
    os.kill(paused.pid, signal.SIGCONT)
    final = load_final_state(platform, other, paused)
    final.check()
    assert final.count_turn_states() == {"done": 3}
