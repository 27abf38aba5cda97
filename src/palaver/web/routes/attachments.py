"""Files: sent before the message that names them, and given back so that no browser runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse
from pydantic import Field
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from palaver.domain.attachment import LARGEST, TEXT, AttachmentTooLarge
from palaver.domain.errors import InvalidInput
from palaver.web.auth import SeenBy, SignedIn
from palaver.web.errors import answers
from palaver.web.schemas import Out
from palaver.web.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

router = APIRouter(tags=["attachments"])

_AROUND: Final = 100_000  # bytes of a request beside the file itself
_CHUNK: Final = 256 * 1024
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, max-age=3600",
}
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}

_FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
}


class AttachmentOut(Out):
    """A file that was sent."""

    id: str = Field(examples=["a_0123456789abcdef01234567"])
    name: str
    type: str = Field(description="What its bytes are, whatever its name says.")
    size: int = Field(description="In bytes.")


@router.post("/attachments", status_code=201, openapi_extra=_BODY, responses=answers(401, 403, 422, 503))
async def upload_attachment(request: Request, state: State, signed: SignedIn) -> AttachmentOut:
    """Send one file. Name it in a message within a day; until then only you can see it.

    Images (PNG, JPEG, GIF, WebP), PDF, sounds (MP3, Ogg, FLAC, WAV, M4A) and text in UTF-8 are taken, up to 20 MB.
    """
    parser = MultiPartParser(request.headers, _bounded(request), max_files=1, max_fields=4)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        raise InvalidInput("send one file as multipart/form-data, in a field named `file`") from error
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise InvalidInput("send one file as multipart/form-data, in a field named `file`")
        found = await state.files.take(signed.principal, file.filename, _chunks(file))
    finally:
        await form.close()
    return AttachmentOut(id=found.id, name=found.name, type=found.type, size=found.size)


@router.get(
    "/attachments/{attachment_id}",
    response_class=FileResponse,
    responses={**_FILE, **answers(401, 403, 404)},
)
async def read_attachment(
    attachment_id: str,
    state: State,
    signed: SignedIn,
    _view: SeenBy,  # refuses `all` to whoever may not ask for it
    everything: Annotated[bool, Query(alias="all", include_in_schema=False)] = False,
) -> FileResponse:
    """A file that you have sent, or that is used in a conversation which you see."""
    files = state.files
    found = await files.get(signed.principal, attachment_id, everything=everything)
    return FileResponse(
        files.path(found),
        media_type="text/plain; charset=utf-8" if found.type == TEXT else found.type,
        filename=found.name,
        content_disposition_type="inline" if found.shown_in_place else "attachment",
        headers=_HEADERS,
    )


async def _bounded(request: Request) -> AsyncGenerator[bytes, None]:
    """The body of a request, as long as it is not longer than any file may be."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > LARGEST + _AROUND:
            raise AttachmentTooLarge(
                f"this file is too large: {LARGEST // 1_000_000} MB is the most I take", most=LARGEST
            )
        yield chunk


async def _chunks(file: UploadFile) -> AsyncGenerator[bytes, None]:
    while chunk := await file.read(_CHUNK):
        yield chunk
