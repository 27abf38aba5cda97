"""The class of all API routes: it finds out who sent a request before anything of the request's body is read.

FastAPI reads and parses the body of a request before it calls any dependency, so a dependency that authenticates comes
too late: a stranger could make the server parse whatever it lets a signed-in person send.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import fields, replace
from functools import cached_property, wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import fastapi.utils
from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match, compile_path, get_name

from palaver.web.auth import authenticate, drop_descriptions, needs_caller
from palaver.web.body_limit import MAX_BODY_BYTES, check_json_values, is_large_request, set_body_limit
from palaver.web.errors import error_responses, make_body_storable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping

    from starlette.types import Message, Receive, Scope, Send

    from palaver.core.fair_slots import FairSlots
    from palaver.web.open_requests import OpenRequests

T = TypeVar("T")

# FastAPI refuses models of pydantic 1, and loads that for the check: 1.6 MiB with the first request. We have none.
fastapi.utils.annotation_is_pydantic_v1 = lambda _annotation: False  # type: ignore[assignment, attr-defined]

_MAX_UNKNOWN_QUERIES: Final = 10  # that an error names
_MAX_HANDLERS: Final = 32  # of one route: clients use few combinations of its parameters
# The fields of a dependency that needs nothing but the request.
_OF_THE_REQUEST: Final = {"call", "dependencies", "name", "path", "request_param_name", "use_cache"}
_HELD_KEY: Final = "palaver.held"  # of the ASGI scope: what a request holds until its response is complete


class ApiRoute(APIRoute):
    """A route of the API. Every router is created with `route_class=ApiRoute`, or with a subclass.

    The first request for it builds what reads its requests and writes its responses: building all takes a third of the
    server's start, and much of its memory, and most servers use few of the routes.
    """

    max_body_bytes: ClassVar[int | None] = MAX_BODY_BYTES  # from a signed-in person; None: the route limits it

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.path, self.endpoint, self.methods = path, endpoint, set(options["methods"])
        self.name = options["name"] or get_name(endpoint)
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._options = options
        self._is_built = False

    def describe(self) -> APIRoute:
        """Return a route with all that the OpenAPI document needs."""
        return APIRoute(self.path, self.endpoint, **self._options)

    @cached_property
    def _static_path(self) -> str:
        return self.path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if self._static_path not in scope["path"]:  # most of the routes are out of the question
            return Match.NONE, {}
        return super().matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_built:
            super().__init__(self.path, self.endpoint, **(self._options | {"responses": None}))  # these only describe
            self._is_built = True
        with ExitStack() as held:
            scope[_HELD_KEY] = held
            await super().handle(scope, receive, send)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        described, called = self.dependant, drop_descriptions(self.dependant)
        optional = frozenset(_list_optional_queries(called))
        known = {alias for alias, _ in _list_queries(described)} if self.path.startswith("/api/") else None
        handlers: dict[frozenset[str], Callable[[Request], Coroutine[Any, Any, Response]]] = {}

        async def handle(request: Request) -> Response:
            """Handle a request as a route without the optional parameters that are not in its query.

            FastAPI takes microseconds for each of them; for all of a list, longer than to read a page of it.
            """
            if known is not None and not known.issuperset(request.query_params):
                raise _build_unknown_query_error(request, known)
            absent = optional.difference(request.query_params)
            handler = handlers.get(absent)
            if handler is None:
                absent = absent if len(handlers) < _MAX_HANDLERS else frozenset()
                self.dependant = _join_dependencies(_drop_queries(called, absent))
                handlers[absent] = handler = super(ApiRoute, self).get_route_handler()
                self.dependant = described
            return await handler(request)

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

        return handle_authenticated if needs_caller(described) else handle_body


class RouteGroup(BaseRoute):
    """The routes of one router: nearly all requests pass over them at once."""

    def __init__(self, router: APIRouter) -> None:
        self.routes = router.routes
        self._prefix = router.prefix

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        found: tuple[Match, Scope] = (Match.NONE, {})
        if self._prefix in scope["path"]:
            for route in self.routes:
                match, child_scope = route.matches(scope)
                if match is Match.FULL:
                    return match, child_scope
                if match is Match.PARTIAL and found[0] is Match.NONE:  # of another method
                    found = (match, child_scope)
        return found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope["route"].handle(scope, receive, send)


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


def encode_response(data: object) -> Response:
    """Encode the data of a response that has the declared keys and no others.

    FastAPI would check and copy it first, which takes longer than to read a page of a list from the database.
    """
    return Response(to_json(data), media_type="application/json")


def _list_optional_queries(dependant: Dependant) -> Iterator[str]:
    """List the query parameters of a route and its dependencies that need not be there."""
    return (alias for alias, is_required in _list_queries(dependant) if not is_required)


def _list_queries(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """List the query parameters of a route and its dependencies, and whether they have to be there."""
    for each in dependant.dependencies:
        yield from _list_queries(each)
    yield from ((param.alias, param.field_info.is_required()) for param in dependant.query_params)


def _build_unknown_query_error(request: Request, known: Collection[str]) -> RequestValidationError:
    """Build the error for parameters that would be ignored: a list without a condition looks like one that meets it."""
    names = f"It takes {', '.join(sorted(known))}." if known else "It takes none."
    unknown = sorted({*request.query_params} - {*known})[:_MAX_UNKNOWN_QUERIES]
    message = f"This request has no such parameter. {names}"
    return RequestValidationError([{"loc": ("query", each[:100]), "msg": message} for each in unknown])


def _drop_queries(dependant: Dependant, names: Collection[str]) -> Dependant:
    """Return a route, or a dependency of it, without some query parameters: its function has their defaults."""
    params = [param for param in dependant.query_params if param.alias not in names]
    dependencies = [_drop_queries(each, names) for each in dependant.dependencies]
    return replace(dependant, query_params=params, dependencies=dependencies)


def _join_dependencies(dependant: Dependant) -> Dependant:
    """Return a route with one dependency instead of all those that need nothing but the request.

    For each of them, FastAPI would look for values in the path, the query, the headers and the cookies.
    """
    joined = [each for each in dependant.dependencies if _needs_only_request(each)]
    endpoint = dependant.call
    if not joined or endpoint is None or not iscoroutinefunction(endpoint):
        return dependant

    async def run_joined(request: Request) -> dict[str, Any]:
        results: dict[object, Any] = {}
        return {each.name or "": await _run_dependency(each, request, results) for each in joined}

    @wraps(endpoint)
    async def call_endpoint(joined_values: dict[str, Any], **values: Any) -> Any:
        joined_values.pop("", None)  # of those that only check something
        return await endpoint(**joined_values, **values)

    others = [each for each in dependant.dependencies if each not in joined]
    first = Dependant(call=run_joined, name="joined_values", request_param_name="request", path=dependant.path)
    return replace(dependant, call=call_endpoint, dependencies=[first, *others])


def _needs_only_request(dependant: Dependant) -> bool:
    needed = {each.name for each in fields(dependant) if getattr(dependant, each.name)}
    is_async = any(map(iscoroutinefunction, (dependant.call, getattr(dependant.call, "__call__", None))))  # noqa: B004
    return is_async and needed <= _OF_THE_REQUEST and all(map(_needs_only_request, dependant.dependencies))


async def _run_dependency(dependant: Dependant, request: Request, results: dict[Any, Any]) -> Any:
    """Run a dependency that needs nothing but the request, once."""
    call: Any = dependant.call
    if call not in results:
        values: dict[Any, Any] = {
            each.name: await _run_dependency(each, request, results) for each in dependant.dependencies
        }
        if dependant.request_param_name is not None:
            values[dependant.request_param_name] = request
        results[call] = await call(**values)
    return results[call]


async def read_body(request: Request) -> bytes:
    """Read the body of a request, up to its limit."""
    try:
        return await request.body()  # kept in the request, so that FastAPI gets it from there
    except ClientDisconnect:
        raise HTTPException(400, "The connection was closed before the request was complete.") from None
