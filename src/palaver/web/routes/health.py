"""Health checks and metrics, for process supervisors and monitoring."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Request, Response
from pydantic import Field

from palaver import __version__
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import error_responses
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


class ReadinessOut(HealthOut):
    """The health of the server, and of its accounts on chat platforms."""

    platforms: Literal["ok", "problem"] = Field(
        description="`problem`: an account that this server runs is not connected. `/api/platforms` says which and why."
    )


@router.get("/readyz")
async def check_readiness(state: State) -> ReadinessOut:
    """Check that the database responds and that this server may write to it, so that requests can be served."""
    await state.gateway.store.aio.has_any_sessions()
    await state.gateway.store.aio.check_writable()
    platforms: Literal["ok", "problem"] = "problem" if state.gateway.accounts.has_problem else "ok"
    return ReadinessOut(status="ok", version=__version__, platforms=platforms)


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
