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
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from palaver.accounts import access
from palaver.agent import profiles
from palaver.agent.base import AgentRequest, Notice, ReasoningDelta, TextDelta, UsageReport
from palaver.agent.profiles import check_model_choice, is_model_allowed
from palaver.config.budget_rules import CallPurpose
from palaver.core.background import create_lease_owner
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import (
    AgentError,
    ContextOverflow,
    InvalidInput,
    LimitReached,
    NotSignedIn,
    StoreError,
    TooManyAttempts,
)
from palaver.inbox.temporary_request import (
    TEMPORARY_INSTRUCTIONS,
    AnswerEnded,
    AnswerNotice,
    AnswerReasoning,
    AnswerText,
    build_question_messages,
    explain_failure,
    explain_interruption,
    iterate_smaller,
    keep_newest,
    report_mistake,
)
from palaver.money import calls_table as call_records
from palaver.money.meter import PROFILE_KEY
from palaver.people import table as people
from palaver.sessions import usage_table as usage
from palaver.sessions.context import build_session_context, build_session_context_prompt
from palaver.sessions.conversations import build_person_source
from palaver.sessions.settings_table import SessionSettings
from palaver.sessions.turn import InterruptReason, TurnState
from palaver.sessions.usage import TurnUsage
from palaver.sessions.usage_table import NO_SESSION_NO
from palaver.turns.compaction import OMITTED_NOTICE
from palaver.turns.request_builder import DEFAULT_INSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from palaver.agent.profiles import TurnChoices
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId, TurnId
    from palaver.inbox.temporary_request import ModelMessage, TemporaryEvent, TemporaryQuestion
    from palaver.money.meter import BudgetMeter
    from palaver.people.model import Person
    from palaver.people.table import PersonRow
    from palaver.turns.request_builder import RunDependencies

MAX_UNREAD_EVENTS: Final = 100  # an agent that is faster than its reader waits
FILLED_PERCENT: Final = 70  # of the context window, with which a long conversation is sent
CANCEL_TIMEOUT_SECONDS: Final = 5.0  # for an answer to react to being canceled

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TemporaryWork:
    """What the calls of an answer are made for; a `MeteredWork`."""

    owner: str
    person_id: PersonId
    audience_no: int
    platform: str
    facts: Mapping[str, Any]
    turn_id: TurnId | None = None
    attempt: int = 0
    session_no: int = NO_SESSION_NO


class TemporaryChats:
    """Answers questions of temporary conversations."""

    def __init__(self, get_dependencies: Callable[[], RunDependencies]) -> None:
        self._get_dependencies = get_dependencies
        self._engine = get_dependencies().store.engine
        self._owner = create_lease_owner()
        self._running: Counter[PersonId] = Counter()  # answers of each person, in this process
        self._answers: set[_Answer] = set()
        self._is_stopping = False

    @property
    def _dependencies(self) -> RunDependencies:
        """What depends on the settings, as they are now."""
        return self._get_dependencies()

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
        dependencies = self._dependencies
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
        choices = profiles.apply_choices(
            profile, chosen, agent.check_model, lambda model: is_model_allowed(agent, rules, person.role, model)
        )
        return chosen.profile, choices

    def _check_limits(self, person: Person) -> None:
        """Raise `LimitReached` if too many temporary conversations are being answered."""
        rules = self._dependencies.rules
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
        rules = self._dependencies.rules
        if rules.messages_per_minute.get(person.role) is None:
            return
        now = self._dependencies.store.clock.now()
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
            yield explain_failure(error)
            return
        if self._is_stopping:
            yield explain_interruption(InterruptReason.SERVER_STOPPED)
            return
        work = _TemporaryWork(
            owner=self._owner,
            person_id=person_id,
            audience_no=row.audience_no,
            platform=question.platform,
            facts={} if profile is None else {PROFILE_KEY: profile},
        )
        answer = _Answer(self._dependencies, work, row.person, question, choices)
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


class _Answer:
    """One answer: a task that runs the agent and puts what it says into a queue."""

    def __init__(
        self,
        dependencies: RunDependencies,
        work: _TemporaryWork,
        person: Person,
        question: TemporaryQuestion,
        choices: TurnChoices,
    ) -> None:
        self.events: asyncio.Queue[TemporaryEvent] = asyncio.Queue(MAX_UNREAD_EVENTS)
        self._dependencies = dependencies
        self._work = work
        self._person = person
        self._question = question
        self._choices = choices
        self._notices = list(choices.notices)  # each once
        self._sent_notice_count = 0
        self._reports: list[UsageReport] = []
        self._has_text = False
        self._is_interrupted = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        self._task = asyncio.create_task(self._run(), name="palaver-temporary-answer")
        return self._task

    def interrupt(self) -> asyncio.Task[None]:
        """End the answer because the server stops; its reader is told."""
        assert self._task is not None  # noqa: S101  (it is started when it is created)
        self._is_interrupted = True
        self._task.cancel()
        return self._task

    async def _run(self) -> None:
        meter = self._dependencies.budgets.make_meter(self._work, CallPurpose.ANSWER, on_notice=self._add_notice)
        try:
            end = await self._run_agent(meter)
        except asyncio.CancelledError:
            if not self._is_interrupted or self._task is None:
                raise
            self._task.uncancel()
            end = explain_interruption(InterruptReason.SERVER_STOPPED)
        finally:  # before the reader hears of the end: when they have it, everything is recorded
            await self._dependencies.budgets.finish_ending(asyncio.create_task(self._record_usage(meter)))
        await self._put_end(end)

    async def _put_end(self, end: AnswerEnded) -> None:
        await self._put_notices()
        usages = [report.usage for report in self._reports]
        await self.events.put(replace(end, usage=reduce(TurnUsage.add, usages) if usages else TurnUsage()))

    async def _run_agent(self, meter: BudgetMeter) -> AnswerEnded:
        """Answer; return how it ended."""
        rules = self._dependencies.rules
        limit = asyncio.timeout(rules.timeout.total_seconds())
        try:
            async with limit:
                await self._answer(meter)
        except (AgentError, InvalidInput) as error:
            log.info("temporary_answer_failed", extra={"code": error.code})
            return explain_failure(error)
        except StoreError as error:  # the budgets can't be read
            log.warning("temporary_answer_failed", extra={"code": error.code})
            return explain_failure(error)
        except TimeoutError as error:
            if limit.expired():
                minutes = round(rules.timeout.total_seconds() / 60)
                return explain_interruption(InterruptReason.TIMED_OUT, minutes)
            return report_mistake(error)
        except Exception as error:  # noqa: BLE001  (drivers raise anything; it is logged, and the person is told)
            return report_mistake(error)
        return AnswerEnded(state=TurnState.DONE)

    async def _answer(self, meter: BudgetMeter) -> None:
        instructions = self._build_instructions()
        model = self._choices.model
        built = await asyncio.to_thread(build_question_messages, self._question.messages)
        window = await self._dependencies.agent.get_context_window(model or self._dependencies.agent.model)
        messages: list[ModelMessage] = list(built)
        if window is not None:
            messages = await asyncio.to_thread(keep_newest, built, window * FILLED_PERCENT / 100)
        if len(messages) < len(built):
            self._add_notice(OMITTED_NOTICE)
        smaller = iterate_smaller(messages)
        while True:
            request = AgentRequest(instructions=instructions, messages=messages, model=model, meter=meter)
            try:
                await self._pass_on(request)
            except ContextOverflow:
                following = None if self._has_text else await asyncio.to_thread(next, smaller, None)
                if following is None:
                    raise
                messages, notice = following
                self._add_notice(notice)
            else:
                return

    def _build_instructions(self) -> str:
        dependencies, config = self._dependencies, self._dependencies.store.config
        context = build_session_context(
            build_person_source(self._person, self._question.platform),
            config,
            connected=dependencies.list_connected_platforms(),
            home_channels={},
            can_send=False,
        )
        parts = [
            self._choices.instructions or DEFAULT_INSTRUCTIONS,
            *([self._choices.personality] if self._choices.personality else []),
            build_session_context_prompt(
                replace(context, shared=False), redact_pii=config.redact_pii, redactor=dependencies.redactor
            ),
            TEMPORARY_INSTRUCTIONS,
        ]
        return "\n\n".join(parts)

    async def _pass_on(self, request: AgentRequest) -> None:
        """Run the agent and put what it says into the queue."""
        async with aclosing(self._dependencies.agent.run(request)) as agent_events:  # type: ignore[type-var]
            async for event in agent_events:
                if isinstance(event, UsageReport):
                    self._reports.append(event)
                elif isinstance(event, Notice):
                    self._add_notice(event)
                elif isinstance(event, TextDelta | ReasoningDelta):
                    self._has_text = True
                    await self._put_notices()
                    is_text = isinstance(event, TextDelta)
                    await self.events.put(AnswerText(event.text) if is_text else AnswerReasoning(event.text))

    def _add_notice(self, notice: Notice) -> None:
        if notice not in self._notices:
            self._notices.append(notice)

    async def _put_notices(self) -> None:
        while self._sent_notice_count < len(self._notices):
            notice = self._notices[self._sent_notice_count]
            self._sent_notice_count += 1
            await self.events.put(AnswerNotice(notice.text, notice.code, notice.facts))

    async def _record_usage(self, meter: BudgetMeter) -> None:
        """Record what the answer has used, without what was said."""
        unrecorded = [report.usage for report in self._reports if not report.is_recorded]
        if not unrecorded and not meter.call_ids:
            return
        now = to_micros(self._dependencies.store.clock.now())

        def write(tx: Transaction) -> None:
            call_records.record_calls(tx, meter.call_ids, now)
            for each in unrecorded:
                usage.record_orphan_usage(tx, self._work, each, now)

        try:
            await self._dependencies.store.engine.arun(Write(write))
        except StoreError as error:  # what was held stays held, until it is recovered
            log.error("temporary_usage_not_recorded", extra={"error": str(error)})
