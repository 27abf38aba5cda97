"""Who asks: every route that answers a person takes one of the dependencies defined here.

Owns the cookie and the reading of `Authorization`. Always true: a request that bears a token is judged by the token
alone, and a token does only what its scopes say. Without `needs(…)` on the route, looking needs the scope `read` and
everything else `write`, so that a route that forgets to say so is not open to every token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Query, Request
from fastapi.security import APIKeyCookie, HTTPBearer

from palaver.domain.account import SIGN_IN_LASTS, Scope, Signed
from palaver.domain.errors import NotAllowed, NotSignedIn, OwnerOnly
from palaver.domain.person import Role
from palaver.services.view import AsyncSessionView
from palaver.web.state import State, WebState

if TYPE_CHECKING:
    from fastapi import Response
    from fastapi.params import Depends as Dependency

__all__ = [
    "InPerson",
    "Owner",
    "SeenBy",
    "Signed",
    "SignedIn",
    "forget_cookie",
    "give_cookie",
    "needs",
    "peer_address",
]

_LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})

# They only describe the two ways in the OpenAPI; what they find is read below, exactly.
_bearer = HTTPBearer(auto_error=False, scheme_name="token", description="An API token, made under /api/me/tokens.")
_cookie = APIKeyCookie(
    name="palaver",
    auto_error=False,
    scheme_name="cookie",
    description="Set by a sign-in. Its real name is longer: it holds the port, or `__Host-` where HTTPS is spoken.",
)


def bearer(request: Request) -> str | None:
    """The token of a request, if it bears one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.casefold() == "bearer" else None


async def _proven(
    request: Request,
    state: State,
    _token: Annotated[object, Depends(_bearer)] = None,
    _device: Annotated[object, Depends(_cookie)] = None,
) -> Signed:
    token = bearer(request)
    if token is not None:
        signed = await state.accounts.by_token(token)
    else:
        signed = await state.accounts.by_cookie(request.cookies.get(cookie_name(request, state), ""))
    if signed is None:
        raise NotSignedIn
    return signed


_Proven = Annotated[Signed, Depends(_proven)]


class _Needs:
    """Lets only those through whose token has a scope; a cookie has all of them."""

    def __init__(self, scope: str) -> None:
        self._scope = Scope(scope)

    async def __call__(self, signed: _Proven) -> None:
        _check_scope(signed, self._scope)


def needs(scope: str) -> Dependency:
    """Say what a token must be for to use a route: `@router.post(…, dependencies=[needs("chat")])`."""
    found: Dependency = Depends(_Needs(scope))
    return found


def _check_scope(signed: Signed, scope: Scope) -> None:
    if scope not in signed.scopes:
        raise NotAllowed(f"this token has not the scope {scope}; make one that has", scope=scope.value)


async def _signed_in(request: Request, signed: _Proven) -> Signed:
    said = getattr(request.scope.get("route"), "dependencies", ())
    if not any(isinstance(each.dependency, _Needs) for each in said):
        _check_scope(signed, Scope.READ if request.method in _LOOKING else Scope.WRITE)
    return signed


async def _owner(signed: _Proven) -> Signed:
    if signed.person.role is not Role.OWNER:
        raise OwnerOnly
    _check_scope(signed, Scope.ADMIN)
    return signed


async def _in_person(signed: _Proven) -> Signed:
    if signed.by != "cookie":
        raise NotAllowed("a token cannot do this: sign in with a browser")
    return signed


SignedIn = Annotated[Signed, Depends(_signed_in)]
Owner = Annotated[Signed, Depends(_owner)]
InPerson = Annotated[Signed, Depends(_in_person)]  # for what a stolen token must not reach: ways to sign in


async def _seen_by(
    state: State,
    signed: SignedIn,
    everything: Annotated[
        bool, Query(alias="all", description="Everybody's, which only an owner may ask for.")
    ] = False,
) -> AsyncSessionView:
    if everything:
        await _owner(signed)
    return state.gateway.store.aio.seen_by(signed.principal, everything=everything)


SeenBy = Annotated[AsyncSessionView, Depends(_seen_by)]


# ---- the cookie ------------------------------------------------------------------------------------------


def cookie_name(request: Request, state: WebState) -> str:
    """The cookie's name. Over HTTPS a prefix makes browsers refuse one that anybody but this host has set.

    Over plain HTTP it holds the port, because a browser gives all ports of a host the same cookies, and two servers
    on one machine would sign each other's people out.
    """
    if request.url.scheme == "https":
        return "__Secure-palaver" if state.base_path else "__Host-palaver"
    return f"palaver-{request.url.port or 80}"


def give_cookie(response: Response, request: Request, state: WebState, secret: str) -> None:
    """Sign a browser in.

    `Lax` and not `Strict`: with `Strict`, a link to a conversation in a mail would open a page that is signed out.
    `Lax` sends the cookie along only where somebody follows a link, and following a link changes nothing here: what
    changes something needs our own origin besides (`guard`).
    """
    response.set_cookie(
        cookie_name(request, state),
        secret,
        max_age=int(SIGN_IN_LASTS.total_seconds()),
        path=state.base_path or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def forget_cookie(response: Response, request: Request, state: WebState) -> None:
    """Sign a browser out."""
    response.delete_cookie(
        cookie_name(request, state),
        path=state.base_path or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def peer_address(request: Request) -> str:
    """Where a request really comes from: the peer, or what a proxy that is trusted says of it."""
    return request.client.host if request.client else ""
