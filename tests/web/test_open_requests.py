"""Requests in progress: what one person opens leaves room for all others."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.web import open_requests
from palaver.web.http_protocol import ConnectionLimits
from palaver.web.open_requests import OpenRequests, RequestLimits
from support.agents import EndlessAgent
from support.gateway import TIMEOUT_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2
    import pytest

    from support.web import StartWebServer, WebServer

FEW = RequestLimits(per_person=6, streams=8, streams_per_person=3)


@dataclass
class OpenStream:
    response: httpx2.Response
    chunks: AsyncIterator[bytes]

    async def wait_for_end(self) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            async for _ in self.chunks:
                pass


def use_limits(web: WebServer, limits: RequestLimits = FEW) -> OpenRequests:
    web.app.state.open_requests = requests = OpenRequests(limits)
    return requests


async def open_stream(stack: AsyncExitStack, client: httpx2.AsyncClient) -> OpenStream:
    """Open a live stream and wait until it has started or was refused."""
    response = await stack.enter_async_context(client.stream("GET", "/api/live"))
    chunks = response.aiter_bytes()
    stack.push_async_callback(chunks.aclose)  # kept until then
    if response.status_code == 200:
        await anext(chunks)  # the server sends it after it has subscribed the client
    else:
        await response.aread()
    return OpenStream(response, chunks)


def count_streams(requests: OpenRequests) -> dict[str, int]:
    return {person: len(places) for person, places in requests._streams.items()}


async def test_one_person_cannot_take_the_streams_of_all(start_web: StartWebServer) -> None:
    web = await start_web(limits=ConnectionLimits(total=48, per_address=48))
    use_limits(web, RequestLimits.from_connections(48))
    greedy, ben = await web.sign_in("greedy"), await web.sign_in("ben")
    async with AsyncExitStack() as stack:
        opened = [(await open_stream(stack, greedy)).response for _ in range(20)]
        refused = [each for each in opened if each.status_code != 200]
        assert len(refused) == 20 - open_requests.MIN_PLACES
        for response in refused:
            assert response.status_code == 429
            assert 1 <= int(response.headers["Retry-After"]) <= 60
            assert response.json()["error"]["code"] == "too_many_streams"
            assert "live streams" in response.json()["error"]["message"]
        assert (await open_stream(stack, ben)).response.status_code == 200
        assert (await greedy.get("/api/me")).status_code == 200


async def test_a_new_stream_takes_the_place_of_the_persons_oldest_one(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_requests, "MIN_STREAM_SECONDS", 0.0)
    web = await start_web()
    requests = use_limits(web)
    ada, ben = await web.sign_in("ada"), await web.sign_in("ben")
    async with AsyncExitStack() as stack:
        await open_stream(stack, ben)
        streams = [await open_stream(stack, ada) for _ in range(3)]
        assert (await open_stream(stack, ada)).response.status_code == 200
        await streams[0].wait_for_end()
        assert sorted(count_streams(requests).values()) == [1, 3]
    await wait_until(lambda: not count_streams(requests))


async def test_when_all_places_are_taken_the_one_with_most_streams_gives_one_away(start_web: StartWebServer) -> None:
    web = await start_web()
    requests = use_limits(web, RequestLimits(per_person=6, streams=4, streams_per_person=3))
    ada, ben, eve = await web.sign_in("ada"), await web.sign_in("ben"), await web.sign_in("eve")
    async with AsyncExitStack() as stack:
        of_ada = [await open_stream(stack, ada) for _ in range(3)]
        await open_stream(stack, ben)
        assert (await open_stream(stack, eve)).response.status_code == 200
        await of_ada[0].wait_for_end()
        assert sorted(count_streams(requests).values()) == [1, 1, 2]
        # It would only change places with others, back and forth.
        refused = (await open_stream(stack, ada)).response
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_streams")
        assert sorted(count_streams(requests).values()) == [1, 1, 2]


async def test_answers_that_programs_wait_for_leave_room_for_others(start_web: StartWebServer) -> None:
    web = await start_web(EndlessAgent().agent)
    use_limits(web)
    program = await web.open_token_client("chat", person="ada")
    ben = await web.sign_in("ben")
    body = {"model": "palaver", "messages": [{"role": "user", "content": "hello"}]}
    async with asyncio.TaskGroup() as tasks:
        waiting = [
            tasks.create_task(program.post("/v1/chat/completions", json=body | {"user": str(number)}))
            for number in range(10)
        ]
        await wait_until(lambda: sum(each.done() for each in waiting) == len(waiting) - FEW.per_person)
        refused = [each.result() for each in waiting if each.done()]
        assert {each.status_code for each in refused} == {429}
        assert all(int(each.headers["Retry-After"]) for each in refused)
        assert "requests in progress" in refused[0].json()["error"]["message"]
        assert (await ben.get("/api/me")).status_code == 200
        for each in waiting:
            each.cancel()


async def test_a_request_counts_only_until_its_response_was_sent(start_web: StartWebServer) -> None:
    web = await start_web()
    requests = use_limits(web, RequestLimits(per_person=1, streams=4, streams_per_person=3))
    ada = await web.sign_in("ada")
    for path in ("/api/me", "/api/nothing", "/api/sessions/20000101_000000_00000000", "/api/sessions?limit=x") * 3:
        assert (await ada.get(path)).status_code in {200, 404, 422}
    async with AsyncExitStack() as stack:
        await open_stream(stack, ada)
        assert (await ada.get("/api/me")).json()["error"]["code"] == "too_many_requests"
    await wait_until(lambda: not requests._counts)
    assert (await ada.get("/api/me")).status_code == 200
