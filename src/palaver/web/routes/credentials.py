"""The credentials of the signed-in person: password, passkeys, signed-in browsers and API tokens.

Everything that leads to a new way to sign in works in a browser only, so that a stolen token cannot create another.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request
from pydantic import Field

from palaver.accounts.accounts import MAX_TOKEN_DAYS
from palaver.core.wire import Doc, TypedDict, build_json
from palaver.people.model import MAX_PASSWORD_CHARS, Scope
from palaver.people.wire import DeviceJson, PasskeyJson, TokenJson
from palaver.web.api_route import make_router
from palaver.web.auth import BrowserCaller, Caller
from palaver.web.errors import error_responses
from palaver.web.routes.sign_in import get_site
from palaver.web.state import Name, RequestModel, State

router = make_router("me", "/api/me", responses=error_responses(401, 403))


class NewPasswordIn(RequestModel):
    """A new password."""

    current_password: Annotated[str, Field(max_length=MAX_PASSWORD_CHARS)] | None = None
    new_password: Annotated[str, Field(max_length=MAX_PASSWORD_CHARS)]


class PasskeysJson(TypedDict):
    """Your passkeys, newest first."""

    passkeys: list[PasskeyJson]


class NewPasskeyIn(RequestModel):
    """A new passkey."""

    name: Name
    credential: dict[str, Any] = Field(description="The result of `navigator.credentials.create()` as JSON.")


class DevicesJson(TypedDict):
    """Browsers signed in to your account, newest first."""

    devices: list[DeviceJson]


class TokensJson(TypedDict):
    """Your API tokens, newest first."""

    tokens: list[TokenJson]


class NewTokenIn(RequestModel):
    """A new API token."""

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))]
    expires_in_days: Annotated[int, Field(ge=1, le=MAX_TOKEN_DAYS)] | None = None


class NewTokenJson(TypedDict):
    """A new API token with its secret."""

    token: TokenJson
    secret: Annotated[str, Doc("Shown only once: store it now.")]


@router.put("/password", status_code=204, responses=error_responses(429))
async def set_my_password(body: NewPasswordIn, caller: BrowserCaller, state: State) -> None:
    """Set or change your password. This signs you out everywhere else."""
    await state.accounts.change_password(caller, body.current_password, body.new_password)


# ---- passkeys --------------------------------------------------------------------------------------------


@router.get("/passkeys")
async def list_my_passkeys(caller: Caller, state: State) -> PasskeysJson:
    """List your passkeys."""
    passkeys = await state.accounts.passkeys.list(caller.person.id)
    return PasskeysJson(passkeys=[build_json(PasskeyJson, each) for each in passkeys])


@router.post("/passkeys/options")
async def get_passkey_registration_options(caller: BrowserCaller, request: Request, state: State) -> dict[str, Any]:
    """Get the options for `navigator.credentials.create()`, to be parsed with `parseCreationOptionsFromJSON`."""
    return await state.accounts.passkeys.create_registration_options(caller.person, get_site(request))


@router.post("/passkeys", status_code=201)
async def add_my_passkey(body: NewPasskeyIn, caller: BrowserCaller, request: Request, state: State) -> PasskeyJson:
    """Add a passkey that your device has created."""
    passkey = await state.accounts.passkeys.register(caller.person, get_site(request), body.credential, body.name)
    return build_json(PasskeyJson, passkey)


@router.delete("/passkeys/{passkey_id}", status_code=204, responses=error_responses(404))
async def remove_my_passkey(passkey_id: str, caller: BrowserCaller, state: State) -> None:
    """Remove a passkey."""
    await state.accounts.passkeys.remove(caller.person.id, passkey_id)


# ---- devices ---------------------------------------------------------------------------------------------


@router.get("/devices")
async def list_my_devices(caller: Caller, state: State) -> DevicesJson:
    """List the browsers that are signed in to your account."""
    devices = await state.accounts.list_devices(caller.person.id)
    return DevicesJson(
        devices=[build_json(DeviceJson, each, is_current=each.id == caller.credential_id) for each in devices]
    )


@router.delete("/devices/{device_id}", status_code=204, responses=error_responses(404))
async def sign_out_device(device_id: str, caller: BrowserCaller, state: State) -> None:
    """Sign out one of your browsers. Codes and sign-in links that were created there no longer work."""
    await state.accounts.sign_out(caller.person.id, device_id)


# ---- tokens ----------------------------------------------------------------------------------------------


@router.get("/tokens")
async def list_my_tokens(caller: Caller, state: State) -> TokensJson:
    """List your API tokens, without their secrets."""
    tokens = await state.accounts.list_tokens(caller.person.id)
    return TokensJson(tokens=[build_json(TokenJson, each) for each in tokens])


@router.post("/tokens", status_code=201)
async def create_token(body: NewTokenIn, caller: BrowserCaller, state: State) -> NewTokenJson:
    """Create an API token for a program. The response is the only one that contains its secret."""
    new_token = await state.accounts.create_token(caller.person, body.name, body.scopes, body.expires_in_days)
    return NewTokenJson(token=build_json(TokenJson, new_token.item), secret=new_token.secret)


@router.delete("/tokens/{token_id}", status_code=204, responses=error_responses(404))
async def revoke_token(token_id: str, caller: BrowserCaller, state: State) -> None:
    """Revoke a token."""
    await state.accounts.revoke_token(caller.person.id, token_id)
