"""Importing conversations from other programs, for oneself: upload a file, look at what would come in, confirm it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import Path, Query, Request
from starlette.requests import ClientDisconnect

from palaver.core.errors import InvalidInput
from palaver.core.texts import load_text
from palaver.core.wire import Doc, TypedDict, build_json
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import ErrorBody, error_responses, introduce_message
from palaver.web.routes.attachments import UploadRoute
from palaver.web.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.transfer.personal_imports import PersonalImport

router = make_router("imports", "/api/imports", route_class=UploadRoute, responses=error_responses(401))

ImportId = Annotated[str, Path(description="The id of an import.", examples=["imp_0123456789abcdef"])]

_FILE_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class NotesJson(TypedDict):
    """Notes about an import: how many, and the first of them."""

    count: int
    listed: list[str]


class ReportJson(TypedDict):
    """A count of what an import would bring in, or has brought in."""

    format: str
    dry_run: Annotated[bool, Doc("True: this is what would come in.")]
    counts: Annotated[dict[str, int], Doc("By what is counted: `conversations`, `messages`, `unchanged`, …")]
    problems: Annotated[NotesJson, Doc("What could not be read or stored, and where.")]
    folded: Annotated[NotesJson, Doc("What was stored several times there and comes in once.")]
    notes: Annotated[NotesJson, Doc("What is different here, or was left as it is.")]


class ImportJson(TypedDict):
    """A file that was uploaded to import it, and what has become of it."""

    id: Annotated[str, Doc(example="imp_0123456789abcdef")]
    name: str
    size: Annotated[int, Doc("In bytes.")]
    created_at: str
    state: Literal["checking", "ready", "importing", "done", "failed"]
    format: Annotated[str | None, Doc("`chatgpt`, `claude`, `open-webui` or `palaver`, once it is recognized.")]
    progress: Annotated[int, Doc("The conversations that were looked at or imported so far.")]
    total: Annotated[int | None, Doc("All conversations in the file, if that is known.")]
    report: Annotated[ReportJson | None, Doc("What would come in (`ready`), or has come in (`done`).")]
    error: Annotated[ErrorBody | None, Doc("Why it failed.")]


class ImportsJson(TypedDict):
    """Your imports of the last day, and how large a file may be."""

    imports: list[ImportJson]
    max_bytes: int


@router.post("", status_code=201, openapi_extra=_FILE_BODY, responses=error_responses(403, 422, 503))
async def upload_import(
    request: Request,
    state: State,
    caller: Caller,
    name: Annotated[str, Query(max_length=500, description="The name of the file, such as `export.zip`.")] = "",
) -> ImportJson:
    """Upload an export of ChatGPT, Claude, Open WebUI or Palaver, to import it for yourself.

    The body is the file itself. It is checked in the background; nothing is imported before you start it. An uploaded
    file is deleted after a day.
    """
    found = await state.imports.upload(caller.principal, name, _read_body(request))
    return _to_import_json(found)


@router.get("")
async def list_imports(state: State, caller: Caller) -> ImportsJson:
    """List your imports of the last day, the newest first."""
    found = await state.imports.list(caller.principal)
    return ImportsJson(imports=[_to_import_json(each) for each in found], max_bytes=state.imports.max_bytes)


@router.get("/{import_id}", responses=error_responses(404))
async def get_import(state: State, caller: Caller, import_id: ImportId) -> ImportJson:
    """Get one import: how far it is, what would come in, or what has come in."""
    return _to_import_json(await state.imports.get(caller.principal, import_id))


@router.post("/{import_id}/start", status_code=202, responses=error_responses(404))
async def start_import(state: State, caller: Caller, import_id: ImportId) -> ImportJson:
    """Import a file that is `ready`. It goes on by itself, also after a restart of the server.

    What is here already is left as it is, so importing the same file again changes nothing.
    """
    return _to_import_json(await state.imports.confirm(caller.principal, import_id))


@router.delete("/{import_id}", status_code=204, responses=error_responses(404))
async def delete_import(state: State, caller: Caller, import_id: ImportId) -> None:
    """Delete an uploaded file or the report of an import. What was imported stays."""
    await state.imports.delete(caller.principal, import_id)


async def _read_body(request: Request) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in request.stream():
            if chunk:
                yield chunk
    except ClientDisconnect:
        raise InvalidInput.say(
            "web.upload_cut_off", "The connection was closed before the file was complete."
        ) from None


def _to_import_json(found: PersonalImport) -> ImportJson:
    created_at = found.upload.created_at.replace("+00:00", "Z")
    error = found.upload.error
    if error is not None:
        message = introduce_message(load_text(error["message"]), load_text(error.get("kind", "")))
        error = {"code": error["code"], "message": message, "facts": error["facts"]}
    return build_json(ImportJson, found.upload, created_at=created_at, progress=found.progress, error=error)
