"""What the database refuses because of a value is the sender's error; where the database is, is nobody's business."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.sessions import table as sessions
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from support.web import StartWebServer


@pytest.mark.both_engines
@pytest.mark.parametrize(
    "parameters",
    [
        {"query": "hello", "platform": "x" * 5000},
        {"query": "hello", "platform": "a\0b"},
        {"query": "a\0b"},
        {"query": "hello", "project": "x" * 5000},
        {"query": "hello", "session_id": "a\0b"},
        {"query": "hello", "cursor": "20260101_000000_00000000.999999999999999"},
    ],
    ids="-".join,
)
async def test_a_value_that_the_database_refuses_is_not_an_outage(
    start_web: StartWebServer, store_url: str, parameters: dict[str, str]
) -> None:
    web = await start_web(ScriptedAgent("Good morning."))
    owner = await web.sign_in()
    await web.create_conversation(owner, "hello")
    response = await owner.get("/api/search", params=parameters)
    assert response.status_code in {200, 404, 422}, response.text
    assert store_url.rpartition("=")[2] not in response.text
    assert (await owner.get("/readyz")).is_success


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    ("sql", "params", "status", "code"),
    [
        ("SELECT $1::text::tsquery", ["x" * 5000], 422, "invalid_input"),  # 54000
        ("SELECT $1::text::int", ["99999999999"], 422, "invalid_input"),  # 22003
        ("SELECT $1::text", ["a\0b"], 422, "invalid_input"),  # refused before it is sent
        ("SELECT pg_terminate_backend(pg_backend_pid())", [], 503, "store_unavailable"),  # 57P01
        ("DO $$ BEGIN RAISE 'x' USING ERRCODE = '55P03'; END $$", [], 503, "store_busy"),
        ("DO $$ BEGIN RAISE 'x' USING ERRCODE = '57014'; END $$", [], 503, "store_busy"),
        ("DO $$ BEGIN RAISE 'x' USING ERRCODE = '53100'; END $$", [], 507, "store_full"),
        ("DO $$ BEGIN RAISE 'x' USING ERRCODE = '53300'; END $$", [], 503, "store_busy"),
        ("DO $$ BEGIN RAISE 'x' USING ERRCODE = '25006'; END $$", [], 503, "store_read_only"),
        ("DO $$ BEGIN RAISE 'x' USING ERRCODE = '42501'; END $$", [], 503, "store_read_only"),
        ("DO $$ BEGIN RAISE 'x' USING ERRCODE = 'XX001'; END $$", [], 503, "store_damaged"),
        ("DO $$ BEGIN RAISE 'x' USING ERRCODE = '26000'; END $$", [], 503, "store_unavailable"),
        ("SELECT nonsense", [], 500, "internal_error"),  # a mistake in Palaver
    ],
)
async def test_errors_of_postgresql_are_named_by_their_state_and_tell_no_address(
    start_web: StartWebServer,
    store_url: str,
    monkeypatch: pytest.MonkeyPatch,
    sql: str,
    params: list[Any],
    status: int,
    code: str,
) -> None:
    web = await start_web()
    owner = await web.sign_in()
    session_id = await web.create_session(owner)

    def fail(tx: Any, *_: Any) -> None:
        tx.fetch_one(sql, *params)

    monkeypatch.setattr(sessions, "get_visible", fail)
    response = await owner.get(f"/api/sessions/{session_id}")
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    folder = store_url.rpartition("=")[2]
    assert folder not in response.text
    assert "PGSQL" not in response.text
