"""Temporary conversations: answered and paid for like others, and nothing of what was said is stored."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import Notice, ReasoningDelta, TextDelta, UsageReport
from palaver.config.agent_rules import AgentProfile, Profile
from palaver.core.engines.base import Read, Write
from palaver.core.engines.sqlite import SqliteEngine
from palaver.core.errors import ContextOverflow, InvalidInput, LimitReached, NotAllowed, TooManyAttempts
from palaver.inbox.temporary import (
    MAX_CONVERSATION_CHARS,
    MAX_MESSAGES,
    TEMPORARY_INSTRUCTIONS,
    TemporaryMessage,
    TemporaryQuestion,
)
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.turn import NoticeCode, TurnState
from palaver.testing import ScriptedAgent
from palaver.turns.answer_end import AnswerEnded
from support.gateway import wait_until
from support.log_lines import capture_log_lines
from support.metered_work import (
    NANO_PER_TOKEN,
    count_calls,
    make_call,
    make_rules,
    make_usage,
    read_recorded,
    read_windows,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from palaver import SessionSource, SessionStore
    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.gateway.gateway import Gateway
    from palaver.inbox.temporary import TemporaryEvent
    from palaver.people.model import Person
    from support.gateway import StartGateway

    MakeSource = Callable[..., SessionSource]

pytestmark = pytest.mark.slow

SECRET = "xylophone"
ALL_DAY = ("all", "", "day")
# What an answer may change: what it used, and how often its person writes. None of these tables has a text column
# that people fill.
CHANGED_TABLES = {"usage", "budget_window", "message_rate", "model_call"}


class MeteredAgent:
    """Makes one metered call, and says the question again; "hang" makes it wait in the middle of that."""

    def __init__(self) -> None:
        self.is_waiting = asyncio.Event()
        self.has_ended = asyncio.Event()
        self.agent = ScriptedAgent(self._answer, price=NANO_PER_TOKEN)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        question = str(request.messages[-1]["content"])
        held = await request.meter.hold(make_call(10, request.max_tokens or 100))
        try:
            yield ReasoningDelta("Let me think.")
            yield TextDelta(f"You said: {question}")
            if question.startswith("hang"):
                self.is_waiting.set()
                await asyncio.Event().wait()
        except (asyncio.CancelledError, GeneratorExit):
            await held.settle(None, streamed_tokens=4)
            self.has_ended.set()
            raise
        used = make_usage(int(question.removeprefix("use ")), 0) if question.startswith("use ") else make_usage(3, 2)
        await held.settle(used)
        yield UsageReport(used, held.is_recorded)


def make_question(*texts: str, **fields: Any) -> TemporaryQuestion:
    """Make a question of texts that people and the agent wrote in turn."""
    roles = ("user", "assistant")
    messages = [TemporaryMessage(role=roles[index % 2], text=text) for index, text in enumerate(texts)]  # type: ignore[arg-type]
    return TemporaryQuestion(messages=messages, **fields)


async def add_person(gateway: Gateway, source: SessionSource, role: Role = Role.MEMBER) -> Person:
    person = await gateway.store.aio.get_or_create_person(source)
    await gateway.store.engine.arun(Write(lambda tx: people.set_role(tx, person.id, role)))
    row = await gateway.store.engine.arun(Read(lambda tx: people.find_by_id(tx, person.id)))
    assert row is not None
    return row.person


async def ask(gateway: Gateway, person: Person, question: TemporaryQuestion) -> list[TemporaryEvent]:
    """Ask, and return all events of the answer."""
    async with aclosing(await gateway.temporary_chats.ask(person, question)) as events:
        return [event async for event in events]


def get_text(events: list[TemporaryEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def get_end(events: list[TemporaryEvent]) -> AnswerEnded:
    end = events[-1]
    assert isinstance(end, AnswerEnded)
    return end


def read_tables(store: SessionStore) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables."""
    statements = {
        "sqlite": "SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'",
        "postgresql": "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'",
    }
    engine = "sqlite" if isinstance(store.engine, SqliteEngine) else "postgresql"

    def read(tx: Any) -> dict[str, list[tuple[Any, ...]]]:
        names = [name for (name,) in tx.fetch_all(statements[engine])]
        return {name: sorted(map(tuple, tx.fetch_all(f"SELECT * FROM {name}")), key=repr) for name in names}

    return store.engine.run(Read(read))


async def test_the_agent_gets_all_messages_without_tools_and_knows_that_nothing_is_saved(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway(agent := ScriptedAgent("Lisbon."))
    person = await add_person(gateway, dm())
    question = TemporaryQuestion(
        messages=[
            TemporaryMessage(role="user", text="I live in Portugal."),
            TemporaryMessage(role="assistant", text="Nice pl", is_interrupted=True),
            TemporaryMessage(role="user", text="What is its capital?"),
        ]
    )
    events = await ask(gateway, person, question)
    assert get_text(events) == "Lisbon."
    assert get_end(events).state is TurnState.DONE
    [request] = agent.requests
    assert [message["role"] for message in request.messages] == ["user", "assistant", "user"]
    assert "interrupted" in request.messages[1]["content"]
    assert request.tools == ()
    assert request.instructions.endswith(TEMPORARY_INSTRUCTIONS)


@pytest.mark.both_engines
async def test_nothing_in_the_database_changes_except_usage(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(
        MeteredAgent().agent, budgets=make_rules(person_day_tokens=100_000), messages_per_minute={Role.MEMBER: 60}
    )
    person = await add_person(gateway, dm())
    before = read_tables(gateway.store)
    events = await ask(gateway, person, make_question(f"my {SECRET}", f"your {SECRET}", f"where is the {SECRET}?"))
    assert SECRET in get_text(events)
    after = read_tables(gateway.store)
    assert {name for name in after if after[name] != before[name]} <= CHANGED_TABLES
    assert {"usage", "budget_window"} <= {name for name in after if after[name] != before[name]}
    assert SECRET not in repr(after)
    assert after["session"] == after["event"] == after["turn"] == after["model_call"] == []


async def test_usage_is_recorded_for_its_person_and_counted_in_the_budgets(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway(MeteredAgent().agent)
    person = await add_person(gateway, dm())
    end = get_end(await ask(gateway, person, make_question("hello")))
    assert (end.usage.input_tokens, end.usage.output_tokens) == (3, 2)
    assert read_recorded(gateway.store) == [(5, 5)]
    assert read_windows(gateway.store)[ALL_DAY] == (5, 0, 5, 0, 0)
    assert count_calls(gateway.store) == 0
    other = await add_person(gateway, dm("ben"))
    own, others = [await gateway.store.aio.seen_by(each.principal).usage.report() for each in (person, other)]
    assert own.total.input_tokens + own.total.output_tokens == 5
    assert others.total.input_tokens + others.total.output_tokens == 0


async def test_the_usage_of_a_free_model_is_recorded_too(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(lambda _request: [TextDelta("Hi."), UsageReport(make_usage(3, 2))]))
    await ask(gateway, await add_person(gateway, dm()), make_question("hello"))
    assert read_recorded(gateway.store) == [(5, 5)]


async def test_an_answer_that_a_budget_does_not_allow_fails_with_its_reason(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway(MeteredAgent().agent, budgets=make_rules(person_day_tokens=50))
    end = get_end(await ask(gateway, await add_person(gateway, dm()), make_question("hello")))
    assert end.state is TurnState.FAILED
    assert end.facts["code"] == "budget_exceeded"
    assert "only 50 tokens of 50 tokens left" in end.error  # a temporary conversation has no other readers
    assert read_recorded(gateway.store) == []


async def test_the_budget_of_a_chosen_profile_counts(start_gateway: StartGateway, dm: MakeSource) -> None:
    profile = AgentProfile(profiles={"research": Profile(instructions="You are a researcher.")})
    gateway = await start_gateway(metered := MeteredAgent().agent, profile=profile)
    person = await add_person(gateway, dm())
    await ask(gateway, person, make_question("hello", profile="Research"))
    assert read_windows(gateway.store)["profile", "research", "day"] == (5, 0, 5, 0, 0)
    assert metered.requests[-1].instructions.startswith("You are a researcher.")


async def test_most_of_a_budget_used_is_told_in_the_answer(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(MeteredAgent().agent, budgets=make_rules(person_day_tokens=1000))
    events = await ask(gateway, await add_person(gateway, dm()), make_question("use 850"))
    [notice] = [event for event in events if isinstance(event, Notice)]
    assert notice.code == NoticeCode.BUDGET_NEARLY_USED
    assert "85% used (850 tokens of 1,000 tokens)" in notice.text


async def test_a_reader_who_leaves_stops_the_answer_which_is_paid_for(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway((metered := MeteredAgent()).agent)
    person = await add_person(gateway, dm())
    events = await gateway.temporary_chats.ask(person, make_question("hang on"))
    assert isinstance(await anext(events), ReasoningDelta)
    await metered.is_waiting.wait()
    await events.aclose()
    await metered.has_ended.wait()
    await wait_until(lambda: read_recorded(gateway.store))
    assert read_recorded(gateway.store) == [(12 + 4, 12 + 4)]
    assert count_calls(gateway.store) == 0


async def test_an_answer_whose_events_are_not_read_never_starts(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(agent := ScriptedAgent())
    person = await add_person(gateway, dm())
    events = await gateway.temporary_chats.ask(person, make_question("hello"))
    await events.aclose()
    assert agent.requests == []
    assert get_end(await ask(gateway, person, make_question("hello"))).state is TurnState.DONE


async def test_one_person_gets_as_many_answers_at_once_as_turns(start_gateway: StartGateway, dm: MakeSource) -> None:
    metered = MeteredAgent()
    gateway = await start_gateway(metered.agent, max_running_per_person=1, max_running=2)
    ada, ben, eve = [await add_person(gateway, dm(name)) for name in ("ada", "ben", "eve")]
    running = []
    for person in (ada, ben):
        events = await gateway.temporary_chats.ask(person, make_question("hang on"))
        assert isinstance(await anext(events), ReasoningDelta)
        running.append(events)
    with pytest.raises(LimitReached, match="already have 1 temporary answers"):
        await gateway.temporary_chats.ask(ada, make_question("hello"))
    with pytest.raises(LimitReached, match="as many temporary conversations as it can"):
        await gateway.temporary_chats.ask(eve, make_question("hello"))
    for events in running:
        await events.aclose()
    assert get_end(await ask(gateway, ada, make_question("hello"))).state is TurnState.DONE


async def test_two_people_get_their_own_answers_at_the_same_time(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(lambda request: str(request.messages)))
    ada, ben = [await add_person(gateway, dm(name)) for name in ("ada", "ben")]
    answers = await asyncio.gather(
        ask(gateway, ada, make_question("my name is Ada")), ask(gateway, ben, make_question("my name is Ben"))
    )
    assert ["Ada" in get_text(answer) for answer in answers] == [True, False]
    assert ["Ben" in get_text(answer) for answer in answers] == [False, True]


async def test_messages_count_against_the_limit_per_minute(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(messages_per_minute={Role.MEMBER: 2})
    person = await add_person(gateway, dm())
    for _ in range(2):
        await ask(gateway, person, make_question("hello"))
    with pytest.raises(TooManyAttempts, match="members can send 2 a minute"):
        await gateway.temporary_chats.ask(person, make_question("hello"))


async def test_only_allowed_models_can_be_chosen(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(agent := ScriptedAgent(), models_by_role={Role.MEMBER: ("scripted",)})
    person = await add_person(gateway, dm())
    with pytest.raises(NotAllowed, match="scripted-large is not available to you"):
        await gateway.temporary_chats.ask(person, make_question("hello", model="scripted-large"))
    await ask(gateway, person, make_question("hello", model="scripted"))
    assert [request.model for request in agent.requests] == ["scripted"]


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        (make_question(), "must have the role `user`"),
        (make_question("a", "b"), "must have the role `user`"),
        (make_question("a", "b", " \n"), "last message is empty"),
        (make_question("x" * 200_001), "has 200001 characters"),
        (make_question(*["x" * 100_000] * 10, "y"), f"The limit is {MAX_CONVERSATION_CHARS}"),
        (make_question(*["x"] * (MAX_MESSAGES + 1)), f"The limit is {MAX_MESSAGES}"),
        (make_question("/new"), "Commands don't work in a temporary conversation"),
        (make_question("hello", profile="nope"), "profile: there is no 'nope' here"),
        (make_question("hello", personality="nope"), "personality: there is no 'nope' here"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
async def test_questions_that_are_not_valid_say_why(
    start_gateway: StartGateway, dm: MakeSource, question: TemporaryQuestion, problem: str
) -> None:
    gateway = await start_gateway()
    person = await add_person(gateway, dm())
    with pytest.raises(InvalidInput) as raised:
        await gateway.temporary_chats.ask(person, question)
    assert problem.lower() in str(raised.value).lower()


async def test_a_path_is_not_a_command(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    events = await ask(gateway, await add_person(gateway, dm()), make_question("/etc/hosts is empty"))
    assert get_end(events).state is TurnState.DONE


async def test_a_conversation_too_long_for_the_model_loses_its_oldest_messages_visibly(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    def answer(request: AgentRequest) -> str:
        if len(request.messages) > 3:
            raise ContextOverflow
        return str(request.messages)

    gateway = await start_gateway(agent := ScriptedAgent(answer))
    texts = [f"text {number}" for number in range(9)]
    events = await ask(gateway, await add_person(gateway, dm()), make_question(*texts))
    assert [event.code for event in events if isinstance(event, Notice)] == [NoticeCode.OMITTED]
    assert "text 8" in get_text(events)
    assert "text 0" not in get_text(events)
    assert "omitted" in get_text(events)
    assert len(agent.requests) == 3


async def test_a_known_context_window_is_not_exceeded_in_the_first_place(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway(agent := ScriptedAgent(context_window=1000))
    texts = ["x" * 400] * 21
    events = await ask(gateway, await add_person(gateway, dm()), make_question(*texts))
    [request] = agent.requests
    assert len(request.messages) == 1 + 6  # of 104 tokens each, in 70% of the window
    assert [event.code for event in events if isinstance(event, Notice)] == [NoticeCode.OMITTED]


async def test_a_question_too_long_for_the_model_is_shortened_visibly(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    def answer(request: AgentRequest) -> str:
        if len(str(request.messages)) > 3000:
            raise ContextOverflow
        return "Fine."

    gateway = await start_gateway(ScriptedAgent(answer))
    events = await ask(gateway, await add_person(gateway, dm()), make_question("x" * 20_000))
    assert [event.code for event in events if isinstance(event, Notice)] == [NoticeCode.SHORTENED]
    assert get_text(events) == "Fine."


async def test_an_answer_that_takes_too_long_is_interrupted(start_gateway: StartGateway, dm: MakeSource) -> None:

    gateway = await start_gateway(MeteredAgent().agent, timeout_minutes=1 / 60)
    end = get_end(await ask(gateway, await add_person(gateway, dm()), make_question("hang on")))
    assert end.state is TurnState.INTERRUPTED
    assert end.facts["reason"] == "timed_out"
    assert read_recorded(gateway.store) == [(16, 16)]


async def test_a_server_that_stops_interrupts_answers_and_tells_their_readers(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway((metered := MeteredAgent()).agent)
    events = await gateway.temporary_chats.ask(await add_person(gateway, dm()), make_question("hang on"))
    seen = [await anext(events), await anext(events)]
    await metered.is_waiting.wait()
    await gateway.temporary_chats.stop()
    seen += [event async for event in events]
    assert get_end(seen).facts["reason"] == "server_stopped"
    assert read_recorded(gateway.store) == [(16, 16)]


@pytest.mark.parametrize("error", [ValueError(f"I can't read {SECRET}"), ContextOverflow(f"{SECRET} is too long")])
async def test_no_log_line_contains_what_was_said(
    start_gateway: StartGateway, dm: MakeSource, error: Exception
) -> None:
    def answer(request: AgentRequest) -> str:
        if "fail" in str(request.messages):
            raise error
        return f"The {SECRET} is in the cellar."

    gateway = await start_gateway(ScriptedAgent(answer))
    person = await add_person(gateway, dm())
    with capture_log_lines() as lines:
        logging.getLogger().setLevel(logging.DEBUG)
        await ask(gateway, person, make_question(f"where is my {SECRET}?"))
        end = get_end(await ask(gateway, person, make_question(f"fail with my {SECRET}")))
    assert end.state is TurnState.FAILED
    assert "temporary_answer" in lines.getvalue()
    assert SECRET not in lines.getvalue()
