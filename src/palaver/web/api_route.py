"""The class of all API routes: it finds out who sent a request before anything of the request's body is read.

FastAPI reads and parses the body of a request before it calls any dependency, so a dependency that authenticates comes
too late: a stranger could make the server parse whatever it lets a signed-in person send.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from palaver.web.auth import authenticate, needs_caller
from palaver.web.body_limit import MAX_BODY_BYTES, check_json_values, is_large_request, set_body_limit
from palaver.web.errors import error_responses, make_body_storable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from starlette.types import Message, Receive, Scope, Send

    from palaver.core.fair_slots import FairSlots
    from palaver.web.open_requests import OpenRequests

T = TypeVar("T")

_HELD_KEY: Final = "palaver.held"  # of the ASGI scope: what a request holds until its response is complete


class ApiRoute(APIRoute):
    """A route of the API. Every router is created with `route_class=ApiRoute`, or with a subclass."""

    max_body_bytes: ClassVar[int | None] = MAX_BODY_BYTES  # from a signed-in person; None: the route limits it

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as held:
            scope[_HELD_KEY] = held
            await super().handle(scope, receive, send)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        has_json_body = self.body_field is not None

        async def handle_body(request: Request) -> Response:
            if has_json_body:
                body = await read_body(request)
                check_json_values(body)
                storable = make_body_storable(body)

                async def receive() -> Message:
                    return {"type": "http.request", "body": storable, "more_body": False}

                request = request if storable is body else Request(request.scope, receive)
            return await handle(request)

        async def handle_authenticated(request: Request) -> Response:
            caller = await authenticate(request)
            open_requests: OpenRequests = request.app.state.open_requests
            hold_until_sent(request, open_requests.hold_request(caller.person.id))
            set_body_limit(request.scope, self.max_body_bytes)
            if not is_large_request(request.scope):
                return await handle_body(request)
            large_requests: FairSlots = request.app.state.large_requests
            async with large_requests.hold(caller.person.id):
                return await handle_body(request)

        return handle_authenticated if needs_caller(self.dependant) else handle_body


def hold_until_sent(request: Request, manager: AbstractContextManager[T]) -> T:
    """Enter a context that ends when the response to a request was sent, or the request has failed."""
    held: ExitStack = request.scope[_HELD_KEY]
    return held.enter_context(manager)


def make_router(
    tag: str,
    prefix: str,
    *,
    route_class: type[ApiRoute] = ApiRoute,
    responses: Mapping[int | str, dict[str, Any]] | None = None,
) -> APIRouter:
    """Make a router whose routes are complete: `create_app` uses them as they are.

    `include_router` would build every route a second time, for each application, during its first request.
    """
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=route_class,
        responses=error_responses(400, 403, 422, 500, 503) | dict(responses or {}),
        generate_unique_id_function=lambda route: route.name,  # that of its function
    )


async def read_body(request: Request) -> bytes:
    """Read the body of a request, up to its limit."""
    try:
        return await request.body()  # kept in the request, so that FastAPI gets it from there
    except ClientDisconnect:
        raise HTTPException(400, "The connection was closed before the request was complete.") from None
