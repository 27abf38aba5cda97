"""The log and the health of the server are for owners; what is new in a version is for everybody."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core import logs
from palaver.core.errors import AgentRejected
from palaver.core.logs import RecentRecords, configure_logging, hide_in_logs
from palaver.operation.health_check import read_log
from palaver.sessions.turn import TurnState
from palaver.testing import ScriptedAgent
from support.gateway import wait_for_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from palaver.agent.base import AgentRequest
    from support.web import StartWebServer, WebServer

log = logging.getLogger("palaver.test")
MESSAGE = "xylophone-in-the-cellar"


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecentRecords]:
    """Sends the log to the view, as in a server, and restores logging afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logs.RECENT_RECORDS._records.clear()
    configure_logging(io.StringIO())
    yield logs.RECENT_RECORDS
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


async def get_logs(client: httpx2.AsyncClient, **params: Any) -> dict[str, Any]:
    response = await client.get("/api/logs", params=params)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_an_owner_follows_the_log(web: WebServer, records: RecentRecords) -> None:
    owner = await web.sign_in()
    log.info("first_event", extra={"count": 1})
    log.warning("second_event", extra={"place": "Lisbon"})
    page = await get_logs(owner)
    assert [record["event"] for record in page["records"]] == ["first_event", "second_event"]
    assert page["records"][1]["fields"] == {"place": "Lisbon"}
    assert page["process"]["id"] == records.process_id

    assert [each["event"] for each in (await get_logs(owner, level="warning"))["records"]] == ["second_event"]
    assert [each["event"] for each in (await get_logs(owner, text="LISBON"))["records"]] == ["second_event"]

    log.error("third_event")
    later = await get_logs(owner, cursor=page["cursor"])
    assert later["is_continued"]
    assert [record["event"] for record in later["records"]] == ["third_event"]
    assert (await get_logs(owner, cursor=later["cursor"]))["records"] == []
    elsewhere = await get_logs(owner, cursor="00000000.7")
    assert (elsewhere["is_continued"], len(elsewhere["records"])) == (False, 3)
    assert (await owner.get("/api/logs", params={"cursor": "x"})).status_code == 422


async def test_the_log_and_the_health_are_for_owners(web: WebServer) -> None:
    ada = await web.sign_in("Ada")
    token = await web.open_token_client("read")
    for url in ("/api/logs", "/api/health/details"):
        for client in (ada, token):
            assert (await client.get(url)).status_code == 403
        assert (await (await web.open_anonymous_client()).get(url)).status_code == 401


async def test_the_log_has_no_secrets_and_no_messages(start_web: StartWebServer, records: RecentRecords) -> None:
    hide_in_logs(["the-provider-key"])

    def reject(request: AgentRequest) -> str:
        raise AgentRejected(f"the-provider-key was rejected for {len(request.messages)} messages")

    web = await start_web(ScriptedAgent(reject))
    owner = await web.sign_in()
    session = await web.create_session(owner, title=MESSAGE)
    sent = await owner.post(f"/api/sessions/{session}/messages", json={"content": MESSAGE, "key": "k1"})
    turn = await wait_for_turn(web.gateway, sent.json()["turn_id"])
    assert turn.state is TurnState.FAILED  # with the error in the log
    await owner.get("/api/search", params={"query": MESSAGE})
    await owner.post(f"/api/sessions/{session}/messages", content=b"{" + MESSAGE.encode())
    log.warning(
        "provider_failed", extra={"error": "key the-provider-key", "api_key": "abc123", "url": "pal_" + "x" * 20}
    )
    text = (await owner.get("/api/logs")).text
    assert "provider_failed" in text
    for secret in ("the-provider-key", "abc123", "x" * 20, MESSAGE):
        assert secret not in text


def test_only_the_last_lines_are_kept_and_they_are_bounded() -> None:
    source = RecentRecords()
    for number in range(logs.MAX_KEPT_RECORDS + 10):
        source.add({"event": f"event {number}", "level": "info", "text": "a" * 100_000, "more": "b" * 100_000})
    kept = source.list_records()
    assert len(kept) == logs.MAX_KEPT_RECORDS
    assert kept[0].event == "event 10"
    assert sum(len(value) for value in kept[-1].fields.values()) <= logs.MAX_RECORD_CHARS
    page = read_log(limit=5, source=source, cursor=f"{source.process_id}.3")  # what followed is no longer kept
    assert (page.is_continued, [record.no for record in page.records]) == (False, [2006, 2007, 2008, 2009, 2010])
    page = read_log(limit=2, source=source, cursor=f"{source.process_id}.2000")
    assert (page.is_continued, [record.no for record in page.records]) == (True, [2001, 2002])
    assert read_log(limit=2, source=source, cursor=page.cursor).records[0].no == 2003


async def test_an_owner_sees_what_doctor_finds(web: WebServer) -> None:
    owner = await web.sign_in()
    response = await owner.get("/api/health/details")
    assert response.status_code == 200, response.text
    report = response.json()
    assert {"Versions", "Configuration", "Database"} <= {finding["subject"] for finding in report["findings"]}
    assert report["ok"] is all(finding["severity"] != "problem" for finding in report["findings"])
    assert all(finding["fix"] for finding in report["findings"] if finding["severity"] != "ok")


async def test_everybody_reads_what_is_new(web: WebServer) -> None:
    ada = await web.sign_in("Ada")
    notes = (await ada.get("/api/update-notes")).json()
    assert "###" in notes["text"]
