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

from palaver.agent.base import CUT_OFF_NOTICE, AgentEvent, AgentRequest, Notice, TextDelta, Tool, ToolCall
from palaver.core.clock import from_micros, to_micros
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import (
    AgentError,
    InvalidInput,
    LeaseLost,
    NothingToDo,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from palaver.core.texts import join_texts, say
from palaver.jobs import runs_table as job_runs
from palaver.jobs.active_run import is_job_run
from palaver.live.feed_events import LiveRun
from palaver.sessions import log_table as events, turn_leases
from palaver.sessions.draft import Piece, PieceKind, Position
from palaver.sessions.turn import FailureCode, InterruptReason, NoticeCode, TurnKind, TurnState
from palaver.turns.answer_end import AnswerEnded, explain_error, explain_interruption, explain_mistake
from palaver.turns.answer_recorder import AnswerRecorder, build_text_only_messages, finish_turn, record_orphan_usage
from palaver.turns.compaction import (
    SHORTENED_NOTICE,
    Compactor,
    OverflowHandler,
    format_compaction_reply,
    run_until_short_enough,
)
from palaver.turns.request_builder import RequestBuilder, RunDependencies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.sessions.events import Compaction, Event
    from palaver.sessions.turn_leases import TurnLease

STOP_TIMEOUT_SECONDS = 30.0  # for a driver and its tools to react to being canceled
END_RETRY_SECONDS = 0.5  # pause before an answer that could not be stored is stored again
MIN_COMPACTION_GAIN = 0.1  # fraction of the context window; compacting less than that is not worth its price
NEARLY_FULL_NOTICE = Notice(
    say(
        "compaction.nearly_full",
        "This conversation nearly filled the model's context, so the agent now sees a summary of it.",
    ),
    NoticeCode.NEARLY_FULL,
)

log = logging.getLogger(__name__)


class Run:
    def __init__(self, dependencies: RunDependencies, lease: TurnLease) -> None:
        self.lease = lease
        self.task: asyncio.Task[None] | None = None
        self.release_agent: Callable[[], None] = lambda: None
        self.is_ending = False  # the answer is complete, and is being stored
        self.end_state: TurnState | None = None  # once it is stored
        self.has_side_effects = False
        self.saved_position = Position()  # how much of the draft is stored
        self.save_lock = asyncio.Lock()  # held while more of the draft is being stored, so that nothing is stored twice
        self._dependencies = dependencies
        self._engine = dependencies.store.engine
        self._live = LiveRun(lease.turn_no, lease.turn_id, lease.session_no, lease.attempt)
        self.recorder = AnswerRecorder(self._live, dependencies.store.clock, lease.input_seq)
        self._request_builder = RequestBuilder(
            dependencies=dependencies,
            lease=lease,
            wrap_tool=self._watch_tool,
            take_steering=self._take_steering,
            send_notice=self._send_notice_once,
            calls=self.recorder.calls,
        )
        self._has_started = False
        self._is_begin_recorded = lease.attempt == 1  # of later attempts it is, because processes died before
        self._chat_notices: list[str] = []  # what people in a chat are told, before the answer
        self._closing_notices: list[str] = []  # what people in a chat are told, after the answer
        self._give_up_at = time.monotonic() + dependencies.rules.timeout.total_seconds() + STOP_TIMEOUT_SECONDS
        self._stop_reason: InterruptReason | None = None

    def stop(self, reason: InterruptReason) -> None:
        """End the run as interrupted, with what the agent has said so far."""
        if self._stop_reason is None and not self.is_ending and self.task is not None:
            self._stop_reason = reason
            self._give_up_at = time.monotonic() + STOP_TIMEOUT_SECONDS
            if self._has_started:  # a task that is canceled before its first step could not store how it ended
                self.task.cancel()

    @property
    def is_overdue(self) -> bool:
        """Return whether the run should have ended long ago and has not: its lease is no longer extended."""
        return time.monotonic() > self._give_up_at and not self.is_ending

    def get_unsaved_pieces(self) -> tuple[list[Piece], Position]:
        """Return the pieces of the draft that are not stored yet, and the position after them."""
        draft = self.recorder.draft
        return draft.get_pieces_since(self.saved_position), draft.position

    # -- the run -------------------------------------------------------------------------------------------

    async def execute(self) -> None:
        """Run the agent, and store how the turn ended. A run canceled without `stop` leaves the turn as it is."""
        self._has_started = True
        feed = self._dependencies.feed
        feed.start_run(self._live)
        try:
            end = await self._run_agent()
            self.is_ending = True
            crash_point("turn.before_end")
            try:
                await self._store_end(partial(self._finish, end=end))
                self.end_state = end.state
            except (StoreError, LeaseLost):
                raise
            except Exception as mistake:  # noqa: BLE001  (the driver produced what the log cannot hold: store its text)
                self._log_mistake(mistake)
                await self._store_end(partial(self._finish_with_text, end=explain_mistake(mistake)))
            crash_point("turn.ended")
        finally:
            feed.end_run(self._live)

    async def _run_agent(self) -> AnswerEnded:
        """Answer or compact; return how the turn ended and why."""
        if self._stop_reason is not None:
            return explain_interruption(self._stop_reason)
        limit = asyncio.timeout(self._dependencies.rules.timeout.total_seconds())
        try:
            async with limit:
                if self.lease.kind is TurnKind.COMPACT:
                    reply = format_compaction_reply(await self._compact(self.lease.facts.get("focus")))
                    self._chat_notices.append(reply)
                    self._record(TextDelta(reply))
                else:
                    await self._answer()
        except asyncio.CancelledError as error:
            if self._stop_reason is None and self.task is not None and self.task.cancelling():
                raise
            return self._handle_error(error, timed_out=False)
        except (StoreError, LeaseLost):
            raise
        except Exception as error:  # noqa: BLE001  (drivers raise anything; it is logged, and the person is told)
            return self._handle_error(error, timed_out=limit.expired())
        return AnswerEnded()

    def _handle_error(self, error: BaseException, *, timed_out: bool) -> AnswerEnded:
        """Log why the agent did not answer, and return how the turn ended. A stop takes precedence over an error."""
        if self._stop_reason is not None:
            if self.task is not None:
                self.task.uncancel()
            return explain_interruption(self._stop_reason)
        end = explain_error(error, self._dependencies.rules.timeout, timed_out=timed_out)
        if end.state is TurnState.FAILED and isinstance(error, AgentError):
            facts = {"turn": self.lease.turn_id, "session": self.lease.session_id, "error": str(error)}
            log.warning("turn_failed", extra=facts | dict(end.facts))
        elif end.facts.get("code") == FailureCode.INTERNAL_ERROR:
            self._log_mistake(error)
        return end

    def _log_mistake(self, error: BaseException) -> None:
        log.error("turn_internal_error", extra={"turn": self.lease.turn_id}, exc_info=error)

    async def _answer(self) -> None:
        agent_tools = await self._dependencies.agent.load_tools()
        request, last_prompt_tokens = await self._build_request(agent_tools)
        if await self._compact_if_nearly_full(request.model, last_prompt_tokens):
            request, _ = await self._build_request(agent_tools)
        overflow = OverflowHandler(
            rules=self._dependencies.rules.compaction,
            compactor=self._make_compactor(),
            build_request=lambda: self._build_first(agent_tools),
            get_input_seq=lambda: self.recorder.input_seq,
            send_notice=self._send_notice_once,
            on_shortened=self._report_shortening,
        )
        await run_until_short_enough(request, self._record_answer, overflow.iterate_requests(), self._can_ask_again)

    def _report_shortening(self) -> None:
        self._send_notice_once(SHORTENED_NOTICE)
        if self._dependencies.rules.compaction.notify and not self._chat_notices:
            self._chat_notices.append(SHORTENED_NOTICE.text)

    def _can_ask_again(self) -> bool:
        """Whether the model has said nothing yet, or only used tools, so that it can be asked again with less."""
        pieces = self.recorder.draft.pieces
        return not pieces or pieces[-1].kind is PieceKind.RESULT

    async def _build_request(self, agent_tools: Sequence[Tool]) -> tuple[AgentRequest, int]:
        answer_so_far = self.recorder.build_answer(TurnState.DONE)
        return await self._request_builder.build(self.recorder.input_seq, agent_tools, answer_so_far)

    async def _build_first(self, agent_tools: Sequence[Tool]) -> AgentRequest:
        return (await self._build_request(agent_tools))[0]

    async def _compact_if_nearly_full(self, model: str | None, last_prompt_tokens: int) -> bool:
        """Compact before the model has to refuse: when the last request nearly filled its context window.

        A conversation that cannot be compacted, or is not worth it, is answered as it is.
        """
        agent = self._dependencies.agent
        window = await agent.get_context_window(model or agent.model) if last_prompt_tokens else None
        if window is None or not self._dependencies.rules.compaction.is_due(last_prompt_tokens, window):
            return False
        try:
            await self._compact(None, min_tokens=MIN_COMPACTION_GAIN * window)
        except (NothingToDo, AgentError, InvalidInput) as error:
            log.info("turn_compaction_skipped", extra={"turn": self.lease.turn_id, "error": str(error)})
            return False
        self._record(NEARLY_FULL_NOTICE)
        return True

    async def _compact(self, focus: str | None, *, min_tokens: float = 0) -> Compaction:
        await self._record_begin()
        exchanges = self._dependencies.rules.compaction.keep_exchanges
        return await self._make_compactor().compact(
            focus, self.recorder.input_seq, exchanges=exchanges, min_tokens=min_tokens
        )

    def _make_compactor(self) -> Compactor:
        return Compactor(
            dependencies=self._dependencies,
            lease=self.lease,
            add_usage=self.recorder.add_usage,
            calls=self.recorder.calls,
            send_notice=self._send_notice_once,
        )

    async def _record_begin(self) -> None:
        """Store durably that the agent is called, before it is: if it kills the process, that counts.

        What the agent loads first is no part of the call: a process that dies meanwhile is not the message's fault.
        """
        if not self._is_begin_recorded:
            with contextlib.suppress(AgentError):  # the call itself says what is wrong
                await self._dependencies.agent.warm_up()
            await self._engine.arun(Write(partial(turn_leases.mark_begun, lease=self.lease)))
            self._is_begin_recorded = True

    async def _record_answer(self, request: AgentRequest) -> None:
        await self._record_begin()
        # The worker keeps the agent open while this runs.
        async with contextlib.aclosing(self._dependencies.agent.run(request)) as agent_events:  # type: ignore[type-var]
            async for event in agent_events:
                self._record(event)
                if isinstance(event, Notice) and event == CUT_OFF_NOTICE:
                    self._report_cut_off()
                if isinstance(event, ToolCall) and is_job_run(self.lease):
                    await self._check_granted(event, request.tools)
                crash_point("turn.agent_event")

    def _report_cut_off(self) -> None:
        """Tell people in a chat that the answer is not complete, and why if the budget has shortened it."""
        reasons = [notice.text for notice in self._live.notices if notice.code == NoticeCode.ANSWER_LIMITED]
        self._closing_notices.insert(0, join_texts(" ", [CUT_OFF_NOTICE.text, *reasons]))

    async def _check_granted(self, call: ToolCall, tools: Sequence[Tool]) -> None:
        """Record that a run of a job wanted a tool that it does not have; its driver refuses the call."""
        if all(call.name != tool.name for tool in tools):
            add = partial(job_runs.add_refused_tool, lease=self.lease, tool_name=call.name)
            await self._engine.arun(Write(add))

    def _record(self, event: AgentEvent) -> None:
        self.recorder.record(event)
        self._dependencies.feed.notify_progress(self._live)

    def _send_notice_once(self, notice: Notice) -> None:
        if notice not in self._live.notices:
            self._record(notice)
            if notice.code == NoticeCode.BUDGET_NEARLY_USED:
                self._closing_notices.append(notice.text)

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
                        turn_leases.append_pieces(tx, self.lease, pieces)

                self.recorder.may_have_saved = True
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

        self.recorder.may_be_steered = True

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
        self.recorder.start_part(taken[-1].seq)
        return [event.message.text for event in taken if event.message is not None and not event.hidden]

    # -- the end -------------------------------------------------------------------------------------------

    async def _store_end(self, finish: Callable[..., None]) -> None:
        """Store how the turn ended; try again while the store is away, because the answer is complete and paid for."""
        now = self._now()
        has_failed = False
        while True:
            try:
                await self._engine.arun(Write(partial(finish, now=now)))
            except (StoreUnavailable, StoreBusy, StoreFull) as error:
                if not has_failed:
                    log.warning("turn_end_delayed", extra={"turn": self.lease.turn_id, "error": str(error)})
                has_failed = True
                await asyncio.sleep(END_RETRY_SECONDS)
            except LeaseLost:  # perhaps because it was stored when the connection broke
                has_ended = partial(turn_leases.has_ended_at, lease=self.lease, ended_at=now)
                if not has_failed or not await self._engine.arun(Read(has_ended)):
                    raise
                return
            else:
                return

    def _finish(self, tx: Transaction, end: AnswerEnded, now: int) -> None:
        messages = [] if self.lease.kind is TurnKind.COMPACT else self.recorder.build_answer(end.state)
        finish_turn(
            tx,
            self._dependencies.store.config,
            self.lease,
            messages,
            end,
            now,
            recorder=self.recorder,
            notices=self._chat_notices,
            closing_notices=self._closing_notices,
        )
        self._count_free_tokens(tx, now)

    def _finish_with_text(self, tx: Transaction, end: AnswerEnded, now: int) -> None:
        """End a turn whose driver produced something that the log cannot hold: keep the text of its answer."""
        config = self._dependencies.store.config
        messages = build_text_only_messages(self.recorder.draft, self.lease.input_seq)
        finish_turn(tx, config, self.lease, messages, end, now, recorder=self.recorder)
        self._count_free_tokens(tx, now)

    def record_orphan_usage(self, tx: Transaction, now: int) -> None:
        """Record what the run has used before it lost its turn: it has to be paid for, whichever run answers."""
        record_orphan_usage(tx, self.lease, self.recorder.unrecorded_usage, now)
        self._count_free_tokens(tx, now)

    def _count_free_tokens(self, tx: Transaction, now: int) -> None:
        tokens = self.recorder.calls.free_tokens
        self._dependencies.budgets.count_free_tokens(tx, self.lease, tokens, from_micros(now))

    def _now(self) -> int:
        return to_micros(self._dependencies.store.clock.now())
