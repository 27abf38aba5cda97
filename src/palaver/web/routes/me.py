"""Whoever is signed in: their name, and everything they sign in with.

What leads to a new sign-in can be reached from a browser only, so that a token that was stolen stays the only loss.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Field

from palaver import __version__
from palaver.domain.account import LONGEST_PASSWORD, ApiToken, Device, Passkey, Scope
from palaver.services.accounts.accounts import LONGEST_TOKEN_DAYS
from palaver.web.auth import InPerson, SignedIn
from palaver.web.errors import answers
from palaver.web.routes.sign_in import PersonOut, site_of
from palaver.web.schemas import In, Out, Time
from palaver.web.state import State

router = APIRouter(prefix="/me", tags=["me"], responses=answers(401, 403))

Name = Annotated[str, Field(min_length=1, max_length=200)]


class WaysOut(Out):
    """How somebody can sign in, besides by a link."""

    password: bool
    passkeys: int


class AgentOut(Out):
    """Which agent answers here."""

    model: str
    description: str


class MeOut(Out):
    """Whoever is signed in, and what they speak with."""

    person: PersonOut
    ways: WaysOut
    version: str
    agent: AgentOut


class NameIn(In):
    """A name."""

    name: Name


class NewPasswordIn(In):
    """A new password, and the one that it replaces, if there is one."""

    current: Annotated[str, Field(max_length=LONGEST_PASSWORD)] | None = None
    new: Annotated[str, Field(max_length=LONGEST_PASSWORD)]


class PasskeyOut(Out):
    """A passkey."""

    id: str
    name: str
    site: str = Field(description="The host it was made for, and the only one at which it works.")
    created_at: Time
    used_at: Time | None


class PasskeysOut(Out):
    """Somebody's passkeys, the latest first."""

    passkeys: list[PasskeyOut]


class NewPasskeyIn(In):
    """What `navigator.credentials.create()` has answered, as JSON, and what to call it."""

    name: Name
    credential: dict[str, Any]


class DeviceOut(Out):
    """A browser in which somebody is signed in."""

    id: str
    name: str
    way: str = Field(description="How it signed in: by link, password or passkey.")
    address: str = Field(description="From where it signed in.")
    signed_in_at: Time
    seen_at: Time
    current: bool = Field(description="Whether it is the one that asks.")


class DevicesOut(Out):
    """Where somebody is signed in, the latest first."""

    devices: list[DeviceOut]


class TokenOut(Out):
    """An API token, without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: Time
    used_at: Time | None
    expires_at: Time | None


class TokensOut(Out):
    """Somebody's tokens, the latest first."""

    tokens: list[TokenOut]


class NewTokenIn(In):
    """What a token is for."""

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))]
    expires_in_days: Annotated[int, Field(ge=1, le=LONGEST_TOKEN_DAYS)] | None = None


class NewTokenOut(Out):
    """A new token; its secret is shown here and never again."""

    token: TokenOut
    secret: str


@router.get("")
async def show_me(signed: SignedIn, state: State) -> MeOut:
    """Who is signed in, and which agent answers here."""
    ways = await state.accounts.ways(signed.person.id)
    agent = state.gateway.agent
    return MeOut(
        person=PersonOut.of(signed.person),
        ways=WaysOut(password=ways.password, passkeys=ways.passkeys),
        version=__version__,
        agent=AgentOut(model=agent.model, description=agent.description),
    )


@router.patch("")
async def rename_me(body: NameIn, signed: InPerson, state: State) -> PersonOut:
    """Take another name, by which you also sign in."""
    return PersonOut.of(await state.accounts.rename(signed.person.id, body.name))


@router.put("/password", status_code=204, responses=answers(429))
async def change_my_password(body: NewPasswordIn, signed: InPerson, state: State) -> None:
    """Set or change your password; you are signed out everywhere else."""
    await state.accounts.change_password(signed, body.current, body.new)


# ---- passkeys --------------------------------------------------------------------------------------------


@router.get("/passkeys")
async def list_my_passkeys(signed: SignedIn, state: State) -> PasskeysOut:
    """Your passkeys."""
    return PasskeysOut(passkeys=[_passkey(each) for each in await state.accounts.passkeys.list(signed.person.id)])


@router.post("/passkeys/options")
async def ask_for_new_passkey(signed: InPerson, request: Request, state: State) -> dict[str, Any]:
    """What to give to `navigator.credentials.create()`, after `parseCreationOptionsFromJSON`."""
    return await state.accounts.passkeys.registration_options(signed.person, site_of(request))


@router.post("/passkeys", status_code=201)
async def add_my_passkey(body: NewPasskeyIn, signed: InPerson, request: Request, state: State) -> PasskeyOut:
    """Keep a passkey that your device has made."""
    made = await state.accounts.passkeys.register(signed.person, site_of(request), body.credential, body.name)
    return _passkey(made)


@router.delete("/passkeys/{passkey_id}", status_code=204, responses=answers(404))
async def remove_my_passkey(passkey_id: str, signed: InPerson, state: State) -> None:
    """Remove a passkey."""
    await state.accounts.passkeys.remove(signed.person.id, passkey_id)


# ---- devices ---------------------------------------------------------------------------------------------


@router.get("/devices")
async def list_my_devices(signed: SignedIn, state: State) -> DevicesOut:
    """Where you are signed in."""
    found = await state.accounts.devices(signed.person.id)
    return DevicesOut(devices=[_device(each, current=each.id == signed.id) for each in found])


@router.delete("/devices/{device_id}", status_code=204, responses=answers(404))
async def sign_out_device(device_id: str, signed: InPerson, state: State) -> None:
    """Sign one of your browsers out."""
    await state.accounts.sign_out(signed.person.id, device_id)


# ---- tokens ----------------------------------------------------------------------------------------------


@router.get("/tokens")
async def list_my_tokens(signed: SignedIn, state: State) -> TokensOut:
    """Your API tokens, without their secrets."""
    return TokensOut(tokens=[_token(each) for each in await state.accounts.tokens(signed.person.id)])


@router.post("/tokens", status_code=201)
async def create_token(body: NewTokenIn, signed: InPerson, state: State) -> NewTokenOut:
    """Make a token for a program; its secret is in this answer and nowhere else."""
    fresh = await state.accounts.create_token(signed.person, body.name, body.scopes, body.expires_in_days)
    return NewTokenOut(token=_token(fresh.made), secret=fresh.secret)


@router.delete("/tokens/{token_id}", status_code=204, responses=answers(404))
async def revoke_token(token_id: str, signed: InPerson, state: State) -> None:
    """Take a token back."""
    await state.accounts.revoke_token(signed.person.id, token_id)


# ---- as the web shows them -------------------------------------------------------------------------------


def _passkey(passkey: Passkey) -> PasskeyOut:
    return PasskeyOut(
        id=passkey.id, name=passkey.name, site=passkey.site, created_at=passkey.created_at, used_at=passkey.used_at
    )


def _device(device: Device, *, current: bool) -> DeviceOut:
    return DeviceOut(
        id=device.id,
        name=device.name,
        way=device.way,
        address=device.address,
        signed_in_at=device.signed_in_at,
        seen_at=device.seen_at,
        current=current,
    )


def _token(token: ApiToken) -> TokenOut:
    return TokenOut(
        id=token.id,
        name=token.name,
        scopes=list(token.scopes),
        created_at=token.created_at,
        used_at=token.used_at,
        expires_at=token.expires_at,
    )
