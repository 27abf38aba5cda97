"""Health checks and metrics, for process supervisors and monitoring."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Request, Response
from pydantic import Field

from palaver import __version__
from palaver.domain.readiness import ReadinessCode, ReadinessProblem
from palaver.services.readiness import find_problems
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import ErrorOut, error_responses
from palaver.web.metrics import Metrics
from palaver.web.schemas import ResponseModel
from palaver.web.state import State

router = make_router("operation", "")


class HealthOut(ResponseModel):
    """The health of the server."""

    status: Literal["ok"]
    version: str


@router.get("/healthz")
async def check_health() -> HealthOut:
    """Check that the process is alive."""
    return HealthOut(status="ok", version=__version__)


class ReadinessProblemOut(ResponseModel):
    """Something that limits the server."""

    code: ReadinessCode = Field(description="A stable identifier for programs.")
    message: str
    is_blocking: bool = Field(description="Whether messages can't be stored, so that the server is not ready.")


class ReadinessOut(ResponseModel):
    """Whether the server can serve requests, and the health of its accounts on chat platforms."""

    status: Literal["ok", "problem"] = Field(description="`problem`: messages can't be stored; the response is a 503.")
    version: str
    platforms: Literal["ok", "problem"] = Field(
        description="`problem`: an account that this server runs is not connected. `/api/platforms` says which and why."
    )
    problems: list[ReadinessProblemOut]


@router.get("/readyz", responses={503: {"model": ReadinessOut | ErrorOut, "description": "Messages can't be stored."}})
async def check_readiness(state: State, request: Request, response: Response) -> ReadinessOut:
    """Check that messages can be stored and read, within a few seconds.

    If nothing can be read, the response is an error with its code, such as `store_file_lost`.
    """
    problems = [*await find_problems(state.gateway.store)]
    if request.state.connections.has_refused_lately:
        text = "The limit of open connections was reached within the last minute: some were refused."
        problems.append(ReadinessProblem("too_many_connections", text, is_blocking=False))
    is_blocked = any(problem.is_blocking for problem in problems)
    if is_blocked:
        response.status_code = 503
    return ReadinessOut(
        status="problem" if is_blocked else "ok",
        version=__version__,
        platforms="problem" if state.gateway.accounts.has_problem else "ok",
        problems=[ReadinessProblemOut.model_validate(problem, from_attributes=True) for problem in problems],
    )


async def _get_metrics(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **error_responses(401)},
)
async def get_metrics(_owner: OwnerCaller, metrics: Annotated[Metrics, Depends(_get_metrics)]) -> Response:
    """Get this server's metrics for Prometheus. Tokens need the scope `admin`."""
    return Response(await metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")
