"""Health checks and metrics, for process supervisors and monitoring; for owners the server's log and its health.

For everybody: what is new in the running version.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from palaver import __version__
from palaver.core.engines.base import ReadinessCode, ReadinessProblem
from palaver.core.wire import Doc, Time, TypedDict, build_json
from palaver.operation.doctor.finding import FindingCode
from palaver.operation.health_check import MAX_PAGE_RECORDS, MAX_TEXT_CHARS, read_log
from palaver.operation.metrics import find_problems, load_update_notes
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, OwnerCaller
from palaver.web.errors import build_error_response, error_responses
from palaver.web.metrics import Metrics
from palaver.web.state import State

router = make_router("operation", "")

_ERRORS = error_responses(401, 403)


class HealthJson(TypedDict):
    """The health of the server."""

    status: Literal["ok"]
    version: str


@router.get("/healthz")
async def check_health() -> HealthJson:
    """Check that the process is alive."""
    return HealthJson(status="ok", version=__version__)


class ReadinessProblemJson(TypedDict):
    """Something that limits the server."""

    code: Annotated[ReadinessCode, Doc("A stable identifier for programs.")]
    message: str


class ReadinessJson(HealthJson):
    """Problems that limit the server, and the health of its accounts on chat platforms."""

    platforms: Annotated[
        Literal["ok", "problem"],
        Doc("`problem`: an account that this server runs is not connected. `/api/platforms` says which and why."),
    ]
    problems: list[ReadinessProblemJson]


@router.get("/readyz", response_model=ReadinessJson, responses=error_responses(503))
async def check_readiness(state: State, request: Request) -> ReadinessJson | Response:
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
    return ReadinessJson(
        status="ok",
        version=__version__,
        platforms="problem" if state.gateway.accounts.has_problem else "ok",
        problems=[build_json(ReadinessProblemJson, problem) for problem in problems],
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **error_responses(401)},
)
async def get_metrics(_owner: OwnerCaller, request: Request) -> Response:
    """Get this server's metrics for Prometheus. Tokens need the scope `admin`."""
    metrics: Metrics = request.app.state.get_metrics()
    return Response(await metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


class LogProcessJson(TypedDict):
    """The process whose lines are listed. Other servers on the same database have their own."""

    id: str
    host: str
    pid: int
    started_at: Time


class LogRecordJson(TypedDict):
    """A line of the log. Secrets are removed from it; messages of people are never in it."""

    no: int
    at: str
    level: str
    logger: str
    event: str
    fields: dict[str, str]


class LogsJson(TypedDict):
    """Lines of the log, oldest first."""

    process: LogProcessJson
    records: list[LogRecordJson]
    cursor: Annotated[str, Doc("Pass this as `cursor` to get what is logged later.")]
    is_continued: Annotated[
        bool,
        Doc(
            "Whether these lines follow those before the given `cursor`. If not, they replace them: another"
            " process has answered, or more was logged meanwhile than is kept."
        ),
    ]


@router.get("/api/logs", responses=_ERRORS)
async def list_logs(
    _owner: OwnerCaller,
    level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"], Query(description="Only this level and above.")
    ] = "debug",
    text: Annotated[str, Query(max_length=MAX_TEXT_CHARS, description="Only lines that contain this text.")] = "",
    cursor: Annotated[str | None, Query(description="The cursor of an earlier request.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_RECORDS)] = 200,
) -> LogsJson:
    """List the last lines of the server's log, for owners. Tokens need the scope `admin`."""
    page = await asyncio.to_thread(read_log, min_level=level, text=text, cursor=cursor, limit=limit)
    return build_json(LogsJson, page)


class FindingJson(TypedDict):
    """The result of a check."""

    code: Annotated[FindingCode, Doc("A stable identifier for programs.")]
    subject: str
    severity: Literal["ok", "warning", "problem"]
    text: str
    fix: Annotated[str | None, Doc("How to fix it: a command, or a key of the settings with what to write there.")]
    facts: Annotated[dict[str, str], Doc("The values mentioned in `text` and `fix`, for programs.")]


class HealthDetailsJson(TypedDict):
    """The result of `palaver doctor`."""

    ok: Annotated[bool, Doc("Whether there are no problems; there may be warnings.")]
    findings: list[FindingJson]
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
) -> HealthDetailsJson:
    """Check the installation like `palaver doctor`, for owners; takes up to 45 seconds. Nothing is changed."""
    report = await state.health.run(asks_model=asks_model)
    return build_json(
        HealthDetailsJson,
        report,
        ok=all(finding.severity != "problem" for finding in report.findings),
        findings=[build_json(FindingJson, each, fix=each.fix or None) for each in report.findings],
        version=__version__,
        duration_seconds=round(report.duration_seconds, 3),
    )


class UpdateNotesJson(TypedDict):
    """The changes in the running version."""

    version: str
    text: Annotated[str, Doc("Markdown; empty if there are no notes.")]


@router.get("/api/update-notes", responses=_ERRORS)
async def get_update_notes(_caller: Caller) -> UpdateNotesJson:
    """Get what is new in the running version."""
    return UpdateNotesJson(version=__version__, text=await asyncio.to_thread(load_update_notes))
