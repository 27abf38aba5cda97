"""Searches over HTTP and by the agent while messages are not indexed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.agent.history_tools import make_history_tools
from palaver.core.ids import PersonId
from palaver.people.model import Principal, Role
from palaver.sessions import indexer
from palaver.sessions.indexer import Indexer

if TYPE_CHECKING:
    import httpx2

    from support.web import WebServer


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "BATCH_EVENTS", 4)
    monkeypatch.setattr(indexer, "MAX_CATCH_UP_SECONDS", 0.0)
    monkeypatch.setattr(Indexer, "notify", lambda _: None)


async def test_the_api_and_the_agent_are_told_that_messages_are_still_being_indexed(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    session_id = await web.create_session(ada)
    for number in range(6):
        web.gateway.store.append_to_transcript(session_id, f"lighthouse {number}")
    search_tool, *_ = make_history_tools(web.gateway.store.aio.seen_by(await find_principal(ada)))
    assert "Some messages are not indexed yet" in str(await search_tool.run({"query": "lighthouse"}))
    found = (await ada.get("/api/search", params={"query": "lighthouse"})).json()
    assert (len(found["hits"]), found["is_indexing"]) == (6, False)
    for number in range(6):
        web.gateway.store.append_to_transcript(session_id, f"harbor {number}")
    found = (await ada.get("/api/search", params={"query": "harbor"})).json()
    assert (len(found["hits"]), found["is_indexing"]) == (4, True)
    assert "not indexed yet" not in str(await search_tool.run({"query": "harbor"}))


async def find_principal(client: httpx2.AsyncClient) -> Principal:
    person_id = (await client.get("/api/me")).json()["person"]["id"]
    return Principal(PersonId(person_id), Role.MEMBER)
