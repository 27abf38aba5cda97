"""What the server names where it refuses something, so that a page can say it in another language."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.domain import account, attachment, share
from palaver.domain.errors import PalaverError
from palaver.services import attachments
from palaver.services import shares as sharing
from palaver.services.accounts import accounts
from support.agents import Slowly

if TYPE_CHECKING:
    import pytest
    from httpx2 import Response

    from support.web import StartWeb, Web

CATALOGUE = Path(__file__).parents[2] / "frontend/src/words/refusals.en.ts"
# Refusals that are no errors of the tree: of the edge, and of the inbox.
OTHERS = {"internal_error", "invalid_request", "too_large", "queue_full", "too_long"}


def error(answer: Response) -> dict[str, Any]:
    found: dict[str, Any] = answer.json()["error"]
    return found


def below(kind: type[PalaverError]) -> set[type[PalaverError]]:
    return {kind}.union(*(below(each) for each in kind.__subclasses__()))


def test_the_page_has_words_for_no_code_that_does_not_exist() -> None:
    assert {account, attachment, share}  # imported, so that every error is known
    told = set(re.findall(r"^  (\w+):", CATALOGUE.read_text("utf-8"), re.MULTILINE))
    assert len(told) > 30
    assert told - {kind().code for kind in below(PalaverError)} - OTHERS == set()


async def test_what_cannot_be_taken_back_says_which_way(web: Web) -> None:
    owner = await web.client()
    session = await web.talk(owner, "hello")
    for verb, code in (("redo", "nothing_to_redo"), ("compress", "too_little")):
        refused = await owner.post(f"/api/sessions/{session}/{verb}", json={"key": verb})
        assert (refused.status_code, error(refused)["code"]) == (409, "refused")
        assert error(refused)["facts"]["error"] == code
    assert error(refused)["facts"]["limit"] == 6


async def test_a_taken_title_or_name_is_named_with_what_is_free(web: Web) -> None:
    owner = await web.client()
    await web.talk(owner, "hello", title="Alpha")
    other = await web.talk(owner, "hello", title="Beta")
    taken = await owner.patch(f"/api/sessions/{other}", json={"title": "Alpha"})
    assert error(taken)["facts"] == {"title": "Alpha", "free": "Alpha #2"}
    for expected in (201, 422):
        made = await owner.post("/api/projects", json={"name": "Travel"})
        assert made.status_code == expected
    assert (error(made)["code"], error(made)["facts"]) == ("project_taken", {"name": "Travel"})


async def test_a_limit_is_named_with_what_it_is_a_limit_of(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MOST_TOKENS", 0)
    monkeypatch.setattr(sharing, "MOST_SHARES", 0)
    monkeypatch.setattr(attachments, "MOST_OF_A_PERSON", 3)
    owner = await web.client()
    session = await web.talk(owner, "hello")
    for refused, facts in (
        (await owner.post("/api/me/tokens", json={"name": "x", "scopes": ["read"]}), {"what": "tokens", "limit": 0}),
        (await owner.post(f"/api/sessions/{session}/shares"), {"what": "shares", "limit": 0}),
        (await owner.post("/api/attachments", files={"file": ("a.txt", b"hello")}), {"what": "bytes", "most": 3}),
    ):
        assert (refused.status_code, error(refused)["code"]) == (422, "limit_reached")
        assert error(refused)["facts"] == facts


async def test_a_field_that_is_too_long_says_how_long_it_may_be(web: Web) -> None:
    refused = await (await web.client()).patch("/api/me", json={"name": "x" * 500})
    assert (refused.status_code, error(refused)["code"]) == (422, "invalid_request")
    assert error(refused)["facts"]["where"] == "body.name"
    assert error(refused)["facts"]["limit"] < 500


async def test_a_message_that_is_not_taken_says_why_as_data(start_web: StartWeb) -> None:
    web = await start_web(Slowly().agent())
    owner = await web.client()
    session = await web.session(owner)
    path = f"/api/sessions/{session}/messages"
    await owner.post(path, json={"content": "hello", "key": "1"})
    refused = await owner.post(path, json={"content": "more", "key": "2", "busy": "reject"})
    assert refused.json()["outcome"] == "refused"
    assert refused.json()["facts"] == {"error": "still_answering"}
