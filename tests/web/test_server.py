"""Running a server: health checks, metrics, errors, the page, and the HTTP server itself."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

import httpx2
import pytest

from palaver import TurnUsage
from palaver.agent.base import TextDelta, UsageReport
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.core.errors import ConfigError, PalaverError, StoreUnavailable
from palaver.jobs import runs_table as job_runs
from palaver.operation import metrics
from palaver.platforms.loopback import LoopbackAdapter
from palaver.testing import ScriptedAgent
from palaver.web.errors import STATUS_BY_ERROR
from palaver.web.server import run_server
from palaver.web.sockets import open_socket
from support.job_runs import insert_job

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import StartWebServer, WebServer


async def test_health_checks_need_no_sign_in(web: WebServer) -> None:
    anonymous = await web.open_anonymous_client()
    for path in ("/healthz", "/readyz"):
        response = await anonymous.get(path)
        assert (response.status_code, response.json()["status"]) == (200, "ok")


async def test_a_server_without_its_store_is_alive_but_not_ready(web: WebServer) -> None:
    anonymous = await web.open_anonymous_client()
    web.gateway.store.close()
    assert (await anonymous.get("/healthz")).status_code == 200
    response = await anonymous.get("/readyz")
    assert (response.status_code, response.json()["error"]["code"]) == (503, "store_closed")


@pytest.mark.both_engines
async def test_metrics_count_turns_tokens_and_cost_once(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "READ_DELAY", metrics.READ_DELAY * 0)
    usage = UsageReport(TurnUsage(model="big", input_tokens=100, output_tokens=10, cost="0.25"))
    web = await start_web(ScriptedAgent(lambda _request: [TextDelta("ok"), usage]))
    owner = await web.sign_in()
    await web.create_conversation(owner, "one", "two")
    job_row = insert_job(web.gateway.store, LoopbackAdapter().get_source("ada"), "every 1h")
    slot = web.gateway.store.clock.now()
    miss = partial(job_runs.record_missed, slot=slot, slot_count=3, reason="", now=to_micros(slot), is_untold=False)
    web.gateway.store.engine.run(Write(lambda tx: miss(tx, job_row)))
    text = (await owner.get("/metrics")).text

    def get_value(name: str) -> float:
        match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        assert match is not None, name
        return float(match[1])

    assert get_value('palaver_turns_total{state="done"}') == 2
    assert get_value('palaver_open_turns{state="queued"}') == 0
    assert get_value('palaver_job_runs_total{state="missed"}') == 3  # slots that are one row
    assert get_value('palaver_open_job_runs{state="queued"}') == 0
    assert get_value('palaver_tokens_total{kind="input",model="big"}') == 200
    assert get_value('palaver_cost_usd_total{model="big"}') == 0.5
    assert get_value("palaver_turn_duration_seconds_count") == 2
    assert (
        get_value('palaver_http_request_duration_seconds_count{method="POST",route="send_message",status="202"}') == 2
    )
    text = (await owner.get("/metrics")).text
    assert get_value('palaver_turns_total{state="done"}') == 2  # counted once


async def test_metrics_are_for_owners_and_tokens_with_the_scope_admin(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    assert (await ada.get("/metrics")).status_code == 403
    assert (await (await web.open_token_client("read")).get("/metrics")).status_code == 403
    assert (await (await web.open_token_client("admin")).get("/metrics")).status_code == 200


# ---- errors ------------------------------------------------------------------------------------------------


async def test_http_errors_have_the_common_shape(web: WebServer) -> None:
    owner = await web.sign_in()
    missing = await owner.get("/api/nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    wrong_method = await owner.put("/api/sessions", json={})
    assert (wrong_method.status_code, wrong_method.json()["error"]["code"]) == (405, "method_not_allowed")
    broken = await owner.post("/api/sessions", content=b"{", headers={"Content-Type": "application/json"})
    assert (broken.status_code, broken.json()["error"]["code"]) == (422, "invalid_request")


async def test_an_internal_error_hides_its_details(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def list_models() -> list[str]:
        raise ZeroDivisionError("internal details")

    owner = await web.sign_in()
    monkeypatch.setattr(web.gateway.agent, "list_models", list_models)
    response = await owner.get("/api/models")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    assert "internal details" not in response.text


async def test_an_unavailable_database_is_503(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_work: object) -> object:
        raise StoreUnavailable("the database cannot be reached")

    owner = await web.sign_in()
    monkeypatch.setattr(web.gateway.store.engine, "arun", fail)
    response = await owner.get("/api/sessions")
    assert (response.status_code, response.json()["error"]["code"]) == (503, "store_unavailable")
    monkeypatch.undo()


def test_every_error_class_has_a_status() -> None:
    def list_subclasses(error_class: type[PalaverError]) -> list[type[PalaverError]]:
        return [error_class, *(each for subclass in error_class.__subclasses__() for each in list_subclasses(subclass))]

    for error_class in list_subclasses(PalaverError):
        assert any(issubclass(error_class, base) for base, _ in STATUS_BY_ERROR)
    assert StoreUnavailable().code == "store_unavailable"


# ---- the page ----------------------------------------------------------------------------------------------


async def test_the_page_is_served_for_every_path_outside_the_api(start_web: StartWebServer, tmp_path: Path) -> None:
    page = tmp_path / "static"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>Palaver</title>")
    (page / "assets/main-1a2b.js").write_text("export {}")
    (tmp_path / "secret.txt").write_text("not part of the page")
    anonymous = await (await start_web(page_folder=page)).open_anonymous_client()
    for path in ("/", "/sign-in", "/sessions/20261115_081200_1a2b3c4d"):
        response = await anonymous.get(path)
        assert "<title>Palaver</title>" in response.text
        assert response.headers["cache-control"] == "no-cache"
        assert "default-src 'none'" in response.headers["content-security-policy"]
    script = await anonymous.get("/assets/main-1a2b.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in script.headers["cache-control"]
    assert (script.headers["content-encoding"], script.text) == ("gzip", "export {}")
    plain = await anonymous.get("/assets/main-1a2b.js", headers={"Accept-Encoding": "identity"})
    assert ("content-encoding" in plain.headers, plain.text) == (False, "export {}")
    assert script.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert (await anonymous.get("/assets/main-0000.js")).status_code == 404
    assert (await anonymous.get("/api/nothing")).status_code == 404
    for path in ("/../secret.txt", "/..%2fsecret.txt", "/assets/../../secret.txt"):
        assert "not part of the page" not in (await anonymous.get(path)).text


async def test_a_page_that_is_replaced_while_the_server_runs_is_served_in_its_new_version(
    start_web: StartWebServer, tmp_path: Path
) -> None:
    page = tmp_path / "static"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>Old</title>")
    (page / "assets/main-old.js").write_text("export const old = 1")
    (page / "assets/icon-old.png").write_bytes(b"png")
    anonymous = await (await start_web(page_folder=page)).open_anonymous_client()
    for path in ("/", "/assets/main-old.js", "/assets/icon-old.png"):
        assert (await anonymous.get(path)).status_code == 200

    for path in ("index.html", "assets/main-old.js", "assets/icon-old.png"):  # as an upgrade begins
        (page / path).unlink()
    for path in ("/assets/main-old.js", "/assets/icon-old.png"):
        assert (await anonymous.get(path)).status_code == 404
    for path in ("/", "/x/y"):
        response = await anonymous.get(path)
        assert (response.status_code, response.headers["content-type"]) == (503, "application/json")

    (page / "assets/main-new.js").write_text("export const fresh = 1")
    (page / "index.html").write_text("<!doctype html><title>New</title>")
    for path in ("/", "/x/y"):
        assert "<title>New</title>" in (await anonymous.get(path)).text
    assert (await anonymous.get("/assets/main-new.js")).text == "export const fresh = 1"
    assert (await anonymous.get(f"/{'x' * 5000}")).status_code == 200  # no name of a file, and no error


async def test_the_diagram_document_cannot_make_requests(start_web: StartWebServer, tmp_path: Path) -> None:
    page = tmp_path / "static"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>Palaver</title>")
    (page / "diagram.html").write_text("<!doctype html><title>Diagrams</title><script>draw();\n</script>")
    (page / "assets/mermaid-1a2b.js").write_text("export {}")
    anonymous = await (await start_web(page_folder=page)).open_anonymous_client()
    diagram = await anonymous.get("/diagram.html")
    assert "<title>Diagrams</title>" in diagram.text
    script_hash = b64encode(sha256(b"draw();\n").digest()).decode()
    assert diagram.headers["content-security-policy"] == (
        f"default-src 'none'; script-src blob: 'sha256-{script_hash}'; style-src 'unsafe-inline'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
    )
    assert diagram.headers["x-frame-options"] == "SAMEORIGIN"
    for path in ("/", "/diagram", "/x/diagram.html", "/assets/mermaid-1a2b.js"):
        response = await anonymous.get(path)
        assert "sandbox" not in response.headers["content-security-policy"]
        assert response.headers["x-frame-options"] == "DENY"
    assert diagram.headers["cross-origin-resource-policy"] == "same-origin"


# ---- the server --------------------------------------------------------------------------------------------


async def test_a_port_in_use_is_reported_with_alternatives() -> None:
    with open_socket("127.0.0.1", 0) as listener, pytest.raises(ConfigError, match=r"already in use\. Choose another"):
        open_socket("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(ConfigError, match="Cannot listen on"):
        open_socket("203.0.113.7", 0)


async def test_two_servers_on_one_store_serve_the_same_conversations(start_web: StartWebServer) -> None:
    first, second = await start_web(), await start_web()
    first_client, second_client = await first.sign_in(), await second.sign_in()
    session_id = await first.create_conversation(first_client, "hello")
    assert (await second_client.get(f"/api/sessions/{session_id}")).json()["message_count"] == 2
    await second.send_message(second_client, session_id, "from the other one", key="another")
    assert (await first_client.get(f"/api/sessions/{session_id}")).json()["message_count"] == 4


async def test_an_open_request_finishes_before_the_server_stops(web: WebServer) -> None:
    async def slow_app(scope: object, receive: object, send: object) -> None:
        started.set()
        await can_continue.wait()
        await web.app(scope, receive, send)  # type: ignore[arg-type]

    started, can_continue = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks, httpx2.AsyncClient() as client:
        async with run_server(slow_app, open_socket("127.0.0.1", 0)) as port:  # type: ignore[arg-type]
            request = tasks.create_task(client.get(f"http://127.0.0.1:{port}/healthz"))
            await started.wait()
            asyncio.get_running_loop().call_later(0.2, can_continue.set)
        assert (await request).status_code == 200
