"""Runs memory turns: one at a time in each process, beside the turns of conversations.

A row is marked as running before the model is asked, so that a crash never repeats it. What the model saved is stored
in the transaction that ends the row. Always true: no person waits for a memory turn, and a failure is only logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from palaver.agent.base import AgentRequest, ToolCall, UsageReport
from palaver.agent.tools.limits import limit_results
from palaver.config.budget_rules import CallPurpose
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Write
from palaver.core.errors import AgentUnavailable, PalaverError
from palaver.core.poll_loop import run_poll_loop
from palaver.core.process_identity import create_lease_owner, is_owner_dead
from palaver.core.timestamps import to_micros
from palaver.drivers.demo import DEMO_MODEL
from palaver.memory import learning_table as memory_turns
from palaver.memory.learning_prompt import LEARNING_INSTRUCTIONS, MAX_LEARNING_TOKENS, build_learning_messages
from palaver.memory.tools import make_recall_tool, make_remember_tool
from palaver.money import call_records
from palaver.sessions import usage_table as usage
from palaver.turns.learned_memories import LearnedMemories
from palaver.turns.material import LearningMaterial, load_material

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.memory.learning_table import MemoryTurn
    from palaver.money.meter import BudgetMeter
    from palaver.sessions.usage import TurnUsage
    from palaver.turns.dependencies import RunDependencies

TURN_TIMEOUT_SECONDS: Final = 60.0
LEASE_SECONDS: Final = 5 * TURN_TIMEOUT_SECONDS  # longer than a turn takes, so it is never extended
MAX_TOOL_CALLS: Final = 20  # of one turn
POLL_SECONDS: Final = 30.0  # the runner looks for work at least this often, also when nothing wakes it
CRASHED_ERROR: Final = "The process that ran it has ended."
CANNOT_LEARN_ERROR: Final = "This model is too small to learn."
STOPPED_ERROR: Final = "The server was stopped."

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Outcome:
    """How a memory turn went."""

    usages: list[TurnUsage]  # that its meter does not know
    meter: BudgetMeter | None = None
    material: LearningMaterial | None = None
    learned: LearnedMemories | None = None
    error: str | None = None


class MemoryTurnRunner:
    """Claims memory turns and runs them, if the operator has turned learning on."""

    def __init__(self, dependencies: RunDependencies) -> None:
        self._dependencies = dependencies
        self._engine = dependencies.store.engine
        self._owner = create_lease_owner()
        self._wake_event = asyncio.Event()
        self._is_stopping = False
        self._loop: asyncio.Task[None] | None = None
        self._has_started = False

    async def start(self) -> None:
        """Start to look for memory turns."""
        self._has_started = True
        self._dependencies.feed.add_work_listener(self.wake)
        self._start_loop()

    def _start_loop(self) -> None:
        if self._loop is None and self._has_started and self._dependencies.rules.memory.learn:
            self._loop = asyncio.create_task(self._run_loop(), name="palaver-memory-turns")

    def use_dependencies(self, dependencies: RunDependencies) -> None:
        """Apply other settings from the next memory turn on. Learning starts, or pauses, if it was switched."""
        self._dependencies = dependencies
        self._start_loop()
        self.wake()

    def wake(self) -> None:
        """Look now for memory turns."""
        self._wake_event.set()

    async def stop(self) -> None:
        """Stop the turn that is running. It ends as failed, without having stored anything."""
        self._is_stopping = True
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
            self._loop = None

    async def _run_loop(self) -> None:
        await run_poll_loop(
            self._poll,
            self._wake_event,
            is_stopped=lambda: self._is_stopping,
            log=log,
            failure_event="memory_turn_claim_failed",
        )

    async def _poll(self) -> float:
        """Run the next memory turn, if there is one; return the seconds until the next look."""
        if not self._dependencies.rules.memory.learn:  # switched off since
            return POLL_SECONDS
        await self._fail_orphans()
        if not await self._engine.arun(Read(memory_turns.has_queued, is_quick=True)):
            return POLL_SECONDS
        until = self._now() + round(LEASE_SECONDS * 1e6)
        crash_point("memory.before_claim")
        turn = await self._engine.arun(Write(lambda tx: memory_turns.claim_next(tx, self._owner, until)))
        if turn is None:  # another process was faster
            return 0
        crash_point("memory.claimed")
        await self._run_turn(turn)
        return 0

    async def _fail_orphans(self) -> None:
        now = self._now()
        failed = await self._engine.arun(
            Write(
                lambda tx: memory_turns.fail_orphans(tx, CRASHED_ERROR, now, is_owner_dead),
                read_first=lambda tx: None if memory_turns.has_orphan(tx, now, is_owner_dead) else 0,
                is_quick=True,
            )
        )
        if failed:
            log.info("memory_turns_failed", extra={"count": failed, "error": CRASHED_ERROR})

    async def _run_turn(self, turn: MemoryTurn) -> None:
        outcome = _Outcome([])
        try:
            async with asyncio.timeout(TURN_TIMEOUT_SECONDS):
                await self._learn(turn, outcome)
        except asyncio.CancelledError:
            outcome.error = STOPPED_ERROR
            await self._end(turn, outcome)
            raise
        except PalaverError as error:  # among them, a budget that is used up
            outcome.error = str(error)
        except TimeoutError:
            outcome.error = f"It took longer than {TURN_TIMEOUT_SECONDS:g} seconds."
        except Exception:
            log.exception("memory_turn_failed", extra={"session_no": turn.session_no})
            outcome.error = "An unexpected error, see the log of the server."
        await self._end(turn, outcome)

    async def _learn(self, turn: MemoryTurn, outcome: _Outcome) -> None:
        """Let the model of the conversation look through what people wrote."""
        agent = self._dependencies.agent
        if not (agent.can_write_titles or agent.model == DEMO_MODEL):  # too small for titles, too small for this
            raise AgentUnavailable(CANNOT_LEARN_ERROR)
        material = await self._engine.arun(Read(lambda tx: load_material(tx, self._dependencies, turn)))
        outcome.material = material
        if material is None or not material.statements:
            return
        outcome.learned = learned = LearnedMemories(
            material.known,
            person_id=turn.person_id,
            session_id=material.lease.session_id,
            max_memories=self._dependencies.rules.memory.max_memories,
            now=self._dependencies.store.clock.now(),
        )
        tools = (make_remember_tool(learned), make_recall_tool(learned))
        outcome.meter = self._dependencies.budgets.make_meter(material.lease, CallPurpose.MEMORY)
        request = AgentRequest(
            instructions=LEARNING_INSTRUCTIONS,
            messages=build_learning_messages(material.statements, material.known),
            tools=[limit_results(tool) for tool in tools],
            model=material.model,
            max_tokens=MAX_LEARNING_TOKENS,
            meter=outcome.meter,
        )
        await self._ask_model(request, outcome)

    async def _ask_model(self, request: AgentRequest, outcome: _Outcome) -> None:
        call_count = 0
        run = self._dependencies.agent.run(request)
        async with contextlib.aclosing(run) as agent_events:  # type: ignore[type-var]
            async for event in agent_events:
                if isinstance(event, UsageReport) and not event.is_recorded:
                    outcome.usages.append(replace(event.usage, last_prompt_tokens=None))
                call_count += isinstance(event, ToolCall)
                if call_count > MAX_TOOL_CALLS:
                    return  # what it has saved so far stays

    async def _end(self, turn: MemoryTurn, outcome: _Outcome) -> None:
        """Store what was learned and used, and end the row, in one transaction."""
        now, material, learned = self._now(), outcome.material, outcome.learned
        call_ids = () if outcome.meter is None else tuple(outcome.meter.call_ids)

        def write(tx: Transaction) -> int:
            call_records.record_calls(tx, call_ids, now)
            if material is not None:  # what was used has to be paid for, whatever became of it
                for each in outcome.usages:
                    usage.record_orphan_usage(tx, material.lease, each, now)
            if not memory_turns.end(tx, turn, outcome.error, now) or material is None or learned is None:
                return 0
            return 0 if outcome.error is not None else learned.store(tx, material.lease.audience_no, now)

        crash_point("memory.before_end")
        count = await self._engine.arun(Write(write))
        crash_point("memory.ended")
        facts = {"session_no": turn.session_no, "up_to_seq": turn.up_to_seq}
        if outcome.error is not None:
            log.info("memory_turn_failed", extra=facts | {"error": outcome.error})
        else:
            log.info("memory_turn_done", extra=facts | {"count": count})

    def _now(self) -> int:
        return to_micros(self._dependencies.store.clock.now())
