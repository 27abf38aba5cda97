"""Signing in and out. `Accounts` checks the credentials; a successful sign-in sets a cookie."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import Field

from palaver.accounts.passkeys import Site
from palaver.accounts.sign_in import Visitor
from palaver.core.invocation import format_command
from palaver.core.wire import Doc, TypedDict, build_json
from palaver.people.model import MAX_PASSWORD_CHARS, NewSecret, Person
from palaver.people.wire import PersonJson
from palaver.web.api_route import make_router
from palaver.web.auth import (
    BrowserCaller,
    clear_sign_in_cookie,
    get_client_address,
    get_cookie_name,
    get_device_cookie_name,
    set_sign_in_cookies,
)
from palaver.web.errors import error_responses
from palaver.web.state import Name, RequestModel, State, WebState

router = make_router("sign-in", "/api")


class SignInJson(TypedDict):
    """The person who is signed in now."""

    person: PersonJson


class ServerSignInMethodsJson(TypedDict):
    """The ways to sign in on this server, besides with a link."""

    password: bool
    passkey: bool
    link_command: Annotated[str, Doc("What the owner runs on the server for a new link.")]


class LinkSignInIn(RequestModel):
    """A sign-in link."""

    token: Annotated[str, Field(min_length=1, max_length=200)] = Field(description="The part of the link after `#`.")


class PasswordSignInIn(RequestModel):
    """A name and a password."""

    name: Name
    password: Annotated[str, Field(min_length=1, max_length=MAX_PASSWORD_CHARS)]


class PasskeySignInIn(RequestModel):
    """A passkey."""

    credential: dict[str, Any] = Field(description="The result of `navigator.credentials.get()` as JSON.")


@router.get("/sign-in")
async def list_sign_in_methods(request: Request, state: State) -> ServerSignInMethodsJson:
    """List the ways to sign in on this server."""
    password, passkey = await state.accounts.get_sign_in_options(get_site(request).host)
    link_command = format_command("serve --link", hide_folders=True)
    return ServerSignInMethodsJson(password=password, passkey=passkey, link_command=link_command)


@router.post("/sign-in/link", responses=error_responses(401, 403, 429))
async def sign_in_by_link(body: LinkSignInIn, request: Request, response: Response, state: State) -> SignInJson:
    """Sign in with a link. Each link works once."""
    visitor = _get_visitor(request, state)
    signed_in = await state.accounts.sign_in_by_link(body.token, visitor)
    return _finish_sign_in(request, response, state, signed_in, visitor)


@router.post("/sign-in/password", responses=error_responses(401, 403, 429))
async def sign_in_by_password(body: PasswordSignInIn, request: Request, response: Response, state: State) -> SignInJson:
    """Sign in with your name and password."""
    visitor = _get_visitor(request, state)
    signed_in = await state.accounts.sign_in_by_password(body.name, body.password, visitor)
    return _finish_sign_in(request, response, state, signed_in, visitor)


@router.post("/sign-in/passkey/options", responses=error_responses(403, 422, 429))
async def get_passkey_sign_in_options(request: Request, state: State) -> dict[str, Any]:
    """Get the options for `navigator.credentials.get()`, to be parsed with `parseRequestOptionsFromJSON`."""
    return await state.accounts.passkeys.create_sign_in_options(get_site(request), _get_visitor(request, state))


@router.post("/sign-in/passkey", responses=error_responses(401, 403, 429))
async def sign_in_by_passkey(body: PasskeySignInIn, request: Request, response: Response, state: State) -> SignInJson:
    """Sign in with a passkey."""
    visitor = _get_visitor(request, state)
    signed_in = await state.accounts.passkeys.sign_in(get_site(request), body.credential, visitor)
    return _finish_sign_in(request, response, state, signed_in, visitor)


@router.post("/sign-out", status_code=204, responses=error_responses(401, 403))
async def sign_out(caller: BrowserCaller, request: Request, response: Response, state: State) -> None:
    """Sign this browser out."""
    await state.accounts.sign_out(caller.person.id, caller.credential_id, keeps_links=True)
    clear_sign_in_cookie(response, request, state)


@router.post("/sign-out/everywhere", status_code=204, responses=error_responses(401, 403))
async def sign_out_everywhere(caller: BrowserCaller, request: Request, response: Response, state: State) -> None:
    """Sign out in every browser, including this one. API tokens keep working until you revoke them."""
    await state.accounts.sign_out_everywhere(caller.person.id)
    clear_sign_in_cookie(response, request, state)


def get_site(request: Request) -> Site:
    """Return the host and origin of this server as the browser sees them; the guard has checked both."""
    return Site(host=request.url.hostname or "", origin=f"{request.url.scheme}://{request.url.netloc}")


def _get_visitor(request: Request, state: WebState) -> Visitor:
    return Visitor(
        address=get_client_address(request),
        user_agent=request.headers.get("user-agent", ""),
        cookie=request.cookies.get(get_cookie_name(request, state), ""),
        device_cookie=request.cookies.get(get_device_cookie_name(request, state), ""),
    )


def _finish_sign_in(
    request: Request, response: Response, state: WebState, signed_in: NewSecret[Person], visitor: Visitor
) -> SignInJson:
    set_sign_in_cookies(response, request, state, secret=signed_in.secret, device_secret=visitor.new_device_cookie)
    return SignInJson(person=build_json(PersonJson, signed_in.item))
