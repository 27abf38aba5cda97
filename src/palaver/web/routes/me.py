"""The signed-in person's own account: name, time zone, and everything that is stored about them."""

from __future__ import annotations

from typing import Annotated

from fastapi.responses import StreamingResponse
from pydantic import Field

from palaver import __version__
from palaver.core.invocation import format_command
from palaver.core.wire import Doc, TypedDict, build_json
from palaver.people.model import Role, SetupStep
from palaver.people.wire import PersonJson, SignInMethodsJson
from palaver.web.api_route import make_router
from palaver.web.auth import BrowserCaller, Caller
from palaver.web.errors import error_responses
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
    is_owner = caller.person.role is Role.OWNER
    agent = state.gateway.agent
    return MeJson(
        person=build_json(PersonJson, caller.person),
        sign_in_methods=build_json(SignInMethodsJson, progress.sign_in_methods),
        needs_welcome=progress.needs_welcome,
        version=__version__,
        command=format_command(hide_folders=not is_owner),
        agent=AgentJson(model=agent.model, description=agent.description),
        server_timezone=state.gateway.store.config.timezone,
        skipped_steps=list(progress.skipped_steps),
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
