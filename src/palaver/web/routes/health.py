"""Health checks and metrics, for process supervisors and monitoring."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Request, Response
from pydantic import Field

from palaver import __version__
from palaver.core.engines.base import ReadinessCode, ReadinessProblem
from palaver.operation.metrics import find_problems
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import build_error_response, error_responses
from palaver.web.metrics import Metrics
from palaver.web.state import ResponseModel, State

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


class ReadinessOut(HealthOut):
    """What limits the server, and the health of its accounts on chat platforms."""

    platforms: Literal["ok", "problem"] = Field(
        description="`problem`: an account that this server runs is not connected. `/api/platforms` says which and why."
    )
    problems: list[ReadinessProblemOut]


@router.get("/readyz", response_model=ReadinessOut, responses=error_responses(503))
async def check_readiness(state: State, request: Request) -> ReadinessOut | Response:
    """Check that messages can be stored and read, within a few seconds.

    If not, the response is an error whose code says why, such as `disk_full` or `store_file_lost`.
    """
    problems = [*await find_problems(state.gateway.store)]
    if request.state.connections.has_refused_lately:
        text = "The limit of open connections was reached within the last minute: some were refused."
        problems.append(ReadinessProblem("too_many_connections", text, is_blocking=False))
    for problem in problems:
        if problem.is_blocking:
            return build_error_response(503, problem.code, problem.message)
    return ReadinessOut(
        status="ok",
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
