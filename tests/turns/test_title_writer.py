"""Automatic titles: the first words at once, a model's title after the first answer, and never over a person's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from palaver import SessionSource
from palaver.agent.base import TextDelta, UsageReport
from palaver.core.errors import AgentUnavailable
from palaver.sessions.events import EventKind
from palaver.sessions.usage import TurnUsage
from palaver.testing import ScriptedAgent
from palaver.turns.side_work import TITLE_INSTRUCTIONS
from support.gateway import ask, send_message, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.gateway.gateway import Gateway
    from palaver.sessions.model import Session
    from support.gateway import MakeSource, StartGateway

OWNER = SessionSource.local_cli()
QUESTION = "How do I keep basil alive on a windowsill?"


class TitlingAgent:
    """Answers, and makes a title as soon as the test allows it."""

    def __init__(self, title: str = "Basil on a windowsill", provider: str = "openai") -> None:
        self.agent = ScriptedAgent(self._answer, can_write_titles=True)
        self.title = title
        self.provider = provider
        self.may_title = asyncio.Event()
        self.may_title.set()
        self.title_requests: list[AgentRequest] = []

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.instructions != TITLE_INSTRUCTIONS:
            yield TextDelta("Water it daily.")
            yield UsageReport(TurnUsage(model="m", provider=self.provider, input_tokens=10))
            return
        self.title_requests.append(request)
        await self.may_title.wait()
        yield UsageReport(TurnUsage(model="m", provider=self.provider, input_tokens=100))
        if not self.title:
            raise AgentUnavailable
        yield TextDelta(self.title)


async def get_session(gateway: Gateway) -> Session:
    entry = await gateway.store.aio.get_or_create_session(OWNER)
    return entry.session


async def wait_for_titles(gateway: Gateway) -> None:
    worker = gateway.turn_worker  # a run that has stored its answer asks for the title just after that
    await wait_until(lambda: not worker.running_count and not worker._title_writer._tasks)


async def test_the_first_words_are_the_title_at_once(start_gateway: StartGateway) -> None:
    gateway = await start_gateway(ScriptedAgent("Fine."))
    await send_message(gateway, OWNER, "  # Hello *there*,\n how are you?")
    session = await get_session(gateway)
    assert (session.title, session.auto_title) == (None, "Hello there, how are you?")
    assert session.display_name == "Hello there, how are you?"
    await ask(gateway, OWNER, "Something else")
    assert (await get_session(gateway)).auto_title == "Hello there, how are you?"


async def test_a_repeated_first_message_is_the_title_as_it_is(start_gateway: StartGateway) -> None:
    gateway = await start_gateway(ScriptedAgent("Fine."))
    for _ in range(2):
        await ask(gateway, OWNER, "What is new?")
        await send_message(gateway, OWNER, "/new")
    titles = [session.auto_title for session in gateway.store.list_sessions()]
    assert titles == ["What is new?", "What is new?"]


async def test_a_model_makes_a_title_after_the_first_answer(start_gateway: StartGateway) -> None:
    titling = TitlingAgent('"**Basil on a windowsill**."\n\nAnything else?')
    gateway = await start_gateway(titling.agent)
    await ask(gateway, OWNER, QUESTION)
    await wait_for_titles(gateway)
    session = await get_session(gateway)
    assert (session.title, session.auto_title) == (None, "Basil on a windowsill")
    assert session.usage.input_tokens == 110
    assert QUESTION in titling.title_requests[0].messages[0]["content"]
    assert "Water it daily." in titling.title_requests[0].messages[0]["content"]
    assert titling.title_requests[0].max_tokens
    log = await gateway.store.aio.load_events(session.id)
    renamed = next(event for event in log if event.kind is EventKind.RENAMED)
    assert dict(renamed.facts) == {"title": "Basil on a windowsill", "automatic": True}


async def test_a_title_delays_no_turn(start_gateway: StartGateway) -> None:
    titling = TitlingAgent()
    titling.may_title.clear()
    gateway = await start_gateway(titling.agent)
    await ask(gateway, OWNER, QUESTION)
    await wait_until(lambda: titling.title_requests)
    await ask(gateway, OWNER, "And mint?")
    assert (await get_session(gateway)).auto_title == QUESTION
    titling.may_title.set()
    await wait_for_titles(gateway)
    assert (await get_session(gateway)).auto_title == "Basil on a windowsill"


async def test_a_model_is_asked_once_even_if_it_fails(start_gateway: StartGateway) -> None:
    titling = TitlingAgent("")
    gateway = await start_gateway(titling.agent)
    for text in (QUESTION, "And mint?", "And thyme?"):
        await ask(gateway, OWNER, text)
        await wait_for_titles(gateway)
    assert len(titling.title_requests) == 1
    session = await get_session(gateway)
    assert session.auto_title == QUESTION
    assert session.usage.input_tokens == 130


async def test_a_title_that_a_person_chose_stays(start_gateway: StartGateway) -> None:
    titling = TitlingAgent()
    titling.may_title.clear()
    gateway = await start_gateway(titling.agent)
    await ask(gateway, OWNER, QUESTION)
    await wait_until(lambda: titling.title_requests)
    await send_message(gateway, OWNER, "/title Herbs")
    titling.may_title.set()
    await wait_for_titles(gateway)
    session = await get_session(gateway)
    assert (session.title, session.display_name) == ("Herbs", "Herbs")


async def test_no_model_is_asked_for_a_title_that_a_person_has_already_chosen(start_gateway: StartGateway) -> None:
    titling = TitlingAgent()
    gateway = await start_gateway(titling.agent)
    await send_message(gateway, OWNER, "/title Herbs")
    await ask(gateway, OWNER, QUESTION)
    await wait_for_titles(gateway)
    assert titling.title_requests == []


async def test_a_setting_turns_titles_by_models_off(start_gateway: StartGateway) -> None:
    titling = TitlingAgent()
    gateway = await start_gateway(titling.agent, model_titles=False)
    await ask(gateway, OWNER, QUESTION)
    await wait_for_titles(gateway)
    assert titling.title_requests == []


async def test_neither_a_demo_agent_nor_a_demo_answer_makes_a_title(start_gateway: StartGateway) -> None:
    scripted = ScriptedAgent("Fine.")
    gateway = await start_gateway(scripted)
    await ask(gateway, OWNER, QUESTION)
    await wait_for_titles(gateway)
    assert len(scripted.requests) == 1
    titling = TitlingAgent(provider="demo")
    gateway = await start_gateway(titling.agent)
    await ask(gateway, SessionSource.local_cli(), QUESTION)
    await wait_for_titles(gateway)
    assert titling.title_requests == []


async def test_automatic_titles_may_be_alike_and_take_no_name(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent("Fine."))
    await ask(gateway, OWNER, "Hello")
    await send_message(gateway, OWNER, "/new")
    await ask(gateway, OWNER, "Hello")
    view = gateway.store.aio.seen_by((await gateway.store.aio.get_owner()).principal)
    newest, oldest = await view.list()
    assert newest.auto_title == oldest.auto_title == "Hello"
    assert (await view.find("hello")).id == newest.id
    assert (await view.rename(oldest.id, "Hello")).title == "Hello"
    assert (await view.find("hello")).id == oldest.id


async def test_a_copy_keeps_its_title_with_the_next_number(start_gateway: StartGateway) -> None:
    gateway = await start_gateway(ScriptedAgent("Fine."))
    await ask(gateway, OWNER, "Hello")
    store = gateway.store.aio
    original = await get_session(gateway)
    copies = [await store.fork(original.id) for _ in range(2)]
    assert [(copy.title, copy.auto_title) for copy in copies] == [(None, "Hello #2"), (None, "Hello #3")]
    assert (await store.fork(copies[1].id)).auto_title == "Hello #4"
    view = store.seen_by((await store.get_owner()).principal)
    await view.rename(original.id, "Greetings")
    assert (await store.fork(original.id)).title == "Greetings #2"
