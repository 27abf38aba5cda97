"""`/readyz` tells the truth, in time: about the database file, its lock, the disk, connections and waiting turns."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from palaver.core.engines import sqlite as sqlite_engine, sqlite_presence as disk_reserve
from palaver.core.engines.base import Write
from palaver.core.engines.sqlite_file import make_damage_error
from palaver.operation import metrics as readiness
from palaver.operation.doctor import machine
from palaver.operation.doctor.finding import Severity
from palaver.operation.metrics import find_problems
from palaver.web.http_protocol import ConnectionLimits
from support.gateway import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.testing import FakeClock
    from support.web import StartWebServer, WebServer

on_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


async def get_readiness(web: WebServer) -> tuple[int, dict[str, Any]]:
    anonymous = await web.open_anonymous_client()
    response = await anonymous.get("/readyz")
    return response.status_code, response.json()


async def list_problems(web: WebServer) -> tuple[int, list[str]]:
    status, body = await get_readiness(web)
    return status, [body["error"]["code"]] if status == 503 else [problem["code"] for problem in body["problems"]]


async def post_message(client: httpx2.AsyncClient, session_id: str, text: str) -> httpx2.Response:
    return await client.post(
        f"/api/sessions/{session_id}/messages", json={"content": text, "key": text.replace(" ", "-")}
    )


@on_sqlite
async def test_no_message_is_accepted_while_the_file_is_away_and_none_is_lost(web: WebServer, store_url: str) -> None:
    path = Path(store_url.removeprefix("sqlite:///"))
    ada = await web.sign_in("ada")
    session_id = await web.create_conversation(ada, "before")
    path.rename(path.with_name("elsewhere.db"))  # noqa: ASYNC240
    for number in range(5):
        response = await post_message(ada, session_id, f"refused {number}")
        assert (response.status_code, response.json()["error"]["code"]) == (503, "store_file_lost")
        assert str(path.parent) not in response.text
    status, body = await get_readiness(web)
    assert (status, body["error"]["code"]) == (503, "store_file_lost")
    assert "palaver.db was removed or renamed" in body["error"]["message"]
    assert (await (await web.open_anonymous_client()).get("/healthz")).status_code == 200

    path.with_name("elsewhere.db").rename(path)
    assert (await get_readiness(web))[0] == 200
    assert (await post_message(ada, session_id, "after")).status_code == 202
    transcript = web.gateway.store.load_transcript(session_id)
    texts = [message["content"] for message in transcript if message["role"] == "user"]
    assert texts[0] == "before"
    assert texts[-1] == "after"


@on_sqlite
async def test_the_doctor_reports_what_the_running_server_says(web: WebServer, store_url: str) -> None:
    path = Path(store_url.removeprefix("sqlite:///"))
    path.rename(path.with_name("elsewhere.db"))  # noqa: ASYNC240
    [finding] = await asyncio.to_thread(lambda: list(machine._check_running_server(web.url)))
    assert finding.code == "server_problem"
    assert finding.severity is Severity.PROBLEM
    assert "palaver.db was removed or renamed" in finding.text
    path.with_name("elsewhere.db").rename(path)
    [finding] = await asyncio.to_thread(lambda: list(machine._check_running_server(web.url)))
    assert finding.severity is not Severity.PROBLEM
    [finding] = await asyncio.to_thread(lambda: list(machine._check_running_server("http://127.0.0.1:9")))
    assert finding.code == "server_silent"


@on_sqlite
async def test_a_lock_that_another_process_holds_is_a_problem(
    web: WebServer, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_engine, "LONG_LOCK_SECONDS", 0.0)
    ada = await web.sign_in("ada")
    session_id = await web.create_session(ada)
    with closing(apsw.Connection(store_url.removeprefix("sqlite:///"), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
        db.set_busy_timeout(60_000)
        db.execute("BEGIN IMMEDIATE")
        posting = asyncio.create_task(post_message(ada, session_id, "hello"))
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while await list_problems(web) != (503, ["database_locked"]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        db.execute("ROLLBACK")
    assert (await posting).status_code == 202


@on_sqlite
async def test_a_full_disk_and_a_nearly_full_one_are_problems(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_reserve, "NEARLY_FULL_DISK_BYTES", 0)
    assert await list_problems(web) == (200, [])
    monkeypatch.setattr(disk_reserve, "NEARLY_FULL_DISK_BYTES", 10**18)
    assert await list_problems(web) == (200, ["disk_nearly_full"])
    monkeypatch.setattr(disk_reserve, "FULL_DISK_BYTES", 10**18)
    assert await list_problems(web) == (503, ["disk_full"])


async def test_the_limit_of_connections_is_a_problem(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_reserve, "NEARLY_FULL_DISK_BYTES", 0)
    web = await start_web(limits=ConnectionLimits(total=3, per_address=100))
    ada = await web.sign_in("ada")
    assert await list_problems(web) == (200, [])
    async with asyncio.timeout(TIMEOUT_SECONDS):
        async with ada.stream("GET", "/api/live"), ada.stream("GET", "/api/live"), ada.stream("GET", "/api/live"):
            refused = await (await web.open_anonymous_client()).get("/readyz")
            assert refused.status_code == 503
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while (await (await web.open_anonymous_client()).get("/readyz")).status_code == 503:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await list_problems(web) == (200, ["too_many_connections"])


async def test_an_answer_about_a_database_that_hangs_comes_in_time(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = asyncio.Event()
    with monkeypatch.context() as patch:
        patch.setattr(readiness, "MAX_WAIT_SECONDS", 0.1)
        patch.setattr(web.gateway.store.engine, "arun", lambda _work: never.wait())
        assert await list_problems(web) == (503, ["database_slow"])


@pytest.mark.both_engines
async def test_a_turn_that_no_server_takes_is_a_problem(
    store: SessionStore, clock: FakeClock, dm: Callable[..., SessionSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_reserve, "NEARLY_FULL_DISK_BYTES", 0)
    monkeypatch.setattr(readiness, "MAX_WAIT_SECONDS", TIMEOUT_SECONDS)
    store.record_user_message(dm(), "hello")
    now = int(clock.now().timestamp() * 1_000_000)

    def queue_turns(tx: Transaction) -> None:
        session_no = tx.fetch_one("SELECT no FROM session")
        assert session_no is not None
        for turn_id, due_at in (("t_1", 0), ("t_2", now + 3600_000_000)):
            tx.execute(
                "INSERT INTO turn (id, session_no, kind, input_seq, state, queue_round, due_at, created_at)"
                " VALUES ($1, $2, 'answer', 1, 'queued', 0, $3, $4)",
                turn_id,
                session_no[0],
                due_at,
                now,
            )

    store.engine.run(Write(queue_turns))
    assert await find_problems(store) == []
    clock.advance(minutes=10)
    [problem] = await find_problems(store)
    assert (problem.code, problem.is_blocking) == ("turns_waiting", False)
    assert "10 minutes" in problem.message

    def run_turn(tx: Transaction) -> None:
        tx.execute("UPDATE turn SET state = 'running', lease_owner = 'w', lease_until = $1 WHERE id = 't_1'", now)

    store.engine.run(Write(run_turn))
    clock.advance(hours=2)  # the second one waits for the first
    assert await find_problems(store) == []


@on_sqlite
async def test_a_damaged_file_is_told_to_people_without_its_place(web: WebServer) -> None:
    """Where it is, and how to restore it, is for the operator: in the log, and from `palaver doctor`."""
    engine = web.gateway.store.engine
    assert isinstance(engine, sqlite_engine.SqliteEngine)
    owner = await web.sign_in()
    engine._damage = make_damage_error(engine.path, "its table event is missing.")
    body = {"model": "palaver", "messages": [{"role": "user", "content": "hello"}]}
    refused = [
        await owner.post("/api/sessions", json={}),
        await owner.get("/readyz"),
        await owner.post("/v1/chat/completions", json=body),
    ]
    for response in refused:
        assert response.status_code == 503
        assert "damaged" in response.text
        assert str(engine.path.parent) not in response.text
