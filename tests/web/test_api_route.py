"""Routes of the API are built by their first request, and described without that."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import httpx2
from fastapi import Depends, FastAPI, HTTPException, Request

from palaver.core.wire import TypedDict
from palaver.web.api_route import ApiRoute, RouteGroup, make_router
from palaver.web.app import create_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.web import WebServer


class CountedRoute(ApiRoute):
    built: ClassVar[list[str]] = []

    def get_route_handler(self) -> Callable[..., Any]:
        self.built.append(self.path)
        return super().get_route_handler()


class AnswerJson(TypedDict):
    number: int


async def get_answer(number: int) -> AnswerJson:
    return {"number": number}


async def test_only_the_first_request_for_a_route_builds_it() -> None:
    router = make_router("test", "/api", route_class=CountedRoute)
    for path in ("/one/{number}", "/two/{number}"):
        router.get(path)(get_answer)
    app = FastAPI(openapi_url=None)
    app.routes.append(RouteGroup(router))
    assert CountedRoute.built == []
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as client:
        responses = [
            await client.get("/api/three/1"),
            *await asyncio.gather(*(client.get(f"/api/one/{number}") for number in ("1", "x"))),
            await client.post("/api/one/1"),
        ]
    assert [each.status_code for each in responses] == [404, 200, 422, 405]
    assert responses[1].json() == {"number": 1}
    assert CountedRoute.built == ["/api/one/{number}"]


async def get_name(request: Request) -> str:
    names_read.append(request.headers["name"])
    return names_read[-1]


async def greet(name: Name) -> str:
    return f"Hello, {name}."


async def refuse_eve(name: Name) -> None:
    if name == "Eve":
        raise HTTPException(403)


names_read: list[str] = []
Name = Annotated[str, Depends(get_name)]


async def answer(name: Name, greeting: Annotated[str, Depends(greet)], number: int) -> list[str | int]:
    return [name, greeting, number]


async def test_a_dependency_runs_once_and_refuses_before_the_parameters_are_checked() -> None:
    router = make_router("test", "/api")
    router.get("/greeting/{number}", dependencies=[Depends(refuse_eve)])(answer)
    app = FastAPI(openapi_url=None)
    app.routes.append(RouteGroup(router))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as client:
        ada, eve, bad = [
            await client.get(f"/api/greeting/{number}", headers={"name": name})
            for name, number in (("Ada", 1), ("Eve", "x"), ("Bob", "x"))
        ]
    assert ada.json() == ["Ada", "Hello, Ada.", 1]
    assert (eve.status_code, bad.status_code) == (403, 422)
    assert names_read == ["Ada", "Eve", "Bob"]


async def test_the_document_is_generated_once_for_all_that_ask_for_it(web: WebServer) -> None:
    generate, generated = web.app.openapi, []

    def count() -> dict[str, Any]:
        generated.append(generate())
        return generated[-1]

    web.app.openapi = count  # type: ignore[method-assign]
    client = await web.open_anonymous_client()
    responses = await asyncio.gather(*(client.get("/api/openapi.json") for _ in range(5)))
    assert [each.json() for each in responses] == generated * 5
    assert responses[0].headers["content-type"] == "application/json"


def test_the_document_names_the_path_below_which_a_proxy_serves_us() -> None:
    state = SimpleNamespace(metrics=None, public_host=None, base_path="/chat", trusted_proxies=())
    assert create_app(cast("Any", state)).openapi()["servers"] == [{"url": "/chat"}]
