"""Authentication: who sent a request, and FastAPI dependencies that check what they may do.

Every route that serves a signed-in person takes one of these dependencies; `ApiRoute` then authenticates the caller
before it reads the body. This module owns the sign-in cookie and the parsing of the `Authorization` header.

Always true: a request is authenticated once, before its body is read. A request with a token is judged by the token
alone, and a token can do only what its scopes allow. A route without `require_scope(…)` needs the scope `read` for safe
methods and `write` for all others, so a route that forgets to name a scope is not open to every token.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Query, Request, Response
from fastapi.security import APIKeyCookie, HTTPBearer

from palaver.core.errors import NotAllowed, NotSignedIn, OwnerRequired, StoreError
from palaver.core.tasks import wait_for_event
from palaver.core.texts import say
from palaver.people.model import KNOWN_DEVICE_LIFETIME, SIGN_IN_LIFETIME, Role, Scope, SignedInPerson
from palaver.sessions.view import AsyncSessionView
from palaver.web.guard import DEFAULT_PORTS, HostName
from palaver.web.state import WebState

if TYPE_CHECKING:
    from fastapi.dependencies.models import Dependant
    from fastapi.params import Depends as Dependency

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_CALLER_KEY = "palaver.caller"  # of the ASGI scope
_EXPIRY_CHECK_SECONDS = 15.0  # that time has passed is not a change that anyone is notified of

# These two only describe the ways to sign in for the OpenAPI document; `authenticate` reads the values itself.
_bearer = HTTPBearer(auto_error=False, scheme_name="token", description="An API token, created at /api/me/tokens.")
_cookie = APIKeyCookie(
    name="palaver",
    auto_error=False,
    scheme_name="cookie",
    description="Set when you sign in. Its actual name also includes the port or, over HTTPS, the prefix `__Host-`.",
)


async def authenticate(request: Request) -> SignedInPerson:
    """Find out who sent a request, and keep it for the dependencies of its route; raises `NotSignedIn`."""
    state: WebState = request.app.state.palaver
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.casefold() == "bearer":
        caller = await state.accounts.find_by_token(token.strip())
    else:
        caller = await state.accounts.find_by_cookie(request.cookies.get(get_cookie_name(request, state), ""))
    if caller is None:
        raise NotSignedIn
    request.scope[_CALLER_KEY] = caller
    return caller


async def _describe_sign_in(
    _token: Annotated[object, Depends(_bearer)] = None, _device: Annotated[object, Depends(_cookie)] = None
) -> None:
    """Mark a route as one for signed-in people. It is never called: FastAPI would do so several times per request."""


_SignedIn = Annotated[None, Depends(_describe_sign_in)]


def needs_caller(dependant: Dependant) -> bool:
    """Return whether a route, or a dependency of it, is for signed-in people only."""
    return dependant.call is _describe_sign_in or any(needs_caller(each) for each in dependant.dependencies)


def drop_descriptions(dependant: Dependant) -> Dependant:
    """Return a route, or a dependency of it, without what only describes it."""
    called = [each for each in dependant.dependencies if each.call is not _describe_sign_in]
    return replace(dependant, dependencies=[drop_descriptions(each) for each in called])


def _get_caller(request: Request) -> SignedInPerson:
    caller: SignedInPerson | None = request.scope.get(_CALLER_KEY)
    if caller is None:
        raise NotSignedIn
    return caller


class _ScopeRequirement:
    """Rejects callers whose token lacks a scope; a sign-in cookie has all scopes."""

    def __init__(self, scope: str) -> None:
        self._scope = Scope(scope)

    async def __call__(self, request: Request, _: _SignedIn = None) -> None:
        _check_scope(_get_caller(request), self._scope)


def require_scope(scope: str) -> Dependency:
    """Make a route require a scope other than the default: `@router.post(…, dependencies=[require_scope("chat")])`."""
    dependency: Dependency = Depends(_ScopeRequirement(scope))
    return dependency


def _check_scope(caller: SignedInPerson, scope: Scope) -> None:
    if scope not in caller.scopes:
        message = say(
            "web.token_lacks_scope", "This token lacks the scope {scope}. Create a token that has it.", scope=scope
        )
        raise NotAllowed(message, scope=scope.value)


async def _check_default_scope(request: Request, _: _SignedIn = None) -> SignedInPerson:
    caller = _get_caller(request)
    dependencies = getattr(request.scope.get("route"), "dependencies", ())
    if not any(isinstance(each.dependency, _ScopeRequirement) for each in dependencies):
        _check_scope(caller, Scope.READ if request.method in _SAFE_METHODS else Scope.WRITE)
    return caller


async def _require_owner(request: Request, _: _SignedIn = None) -> SignedInPerson:
    caller = _get_caller(request)
    if caller.person.role is not Role.OWNER:
        raise OwnerRequired
    _check_scope(caller, Scope.ADMIN)
    return caller


def check_browser(caller: SignedInPerson) -> SignedInPerson:
    """Raise `NotAllowed` for a token: what follows could be used to sign in after the token is revoked."""
    if caller.credential_type != "cookie":
        raise NotAllowed("Tokens can't do this. Sign in with a browser.")
    return caller


async def _require_browser(request: Request, _: _SignedIn = None) -> SignedInPerson:
    return check_browser(_get_caller(request))


async def _require_owner_in_browser(request: Request, _: _SignedIn = None) -> SignedInPerson:
    return check_browser(await _require_owner(request))


Caller = Annotated[SignedInPerson, Depends(_check_default_scope)]
OwnerCaller = Annotated[SignedInPerson, Depends(_require_owner)]
# For sign-in methods, which a stolen token must not reach.
BrowserCaller = Annotated[SignedInPerson, Depends(_require_browser)]
OwnerInBrowser = Annotated[SignedInPerson, Depends(_require_owner_in_browser)]


async def _check_include_all(
    request: Request,
    include_all: Annotated[
        bool, Query(alias="all", description="Include everyone's conversations; only for owners.")
    ] = False,
    _: _SignedIn = None,
) -> bool:
    await _check_default_scope(request)
    if include_all:
        await _require_owner(request)
    return include_all


IncludeAll = Annotated[bool, Depends(_check_include_all)]  # the query parameter `all`; true only for owners


async def _open_view(request: Request, include_all: IncludeAll) -> AsyncSessionView:
    state: WebState = request.app.state.palaver
    return state.gateway.store.aio.seen_by(_get_caller(request).principal, everything=include_all)


CallerView = Annotated[AsyncSessionView, Depends(_open_view)]  # everything for owners who ask for `all`


async def _open_own_view(request: Request, _: _SignedIn = None) -> AsyncSessionView:
    state: WebState = request.app.state.palaver
    return state.gateway.store.aio.seen_by((await _check_default_scope(request)).principal)


OwnView = Annotated[AsyncSessionView, Depends(_open_own_view)]  # what the caller takes part in, also for owners


async def wait_until_signed_out(state: WebState, caller: SignedInPerson) -> None:
    """Return as soon as the caller is signed out or has another role, whichever process made that change.

    Also returns when that cannot be found out: the client connects again and is authenticated again.
    """
    while True:
        change = state.gateway.feed.access_changes.get_next()
        try:
            if not await state.accounts.is_still_signed_in(caller):
                return
        except StoreError:
            return
        await wait_for_event(change, _EXPIRY_CHECK_SECONDS)


# ---- the cookie ------------------------------------------------------------------------------------------


def get_cookie_name(request: Request, state: WebState) -> str:
    """Return the name of the sign-in cookie.

    Over HTTPS its prefix makes browsers reject a cookie of this name that another host has set. Over plain HTTP the
    name contains the port: browsers share cookies between all ports of a host, so two servers on one machine would
    otherwise sign each other's users out.
    """
    if request.scope["scheme"] == "https":
        return "__Secure-palaver" if state.base_path else "__Host-palaver"
    host = HostName.parse(request.headers.get("host", ""))
    return f"palaver-{(host and host.port) or DEFAULT_PORTS['http']}"


def get_device_cookie_name(request: Request, state: WebState) -> str:
    """Return the name of the cookie that proves that people have signed in with this browser before."""
    return f"{get_cookie_name(request, state)}-device"


def set_sign_in_cookies(
    response: Response, request: Request, state: WebState, *, secret: str, device_secret: str
) -> None:
    """Sign a browser in, and mark it as one in which people have signed in; signing out keeps this mark."""
    for name, value, lifetime in (
        (get_cookie_name(request, state), secret, SIGN_IN_LIFETIME),
        (get_device_cookie_name(request, state), device_secret, KNOWN_DEVICE_LIFETIME),
    ):
        seconds = int(lifetime.total_seconds())
        response.set_cookie(name, value, max_age=seconds, **_get_cookie_attributes(request, state))


def clear_sign_in_cookie(response: Response, request: Request, state: WebState) -> None:
    response.delete_cookie(get_cookie_name(request, state), **_get_cookie_attributes(request, state))


def _get_cookie_attributes(request: Request, state: WebState) -> dict[str, Any]:
    """Return the attributes of a cookie that only this server receives, and no script.

    `Lax` and not `Strict`: with `Strict`, a link to a conversation in an email would open a signed-out page. From
    other sites, `Lax` sends the cookie only when the user follows a link, and following a link changes nothing: a
    request that changes something must also come from our own origin (see `guard`).
    """
    is_https = request.url.scheme == "https"
    return {"path": state.base_path or "/", "secure": is_https, "httponly": True, "samesite": "lax"}


def get_client_address(request: Request) -> str:
    """Return the client's address: that of the peer, or the one that a trusted proxy reports."""
    return request.client.host if request.client else ""
