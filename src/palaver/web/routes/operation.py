"""Health checks and metrics, for process supervisors and monitoring; for owners the server's log and its health.

For everybody: what is new in the running version.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import Depends, Query, Request, Response
from pydantic import Field

from palaver import __version__
from palaver.core.engines.base import ReadinessCode, ReadinessProblem
from palaver.operation.doctor.finding import FindingCode
from palaver.operation.health_check import MAX_PAGE_RECORDS, MAX_TEXT_CHARS, read_log
from palaver.operation.metrics import find_problems, load_update_notes
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, OwnerCaller
from palaver.web.errors import build_error_response, error_responses
from palaver.web.metrics import Metrics
from palaver.web.state import ResponseModel, State, Time

router = make_router("operation", "")

_ERRORS = error_responses(401, 403)


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
    """Problems that limit the server, and the health of its accounts on chat platforms."""

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


# ---- for the page --------------------------------------------------------------------------------------


class LogProcessOut(ResponseModel):
    """The process whose lines are listed. Other servers on the same database have their own."""

    id: str
    host: str
    pid: int
    started_at: Time


class LogRecordOut(ResponseModel):
    """A line of the log. Secrets are removed from it; messages of people are never in it."""

    no: int
    at: str
    level: str
    logger: str
    event: str
    fields: dict[str, str]


class LogsOut(ResponseModel):
    """Lines of the log, oldest first."""

    process: LogProcessOut
    records: list[LogRecordOut]
    cursor: str = Field(description="Pass this as `cursor` to get what is logged later.")
    is_continued: bool = Field(
        description="Whether these lines follow those before the given `cursor`. If not, they replace them: another"
        " process has answered, or more was logged meanwhile than is kept."
    )


@router.get("/api/logs", responses=_ERRORS)
async def list_logs(
    _owner: OwnerCaller,
    level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"], Query(description="Only this level and above.")
    ] = "debug",
    text: Annotated[str, Query(max_length=MAX_TEXT_CHARS, description="Only lines that contain this text.")] = "",
    cursor: Annotated[str | None, Query(description="The cursor of an earlier request.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_RECORDS)] = 200,
) -> LogsOut:
    """List the last lines of the server's log, for owners. Tokens need the scope `admin`."""
    page = await asyncio.to_thread(read_log, min_level=level, text=text, cursor=cursor, limit=limit)
    return LogsOut.model_validate(page, from_attributes=True)


class FindingOut(ResponseModel):
    """The result of a check."""

    code: FindingCode = Field(description="A stable identifier for programs.")
    subject: str
    severity: Literal["ok", "warning", "problem"]
    text: str
    fix: str | None = Field(description="How to fix it: a command, or a key of the settings with what to write there.")
    facts: dict[str, str] = Field(description="The values mentioned in `text` and `fix`, for programs.")


class HealthDetailsOut(ResponseModel):
    """The result of `palaver doctor`."""

    ok: bool = Field(description="Whether there are no problems; there may be warnings.")
    findings: list[FindingOut]
    version: str
    checked_at: Time
    duration_seconds: float


@router.get("/api/health/details", responses=_ERRORS)
async def get_health_details(
    state: State,
    _owner: OwnerCaller,
    asks_model: Annotated[
        bool, Query(description="Also ask the model one short question, which costs a little.")
    ] = False,
) -> HealthDetailsOut:
    """Check the installation like `palaver doctor`, for owners; takes up to 45 seconds. Nothing is changed."""
    report = await state.health.run(asks_model=asks_model)
    findings = [FindingOut.model_validate(finding.to_json()) for finding in report.findings]
    return HealthDetailsOut(
        ok=all(finding.severity != "problem" for finding in findings),
        findings=findings,
        version=__version__,
        checked_at=report.checked_at,
        duration_seconds=round(report.duration_seconds, 3),
    )


class UpdateNotesOut(ResponseModel):
    """The changes in the running version."""

    version: str
    text: str = Field(description="Markdown; empty if there are no notes.")


@router.get("/api/update-notes", responses=_ERRORS)
async def get_update_notes(_caller: Caller) -> UpdateNotesOut:
    """Get what is new in the running version."""
    return UpdateNotesOut(version=__version__, text=await asyncio.to_thread(load_update_notes))
