"""What goes wrong, as the web says it: one shape for every error, and the table from errors to HTTP states.

Always true: an error that Palaver raises on purpose never shows a traceback; a mistake of ours is logged with one and
told without. What is not yours and what does not exist give the same bytes.
"""

from __future__ import annotations

import json
import logging
import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from palaver.domain.errors import (
    AgentError,
    InvalidInput,
    NotAllowed,
    NotFound,
    NothingToDo,
    NotReachable,
    NotSignedIn,
    PalaverError,
    StoreError,
    TooManyAttempts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fastapi import FastAPI, Request

log = logging.getLogger(__name__)


class Refused(PalaverError):
    """This was not done."""


# The first that fits counts. Whoever adds an error adds a line when its class is not below one of these.
STATUSES: tuple[tuple[type[PalaverError], int], ...] = (
    (NotSignedIn, 401),
    (TooManyAttempts, 429),
    (NotFound, 404),
    (NotAllowed, 403),
    (NotReachable, 409),
    (InvalidInput, 422),
    (NothingToDo, 409),
    (Refused, 409),
    (StoreError, 503),
    (AgentError, 502),
    (PalaverError, 500),
)

_NAMES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "wrong_type"}


class ErrorBody(BaseModel):
    """What went wrong."""

    code: str = Field(description="A stable name for programs.", examples=["no_such_session"])
    message: str = Field(description="A sentence for people.")
    facts: dict[str, Any] = Field(description="What the sentence speaks of, as data.")


class ErrorOut(BaseModel):
    """The shape of every error."""

    error: ErrorBody


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for its documentation."""
    return {status: {"model": ErrorOut, "description": HTTPStatus(status).phrase} for status in statuses}


def install_errors(app: FastAPI) -> None:
    """Let every error leave in the one shape."""
    app.add_exception_handler(PalaverError, _raised)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _mistaken)


def error_response(
    status: int,
    code: str,
    message: str,
    facts: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """An error as a response, for those who answer before a route is reached."""
    body = {"error": {"code": code, "message": message, "facts": dict(facts or {})}}
    return _Escaped(body, status, dict(headers or {}) | {"Cache-Control": "no-store"})


def response_to(error: PalaverError) -> JSONResponse:
    """The response that an error of ours becomes."""
    status = next(number for kind, number in STATUSES if isinstance(error, kind))
    wait = getattr(error, "retry_after", None)
    headers = {} if wait is None else {"Retry-After": str(max(1, math.ceil(wait)))}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return error_response(status, error.code, str(error), error.facts, headers)


class _Escaped(JSONResponse):
    """JSON in ASCII: what a client sent may hold halves of characters, which no other encoding can answer."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":"), default=str).encode("ascii")


async def _raised(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PalaverError)  # noqa: S101
    response = response_to(error)
    if response.status_code >= 500:
        log.warning("web.failed", extra={"code": error.code, "reason": str(error)})
    return response


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    problems = [_problem(each) for each in error.errors()]
    first = problems[0] if problems else {"where": "", "message": "the request cannot be read"}
    facts = {name: fact for name, fact in first.items() if name != "message"} | {"problems": problems}
    return error_response(422, "invalid_request", f"{first['where']}: {first['message']}", facts)


def _problem(error: Mapping[str, Any]) -> dict[str, Any]:
    """What pydantic found: where, what, and how much there may be at most, if it is about that."""
    context = error.get("ctx", {})
    limit = context.get("max_length", context.get("le"))
    found = {"where": _where(error["loc"]), "message": str(error["msg"])}
    return found if limit is None else {**found, "limit": limit}


def _where(place: Sequence[int | str]) -> str:
    return ".".join(str(step) for step in place)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    phrase = HTTPStatus(error.status_code).phrase
    code = _NAMES.get(error.status_code) or phrase.lower().replace(" ", "_")
    return error_response(error.status_code, code, str(error.detail or phrase), headers=error.headers)


async def _mistaken(_request: Request, _error: Exception) -> JSONResponse:
    """The server logs it, with its trace."""
    return error_response(500, "internal_error", "Something went wrong inside Palaver; its log has more.")
