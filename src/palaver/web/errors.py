"""Error responses: the one JSON shape of every error, and the table that maps error classes to HTTP status codes.

Always true: an error that Palaver raises on purpose never shows a traceback; an unexpected error is logged with its
traceback and answered without it. What a person may not see and what does not exist give byte-identical responses.
"""

from __future__ import annotations

import json
import logging
import math
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from palaver.core.errors import (
    AccountNotConnected,
    AccountNotRunning,
    AgentError,
    ChatNotReachable,
    InvalidInput,
    NotAllowed,
    NotFound,
    NothingToDo,
    NotSignedIn,
    PalaverError,
    PushFailed,
    SettingsChanged,
    StoreError,
    StoreFull,
    TooManyAttempts,
)
from palaver.core.text import make_json_storable
from palaver.core.texts import ENGLISH, Text, current_language, join_texts, say, translate_all
from palaver.sessions.share import ShareExpired
from palaver.sessions.speech import FileQuotaReached

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request


_SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:d[89a-f]|0000)", re.IGNORECASE)  # NUL, or a half of a surrogate pair

log = logging.getLogger(__name__)


class RequestRejected(PalaverError):
    """The request was refused."""

    @property
    def retry_after(self) -> float | None:
        """After how many seconds it may be repeated; None if it does not become possible by itself."""
        seconds = self.facts.get("retry_after")
        return float(seconds) if isinstance(seconds, int | float) else None


class TooManyRequests(TooManyAttempts):
    """You have too many requests in progress. Wait until some of them have ended."""


class TooManyStreams(TooManyAttempts):
    """You have too many live streams open. Close some pages or programs that use them."""


# The first matching line counts. A new error class needs its own line unless a base class below covers it.
STATUS_BY_ERROR: tuple[tuple[type[PalaverError], int], ...] = (
    (NotSignedIn, 401),
    (TooManyAttempts, 429),
    (ShareExpired, 410),
    (FileQuotaReached, 413),
    (NotFound, 404),
    (NotAllowed, 403),
    (ChatNotReachable, 409),
    (InvalidInput, 422),
    (NothingToDo, 409),
    (RequestRejected, 409),
    (SettingsChanged, 409),
    (StoreFull, 507),
    (StoreError, 503),
    (AccountNotConnected, 503),
    (AccountNotRunning, 409),
    (AgentError, 502),
    (PushFailed, 502),
    (PalaverError, 500),
)

_HTTP_ERRORS = {
    "bad_request": say("web.bad_request", "The request is not valid. Reload the page."),
    "method_not_allowed": say("web.method_not_allowed", "This server can't do that. Reload the page."),
    "wrong_type": say("web.wrong_type", "Content of this type isn't accepted."),
}
_CODE_BY_STATUS = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "wrong_type"}


class ErrorBody(BaseModel):
    """An explanation of an error."""

    code: str = Field(description="A stable identifier for programs.", examples=["session_not_found"])
    message: str = Field(description="An explanation for people.")
    facts: dict[str, Any] = Field(description="The values mentioned in the message, for programs.")


class ErrorOut(BaseModel):
    """An error. Every error response has this shape."""

    error: ErrorBody


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the error responses of a route for the OpenAPI document."""
    return {status: {"model": ErrorOut, "description": HTTPStatus(status).phrase} for status in statuses}


def install_errors(app: FastAPI) -> None:
    """Register handlers that give every error the same JSON shape."""
    app.add_exception_handler(PalaverError, _handle_palaver_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    app.add_exception_handler(Exception, _handle_unexpected_error)


def build_error_response(
    status: int,
    code: str,
    message: str,
    facts: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Build an error response; middleware uses this to answer before a request reaches a route."""
    error = {"code": code, "message": message, "facts": dict(facts or {})}
    body = {"error": translate_all(error, current_language.get())}
    return _AsciiJSONResponse(body, status, dict(headers or {}) | {"Cache-Control": "no-store"})


def get_error_status(error: PalaverError) -> int:
    if isinstance(error, RequestRejected) and error.retry_after is not None:
        return 429
    return next(status for error_class, status in STATUS_BY_ERROR if isinstance(error, error_class))


def build_retry_headers(error: PalaverError) -> dict[str, str]:
    """Return the header that says when to repeat a request; every error with status 429 has one."""
    wait = getattr(error, "retry_after", None)
    return {} if wait is None else {"Retry-After": str(max(1, math.ceil(wait)))}


def describe_error(error: PalaverError) -> tuple[str, Mapping[str, object]]:
    """Return the message and the facts of an error for clients: where the server's files are is only in its log."""
    if isinstance(error, StoreError) and "path" in error.facts:
        return error.describe_class(), {}
    return introduce_message(error.text, error.describe_class()), error.facts


def introduce_message(message: str, kind: str) -> str:
    """Say of what kind an error is before a message that is only in English, to people who read another language."""
    if isinstance(message, Text) or not kind or current_language.get() == ENGLISH:
        return message
    return join_texts(" ", (kind, say("web.server_reports", "The server reports: {message}", message=message)))


class _AsciiJSONResponse(JSONResponse):
    """JSON in ASCII: a client's text may contain lone surrogates, which UTF-8 cannot encode."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":"), default=str).encode("ascii")


async def _handle_palaver_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PalaverError)  # noqa: S101
    status, headers = get_error_status(error), build_retry_headers(error)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status >= 500:
        log.warning("request_failed", extra={"code": error.code, "reason": str(error)})
    return build_error_response(status, error.code, *describe_error(error), headers)


async def _handle_validation_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    problems = [_describe_problem(each) for each in error.errors()]
    first = problems[0] if problems else {"field": "", "message": "The request is not valid."}
    facts = {name: value for name, value in first.items() if name != "message"} | {"problems": problems}
    return build_error_response(422, "invalid_request", f"{first['field']}: {first['message']}", facts)


def _describe_problem(error: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a pydantic error into the field's path, a message and, if the value was too large, the limit."""
    context = error.get("ctx", {})
    limit = context.get("max_length", context.get("le"))
    problem = {"field": ".".join(map(str, error["loc"])), "message": str(error["msg"])}
    return problem if limit is None else {**problem, "limit": limit}


async def _handle_http_exception(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    phrase = HTTPStatus(error.status_code).phrase
    code = _CODE_BY_STATUS.get(error.status_code) or phrase.lower().replace(" ", "_")
    message = str(error.detail or phrase)
    if code in _HTTP_ERRORS:
        message = introduce_message(message, _HTTP_ERRORS[code])
    return build_error_response(error.status_code, code, message, headers=error.headers)


async def _handle_unexpected_error(_request: Request, _error: Exception) -> JSONResponse:
    # Starlette raises the error again after this handler, so that the server logs it with its traceback.
    return build_error_response(
        500, "internal_error", "Something went wrong inside Palaver. See the server log for details."
    )


def make_body_storable(body: bytes) -> bytes:
    """Return a JSON body with all its text storable, before anything else reads it; the same object if it already was.

    JSON can contain NUL and halves of surrogate pairs, as escapes. No database, log or response can hold them.
    """
    if not _SUSPICIOUS_ESCAPE.search(body):
        return body
    try:
        value = json.loads(body)
        clean = make_json_storable(value)
    except (ValueError, RecursionError):  # not valid: reported when the route reads it
        return body
    return body if clean == value else json.dumps(clean).encode()
