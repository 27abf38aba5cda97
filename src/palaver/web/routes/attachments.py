"""Attachments: files are uploaded before the message that uses them, and served so that no browser runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import Request
from fastapi.responses import FileResponse
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from palaver.core.errors import InvalidInput
from palaver.core.wire import Doc, TypedDict, build_json
from palaver.sessions.speech import MAX_FILE_BYTES, PLAIN_TEXT_TYPE, AttachmentTooLarge
from palaver.web.api_route import ApiRoute, make_router
from palaver.web.auth import Caller, IncludeAll
from palaver.web.errors import error_responses
from palaver.web.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class UploadRoute(ApiRoute):
    """A route that takes files. It writes them to disk as they arrive, and limits their size itself."""

    max_body_bytes = None


router = make_router("attachments", "/api", route_class=UploadRoute)

_MULTIPART_OVERHEAD_BYTES: Final = 100_000  # what a request may contain besides the file itself
_CHUNK_BYTES: Final = 256 * 1024
_FILE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, max-age=3600",
}
_UPLOAD_BODY: Final[dict[str, Any]] = {
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

_FILE_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
}


class AttachmentJson(TypedDict):
    """An uploaded file."""

    id: Annotated[str, Doc(example="a_0123456789abcdef01234567")]
    name: str
    media_type: Annotated[str, Doc("The media type, detected from the content and not from the name.")]
    size: Annotated[int, Doc("In bytes.")]


@router.post(
    "/attachments",
    status_code=201,
    openapi_extra=_UPLOAD_BODY,
    responses=error_responses(401, 403, 413, 422, 503, 507),
)
async def upload_attachment(request: Request, state: State, caller: Caller) -> AttachmentJson:
    """Upload one file. Attach it to a message within a day, or it is deleted; until then only you can see it.

    Supported are images (PNG, JPEG, GIF, WebP), PDF, Word, Excel, PowerPoint, OpenDocument, EPUB, audio (MP3, Ogg,
    FLAC, WAV, M4A) and UTF-8 text, up to 20 MB.
    """
    parser = MultiPartParser(request.headers, _limit_stream(request), max_files=1, max_fields=4)
    try:
        with state.attachments.translate_errors():  # a large file is first written to a temporary one
            form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        raise InvalidInput("Send one file as multipart/form-data, in a field named `file`.") from error
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise InvalidInput("Send one file as multipart/form-data, in a field named `file`.")
        async with state.attachments.arrived_files.hold(caller.principal.person_id):
            attachment = await state.attachments.receive(caller.principal, file.filename, _read_chunks(file))
    finally:
        await form.close()
    return build_json(AttachmentJson, attachment)


@router.get(
    "/attachments/{attachment_id}",
    response_class=FileResponse,
    responses={**_FILE_RESPONSE, **error_responses(401, 403, 404)},
)
async def download_attachment(
    attachment_id: str, state: State, caller: Caller, include_all: IncludeAll
) -> FileResponse:
    """Download a file that you have uploaded, or that is attached to a conversation you can see."""
    attachment = await state.attachments.get(caller.principal, attachment_id, everything=include_all)
    is_text = attachment.media_type == PLAIN_TEXT_TYPE
    return FileResponse(
        state.attachments.get_path(attachment),
        media_type="text/plain; charset=utf-8" if is_text else attachment.media_type,
        filename=attachment.name,
        content_disposition_type="inline" if attachment.can_show_inline else "attachment",
        headers=_FILE_HEADERS,
    )


async def _limit_stream(request: Request) -> AsyncGenerator[bytes, None]:
    """Yield the body of a request; fail as soon as it is too long for any allowed file."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_FILE_BYTES + _MULTIPART_OVERHEAD_BYTES:
            raise AttachmentTooLarge(
                f"This file is too large. The limit is {MAX_FILE_BYTES // 1_000_000} MB.", limit_bytes=MAX_FILE_BYTES
            )
        yield chunk


async def _read_chunks(file: UploadFile) -> AsyncGenerator[bytes, None]:
    while chunk := await file.read(_CHUNK_BYTES):
        yield chunk
