"""What whoever runs a server sees: health, numbers, errors, the page."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

import httpx2
import pytest

from palaver import TurnUsage
from palaver.agent.base import TextDelta, Used
from palaver.domain.errors import ConfigError, PalaverError, StoreUnavailable
from palaver.services import metrics
from palaver.testing import ScriptedAgent
from palaver.web.errors import STATUSES
from palaver.web.server import listen, serving

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import StartWeb, Web


async def test_health_is_told_to_anybody(web: Web) -> None:
    stranger = await web.stranger()
    for path in ("/healthz", "/readyz"):
        answer = await stranger.get(path)
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")


async def test_a_server_without_its_store_is_alive_but_not_ready(web: Web) -> None:
    stranger = await web.stranger()
    web.gateway.store.close()
    assert (await stranger.get("/healthz")).status_code == 200
    answer = await stranger.get("/readyz")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_closed")


@pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)
async def test_the_numbers_tell_of_turns_tokens_and_cost(start_web: StartWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "BEHIND", metrics.BEHIND * 0)
    used = Used(TurnUsage(model="big", input_tokens=100, output_tokens=10, cost="0.25"))
    web = await start_web(ScriptedAgent(lambda _request: [TextDelta("ok"), used]))
    owner = await web.client()
    await web.talk(owner, "one", "two")
    text = (await owner.get("/metrics")).text

    def number(name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        assert found is not None, name
        return float(found[1])

    assert number('palaver_turns_total{state="done"}') == 2
    assert number('palaver_turns_open{state="queued"}') == 0
    assert number('palaver_tokens_total{kind="input",model="big"}') == 200
    assert number('palaver_cost_usd_total{model="big"}') == 0.5
    assert number("palaver_turn_run_seconds_count") == 2
    assert number('palaver_http_request_seconds_count{method="POST",route="send_message",status="202"}') == 2
    text = (await owner.get("/metrics")).text
    assert number('palaver_turns_total{state="done"}') == 2  # counted once


async def test_the_numbers_are_for_owners_and_for_tokens_with_the_scope_admin(web: Web) -> None:
    ada = await web.client("ada")
    assert (await ada.get("/metrics")).status_code == 403
    assert (await (await web.token("read")).get("/metrics")).status_code == 403
    assert (await (await web.token("admin")).get("/metrics")).status_code == 200


# ---- errors ------------------------------------------------------------------------------------------------


async def test_what_is_not_there_is_told_in_the_one_shape(web: Web) -> None:
    owner = await web.client()
    missing = await owner.get("/api/nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    wrong = await owner.put("/api/sessions", json={})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
    broken = await owner.post("/api/sessions", content=b"{", headers={"Content-Type": "application/json"})
    assert (broken.status_code, broken.json()["error"]["code"]) == (422, "invalid_request")


async def test_a_mistake_of_ours_is_told_without_a_trace(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def models() -> list[str]:
        raise ZeroDivisionError("the inside of Palaver")

    owner = await web.client()
    monkeypatch.setattr(web.gateway.agent, "models", models)
    answer = await owner.get("/api/models")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert "the inside of" not in answer.text


async def test_a_store_that_is_away_is_503(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_work: object) -> object:
        raise StoreUnavailable("the database cannot be reached")

    owner = await web.client()
    monkeypatch.setattr(web.gateway.store.engine, "arun", away)
    answer = await owner.get("/api/sessions")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_unavailable")
    monkeypatch.undo()


def test_every_error_has_a_state_and_a_name() -> None:
    def below(kind: type[PalaverError]) -> list[type[PalaverError]]:
        return [kind, *(each for inner in kind.__subclasses__() for each in below(inner))]

    for kind in below(PalaverError):
        assert any(issubclass(kind, known) for known, _ in STATUSES)
    assert StoreUnavailable().code == "store_unavailable"


# ---- the page ----------------------------------------------------------------------------------------------


async def test_the_page_is_served_for_every_path_that_is_its_own(start_web: StartWeb, tmp_path: Path) -> None:
    page = tmp_path / "static"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>Palaver</title>")
    (page / "assets/main-1a2b.js").write_text("export {}")
    (tmp_path / "secret.txt").write_text("not part of the page")
    stranger = await (await start_web(page=page)).stranger()
    for path in ("/", "/sign-in", "/sessions/20261115_081200_1a2b3c4d"):
        answer = await stranger.get(path)
        assert "<title>Palaver</title>" in answer.text
        assert answer.headers["cache-control"] == "no-cache"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    script = await stranger.get("/assets/main-1a2b.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in script.headers["cache-control"]
    assert (script.headers["content-encoding"], script.text) == ("gzip", "export {}")
    plain = await stranger.get("/assets/main-1a2b.js", headers={"Accept-Encoding": "identity"})
    assert ("content-encoding" in plain.headers, plain.text) == (False, "export {}")
    assert script.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert (await stranger.get("/assets/main-0000.js")).status_code == 404
    assert (await stranger.get("/api/nothing")).status_code == 404
    for path in ("/../secret.txt", "/..%2fsecret.txt", "/assets/../../secret.txt"):
        assert "not part of the page" not in (await stranger.get(path)).text


async def test_diagrams_are_drawn_in_a_document_that_may_ask_nobody(start_web: StartWeb, tmp_path: Path) -> None:
    page = tmp_path / "static"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>Palaver</title>")
    (page / "diagram.html").write_text("<!doctype html><title>Diagrams</title><script>draw();\n</script>")
    (page / "assets/mermaid-1a2b.js").write_text("export {}")
    stranger = await (await start_web(page=page)).stranger()
    drawing = await stranger.get("/diagram.html")
    assert "<title>Diagrams</title>" in drawing.text
    own = b64encode(sha256(b"draw();\n").digest()).decode()
    assert drawing.headers["content-security-policy"] == (
        f"default-src 'none'; script-src blob: 'sha256-{own}'; style-src 'unsafe-inline'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
    )
    assert drawing.headers["x-frame-options"] == "SAMEORIGIN"
    for path in ("/", "/diagram", "/x/diagram.html", "/assets/mermaid-1a2b.js"):
        answer = await stranger.get(path)
        assert "sandbox" not in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
    assert drawing.headers["cross-origin-resource-policy"] == "same-origin"


# ---- the server --------------------------------------------------------------------------------------------


async def test_a_port_that_is_taken_is_told_with_the_way_out() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match="in use already; choose another"):
        listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigError, match="cannot listen on"):
        listen("203.0.113.7", 0)


async def test_two_servers_on_one_store_serve_the_same_conversations(start_web: StartWeb) -> None:
    first, second = await start_web(), await start_web()
    here, there = await first.client(), await second.client()
    session_id = await first.talk(here, "hello")
    assert (await there.get(f"/api/sessions/{session_id}")).json()["message_count"] == 2
    await second.say(there, session_id, "from the other one", key="another")
    assert (await here.get(f"/api/sessions/{session_id}")).json()["message_count"] == 4


async def test_a_request_under_way_is_answered_before_the_server_stops(web: Web) -> None:
    async def slow(scope: object, receive: object, send: object) -> None:
        began.set()
        await goes_on.wait()
        await web.app(scope, receive, send)  # type: ignore[arg-type]

    began, goes_on = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks, httpx2.AsyncClient() as client:
        async with serving(slow, listen("127.0.0.1", 0)) as port:  # type: ignore[arg-type]
            asked = tasks.create_task(client.get(f"http://127.0.0.1:{port}/healthz"))
            await began.wait()
            asyncio.get_running_loop().call_later(0.2, goes_on.set)
        assert (await asked).status_code == 200
