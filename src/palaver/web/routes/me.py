"""The signed-in person's own account: name, time zone, credentials, chat accounts, notifications, and their data.

Everything that leads to a new way to sign in works in a browser only, so that a stolen token cannot create another. So
does linking: a token must not hand over a past.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from palaver import __version__
from palaver.accounts.accounts import MAX_TOKEN_DAYS
from palaver.accounts.link_requests import LinkProblem, LinkResult
from palaver.accounts.wire import LinkedAccountJson, PendingLinkJson
from palaver.core.invocation import format_command
from palaver.core.wire import Doc, Time, TypedDict, build_json
from palaver.people.model import MAX_PASSWORD_CHARS, Role, Scope, SetupStep
from palaver.people.wire import DeviceJson, PasskeyJson, PersonJson, SignInMethodsJson, TokenJson
from palaver.push.model import MAX_ENDPOINT_CHARS
from palaver.web.api_route import make_router
from palaver.web.auth import BrowserCaller, Caller
from palaver.web.errors import error_responses
from palaver.web.routes.sign_in import get_site
from palaver.web.state import Name, RequestModel, State

router = make_router("me", "/api/me", responses=error_responses(401, 403))


class AgentJson(TypedDict):
    """The agent that answers here."""

    model: str
    description: str


class MeJson(TypedDict):
    """Your account, and the server that you are signed in to."""

    person: PersonJson
    sign_in_methods: SignInMethodsJson
    needs_welcome: Annotated[
        bool,
        Doc(
            "Whether the page should offer to choose a name and a way to sign in again. True after the first"
            " link, until you set a password, add a passkey or decline."
        ),
    ]
    version: str
    command: Annotated[str, Doc("How to call Palaver in a terminal of the server.")]
    agent: AgentJson
    server_timezone: Annotated[str, Doc("The time zone of people who have chosen none.")]
    skipped_steps: Annotated[
        list[str], Doc("The steps of setting up the server that you have skipped: `model`, `platform`.")
    ]


class MyAccountIn(RequestModel):
    """Changes to your account. Fields that you leave out stay as they are."""

    name: Name | None = None
    timezone: Annotated[str, Field(max_length=100)] | None = Field(
        None, description="An IANA name; null: the server's time zone.", examples=["Europe/Berlin"]
    )


class SetupStepIn(RequestModel):
    """A step of setting up the server, to skip it or to offer it again."""

    step: SetupStep
    skipped: bool


class StorageJson(TypedDict):
    """The space that your files take. Equal files are stored, and counted, once."""

    used_bytes: int
    limit_bytes: int
    file_count: int


@router.get("")
async def get_me(caller: Caller, state: State) -> MeJson:
    """Get your account, the server's version and the agent that answers."""
    progress = await state.accounts.load_progress(caller.person.id)
    return build_json(
        MeJson,
        progress,
        person=caller.person,
        version=__version__,
        command=format_command(hide_folders=caller.person.role is not Role.OWNER),
        agent=state.gateway.agent,
        server_timezone=state.gateway.store.config.timezone,
    )


@router.patch("")
async def update_me(body: MyAccountIn, caller: BrowserCaller, state: State) -> PersonJson:
    """Change your name, with which you also sign in, or your time zone, in which new jobs run."""
    person = caller.person
    if "timezone" in body.model_fields_set:
        person = await state.accounts.set_timezone(person.id, body.timezone)
    if body.name is not None:
        person = await state.accounts.rename(person.id, body.name)
    return build_json(PersonJson, person)


@router.post("/welcome", status_code=204)
async def finish_welcome(caller: BrowserCaller, state: State) -> None:
    """Decline or finish choosing a name and a way to sign in; `needs_welcome` is false from now on."""
    await state.accounts.finish_welcome(caller.person.id)


@router.put("/steps", status_code=204)
async def set_step_skipped(body: SetupStepIn, caller: BrowserCaller, state: State) -> None:
    """Skip a step of setting up the server, so that the page no longer offers it, or offer it again."""
    await state.accounts.set_step_skipped(caller.person.id, body.step, is_skipped=body.skipped)


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}},
        **error_responses(429),
    },
)
async def export_my_data(caller: Caller, state: State) -> StreamingResponse:
    """Download everything that is stored about you as one .zip file: conversations, files, memories, jobs and usage.

    It is made while it is sent. One download at a time, and five in an hour.
    """
    name = f"palaver-{state.gateway.store.clock.now():%Y-%m-%d}.zip"
    return StreamingResponse(
        state.person_exports.start(caller.principal),
        media_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


@router.get("/storage")
async def get_my_storage(caller: Caller, state: State) -> StorageJson:
    """Get how much space your files take, and how much they may."""
    usage = await state.attachments.get_usage(caller.principal)
    return StorageJson(
        used_bytes=usage.size, limit_bytes=state.attachments.max_bytes_per_person, file_count=usage.file_count
    )


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


class LinksJson(TypedDict):
    """Your chat accounts, and the link that waits for you."""

    accounts: list[LinkedAccountJson]
    pending: PendingLinkJson | None


class LinkCodeJson(TypedDict):
    """A code to send with `/link` from your other account. It is shown once."""

    code: str
    expires_at: Time


class LinkCodeIn(RequestModel):
    """The code that your other account got with `/link`."""

    code: Annotated[str, Field(min_length=1, max_length=40)]


class LinkAnswerIn(RequestModel):
    """Your answer to the link that waits."""

    answer: Literal["confirm", "cancel"]


class LinkJson(TypedDict):
    """The result of a code or an answer."""

    is_linked: bool
    pending: PendingLinkJson | None
    problem: Annotated[LinkProblem | None, Doc("Why nothing came of it; `text` says it in words.")]
    text: Annotated[str, Doc("The same in words, as in a chat.")]


class OwnAccountIn(RequestModel):
    """One of your chat accounts."""

    platform: Annotated[str, Field(max_length=100)]
    account: Annotated[str, Field(max_length=500)]


@router.get("/links")
async def list_links(caller: BrowserCaller, state: State) -> LinksJson:
    """List your chat accounts, and the link that waits for your confirmation."""
    accounts, pending = await state.accounts.load_links(caller.person)
    return build_json(LinksJson, None, accounts=accounts, pending=pending)


@router.post("/links/code", status_code=201)
async def create_link_code(caller: BrowserCaller, state: State) -> LinkCodeJson:
    """Create a code, valid for 15 minutes. The one before no longer works."""
    code, expires_at = await state.accounts.create_link_code(caller)
    return build_json(LinkCodeJson, None, code=code, expires_at=expires_at)


@router.post("/links")
async def use_link_code(body: LinkCodeIn, caller: BrowserCaller, state: State) -> LinkJson:
    """Ask to be linked with the code of your other account. Nothing is shared until both sides have confirmed."""
    return _to_link_json(await state.accounts.use_link_code(caller.person, body.code))


@router.post("/links/answer")
async def answer_link(body: LinkAnswerIn, caller: BrowserCaller, state: State) -> LinkJson:
    """Confirm or cancel the link that waits. When both sides have confirmed, the accounts are linked."""
    return _to_link_json(await state.accounts.use_link_code(caller.person, body.answer))


@router.post("/links/unlink", status_code=204, responses=error_responses(404))
async def unlink_own_account(body: OwnAccountIn, caller: BrowserCaller, state: State) -> None:
    """Separate one of your chat accounts. It gets back what it had before the link; what is new since then stays."""
    await state.accounts.unlink_account(caller.person, f"{body.platform}:{body.account}")


def _to_link_json(result: LinkResult) -> LinkJson:
    return build_json(LinkJson, result, is_linked=result.person is not None)


# Notifications to a browser while the page is closed: each subscription belongs to the sign-in of one browser.

_PushKey = Annotated[str, Field(min_length=1, max_length=200)]


class PushKeysIn(RequestModel):
    """The keys of a subscription, in base64url."""

    p256dh: _PushKey
    auth: _PushKey


class PushSubscriptionIn(RequestModel):
    """The result of `PushManager.subscribe()` as JSON."""

    endpoint: Annotated[str, Field(min_length=1, max_length=MAX_ENDPOINT_CHARS)]
    keys: PushKeysIn


class PushStatusJson(TypedDict):
    """The notifications of this browser, and the key to subscribe to."""

    is_enabled: Annotated[bool, Doc("Whether the operator allows notifications.")]
    is_subscribed: bool
    server_key: Annotated[str, Doc("The `applicationServerKey` for `PushManager.subscribe()`.")]


@router.get("/push-subscriptions")
async def get_push_status(caller: BrowserCaller, state: State) -> PushStatusJson:
    """Find out whether this browser gets notifications while the page is closed."""
    return PushStatusJson(
        is_enabled=state.push.is_enabled,
        is_subscribed=await state.push.is_subscribed(caller.credential_id),
        server_key=await state.push.get_public_key(),
    )


@router.post("/push-subscriptions", status_code=204, responses=error_responses(422))
async def subscribe_to_push(body: PushSubscriptionIn, caller: BrowserCaller, state: State) -> None:
    """Subscribe this browser. The subscription ends when you sign out, or when the push service says so."""
    await state.push.subscribe(caller.credential_id, body.endpoint, body.keys.p256dh, body.keys.auth)


@router.delete("/push-subscriptions", status_code=204)
async def unsubscribe_from_push(caller: BrowserCaller, state: State) -> None:
    """End the subscription of this browser."""
    await state.push.unsubscribe(caller.credential_id)


@router.post("/push-subscriptions/test", status_code=204, responses=error_responses(422, 429, 502))
async def send_test_push(caller: BrowserCaller, state: State) -> None:
    """Send a notification to this browser now, and report what its push service says."""
    await state.push.send_test(caller.credential_id, caller.person.id)
