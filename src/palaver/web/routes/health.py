"""Whether it works, and its numbers: for whoever watches the process."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response

from palaver import __version__
from palaver.web.auth import Owner
from palaver.web.errors import answers
from palaver.web.metrics import Metrics
from palaver.web.schemas import Out
from palaver.web.state import State

router = APIRouter(tags=["operation"])


class HealthOut(Out):
    """Whether it works."""

    status: Literal["ok"]
    version: str


@router.get("/healthz")
async def health() -> HealthOut:
    """The process is alive."""
    return HealthOut(status="ok", version=__version__)


@router.get("/readyz")
async def ready(state: State) -> HealthOut:
    """The store answers, so requests can be served."""
    await state.gateway.store.aio.has_any_sessions()
    return HealthOut(status="ok", version=__version__)


async def _metrics(request: Request) -> Metrics:
    kept: Metrics = request.app.state.metrics
    return kept


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **answers(401)},
)
async def metrics(_owner: Owner, kept: Annotated[Metrics, Depends(_metrics)]) -> Response:
    """The numbers of this server, for Prometheus; a token needs the scope admin."""
    return Response(await kept.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
