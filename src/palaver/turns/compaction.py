"""Compacts a conversation: the agent sees a summary instead of older messages. The messages themselves stay.

When no summary can be made, the older messages leave the agent's view without one (`omit`); the next summary covers
them again. Both are events in the log, and in a chat the person gets a notice in the same transaction.

A turn whose conversation is too long for the model makes its request smaller, step by step, until the model accepts it:
the newest message alone is shortened if it is most of the conversation; a summary replaces everything before the last
exchanges, then before the last one, then before the messages that wait for their answer; the longest texts are
shortened more and more, and again whenever new results of tools make it too long. Where no summary can be made, the
older messages leave the agent's view. So every conversation is answered, as long as the instructions and tools alone
fit into the model.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.agent import compaction as summaries
from palaver.agent.base import CUT_OFF_NOTICE, AgentRequest, Notice, TextDelta, UsageReport, estimate_message_tokens
from palaver.agent.compaction import MIN_CONTEXT_TOKENS, count_tokens, remove_reasoning, shorten_messages
from palaver.agent.history import build_messages
from palaver.agent.summary_facts import MissingFacts, add_missing_facts, find_missing_facts
from palaver.config.budget_rules import CallPurpose
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import AgentError, ContextOverflow, InvalidInput, NothingToCompact, NothingToDo
from palaver.core.texts import say, say_count
from palaver.delivery.notices import send_notice_to_address
from palaver.memory.model import MemoryTurnKind
from palaver.memory.queue import queue_memory_turn
from palaver.sessions import (
    log_table as events,
    settings_table as session_settings,
    table as sessions,
    turn_leases,
    turns_table as turns,
    versions_table as compactions,
)
from palaver.sessions.turn import NoticeCode, TurnKind
from palaver.turns.request_builder import RunDependencies, load_turn_choices

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from palaver.config.agent_rules import CompactionRules
    from palaver.money.meter import RunCalls
    from palaver.sessions.events import Compaction, Event
    from palaver.sessions.turn_leases import TurnLease

    _BuildRequest = Callable[..., AgentRequest]

_MAX_SPLIT_DEPTH = 4  # messages that are too long for one request are split in half at most this often
LIMITED_SUMMARY_ERROR = say(
    "compaction.no_budget", "What is left of the budget is not enough for a summary, so nothing was changed."
)
SUMMARIZED_NOTICE = Notice(
    say(
        "compaction.summarized", "This conversation was too long for the model, so the agent now sees a summary of it."
    ),
    NoticeCode.SUMMARIZED,
)
OMITTED_NOTICE = Notice(
    say(
        "compaction.omitted",
        "This conversation was too long for the model, so the agent no longer sees its oldest messages.",
    ),
    NoticeCode.OMITTED,
)
SHORTENED_NOTICE = Notice(
    say("compaction.shortened", "A message was too long for the model, so the agent sees a shortened version of it."),
    NoticeCode.SHORTENED,
)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The messages that a compaction replaces."""

    old: Sequence[Event]
    visible_seqs: Sequence[int]
    previous: Compaction | None  # the one that it continues
    shared: bool  # several people write in the conversation
    model: str | None

    def build(self, summary: str, *, omitted_count: int = 0, focus: str | None = None) -> compactions.NewCompaction:
        previous = self.previous
        first_kept_seq, carried_seqs = summaries.find_carried_seqs(self.visible_seqs, self.old, previous)
        return compactions.NewCompaction(
            summary=summary,
            first_kept_seq=first_kept_seq,
            last_replaced_seq=max(event.seq for event in self.old),
            message_count=len(self.old) + (previous.message_count if previous else 0),
            carried_seqs=carried_seqs,
            omitted_count=omitted_count,
            focus=focus,
        )


@dataclass(slots=True, kw_only=True)
class Compactor:
    dependencies: RunDependencies
    lease: TurnLease
    add_usage: Callable[[UsageReport], None]  # the usage of a summary belongs to the turn
    calls: RunCalls
    send_notice: Callable[[Notice], None]
    _is_limited: bool = False  # the budget allows a shorter summary only

    async def compact(self, focus: str | None, up_to_seq: int, *, exchanges: int, min_tokens: float = 0) -> Compaction:
        """Let the model of the conversation summarize everything before the last exchanges.

        When that fails, the conversation is unchanged. Raises NothingToCompact when there is nothing to summarize, or
        fewer than `min_tokens`: the summary would cost more than it frees.
        """
        lease, files = self.lease, self.dependencies.files
        plan = await self.dependencies.store.engine.arun(
            Read(lambda tx: self._plan(tx, compactions.find_last_summary(tx, lease.session_no), up_to_seq, exchanges))
        )
        previous = plan.previous
        if lease.kind is TurnKind.COMPACT and previous is not None and previous.seq > lease.input_seq:
            return previous  # a worker that died had already stored it
        if not plan.old:
            raise NothingToCompact
        last_seq = max(event.seq for event in plan.old)
        messages: Sequence[Mapping[str, Any]] = build_messages(
            sorted(plan.old, key=lambda event: event.seq), input_seq=last_seq, compaction=None, shared=plan.shared
        )
        if files is not None:  # later turns see only the summary, so it must include what was in the files
            messages = await files.prepare_for_model(lease.session_id, messages, images=False)
        if estimate_message_tokens(messages) < min_tokens:
            raise NothingToCompact
        self.send_notice(Notice(say("compaction.working", "Summarizing older messages…"), NoticeCode.SUMMARIZING))

        meter = self.dependencies.budgets.make_meter(
            lease, CallPurpose.SUMMARY, on_notice=self._handle_budget_notice, calls=self.calls
        )

        def build_request(
            part: Sequence[Mapping[str, Any]], previous_summary: str | None, missing: MissingFacts | None = None
        ) -> AgentRequest:
            request = summaries.build_summary_request(part, focus, previous_summary, missing)
            return replace(request, model=plan.model, meter=meter)

        summary = await self._summarize(messages, build_request, previous.summary if previous else None)
        return await self._store_compaction(plan.build(summary, focus=focus))

    def _handle_budget_notice(self, notice: Notice) -> None:
        if notice.code == NoticeCode.ANSWER_LIMITED:  # it would be about the summary, which people did not ask for
            self._is_limited = True
        else:
            self.send_notice(notice)

    async def omit(self, up_to_seq: int, *, exchanges: int) -> Compaction:
        """Let the messages before the last exchanges leave the agent's view, without a summary of them.

        Raises NothingToCompact when there are none.
        """
        plan = await self.dependencies.store.engine.arun(
            Read(lambda tx: self._plan(tx, compactions.find_current(tx, self.lease.session_no), up_to_seq, exchanges))
        )
        if not plan.old:
            raise NothingToCompact
        summary, omitted = (plan.previous.summary, plan.previous.omitted_count) if plan.previous else ("", 0)
        return await self._store_compaction(plan.build(summary, omitted_count=omitted + len(plan.old)))

    def _plan(self, tx: Transaction, previous: Compaction | None, up_to_seq: int, exchanges: int) -> _Plan:
        session_no = self.lease.session_no
        visible, _ = compactions.load_view(tx, session_no, previous, events.END_OF_LOG)
        log = [
            event
            for event in visible
            if event.message is not None and (event.message.role != "user" or event.seq <= up_to_seq)
        ]
        choices = load_turn_choices(tx, self.dependencies, self.lease.person_id, session_settings.load(tx, session_no))
        return _Plan(
            old=summaries.find_old_messages(
                log, exchanges, input_seq=up_to_seq, open_seqs=turns.list_open_seqs(tx, session_no)
            ),
            visible_seqs=[event.seq for event in visible],
            previous=previous,
            shared=sessions.get_by_no(tx, session_no).session.shared,
            model=choices.model,
        )

    async def _store_compaction(self, new: compactions.NewCompaction) -> Compaction:
        lease, now = self.lease, to_micros(self.dependencies.store.clock.now())

        def write(tx: Transaction) -> Compaction:
            turn_leases.check_lease(tx, lease)
            compaction = compactions.create(tx, lease.session_no, new, now, lease.person_id)
            rules = self.dependencies.rules
            queue_memory_turn(
                tx, rules, lease.session_no, MemoryTurnKind.COMPACTION, now, up_to_seq=new.last_replaced_seq
            )
            # Where people read the conversation itself, they see the event.
            if lease.kind is TurnKind.ANSWER and rules.compaction.notify and lease.address is not None:
                text = format_compaction_notice(compaction)
                send_notice_to_address(tx, lease.address, text, now, session_no=lease.session_no)
            return compaction

        crash_point("turn.before_compaction")
        compaction = await self.dependencies.store.engine.arun(Write(write))
        crash_point("turn.compacted")
        return compaction

    async def _summarize(
        self,
        messages: Sequence[Mapping[str, Any]],
        build_request: _BuildRequest,
        previous_summary: str | None,
        depth: int = 0,
    ) -> str:
        """Ask the model for a summary; if the messages are too long for it, of one half after the other."""
        try:
            summary = await self._ask(build_request(messages, previous_summary), messages)
        except ContextOverflow:
            if depth < _MAX_SPLIT_DEPTH and len(messages) > 1:
                half = len(messages) // 2
                first_summary = await self._summarize(messages[:half], build_request, previous_summary, depth + 1)
                return await self._summarize(messages[half:], build_request, first_summary, depth + 1)
            smaller = _halve(messages)
            if smaller is None:
                raise
            return await self._summarize(smaller, build_request, previous_summary, depth)
        return await self._complete(summary, messages, build_request, previous_summary)

    async def _ask(self, request: AgentRequest, messages: Sequence[Mapping[str, Any]]) -> str:
        """Ask the model once; raises `AgentError` if its answer is no summary of the messages."""
        text = []
        async with contextlib.aclosing(self.dependencies.run_agent(request)) as agent_events:
            async for event in agent_events:
                if isinstance(event, TextDelta):
                    text.append(event.text)
                elif isinstance(event, UsageReport):  # its prompt says nothing about the length of the conversation
                    self.add_usage(replace(event, usage=replace(event.usage, last_prompt_tokens=None)))
                elif event == CUT_OFF_NOTICE and self._is_limited:
                    raise AgentError(LIMITED_SUMMARY_ERROR)
        return summaries.check_summary("".join(text), messages)

    async def _complete(
        self,
        summary: str,
        messages: Sequence[Mapping[str, Any]],
        build_request: _BuildRequest,
        previous_summary: str | None,
    ) -> str:
        """Let the model try once more if its summary has lost facts; what is still missing then is added as a list."""
        missing = await asyncio.to_thread(find_missing_facts, summary, messages, previous_summary)
        if not missing.count:
            return summary
        log.info("summary_incomplete", extra={"turn": self.lease.turn_id, "missing": missing.count})
        # Where no second try is possible, as when the budget is used up, the first summary does.
        with contextlib.suppress(AgentError, InvalidInput):
            second = await self._ask(build_request(messages, previous_summary, missing), messages)
            still_missing = await asyncio.to_thread(find_missing_facts, second, messages, previous_summary)
            if still_missing.count <= missing.count:
                summary, missing = second, still_missing
        return add_missing_facts(summary, missing)


def _halve(messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]] | None:
    """Return the messages at about half of their length: shortened, or without the oldest; None if they are short."""
    tokens = count_tokens(messages)
    shortened = shorten_messages(messages, tokens // 2)
    if count_tokens(shortened) <= tokens * 3 // 4:
        return shortened if tokens > MIN_CONTEXT_TOKENS else None
    return messages[len(messages) // 2 :] if len(messages) > 1 else None


def format_compaction_notice(compaction: Compaction) -> str:
    """Format what people in a chat are told about a compaction that they did not ask for."""
    count = compaction.message_count
    messages = say_count("compaction.messages", count, "{count} older message", "{count} older messages")
    if compaction.omitted_count:
        change = say("compaction.no_longer_sees", "no longer sees {messages}", messages=messages)
    else:
        change = say("compaction.sees_summary", "now sees a summary of {messages}", messages=messages)
    return say(
        "compaction.notice",
        "This conversation is getting too long for the model, so the agent {change}. Nothing was deleted. Use /restore"
        " to undo this.",
        change=change,
    )


def format_compaction_reply(compaction: Compaction) -> str:
    return say(
        "compaction.done",
        "The agent now sees a summary of {number} older messages. You still see all of them. Use /restore to undo this."
        "\n\n{summary}",
        number=str(compaction.message_count),
        summary=compaction.summary,
    )


@dataclass(slots=True, kw_only=True)
class OverflowHandler:
    """Makes the request of one turn smaller."""

    rules: CompactionRules
    compactor: Compactor
    build_request: Callable[[], Awaitable[AgentRequest]]
    get_input_seq: Callable[[], int]
    send_notice: Callable[[Notice], None]
    on_shortened: Callable[[], None]
    _has_failed: bool = False  # to summarize: it would fail again, and cost again
    _max_tokens: int | None = None  # of the messages, once they are shortened

    async def iterate_requests(self) -> AsyncGenerator[AgentRequest, None]:
        """Yield smaller and smaller requests for a conversation that was too long for the model."""
        messages = (await self.build_request()).messages
        tokens = count_tokens(messages)
        new_tokens = count_tokens(messages[_find_last_question(messages) :])
        enough_tokens = max(2 * (tokens - new_tokens), MIN_CONTEXT_TOKENS)  # for all messages before the last question
        while (max_tokens := (self._max_tokens or tokens) // 2) > enough_tokens:
            self._max_tokens = max_tokens
            yield await self._build_shortened()
        for exchanges in sorted({self.rules.keep_exchanges, 1, 0}, reverse=True):
            if await self._make_room(exchanges):
                yield await self._build_shortened()
        messages = (await self.build_request()).messages
        max_tokens = min(self._max_tokens or count_tokens(messages), count_tokens(messages))
        message_count, has_grown = len(messages), False
        while has_grown or max_tokens > MIN_CONTEXT_TOKENS:
            # After the model has accepted a request and called more tools, the same length is enough again.
            max_tokens = max_tokens if has_grown else max_tokens // 2
            self._max_tokens = max_tokens
            yield await self._build_shortened()
            count_now = len((await self.build_request()).messages)
            has_grown, message_count = count_now > message_count, count_now

    async def _make_room(self, exchanges: int) -> bool:
        """Let a summary, or nothing, replace the messages before the last exchanges; False if there are none."""
        input_seq = self.get_input_seq()
        if self.rules.enabled and not self._has_failed:
            try:
                await self.compactor.compact(None, input_seq, exchanges=exchanges)
            except NothingToDo:
                return False
            except (AgentError, InvalidInput) as error:
                log.warning("turn_summary_failed", extra={"error": str(error)})
                self._has_failed = True
            else:
                self.send_notice(SUMMARIZED_NOTICE)
                return True
        try:
            await self.compactor.omit(input_seq, exchanges=exchanges)
        except NothingToDo:
            return False
        self.send_notice(OMITTED_NOTICE)
        return True

    async def _build_shortened(self) -> AgentRequest:
        request = await self.build_request()
        if self._max_tokens is None:
            return request
        self.on_shortened()
        last = _find_last_question(request.messages)
        messages = [*remove_reasoning(request.messages[:last]), *request.messages[last:]]
        return replace(request, messages=shorten_messages(messages, self._max_tokens))


async def run_until_short_enough(
    request: AgentRequest,
    run: Callable[[AgentRequest], Awaitable[None]],
    smaller_requests: AsyncGenerator[AgentRequest, None],
    can_ask_again: Callable[[], bool],
) -> None:
    """Run a request and, as long as it is too long for the model and nothing was said yet, the next smaller one."""
    async with contextlib.aclosing(smaller_requests):
        while True:
            try:
                return await run(request)
            except ContextOverflow:
                smaller = await anext(smaller_requests, None) if can_ask_again() else None
                if smaller is None:
                    raise
                request = smaller


def _find_last_question(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the index of the last message of a person."""
    return next((index for index in reversed(range(len(messages))) if messages[index]["role"] == "user"), 0)
