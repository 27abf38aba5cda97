"""Temporary conversations: questions that are answered without storing anything that was said.

The conversation is in the memory of the surface that shows it, and nowhere else. Each question comes with all messages
so far, is answered as a stream of events, and is forgotten. What an answer has used is recorded like the usage of a
conversation that was deleted: money is bounded here, too.

Always true: no text of a temporary conversation reaches the database, a log or a file. Of what its answers do, only
usage, budgets and the count of messages per minute are stored. The agent has no tools, no memory and no access to
other conversations in it. An answer ends when its reader leaves.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Literal

from palaver.accounts import access
from palaver.agent import profiles
from palaver.agent.base import AgentRequest, Notice, ReasoningDelta, TextDelta, UsageReport
from palaver.agent.compaction import MIN_CONTEXT_TOKENS, count_tokens, shorten_messages
from palaver.agent.history import build_messages
from palaver.agent.profiles import TurnChoices, check_model_choice
from palaver.config.budget_rules import CallPurpose
from palaver.core.background import create_lease_owner
from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Write
from palaver.core.errors import (
    CommandUnavailable,
    InvalidInput,
    LimitReached,
    NotSignedIn,
    PalaverError,
    StoreError,
    TooManyAttempts,
)
from palaver.core.source import Platform
from palaver.core.text import make_storable
from palaver.core.texts import say
from palaver.inbox.registry import find_command
from palaver.money.meter import PROFILE_KEY, BudgetMeter
from palaver.people import table as people
from palaver.sessions.context import build_session_context
from palaver.sessions.conversations import build_person_source
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import MAX_MESSAGE_CHARS, Message
from palaver.sessions.settings_table import SessionSettings
from palaver.sessions.turn import InterruptReason, TurnState
from palaver.sessions.usage import TurnUsage
from palaver.turns.answer_end import AnswerEnded, explain_error, explain_failure, explain_interruption
from palaver.turns.compaction import OMITTED_NOTICE, SHORTENED_NOTICE, run_until_short_enough
from palaver.turns.request_builder import RunDependencies, build_instructions, find_turn_choices
from palaver.turns.side_work import SideWork, record_side_usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from palaver.core.ids import PersonId
    from palaver.people.model import Person
    from palaver.people.table import PersonRow

MAX_UNREAD_EVENTS: Final = 100  # an agent that is faster than its reader waits
FILLED_PERCENT: Final = 70  # of the context window, with which a long conversation is sent
CANCEL_TIMEOUT_SECONDS: Final = 5.0  # for an answer to react to being canceled
MAX_MESSAGES: Final = 1000  # sent with one question
MAX_CONVERSATION_CHARS: Final = 1_000_000  # of all messages together
TEMPORARY_INSTRUCTIONS: Final = (
    "This is a temporary conversation: nothing of it is saved, and it is gone when the user closes it. You have no"
    " tools here, you know nothing of the user's other conversations, and you can't remember anything for later. If the"
    " user asks for that, say that it needs a normal conversation."
)
OMITTED_MESSAGE: Final = {
    "role": "user",
    "content": "[Earlier messages of this conversation are omitted here because there are too many.]",
}

ModelMessage = Mapping[str, Any]
# What a reader of an answer gets: its text as it grows, notices, and its end as the last one.
TemporaryEvent = TextDelta | ReasoningDelta | Notice | AnswerEnded

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryMessage:
    role: Literal["user", "assistant"]
    text: str
    is_interrupted: bool = False  # the answer was stopped before it was complete


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryQuestion:
    """A temporary conversation whose last message is to be answered."""

    messages: Sequence[TemporaryMessage]
    model: str | None = None  # None: that of the profile, or the default
    profile: str | None = None
    personality: str | None = None
    platform: Platform = Platform.WEB

    def check(self) -> None:
        """Raise `InvalidInput` for a question that can't be answered."""
        if not self.messages or self.messages[-1].role != "user":
            raise InvalidInput("messages: the last message must have the role `user`.")
        if len(self.messages) > MAX_MESSAGES:
            raise InvalidInput(
                say(
                    "temporary.too_many_messages",
                    "messages: the limit is {limit}. Leave out older messages.",
                    limit=str(MAX_MESSAGES),
                ),
                limit=MAX_MESSAGES,
            )
        if not self.messages[-1].text.strip():
            raise InvalidInput.say("temporary.last_message_empty", "messages: the last message is empty.")
        lengths = [len(message.text) for message in self.messages]
        if lengths[-1] > MAX_MESSAGE_CHARS:
            raise InvalidInput(
                f"messages: the last message has {lengths[-1]} characters. The limit is {MAX_MESSAGE_CHARS}.",
                limit=MAX_MESSAGE_CHARS,
            )
        if sum(lengths) > MAX_CONVERSATION_CHARS:
            raise InvalidInput(
                f"messages: {sum(lengths)} characters in all. The limit is {MAX_CONVERSATION_CHARS}. Leave out older"
                " messages.",
                limit=MAX_CONVERSATION_CHARS,
            )
        if is_command(self.messages[-1].text):
            raise CommandUnavailable


class TemporaryChats:
    def __init__(self, get_dependencies: Callable[[], RunDependencies]) -> None:
        self._get_dependencies = get_dependencies  # what depends on the settings, as they are now
        self._engine = get_dependencies().store.engine
        self._owner = create_lease_owner()
        self._running: Counter[PersonId] = Counter()  # answers of each person, in this process
        self._answers: set[_Answer] = set()
        self._is_stopping = False

    async def ask(self, person: Person, question: TemporaryQuestion) -> AsyncGenerator[TemporaryEvent, None]:
        """Check and count a question; return its answer, which starts with the first event that is asked for.

        Closing the returned generator stops the answer.
        """
        question.check()
        profile, choices = self._choose(person, question)
        self._check_limits(person)
        await self._count_message(person)
        row = await self._engine.arun(Read(lambda tx: people.find_by_id(tx, person.id), is_quick=True))
        if row is None:
            raise NotSignedIn
        return self._stream(row, question, profile, choices)

    async def stop(self) -> None:
        """Interrupt the answers that are running, and start no others."""
        self._is_stopping = True
        tasks = [answer.interrupt() for answer in self._answers]
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT_SECONDS)

    # -- before the answer ---------------------------------------------------------------------------------

    def _choose(self, person: Person, question: TemporaryQuestion) -> tuple[str | None, TurnChoices]:
        """Return the name of the profile and what the person's choices mean; raises for those they may not make."""
        dependencies = self._get_dependencies()
        agent, rules, profile = dependencies.agent, dependencies.rules, dependencies.profile

        def check_model(name: str) -> None:
            check_model_choice(agent, rules, person.role, name)

        if question.model is not None:
            check_model(question.model)
        chosen = SessionSettings(
            model=question.model,
            profile=question.profile and profiles.find_profile(profile, question.profile, check_model),
            personality=question.personality and profiles.find_personality(profile, question.personality),
        )
        return chosen.profile, find_turn_choices(dependencies, person.role, chosen)

    def _check_limits(self, person: Person) -> None:
        """Raise `LimitReached` if too many temporary conversations are being answered."""
        rules = self._get_dependencies().rules
        if self._running[person.id] >= rules.max_running_per_person:
            raise LimitReached(
                f"You already have {rules.max_running_per_person} temporary answers running. Wait for one to finish,"
                " or stop it.",
                what="temporary_answers",
                limit=rules.max_running_per_person,
            )
        if self._running.total() >= rules.max_running:
            raise LimitReached(
                "The server is answering as many temporary conversations as it can. Try again in a moment.",
                what="temporary_answers",
                limit=rules.max_running,
            )

    async def _count_message(self, person: Person) -> None:
        rules = self._get_dependencies().rules
        if rules.messages_per_minute.get(person.role) is None:
            return
        now = self._get_dependencies().store.clock.now()
        refusal = await self._engine.arun(Write(lambda tx: access.count_message(tx, person, None, rules, now)))
        if refusal is not None:
            raise TooManyAttempts(refusal.reply or "", retry_after=(refusal.facts or {}).get("retry_after", 1.0))

    # -- the answer ----------------------------------------------------------------------------------------

    async def _stream(
        self, row: PersonRow, question: TemporaryQuestion, profile: str | None, choices: TurnChoices
    ) -> AsyncGenerator[TemporaryEvent, None]:
        person_id = row.person.id
        try:
            self._check_limits(row.person)
        except LimitReached as error:  # others were faster
            yield explain_failure(error, error.facts)
            return
        if self._is_stopping:
            yield explain_interruption(InterruptReason.SERVER_STOPPED)
            return
        work = SideWork(
            owner=self._owner,
            person_id=person_id,
            audience_no=row.audience_no,
            platform=question.platform,
            facts={} if profile is None else {PROFILE_KEY: profile},
        )
        answer = _Answer(self._get_dependencies(), work, row.person, question, choices)
        self._running[person_id] += 1
        self._answers.add(answer)
        task = answer.start()

        def forget(_task: asyncio.Task[None]) -> None:
            self._answers.discard(answer)
            self._running[person_id] -= 1
            self._running += Counter()  # leaves out those that have none

        task.add_done_callback(forget)
        try:
            while True:
                event = await answer.events.get()
                yield event
                if isinstance(event, AnswerEnded):
                    return
        finally:  # the task ends by itself, also when this generator is canceled a second time
            task.cancel()
            await asyncio.wait([task], timeout=CANCEL_TIMEOUT_SECONDS)


@dataclass(slots=True, eq=False)
class _Answer:
    """One answer: a task that runs the agent and puts what it says into a queue."""

    dependencies: RunDependencies
    work: SideWork
    person: Person
    question: TemporaryQuestion
    choices: TurnChoices
    events: asyncio.Queue[TemporaryEvent] = field(default_factory=lambda: asyncio.Queue(MAX_UNREAD_EVENTS))
    _notices: list[Notice] = field(default_factory=list)  # each once
    _sent_notice_count: int = 0
    _reports: list[UsageReport] = field(default_factory=list)
    _has_text: bool = False
    _is_interrupted: bool = False
    _task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        self._notices += self.choices.notices
        self._task = asyncio.create_task(self._run(), name="palaver-temporary-answer")
        return self._task

    def interrupt(self) -> asyncio.Task[None]:
        """End the answer because the server stops; its reader is told."""
        assert self._task is not None  # noqa: S101  (it is started when it is created)
        self._is_interrupted = True
        self._task.cancel()
        return self._task

    async def _run(self) -> None:
        meter = self.dependencies.budgets.make_meter(self.work, CallPurpose.ANSWER, on_notice=self._add_notice)
        try:
            end = await self._run_agent(meter)
        except asyncio.CancelledError:
            if not self._is_interrupted or self._task is None:
                raise
            self._task.uncancel()
            end = explain_interruption(InterruptReason.SERVER_STOPPED)
        finally:  # before the reader hears of the end: when they have it, everything is recorded
            await self.dependencies.budgets.finish_ending(asyncio.create_task(self._record_usage(meter)))
        await self._put_notices()
        usages = [report.usage for report in self._reports]
        await self.events.put(replace(end, usage=reduce(TurnUsage.add, usages) if usages else TurnUsage()))

    async def _run_agent(self, meter: BudgetMeter) -> AnswerEnded:
        timeout = self.dependencies.rules.timeout
        limit = asyncio.timeout(timeout.total_seconds())
        try:
            async with limit:
                await self._answer(meter)
        except Exception as error:  # noqa: BLE001  (drivers raise anything; it is logged, and the person is told)
            end = explain_error(error, timeout, timed_out=limit.expired())
            _log_failure(error, end)
            return end
        return AnswerEnded()

    async def _answer(self, meter: BudgetMeter) -> None:
        dependencies, model = self.dependencies, self.choices.model
        built = await asyncio.to_thread(build_question_messages, self.question.messages)
        window = await dependencies.agent.get_context_window(model or dependencies.agent.model)
        messages: list[ModelMessage] = list(built)
        if window is not None:
            messages = await asyncio.to_thread(keep_newest, built, window * FILLED_PERCENT / 100)
        if len(messages) < len(built):
            self._add_notice(OMITTED_NOTICE)
        request = AgentRequest(instructions=self._build_instructions(), messages=messages, model=model, meter=meter)
        smaller = self._iterate_smaller_requests(request)
        await run_until_short_enough(request, self._pass_on, smaller, lambda: not self._has_text)

    async def _iterate_smaller_requests(self, request: AgentRequest) -> AsyncGenerator[AgentRequest, None]:
        smaller = iterate_smaller(request.messages)
        while (following := await asyncio.to_thread(next, smaller, None)) is not None:
            messages, notice = following
            self._add_notice(notice)
            yield replace(request, messages=messages)

    def _build_instructions(self) -> str:
        dependencies = self.dependencies
        context = build_session_context(
            build_person_source(self.person, self.question.platform),
            dependencies.store.config,
            connected=dependencies.list_connected_platforms(),
            home_channels={},
            can_send=False,
        )
        context = replace(context, shared=False)
        return build_instructions(dependencies, self.choices, context, more=[TEMPORARY_INSTRUCTIONS])

    async def _pass_on(self, request: AgentRequest) -> None:
        """Run the agent and put what it says into the queue."""
        async with aclosing(self.dependencies.run_agent(request)) as agent_events:
            async for event in agent_events:
                if isinstance(event, UsageReport):
                    self._reports.append(event)
                elif isinstance(event, Notice):
                    self._add_notice(event)
                elif isinstance(event, TextDelta | ReasoningDelta):
                    self._has_text = True
                    await self._put_notices()
                    await self.events.put(event)

    def _add_notice(self, notice: Notice) -> None:
        if notice not in self._notices:
            self._notices.append(notice)

    async def _put_notices(self) -> None:
        while self._sent_notice_count < len(self._notices):
            self._sent_notice_count += 1
            await self.events.put(self._notices[self._sent_notice_count - 1])

    async def _record_usage(self, meter: BudgetMeter) -> None:
        """Record what the answer has used, without what was said."""
        unrecorded = [report.usage for report in self._reports if not report.is_recorded]
        if not unrecorded and not meter.call_ids:
            return
        now = to_micros(self.dependencies.store.clock.now())

        try:
            await self.dependencies.store.engine.arun(
                Write(lambda tx: record_side_usage(tx, self.work, meter.call_ids, unrecorded, now))
            )
        except StoreError as error:  # what was held stays held, until it is recovered
            log.error("temporary_usage_not_recorded", extra={"error": str(error)})


def _log_failure(error: BaseException, end: AnswerEnded) -> None:
    """Log the kind of an error and, if it is unexpected, its place. Its text is left out: it may have what was said."""
    if end.state is TurnState.INTERRUPTED:
        return
    if isinstance(error, PalaverError):
        level = logging.WARNING if isinstance(error, StoreError) else logging.INFO  # the budgets can't be read
        log.log(level, "temporary_answer_failed", extra={"code": error.code})
        return
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"
    log.error("temporary_answer_internal_error", extra={"error": type(error).__name__, "where": where})


# ---- the messages that a model gets ------------------------------------------------------------------------


def is_command(text: str) -> bool:
    """Return whether a text starts with the name of a slash command."""
    word = text.strip().split(maxsplit=1)[0] if text.strip() else ""
    return word.startswith("/") and find_command(word[1:]) is not None


def build_question_messages(messages: Sequence[TemporaryMessage]) -> list[dict[str, Any]]:
    """Build the messages for the model, in the same way as for a conversation that is stored."""
    now = datetime.now(UTC)
    events = [
        Event(
            seq=seq,
            kind=EventKind.MESSAGE,
            at=now,
            message=Message(
                message.role,
                make_storable(message.text),
                extra={"interrupted": True} if message.is_interrupted and message.role == "assistant" else {},
            ),
        )
        for seq, message in enumerate(messages, 1)
    ]
    return build_messages(events, input_seq=len(events), compaction=None, shared=False)


def keep_newest(messages: Sequence[ModelMessage], max_tokens: float) -> list[ModelMessage]:
    """Return the newest messages that have at most `max_tokens` together; always the last one."""
    kept, tokens = 0, 0
    for message in reversed(messages):
        tokens += count_tokens([message])
        if kept and tokens > max_tokens:
            break
        kept += 1
    if kept == len(messages):
        return list(messages)
    return [OMITTED_MESSAGE, *messages[len(messages) - kept :]]


def iterate_smaller(messages: Sequence[ModelMessage]) -> Iterator[tuple[list[ModelMessage], Notice]]:
    """Yield smaller and smaller requests for a conversation that was too long, each with what the person is told.

    The older half is left out, until only the last message remains; then that one is shortened.
    """
    kept = list(messages)
    while len(kept) > 1:
        kept = kept[(len(kept) + 1) // 2 :]
        yield [OMITTED_MESSAGE, *kept], OMITTED_NOTICE
    tokens = count_tokens(kept)
    while tokens > MIN_CONTEXT_TOKENS:
        tokens //= 2
        yield shorten_messages(kept, tokens), SHORTENED_NOTICE
