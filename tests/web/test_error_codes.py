"""Error codes and their facts, which the page uses to translate errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.accounts import accounts
from palaver.sessions import shares as shares_service
from palaver.sessions.turn import FailureCode, NoticeCode
from support.agents import WORDS, SlowAgent

if TYPE_CHECKING:
    import pytest
    from httpx2 import Response

    from support.web import StartWebServer, WebServer

TURN_TEXTS = Path(__file__).parents[2] / "frontend/src/words/turns.en.ts"


def get_error(response: Response) -> dict[str, Any]:
    error: dict[str, Any] = response.json()["error"]
    return error


def test_the_page_translates_every_code_of_a_turn() -> None:
    assert set(re.findall(r"^  (\w+):", TURN_TEXTS.read_text("utf-8"), re.MULTILINE)) == {*FailureCode, *NoticeCode}


async def test_an_impossible_action_names_its_error(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "hello")
    for action, code in (("redo", "nothing_to_redo"), ("compact", "nothing_to_compact")):
        rejected = await owner.post(f"/api/sessions/{session}/{action}", json={"key": action})
        assert (rejected.status_code, get_error(rejected)["code"]) == (409, "request_rejected")
        assert get_error(rejected)["facts"]["error"] == code
    assert get_error(rejected)["facts"]["limit"] == 6


async def test_a_taken_title_or_name_is_in_the_error(web: WebServer) -> None:
    owner = await web.sign_in()
    await web.create_conversation(owner, "hello", title="Alpha")
    other = await web.create_conversation(owner, "hello", title="Beta")
    taken = await owner.patch(f"/api/sessions/{other}", json={"title": "Alpha"})
    assert get_error(taken)["facts"] == {"title": "Alpha", "available_title": "Alpha #2"}
    for expected in (201, 422):
        created = await owner.post("/api/projects", json={"name": "Travel"})
        assert created.status_code == expected
    assert (get_error(created)["code"], get_error(created)["facts"]) == ("project_name_taken", {"name": "Travel"})


async def test_a_reached_limit_says_what_it_limits(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MAX_TOKENS_PER_PERSON", 0)
    monkeypatch.setattr(shares_service, "MAX_SHARES_PER_PERSON", 0)
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "hello")
    for rejected, facts in (
        (await owner.post("/api/me/tokens", json={"name": "x", "scopes": ["read"]}), {"what": "tokens", "limit": 0}),
        (await owner.post(f"/api/sessions/{session}/shares"), {"what": "shares", "limit": 0}),
    ):
        assert (rejected.status_code, get_error(rejected)["code"]) == (422, "limit_reached")
        assert get_error(rejected)["facts"] == facts


async def test_a_field_that_is_too_long_says_the_limit(web: WebServer) -> None:
    rejected = await (await web.sign_in()).patch("/api/me", json={"name": "x" * 500})
    assert (rejected.status_code, get_error(rejected)["code"]) == (422, "invalid_request")
    assert get_error(rejected)["facts"]["field"] == "body.name"
    assert get_error(rejected)["facts"]["limit"] < 500


async def test_a_rejected_message_has_a_reason_for_programs(start_web: StartWebServer) -> None:
    slow_agent = SlowAgent()
    web = await start_web(slow_agent.agent)
    owner = await web.sign_in()
    session = await web.create_session(owner)
    path = f"/api/sessions/{session}/messages"
    await owner.post(path, json={"content": "hello", "key": "1"})
    rejected = await owner.post(path, json={"content": "more", "key": "2", "busy_policy": "reject"})
    assert rejected.json()["outcome"] == "rejected"
    assert rejected.json()["facts"] == {"error": "session_busy", "retry_after": 5}
    slow_agent.allow_words(len(WORDS))
