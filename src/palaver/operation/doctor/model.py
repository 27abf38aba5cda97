"""The model: one real question to it, as small as possible, paid for like any other."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from palaver.agent.base import AgentRequest, TextDelta, Unmetered, UsageReport
from palaver.config.budget_rules import CallPurpose
from palaver.core.background import create_lease_owner
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import BudgetExceeded, PalaverError
from palaver.drivers.demo import DEMO_MODEL
from palaver.drivers.selection import choose_agent
from palaver.money import calls_table as call_records
from palaver.money.meter import Budgets
from palaver.operation.doctor.finding import FindingCode, make_ok, make_problem, make_warning
from palaver.people import table as people
from palaver.sessions import usage_table as usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.agent.base import Agent, CallMeter
    from palaver.config import Settings
    from palaver.core.ids import PersonId
    from palaver.operation.doctor.finding import Finding
    from palaver.sessions.store import SessionStore

MODEL_SECONDS: Final = 45.0
MAX_ANSWER_TOKENS: Final = 200  # some models think before they write
_QUESTION: Final = "Answer with the word: ready"


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
    """Ask the configured model one question. Without a store, only if the budgets don't matter."""
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
    budgets = Budgets(store, settings.turns.budgets, settings.turns.timeout)
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
        async with asyncio.timeout(MODEL_SECONDS), contextlib.aclosing(agent.run(request)) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, TextDelta):
                    text.append(event.text)
                elif isinstance(event, UsageReport):
                    reports.append(event)
    except TimeoutError:
        return make_problem(FindingCode.MODEL_TOO_SLOW, model=agent.model, seconds=f"{MODEL_SECONDS:.0f}")
    except BudgetExceeded as error:
        return make_warning(FindingCode.MODEL_OVER_BUDGET, model=agent.model, problem=error)
    except PalaverError as error:
        detail = error.facts.get("detail")
        said = f" The provider says: {detail}" if isinstance(detail, str) and detail not in str(error) else ""
        return make_problem(FindingCode.MODEL_FAILED, problem=error, detail=said)
    return _describe_answer(agent, "".join(text), time.monotonic() - started)


def _describe_answer(agent: Agent, answer: str, seconds: float) -> Finding:
    if not answer.strip():
        return make_warning(FindingCode.MODEL_EMPTY, model=agent.model)
    return make_ok(FindingCode.MODEL_ANSWERS, model=agent.model, seconds=f"{seconds:.1f}")


async def _record_usage(store: SessionStore, work: DoctorWork, call_ids: list[str], reports: list[UsageReport]) -> None:
    now = to_micros(store.clock.now())

    def write(tx: Any) -> None:
        call_records.record_calls(tx, call_ids, now)
        for report in reports:
            if not report.is_recorded:
                usage.record_orphan_usage(tx, work, report.usage, now)

    if call_ids or reports:
        await store.engine.arun(Write(write))
