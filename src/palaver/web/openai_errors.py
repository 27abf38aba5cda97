"""Errors of the OpenAI-compatible API, in OpenAI's format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from palaver.core.errors import NotFound, PalaverError
from palaver.core.text import make_storable
from palaver.web import errors
from palaver.web.api_route import ApiRoute
from palaver.web.errors import RequestRejected
from palaver.web.openai_schemas import OpenAIError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

ERROR_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": OpenAIError} for status in (400, 401, 403, 404, 413, 429, 500, 502, 503)
}
_ERROR_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_ERROR_CODES: Final = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class ModelNotFound(NotFound):
    """Model not found."""


class AnswerFailed(PalaverError):
    """The agent could not answer."""


class OpenAIRoute(ApiRoute):
    """A route that answers errors in OpenAI's format."""

    max_body_bytes = 16 * 2**20  # a request has all earlier messages, and images as base64

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_with_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                first = error.errors()[0]
                param = ".".join(str(step) for step in first["loc"][1:])
                return _build_error_response(400, f"{param}: {first['msg']}", param=param or None)
            except HTTPException as error:
                return _build_error_response(error.status_code, str(error.detail))
            except PalaverError as error:
                return _respond_to_error(error)

        return handle_with_errors


def get_error_status(error: PalaverError) -> int:
    """Return the HTTP status that OpenAI's clients expect; for most errors it is the same as in the rest of the API."""
    if isinstance(error, AnswerFailed):
        return 502
    status = errors.get_error_status(error)
    # Clients repeat a request by themselves after 409, and a rejected one would be rejected again.
    return 400 if status == 422 or (status == 409 and isinstance(error, RequestRejected)) else status


def build_error_body(status: int, message: str, *, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """Build the JSON of an error."""
    error_type = _ERROR_TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": make_storable(message), "type": error_type, "param": param, "code": code}}


def _respond_to_error(error: PalaverError) -> JSONResponse:
    status = get_error_status(error)
    headers = errors.build_retry_headers(error)
    if isinstance(error, AnswerFailed):
        headers["x-should-retry"] = "false"  # the message is stored; a retry would ask the same question twice
    message, _ = errors.describe_error(error)
    return _build_error_response(status, message, code=_ERROR_CODES.get(status) or error.code, headers=headers)


def _build_error_response(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    return JSONResponse(build_error_body(status, message, code=code, param=param), status, dict(headers or {}))
