"""Runs memory turns: one at a time in each process, beside the turns of conversations.

A row is marked as running before the model is asked, so that a crash never repeats it. What the model saved is stored
in the transaction that ends the row. Always true: no person waits for a memory turn, and a failure is only logged;
nothing is stored of a turn that did not end; a memory that a person wrote is never replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from palaver.agent.base import AgentRequest, ToolCall, UsageReport
from palaver.agent.tool_arguments import limit_results
from palaver.agent.toolsets import MEMORY_TOOLSET
from palaver.config.budget_rules import CallPurpose
from palaver.core.background import PollLoop, create_lease_owner, is_owner_dead
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import (
    AgentUnavailable,
    DuplicateMemory,
    LimitReached,
    NotAllowed,
    NotFound,
    PalaverError,
    SessionNotFound,
)
from palaver.core.ids import PersonId, SessionId, new_memory_id, new_turn_id
from palaver.drivers.demo import DEMO_MODEL
from palaver.memory import learning_table as memory_turns, table as memories
from palaver.memory.model import (
    MAX_AGENT_MEMORY_CHARS,
    MAX_MEMORIES_PER_AUDIENCE,
    Memory,
    MemoryConflict,
    MemoryOrigin,
    clean_memory,
    find_best_matches,
    find_conflict,
    looks_like_secret,
)
from palaver.memory.queue import (
    LEARNING_INSTRUCTIONS,
    MAX_LEARNING_TOKENS,
    Statement,
    build_learning_messages,
    choose_statements,
    find_learner,
)
from palaver.memory.tools import make_recall_tool, make_remember_tool
from palaver.sessions import log_table as events, settings_table as session_settings, table as sessions
from palaver.sessions.model import StartReason
from palaver.turns.request_builder import RunDependencies, load_turn_choices
from palaver.turns.side_work import SideWork, record_side_usage

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.memory.learning_table import MemoryTurn
    from palaver.money.meter import BudgetMeter
    from palaver.sessions.message import Message
    from palaver.sessions.table import SessionRow
    from palaver.sessions.usage import TurnUsage


_MAX_READ_MESSAGES = 1000  # of people and of the agent; older ones are not looked at
MAX_LEARNED_MEMORIES = 10  # in one turn
TURN_TIMEOUT_SECONDS: Final = 60.0
LEASE_SECONDS: Final = 5 * TURN_TIMEOUT_SECONDS  # longer than a turn takes, so it is never extended
MAX_TOOL_CALLS: Final = 20  # of one turn
POLL_SECONDS: Final = 30.0  # the runner looks for work at least this often, also when nothing wakes it
CRASHED_ERROR: Final = "The process that ran it has ended."
CANNOT_LEARN_ERROR: Final = "This model is too small to learn."
STOPPED_ERROR: Final = "The server was stopped."
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningMaterial:
    work: SideWork  # on whose behalf, in which conversation
    session_id: SessionId
    model: str | None
    statements: Sequence[Statement]  # the oldest first
    known: Sequence[Memory]  # of the conversation's audience, the newest first


def load_material(tx: Transaction, dependencies: RunDependencies, turn: MemoryTurn) -> LearningMaterial | None:
    """Load what a memory turn looks at; None if it may not run any more."""
    try:
        row = sessions.get_by_no(tx, turn.session_no)
    except SessionNotFound:
        return None
    if find_learner(tx, dependencies.rules, row, turn.person_id) is None:
        return None
    choices = load_turn_choices(tx, dependencies, turn.person_id, session_settings.load(tx, row.no))
    if choices.toolsets is not None and MEMORY_TOOLSET not in choices.toolsets:
        return None
    newest_first = _iterate_statements(tx, dependencies, row, turn)
    return LearningMaterial(
        work=SideWork(
            owner=turn.owner,
            person_id=turn.person_id,
            audience_no=row.audience_no,
            platform=str(row.session.platform),
            session_no=row.no,
            turn_id=new_turn_id(),
            attempt=1,
        ),
        session_id=row.session.id,
        model=choices.model,
        statements=choose_statements(newest_first),
        known=memories.search(tx, [row.audience_no], "", MAX_MEMORIES_PER_AUDIENCE),
    )


def _iterate_statements(
    tx: Transaction, dependencies: RunDependencies, row: SessionRow, turn: MemoryTurn
) -> Iterator[Statement]:
    """Yield what people wrote since the previous memory turn, the newest first."""
    after = memory_turns.find_covered_seq(tx, row.no, turn.up_to_seq)
    if row.session.start_reason is StartReason.FORK:
        after = max(after, memory_turns.find_copied_seq(tx, row.no))
    is_learner: dict[PersonId | None, bool] = {}
    newest = events.iterate_newest_messages(tx, row.no, first_seq=after + 1, before=turn.up_to_seq + 1)
    for event in islice(newest, _MAX_READ_MESSAGES):
        if event.message is None or event.message.role != "user":
            continue
        if not row.session.shared and event.person_id not in {None, turn.person_id}:
            continue  # an owner wrote in this person's conversation
        if row.session.shared and event.person_id not in is_learner:
            is_learner[event.person_id] = find_learner(tx, dependencies.rules, row, event.person_id) is not None
        if not row.session.shared or is_learner[event.person_id]:
            author = event.message.author.name if event.message.author and row.session.shared else ""
            yield Statement(_get_written_text(event.message), author)


def _get_written_text(message: Message) -> str:
    """Return the text that the author typed, without files and without what the message quotes."""
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    texts = [
        part if isinstance(part, str) else part.get("text")
        for part in message.content
        if isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") == "text")
    ]
    return " ".join(text for text in texts if isinstance(text, str))


class LearnedMemories:
    """The memories that one memory turn knows and learns for one audience."""

    def __init__(
        self,
        known: Sequence[Memory],
        *,
        person_id: PersonId,
        session_id: SessionId,
        max_memories: int,
        now: datetime,
    ) -> None:
        self._known = {memory.id: memory for memory in known}  # the newest first
        self._new: dict[str, memories.NewMemory] = {}
        self._person_id = person_id
        self._session_id = session_id
        self._max_memories = max_memories
        self._now = now

    async def find_conflict(self, text: str, supersedes: Sequence[str]) -> MemoryConflict | None:
        clean = clean_memory(text, MAX_AGENT_MEMORY_CHARS)
        others = [memory for memory in self._list_current() if memory.id not in supersedes]
        return await asyncio.to_thread(find_conflict, others, clean, self._max_memories)

    async def remember(self, text: str, supersedes: Sequence[str]) -> Memory:
        """Collect a memory, in place of others."""
        clean = clean_memory(text, MAX_AGENT_MEMORY_CHARS)
        if looks_like_secret(clean):  # a model that obeys its instructions does not try
            raise NotAllowed("This looks like a password or another secret, so it isn't saved.")
        current: dict[str, Memory] = {memory.id: memory for memory in self._list_current()}
        for memory_id in supersedes:
            if memory_id not in current:
                raise NotFound(f"There is no memory {memory_id!r} here that could be replaced.")
            if current[memory_id].origin is MemoryOrigin.PERSON:
                raise NotAllowed(f"A person wrote {memory_id} themselves, so it can't be replaced here.")
        if len(self._new) >= MAX_LEARNED_MEMORIES:
            raise LimitReached(f"At most {MAX_LEARNED_MEMORIES} memories are saved at once. Answer with: done.")
        memory_id = new_memory_id()
        replaced = [self._new.pop(each) for each in supersedes if each in self._new]
        stored_ids = [each for each in supersedes if each in self._known]
        self._new[memory_id] = memories.NewMemory(
            id=memory_id,
            text=clean,
            person_id=self._person_id,
            origin=MemoryOrigin.LEARNED,
            session_id=self._session_id,
            supersedes=(*stored_ids, *(each for new in replaced for each in new.supersedes)),
            limit=self._max_memories,
        )
        return self._make_memory(self._new[memory_id])

    async def recall(self, query: str, *, limit: int) -> Sequence[Memory]:
        return await asyncio.to_thread(find_best_matches, self._list_current(), query, limit)

    def store(self, tx: Transaction, audience_no: int, now: int) -> int:
        """Store what was learned, and return how many memories that were.

        A memory is left out if people have meanwhile said the same, or forgotten or edited what it would replace.
        """
        count = 0
        memories.lock(tx, audience_no)
        for new in self._new.values():
            replaced = memories.list_by_ids(tx, [audience_no], new.supersedes)
            if any(memory.origin is MemoryOrigin.PERSON for memory in replaced):
                continue
            try:
                count += memories.add(tx, audience_no, new, now).id == new.id
            except (DuplicateMemory, LimitReached, NotFound):
                continue
        return count

    def _list_current(self) -> list[Memory]:
        replaced = {memory_id for new in self._new.values() for memory_id in new.supersedes}
        learned = [self._make_memory(new) for new in reversed(self._new.values())]
        return [*learned, *(memory for memory in self._known.values() if memory.id not in replaced)]

    def _make_memory(self, new: memories.NewMemory) -> Memory:
        assert new.id is not None  # noqa: S101
        return Memory(
            id=new.id, text=new.text, person_id=new.person_id, created_at=self._now, origin=MemoryOrigin.LEARNED
        )


@dataclass(slots=True)
class _Outcome:
    usages: list[TurnUsage]  # that its meter does not know
    meter: BudgetMeter | None = None
    material: LearningMaterial | None = None
    learned: LearnedMemories | None = None
    error: str | None = None


class MemoryTurnRunner:
    """Claims memory turns and runs them, if the operator has turned learning on."""

    def __init__(self, get_dependencies: Callable[[], RunDependencies]) -> None:
        self._get_dependencies = get_dependencies  # what depends on the settings, as they are now
        self._engine = get_dependencies().store.engine
        self._owner = create_lease_owner()
        self._loop = PollLoop(
            self._poll,
            "palaver-memory-turns",
            log=log,
            failure_event="memory_turn_claim_failed",
            is_needed=lambda: get_dependencies().rules.memory.learn,
        )

    async def start(self) -> None:
        self._get_dependencies().feed.add_work_listener(self.wake)
        self._loop.start()

    def wake(self) -> None:
        self._loop.wake()

    async def stop(self) -> None:
        """Stop the turn that is running. It ends as failed, without having stored anything."""
        await self._loop.cancel()

    async def _poll(self) -> float:
        """Run the next memory turn, if there is one; return the seconds until the next look."""
        if not self._get_dependencies().rules.memory.learn:  # switched off since
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
                lambda tx: sum(
                    memory_turns.end(tx, orphan, CRASHED_ERROR, now)
                    for orphan in memory_turns.list_orphans(tx, now, is_owner_dead)
                ),
                read_first=lambda tx: None if memory_turns.list_orphans(tx, now, is_owner_dead) else 0,
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
        except Exception:  # a driver raises anything: the row has to end, and the loop to go on
            log.exception("memory_turn_failed", extra={"session_no": turn.session_no})
            outcome.error = "An unexpected error, see the log of the server."
        await self._end(turn, outcome)

    async def _learn(self, turn: MemoryTurn, outcome: _Outcome) -> None:
        """Let the model of the conversation look through what people wrote."""
        agent = self._get_dependencies().agent
        if not (agent.can_write_titles or agent.model == DEMO_MODEL):  # too small for titles, too small for this
            raise AgentUnavailable(CANNOT_LEARN_ERROR)
        material = await self._engine.arun(Read(lambda tx: load_material(tx, self._get_dependencies(), turn)))
        outcome.material = material
        if material is None or not material.statements:
            return
        outcome.learned = learned = LearnedMemories(
            material.known,
            person_id=turn.person_id,
            session_id=material.session_id,
            max_memories=self._get_dependencies().rules.memory.max_memories,
            now=self._get_dependencies().store.clock.now(),
        )
        tools = (make_remember_tool(learned), make_recall_tool(learned))
        outcome.meter = self._get_dependencies().budgets.make_meter(material.work, CallPurpose.MEMORY)
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
        async with contextlib.aclosing(self._get_dependencies().run_agent(request)) as agent_events:
            async for event in agent_events:
                if isinstance(event, UsageReport) and not event.is_recorded:
                    outcome.usages.append(event.usage)
                call_count += isinstance(event, ToolCall)
                if call_count > MAX_TOOL_CALLS:
                    return  # what it has saved so far stays

    async def _end(self, turn: MemoryTurn, outcome: _Outcome) -> None:
        """Store what was learned and used, and end the row, in one transaction."""
        now, material, learned = self._now(), outcome.material, outcome.learned
        call_ids = () if outcome.meter is None else tuple(outcome.meter.call_ids)

        def write(tx: Transaction) -> int:
            if material is not None:  # what was used has to be paid for, whatever became of it
                record_side_usage(tx, material.work, call_ids, outcome.usages, now)
            if not memory_turns.end(tx, turn, outcome.error, now) or material is None or learned is None:
                return 0
            return 0 if outcome.error is not None else learned.store(tx, material.work.audience_no, now)

        crash_point("memory.before_end")
        count = await self._engine.arun(Write(write))
        crash_point("memory.ended")
        facts = {"session_no": turn.session_no, "up_to_seq": turn.up_to_seq}
        if outcome.error is not None:
            log.info("memory_turn_failed", extra=facts | {"error": outcome.error})
        else:
            log.info("memory_turn_done", extra=facts | {"count": count})

    def _now(self) -> int:
        return to_micros(self._get_dependencies().store.clock.now())
