"""One run of the agent: from a claimed turn to its end in the log.

A run reads the conversation, lets the agent write its answer into a draft, and ends the turn in one transaction with
the answer, its usage and its delivery. The database refuses everything that a run writes after it has lost its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from palaver.agent.base import Notice, TextDelta
from palaver.domain.crash_points import crash_point
from palaver.domain.draft import Position
from palaver.domain.errors import AgentError, ContextOverflow, InvalidInput, LeaseLost, NothingToDo, StoreError
from palaver.domain.turn import TurnKind, TurnState
from palaver.services.live.live_run import LiveRun
from palaver.services.turns.answer_recorder import AnswerRecorder
from palaver.services.turns.compaction import Compactor, format_compaction_reply
from palaver.services.turns.finish import build_text_only_messages, finish_turn
from palaver.services.turns.request_builder import RequestBuilder
from palaver.storage import drafts, events, turn_leases
from palaver.storage.engines.base import Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.agent.base import AgentEvent, AgentRequest, Tool
    from palaver.domain.compaction import Compaction
    from palaver.domain.draft import Piece
    from palaver.domain.events import Event
    from palaver.domain.usage import TurnUsage
    from palaver.services.turns.dependencies import RunDependencies
    from palaver.storage.engines.base import Transaction
    from palaver.storage.turn_leases import TurnLease

STOP_TIMEOUT_SECONDS = 30.0  # for a driver and its tools to react to being canceled
COMPACTION_THRESHOLD = 0.85  # fraction of the model's context window; beyond it, the conversation is compacted first
MIN_COMPACTION_GAIN = 0.1  # fraction of the context window; compacting less than that is not worth its price
NEW_MESSAGE_REASON = "A new message arrived."
INTERNAL_ERROR_REASON = "Internal error in Palaver ({kind}). See its log for details."
TIMEOUT_REASON = "The answer took longer than {minutes:.0f} minutes, so I stopped."

log = logging.getLogger(__name__)


class Run:
    """A turn that this process runs."""

    def __init__(self, dependencies: RunDependencies, lease: TurnLease) -> None:
        self.lease = lease
        self.task: asyncio.Task[None] | None = None
        self.is_ending = False  # the answer is complete, and is being stored
        self.has_side_effects = False
        self.saved_position = Position()  # how much of the draft is stored
        self.save_lock = asyncio.Lock()  # held while more of the draft is being stored, so that nothing is stored twice
        self._dependencies = dependencies
        self._engine = dependencies.store.engine
        self._live = LiveRun(lease.turn_no, lease.turn_id, lease.session_no, lease.attempt)
        self._recorder = AnswerRecorder(self._live, dependencies.store.clock, lease.input_seq)
        self._request_builder = RequestBuilder(
            dependencies=dependencies, lease=lease, wrap_tool=self._watch_tool, take_steering=self._take_steering
        )
        self._has_started = False
        self._give_up_at = time.monotonic() + dependencies.rules.timeout.total_seconds() + STOP_TIMEOUT_SECONDS
        self._stop_reason: str | None = None

    def stop(self, reason: str) -> None:
        """End the run as interrupted, with what the agent has said so far."""
        if self._stop_reason is None and not self.is_ending and self.task is not None:
            self._stop_reason = reason
            self._give_up_at = time.monotonic() + STOP_TIMEOUT_SECONDS
            if self._has_started:  # a task that is canceled before its first step could not store how it ended
                self.task.cancel()

    @property
    def is_overdue(self) -> bool:
        """Whether the run should have ended long ago and has not: its lease is no longer extended."""
        return time.monotonic() > self._give_up_at and not self.is_ending

    @property
    def usage(self) -> list[TurnUsage]:
        return self._recorder.usage

    def get_unsaved_pieces(self) -> tuple[list[Piece], Position]:
        """Return the pieces of the draft that are not stored yet, and the position after them."""
        draft = self._recorder.draft
        return draft.get_pieces_since(self.saved_position), draft.position

    # -- the run -------------------------------------------------------------------------------------------

    async def execute(self) -> None:
        """Run the agent, and store how the turn ended. A run canceled without `stop` leaves the turn as it is."""
        self._has_started = True
        feed = self._dependencies.feed
        feed.start_run(self._live)
        try:
            state, error = await self._run_agent()
            self.is_ending = True
            crash_point("turn.before_end")
            try:
                await self._engine.arun(Write(lambda tx: self._finish(tx, state, error)))
            except (StoreError, LeaseLost):
                raise
            except Exception as mistake:  # noqa: BLE001  (the driver produced what the log cannot hold: store its text)
                await self._engine.arun(Write(partial(self._finish_with_text, error=self._report_mistake(mistake))))
            crash_point("turn.ended")
        finally:
            feed.end_run(self._live)

    async def _run_agent(self) -> tuple[TurnState, str | None]:
        """Answer or compact; return how the turn ended and why."""
        if self._stop_reason is not None:
            return TurnState.INTERRUPTED, self._stop_reason
        limit = asyncio.timeout(self._dependencies.rules.timeout.total_seconds())
        try:
            async with limit:
                if self.lease.kind is TurnKind.COMPACT:
                    compaction = await self._compact(self.lease.facts.get("focus"))
                    self._record(TextDelta(format_compaction_reply(compaction)))
                else:
                    await self._answer()
        except asyncio.CancelledError as error:
            if self._stop_reason is None and self.task is not None and self.task.cancelling():
                raise
            return self._explain_failure(error, timed_out=False)
        except (StoreError, LeaseLost):
            raise
        except Exception as error:  # noqa: BLE001  (drivers raise anything; it is logged, and the person is told)
            return self._explain_failure(error, timed_out=limit.expired())
        return TurnState.DONE, None

    def _explain_failure(self, error: BaseException, *, timed_out: bool) -> tuple[TurnState, str]:
        """Return the end of a turn whose agent raised `error`. A stop takes precedence over that error."""
        if self._stop_reason is not None:
            if self.task is not None:
                self.task.uncancel()
            return TurnState.INTERRUPTED, self._stop_reason
        if timed_out:
            minutes = self._dependencies.rules.timeout.total_seconds() / 60
            return TurnState.INTERRUPTED, TIMEOUT_REASON.format(minutes=minutes)
        if isinstance(error, AgentError | NothingToDo | InvalidInput):
            return TurnState.FAILED, str(error)
        return TurnState.FAILED, self._report_mistake(error)

    def _report_mistake(self, error: BaseException) -> str:
        """Log an unexpected error of a driver in full, and return what the person is told of it."""
        log.error("turn_internal_error", extra={"turn": self.lease.turn_id}, exc_info=error)
        return INTERNAL_ERROR_REASON.format(kind=type(error).__name__)

    async def _answer(self) -> None:
        agent_tools = await self._dependencies.agent.load_tools()
        request, last_prompt_tokens = await self._build_request(agent_tools)
        is_compacted = await self._compact_if_nearly_full(request.model, last_prompt_tokens)
        if is_compacted:
            request, _ = await self._build_request(agent_tools)
        try:
            await self._record_answer(request)
        except ContextOverflow:
            if is_compacted or self._recorder.draft.pieces:
                raise
            await self._compact(None)
            self._send_notice("This conversation was too long for the model, so the agent now sees a summary of it.")
            request, _ = await self._build_request(agent_tools)
            await self._record_answer(request)

    async def _build_request(self, agent_tools: Sequence[Tool]) -> tuple[AgentRequest, int]:
        return await self._request_builder.build(self._recorder.input_seq, agent_tools)

    async def _compact_if_nearly_full(self, model: str | None, last_prompt_tokens: int) -> bool:
        """Compact before the model has to refuse: when the last request nearly filled its context window.

        A conversation that cannot be compacted, or is not worth it, is answered as it is.
        """
        agent = self._dependencies.agent
        window = await agent.get_context_window(model or agent.model) if last_prompt_tokens else None
        if window is None or last_prompt_tokens < COMPACTION_THRESHOLD * window:
            return False
        try:
            await self._compact(None, min_tokens=MIN_COMPACTION_GAIN * window)
        except (NothingToDo, AgentError, InvalidInput) as error:
            log.info("turn_compaction_skipped", extra={"turn": self.lease.turn_id, "error": str(error)})
            return False
        self._send_notice("This conversation nearly filled the model's context, so the agent now sees a summary of it.")
        return True

    async def _compact(self, focus: str | None, *, min_tokens: float = 0) -> Compaction:
        compactor = Compactor(
            self._dependencies.store,
            self._dependencies.agent,
            self.lease,
            files=self._dependencies.files,
            add_usage=self._recorder.add_usage,
            send_notice=self._send_notice,
        )
        return await compactor.compact(focus, up_to_seq=self._recorder.input_seq, min_tokens=min_tokens)

    async def _record_answer(self, request: AgentRequest) -> None:
        async with contextlib.aclosing(self._dependencies.agent.run(request)) as agent_events:  # type: ignore[type-var]
            async for event in agent_events:
                self._record(event)
                crash_point("turn.agent_event")

    def _record(self, event: AgentEvent) -> None:
        self._recorder.record(event)
        self._dependencies.feed.notify_progress(self._live)

    def _send_notice(self, text: str) -> None:
        self._record(Notice(text))

    # -- tools and steering --------------------------------------------------------------------------------

    def _watch_tool(self, tool: Tool) -> Tool:
        """Store durably that a tool with side effects runs, before it does: from then on the turn is never retried."""
        if not tool.has_side_effects:
            return tool

        async def run(arguments: Mapping[str, Any]) -> str:
            async with self.save_lock:
                pieces, position = self.get_unsaved_pieces()

                def mark(tx: Transaction) -> None:
                    turn_leases.mark_side_effects(tx, self.lease)
                    if pieces:
                        drafts.append_pieces(tx, self.lease, pieces)

                crash_point("turn.before_tool_mark")
                await self._engine.arun(Write(mark))
                self.has_side_effects, self.saved_position = True, position
            crash_point("turn.before_tool")
            result = await tool.run(arguments)
            crash_point("turn.after_tool")
            return result

        return replace(tool, run=run)

    async def _take_steering(self) -> Sequence[str]:
        """Take over the messages that were sent to steer this run; return their texts."""
        now = self._now()

        def take(tx: Transaction) -> list[Event]:
            seqs = turn_leases.take_steering_turns(tx, self.lease, now)
            return events.list_events_at(tx, self.lease.session_no, seqs)

        def try_without_write(tx: Transaction) -> list[Event] | None:
            return None if turn_leases.has_steering_turns(tx, self.lease) else []

        crash_point("turn.before_steering")
        taken = await self._engine.arun(Write(take, read_first=try_without_write))
        crash_point("turn.steered")
        if not taken:
            return ()
        self._recorder.start_part(taken[-1].seq)
        return [event.message.text for event in taken if event.message is not None and not event.hidden]

    # -- the end -------------------------------------------------------------------------------------------

    def _finish(self, tx: Transaction, state: TurnState, error: str | None) -> None:
        messages = [] if self.lease.kind is TurnKind.COMPACT else self._recorder.build_answer(state)
        finish_turn(tx, self.lease, messages, self.usage, state, error, self._now())

    def _finish_with_text(self, tx: Transaction, error: str) -> None:
        """End a turn whose driver produced something that the log cannot hold: keep the text of its answer."""
        messages = build_text_only_messages(self._recorder.draft, self.lease.input_seq)
        finish_turn(tx, self.lease, messages, self.usage, TurnState.FAILED, error, self._now())

    def _now(self) -> int:
        return to_micros(self._dependencies.store.clock.now())
