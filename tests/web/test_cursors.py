"""Cursors continue a list and tell nothing about other people's data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pytest

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWebServer, WebServer


async def get_page(client: httpx2.AsyncClient, url: str, cursor: str | None = None) -> dict[str, Any]:
    path, _, query = url.partition("?")
    params = {"limit": "1", **dict(parse_qsl(query)), **({"cursor": cursor} if cursor else {})}
    response = await client.get(path, params=params)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


async def fill(web: WebServer, client: httpx2.AsyncClient) -> list[str]:
    for number in range(2):
        assert (await client.post("/api/memories", json={"text": f"fact {number}"})).is_success
    return [await web.create_conversation(client, f"apple {number}") for number in range(2)]


async def test_the_cursors_of_one_person_do_not_depend_on_what_others_do(start_web: StartWebServer) -> None:
    """A cursor with a number of the database would grow with every message of other people."""
    web = await start_web()
    ada, ben = await web.sign_in("Ada"), await web.sign_in("Ben")
    sessions = await fill(web, ada)
    await fill(web, ben)
    for session in sessions:
        await web.send_message(ada, session, "apple again")
    memories = [memory["id"] for memory in (await ada.get("/api/memories")).json()["memories"]]

    for url, key, known in (
        ("/api/search?query=apple", "hits", sessions),
        ("/api/sessions", "sessions", sessions),
        ("/api/memories", "memories", memories),
    ):
        first = await get_page(ada, url)
        cursor = str(first["next_cursor"])
        parts = cursor.split(".")
        numbers = [part for part in parts if part.isdigit() and int(part) < 1_000_000_000]
        assert numbers == ([str(first["hits"][0]["seq"])] if key == "hits" else []), url
        assert any(part in known for part in parts), url
        second = await get_page(ada, url, cursor)
        assert second[key], url
        assert second[key] != first[key], url


@pytest.mark.both_engines
async def test_a_cursor_of_another_person_is_like_one_that_does_not_exist(start_web: StartWebServer) -> None:
    web = await start_web()
    ada, ben = await web.sign_in("Ada"), await web.sign_in("Ben")
    await fill(web, ada)
    [secret, _] = await fill(web, ben)
    missing = "20200101_000000_00000000"

    params = [{"query": "apple", "cursor": f"{session}.2"} for session in (secret, missing)]
    hidden_hit, missing_hit = [await ada.get("/api/search", params=each) for each in params]
    assert hidden_hit.status_code == missing_hit.status_code == 422
    assert hidden_hit.content.replace(secret.encode(), b"") == missing_hit.content.replace(missing.encode(), b"")

    active_at = (await get_page(ada, "/api/sessions"))["next_cursor"].partition(".")[0]
    pages = [await get_page(ada, "/api/sessions", f"{active_at}.{session}") for session in (secret, missing)]
    assert pages[0] == pages[1]

    foreign_memory = (await ben.get("/api/memories")).json()["memories"][0]["id"]
    created_at = (await get_page(ada, "/api/memories"))["next_cursor"].partition(".")[0]
    pages = [
        await get_page(ada, "/api/memories", f"{created_at}.{memory}") for memory in (foreign_memory, "m_00000000")
    ]
    assert pages[0] == pages[1]


async def test_a_search_says_when_its_cursor_was_deleted(web: WebServer) -> None:
    owner = await web.sign_in()
    await fill(web, owner)
    cursor = (await get_page(owner, "/api/search?query=apple"))["next_cursor"]
    await owner.delete(f"/api/sessions/{cursor.partition('.')[0]}")
    response = await owner.get("/api/search", params={"query": "apple", "cursor": cursor})
    assert (response.status_code, "Search again" in response.text) == (422, True)
