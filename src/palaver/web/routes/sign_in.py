"""Signing in and out. What a browser brings is handed on; the answer is a cookie."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from palaver.domain.account import LONGEST_PASSWORD
from palaver.domain.person import Person, Role
from palaver.services.accounts.passkeys import Site
from palaver.services.accounts.sign_in import Visitor
from palaver.web.auth import InPerson, cookie_name, forget_cookie, give_cookie, peer_address
from palaver.web.errors import answers
from palaver.web.schemas import In, Out
from palaver.web.state import State, WebState

router = APIRouter(tags=["sign-in"])


class PersonOut(Out):
    """A person."""

    id: str
    name: str
    role: Role

    @classmethod
    def of(cls, person: Person) -> PersonOut:
        """A person as the web shows them."""
        return cls(id=person.id, name=person.name, role=person.role)


class SignedInOut(Out):
    """Who is signed in now."""

    person: PersonOut


class WaysInOut(Out):
    """How anybody at all can sign in here, besides by a link."""

    password: bool
    passkey: bool


class LinkIn(In):
    """What stands behind the # of a sign-in link."""

    token: Annotated[str, Field(min_length=1, max_length=200)]


class PasswordIn(In):
    """A name and a password."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    password: Annotated[str, Field(min_length=1, max_length=LONGEST_PASSWORD)]


class PasskeyIn(In):
    """What `navigator.credentials.get()` has answered, as JSON."""

    credential: dict[str, Any]


@router.get("/sign-in")
async def show_ways_to_sign_in(request: Request, state: State) -> WaysInOut:
    """How people can sign in here."""
    ways = await state.accounts.ways_in(site_of(request).host)
    return WaysInOut(password=ways.password, passkey=ways.passkey)


@router.post("/sign-in/link", responses=answers(401, 403, 429))
async def sign_in_by_link(body: LinkIn, request: Request, response: Response, state: State) -> SignedInOut:
    """Sign in by a link, which is used up by it."""
    fresh = await state.accounts.sign_in_by_link(body.token, _visitor(request, state))
    return _welcome(request, response, state, fresh.made, fresh.secret)


@router.post("/sign-in/password", responses=answers(401, 403, 429))
async def sign_in_by_password(body: PasswordIn, request: Request, response: Response, state: State) -> SignedInOut:
    """Sign in by name and password."""
    fresh = await state.accounts.sign_in_by_password(body.name, body.password, _visitor(request, state))
    return _welcome(request, response, state, fresh.made, fresh.secret)


@router.post("/sign-in/passkey/options", responses=answers(403, 422, 429))
async def ask_for_passkey(request: Request, state: State) -> dict[str, Any]:
    """What to give to `navigator.credentials.get()`, after `parseRequestOptionsFromJSON`."""
    return await state.accounts.passkeys.sign_in_options(site_of(request), _visitor(request, state))


@router.post("/sign-in/passkey", responses=answers(401, 403, 429))
async def sign_in_by_passkey(body: PasskeyIn, request: Request, response: Response, state: State) -> SignedInOut:
    """Sign in by a passkey."""
    fresh = await state.accounts.passkeys.sign_in(site_of(request), body.credential, _visitor(request, state))
    return _welcome(request, response, state, fresh.made, fresh.secret)


@router.post("/sign-out", status_code=204, responses=answers(401, 403))
async def sign_out(signed: InPerson, request: Request, response: Response, state: State) -> None:
    """Sign this browser out."""
    await state.accounts.sign_out(signed.person.id, signed.id)
    forget_cookie(response, request, state)


@router.post("/sign-out/everywhere", status_code=204, responses=answers(401, 403))
async def sign_out_everywhere(signed: InPerson, request: Request, response: Response, state: State) -> None:
    """Sign out in every browser, this one too. Tokens stay until they are taken back."""
    await state.accounts.sign_out_everywhere(signed.person.id)
    forget_cookie(response, request, state)


def site_of(request: Request) -> Site:
    """Where the browser believes to be; the guard has checked that it is here."""
    return Site(host=request.url.hostname or "", origin=f"{request.url.scheme}://{request.url.netloc}")


def _visitor(request: Request, state: WebState) -> Visitor:
    return Visitor(
        address=peer_address(request),
        user_agent=request.headers.get("user-agent", ""),
        cookie=request.cookies.get(cookie_name(request, state), ""),
    )


def _welcome(request: Request, response: Response, state: WebState, person: Person, secret: str) -> SignedInOut:
    give_cookie(response, request, state, secret)
    return SignedInOut(person=PersonOut.of(person))
