"""This machine: versions, clock, the server's port, and what could contain commands of the agent."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import platform
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import field
from datetime import UTC, datetime
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from palaver import __version__
from palaver.agent.base import Agent, AgentRequest, CallMeter, Unmetered, UsageReport, collect_answer
from palaver.config.budget_rules import CallPurpose
from palaver.core.background import create_lease_owner
from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Write
from palaver.core.engines.schema_state import describe_sqlite
from palaver.core.errors import BudgetExceeded, PalaverError
from palaver.core.texts import say
from palaver.drivers.demo import DEMO_MODEL
from palaver.drivers.selection import choose_agent
from palaver.media.documents.sandbox import CHECK_COMMAND
from palaver.money import calls_table as call_records
from palaver.money.meter import Budgets
from palaver.operation.doctor.finding import Finding, FindingCode, FixCommands, make_ok, make_problem, make_warning
from palaver.operation.metrics import find_wait_minutes
from palaver.people import table as people
from palaver.sessions import usage_table as usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from palaver.config import Settings
    from palaver.core.ids import PersonId
    from palaver.sessions.store import SessionStore


MAX_CLOCK_DIFFERENCE_SECONDS: Final = 5.0
EARLIEST_YEAR: Final = 2026
_EXTRAS: Final = {  # a package that an extra installs, by the name of the extra
    "postgres": "psycopg",
    "models": "pydantic-ai-slim",
    "local": "xllamacpp",
    "telegram": "python-telegram-bot",
    "matrix-encryption": "matrix-nio",
    "discord": "discord.py",
    "slack": "slack-sdk",
    "whatsapp-web": "neonize",
    "email": "aiosmtplib",
}
_READINESS_SECONDS: Final = 10.0
_MAX_READINESS_BYTES: Final = 100_000
_BWRAP_SECONDS: Final = 5.0
_READER_SECONDS: Final = 20.0
_LANDLOCK_CREATE_RULESET: Final = 444  # the same number on every architecture
_LANDLOCK_VERSION_FLAG: Final = 1
MODEL_SECONDS: Final = 45.0
MAX_ANSWER_TOKENS: Final = 200  # some models think before they write
_QUESTION: Final = "Answer with the word: ready"


def check_versions() -> Iterator[Finding]:
    extras = [name for name, package in _EXTRAS.items() if _is_installed(package)]
    yield make_ok(
        FindingCode.VERSIONS,
        palaver=__version__,
        python=platform.python_version(),
        sqlite=describe_sqlite(),
        extras=", ".join(extras) or "none",
    )


def _is_installed(package: str) -> bool:
    with contextlib.suppress(PackageNotFoundError):
        return bool(version(package))
    return False


def check_clock(store: SessionStore | None, settings: Settings | None) -> Iterator[Finding]:
    """Compare this machine's clock with the database server's, and check that the time zone is known."""
    now = datetime.now(UTC)
    if now.year < EARLIEST_YEAR:
        yield make_problem(FindingCode.CLOCK_WRONG, date=f"{now:%Y-%m-%d}")
    elif store is not None and store.engine.name == "postgres":
        difference = abs((store.clock.now() - datetime.now(UTC)).total_seconds())
        if difference > MAX_CLOCK_DIFFERENCE_SECONDS:
            yield make_warning(FindingCode.CLOCK_DIFFERS, seconds=f"{difference:.1f}")
        else:
            yield make_ok(FindingCode.CLOCK_AGREES, seconds=f"{difference:.1f}")
    else:
        yield make_ok(FindingCode.CLOCK, time=f"{now:%Y-%m-%d %H:%M}")
    if settings is not None:
        yield make_ok(FindingCode.TIME_ZONE, timezone=settings.gateway.timezone)


def check_server(
    settings: Settings, running_url: str | None, find_port_user: Callable[[int], str | None]
) -> Iterator[Finding]:
    """Report the running server, or whether another program has taken its port."""
    host, port = settings.web.host, settings.web.port
    if running_url is not None:
        yield from _check_running_server(running_url)
    elif port is None:  # any free one will do
        yield make_ok(FindingCode.SERVER_STOPPED)
    elif not _is_port_in_use(host, port):
        yield make_ok(FindingCode.PORT_FREE, port=port)
    else:
        port_user = find_port_user(port)
        yield make_problem(FindingCode.PORT_TAKEN, user=f" ({port_user})" if port_user else "", port=port)


def _check_running_server(url: str) -> Iterator[Finding]:
    """Ask the server itself: only it knows which files it has opened, and who waits for whom."""
    try:
        answer = _fetch_readiness(url)
    except (OSError, HTTPException, ValueError) as error:
        yield make_problem(FindingCode.SERVER_SILENT, url=url, error=str(error) or type(error).__name__)
        return
    if "error" in answer:
        yield make_problem(FindingCode.SERVER_PROBLEM, url=url, problem=answer["error"]["message"])
        return
    # The turns that wait are counted in the database, also if no server runs.
    problems = [each for each in answer.get("problems", ()) if each["code"] != "turns_waiting"]
    for problem in problems:
        yield make_warning(FindingCode.SERVER_PROBLEM, url=url, problem=problem["message"])
    if not problems:
        yield make_ok(FindingCode.SERVER_RUNS, url=url)


def _fetch_readiness(url: str) -> dict[str, Any]:
    opener = build_opener(ProxyHandler({}))  # the server is on this machine
    try:
        with opener.open(f"{url.rstrip('/')}/readyz", timeout=_READINESS_SECONDS) as response:
            body = response.read(_MAX_READINESS_BYTES)
    except HTTPError as error:
        body = error.read(_MAX_READINESS_BYTES)
    answer = json.loads(body)
    return answer if isinstance(answer, dict) else {}


def check_waiting_turns(store: SessionStore, commands: FixCommands) -> Iterator[Finding]:
    now = to_micros(store.clock.now())
    minutes = store.engine.run(Read(lambda tx: find_wait_minutes(tx, now)))
    if minutes:
        yield make_warning(FindingCode.TURNS_WAITING, minutes=minutes, command=commands.format("serve"))


def _is_port_in_use(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


def check_sandbox() -> Iterator[Finding]:
    found = []
    bwrap = shutil.which("bwrap")
    if bwrap is not None and _can_run_bwrap(bwrap):
        found.append("bubblewrap")
    landlock = _get_landlock_version()
    if landlock > 0:
        found.append(f"Landlock (version {landlock})")
    if found:
        yield make_ok(FindingCode.SANDBOX, programs=" and ".join(found))
    else:
        yield make_warning(FindingCode.SANDBOX_MISSING)


def check_document_reader() -> Iterator[Finding]:
    """Report what a hostile document could do here: a process closes itself like the reader, and tries it."""
    try:
        run = subprocess.run(CHECK_COMMAND, capture_output=True, timeout=_READER_SECONDS, check=True)  # noqa: S603
        possible = [str(each) for each in json.loads(run.stdout)["possible"]]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        yield make_problem(FindingCode.CHECK_FAILED, subject="Documents", problem=error)
        return
    if possible:
        yield make_warning(FindingCode.DOCUMENTS_NOT_CONTAINED, calls=", ".join(possible))
    else:
        yield make_ok(FindingCode.DOCUMENTS_CONTAINED)


def _can_run_bwrap(program: str) -> bool:
    try:
        command = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
        return subprocess.run(command, capture_output=True, timeout=_BWRAP_SECONDS, check=False).returncode == 0  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return False


def _get_landlock_version() -> int:
    """Return the version of Landlock in this kernel; 0 or less if there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    return int(ctypes.CDLL(None).syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION_FLAG))


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorWork:
    """The call of the doctor, for the budgets: it belongs to the owner and to no conversation."""

    owner: str
    person_id: PersonId
    audience_no: int
    turn_id: None = None
    attempt: int = 0
    session_no: int = 0
    platform: str = "local"
    facts: Mapping[str, Any] = field(default_factory=dict)


def check_model(
    store: SessionStore | None, settings: Settings, environ: Mapping[str, str], *, can_skip_budgets: bool = False
) -> Finding:
    """Ask the configured model one small question, paid for like any other. Without a store, budgets can't matter."""
    try:
        agent = choose_agent(settings.agent, environ)
    except PalaverError as error:
        return make_problem(FindingCode.MODEL_UNUSABLE, problem=error)
    if agent.model == DEMO_MODEL:
        return make_warning(FindingCode.MODEL_DEMO)
    if store is None and not can_skip_budgets:
        return make_warning(FindingCode.MODEL_NOT_TRIED, model=agent.model)
    return asyncio.run(_ask(store, settings, agent))


async def _ask(store: SessionStore | None, settings: Settings, agent: Agent) -> Finding:
    try:
        if store is None:
            return await _run(agent, Unmetered(), [])
        return await _ask_with_budgets(store, settings, agent)
    finally:
        await agent.close()


async def _ask_with_budgets(store: SessionStore, settings: Settings, agent: Agent) -> Finding:
    budgets = Budgets(store, lambda: settings.turns)
    person = store.get_owner()
    row = await store.engine.arun(Read(lambda tx: people.find_by_id(tx, person.id)))
    assert row is not None  # noqa: S101  (the owner exists: `get_owner` returned them)
    work = DoctorWork(owner=create_lease_owner(), person_id=person.id, audience_no=row.audience_no)
    meter = budgets.make_meter(work, CallPurpose.ANSWER)
    reports: list[UsageReport] = []
    try:
        return await _run(agent, meter, reports)
    finally:
        await _record_usage(store, work, meter.call_ids, reports)
        await budgets.stop()


async def _run(agent: Agent, meter: CallMeter, reports: list[UsageReport]) -> Finding:
    """Ask the question, and describe the answer or the error."""
    messages = [{"role": "user", "content": _QUESTION}]
    request = AgentRequest(messages=messages, max_tokens=MAX_ANSWER_TOKENS, meter=meter)
    text: list[str] = []
    started = time.monotonic()
    try:
        async with asyncio.timeout(MODEL_SECONDS):
            await collect_answer(agent.run(request), text, reports)
    except TimeoutError:
        return make_problem(FindingCode.MODEL_TOO_SLOW, model=agent.model, seconds=f"{MODEL_SECONDS:.0f}")
    except BudgetExceeded as error:
        return make_warning(FindingCode.MODEL_OVER_BUDGET, model=agent.model, problem=error)
    except PalaverError as error:
        detail = error.facts.get("detail")
        said: str = ""
        if isinstance(detail, str) and detail not in str(error):
            said = say("operation.provider_says", " The provider says: {detail}", detail=detail)
        return make_problem(FindingCode.MODEL_FAILED, problem=error, detail=said)
    if not "".join(text).strip():
        return make_warning(FindingCode.MODEL_EMPTY, model=agent.model)
    return make_ok(FindingCode.MODEL_ANSWERS, model=agent.model, seconds=f"{time.monotonic() - started:.1f}")


async def _record_usage(store: SessionStore, work: DoctorWork, call_ids: list[str], reports: list[UsageReport]) -> None:
    now = to_micros(store.clock.now())

    def write(tx: Any) -> None:
        call_records.record_calls(tx, call_ids, now)
        for report in reports:
            if not report.is_recorded:
                usage.record_orphan_usage(tx, work, report.usage, now)

    if call_ids or reports:
        await store.engine.arun(Write(write))
