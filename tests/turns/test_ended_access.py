"""Messages that wait when their sender loses access: they are not answered, and the log says why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import Platform, Principal
from palaver.accounts import linking
from palaver.accounts.accounts import Accounts
from palaver.agent.base import TextDelta
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.people import access_table as chat_access, account_table as accounts, table as people
from palaver.people.model import Role
from palaver.sessions.conversations import build_person_source
from palaver.sessions.inbound import Inbound
from palaver.sessions.turn import TurnState
from palaver.testing import ScriptedAgent
from support.gateway import ask, get_turn, send_message, wait_for_turn
from support.people import chat, group

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver import SessionSource
    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from palaver.gateway.gateway import Gateway
    from palaver.people.model import Person
    from support.gateway import StartGateway

pytestmark = pytest.mark.both_engines
ADA, BOB = chat("ada"), chat("bob")


class HeldAgent:
    """An agent that answers nothing until `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.started = asyncio.Event()
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        self.started.set()
        yield TextDelta("Well, ")
        await self.go_on.wait()
        yield TextDelta("yes.")


async def add_member(gateway: Gateway, source: SessionSource, role: Role = Role.MEMBER) -> Person:
    """Add a person who writes from a chat and signs in on the page."""

    def run(tx: Transaction) -> Person:
        now = to_micros(gateway.store.clock.now())
        row = people.find_or_add_by_source(tx, source, now)
        assert row is not None
        people.set_role(tx, row.person.id, role)
        people.remember_dm_source(tx, source, None)
        person = replace(row.person, role=role)
        if role is not Role.GUEST:
            accounts.open_account(tx, person, now)
        return person

    return await gateway.store.engine.arun(Write(run))


async def open_people(gateway: Gateway) -> Any:
    owner = await gateway.store.aio.get_owner()
    return Accounts(gateway.store).open_people(Principal(owner.id, Role.OWNER))


async def remove(gateway: Gateway, person: Person) -> None:
    await (await open_people(gateway)).remove(person.id)


async def make_guest(gateway: Gateway, person: Person) -> None:
    await (await open_people(gateway)).update(person.id, role=Role.GUEST)


async def set_role_only(gateway: Gateway, person: Person) -> None:
    """Take the role alone, as if the messages were being stored at the same moment in another process."""
    await gateway.store.engine.arun(Write(lambda tx: people.set_role(tx, person.id, Role.GUEST)))


TakeAccess = Callable[["Gateway", "Person"], Awaitable[None]]


@pytest.mark.parametrize("take_access", [remove, make_guest, set_role_only])
async def test_messages_of_a_removed_person_are_not_answered(
    start_gateway: StartGateway, take_access: TakeAccess
) -> None:
    waiting = await start_gateway(open_platforms=frozenset())
    await waiting.turn_worker.stop()
    person = await add_member(waiting, ADA)
    page = build_person_source(person)
    turn_ids = [await send_message(waiting, ADA, f"message {number}") for number in range(8)]
    turn_ids += [await send_message(waiting, replace(page, chat_id=f"c{number}"), "hello") for number in range(8)]
    await add_member(waiting, BOB)
    theirs = await send_message(waiting, BOB, "hello")
    await take_access(waiting, person)
    agent = ScriptedAgent("Good day.")
    answering = await start_gateway(agent, open_platforms=frozenset())  # another process
    assert (await wait_for_turn(answering, theirs)).state is TurnState.DONE
    turns = [await wait_for_turn(answering, turn_id) for turn_id in turn_ids]
    assert {(turn.state, turn.error) for turn in turns} == {
        (TurnState.INTERRUPTED, "The person who sent this message lost access before it was answered.")
    }
    assert len(agent.requests) == 1
    for session_id in {turn.session_id for turn in turns}:
        reasons = [event.facts.get("reason") for event in answering.store.load_events(session_id) if event.facts]
        ended = [turn for turn in turns if turn.session_id == session_id]
        assert reasons.count("access_ended") == len(ended)


async def test_a_running_answer_stops_and_what_waits_behind_it_ends_at_once(start_gateway: StartGateway) -> None:
    held = HeldAgent()
    answering = await start_gateway(held.agent, open_platforms=frozenset())
    other = await start_gateway(held.agent, open_platforms=frozenset())
    person = await add_member(answering, ADA)
    turn_ids = [await send_message(answering, ADA, f"message {number}") for number in range(4)]
    await held.started.wait()
    await remove(other, person)
    states = [(await get_turn(answering, turn_id)).state for turn_id in turn_ids[1:]]
    assert states == [TurnState.INTERRUPTED] * 3
    assert (await wait_for_turn(answering, turn_ids[0])).state is TurnState.INTERRUPTED
    held.go_on.set()
    assert len(held.agent.requests) == 1


async def test_a_message_that_is_stored_while_its_account_is_linked_is_answered(start_gateway: StartGateway) -> None:
    waiting = await start_gateway(open_platforms=frozenset())
    await waiting.turn_worker.stop()
    guest, member = await add_member(waiting, ADA, Role.GUEST), await add_member(waiting, BOB)
    await waiting.store.engine.arun(Write(lambda tx: chat_access.grant(tx, ADA, guest.id, member.id, 1)))
    turn_id = await send_message(waiting, ADA, "hello")

    def link(tx: Transaction) -> None:
        linking.link_account(tx, ADA, people.find_by_id(tx, member.id), waiting.store.config, waiting.store.clock.now())  # type: ignore[arg-type]
        tx.execute("UPDATE turn SET person_id = $1", guest.id)  # as if it was stored at the same moment

    await waiting.store.engine.arun(Write(link))
    answering = await start_gateway(open_platforms=frozenset())
    assert (await wait_for_turn(answering, turn_id)).state is TurnState.DONE


async def test_a_guest_who_may_still_speak_is_answered(start_gateway: StartGateway) -> None:
    rules: dict[str, Any] = {
        "open_platforms": frozenset({Platform.MATRIX}),
        "allowed_users": {Platform.TELEGRAM: frozenset({"ada"})},
    }
    gateway = await start_gateway(ScriptedAgent("Good day."), **rules)
    granted, club = chat("carol"), group("dan")
    guests = {name: await add_member(gateway, chat(name), Role.GUEST) for name in ("carol", "dan")}

    def grant(tx: Transaction) -> None:
        chat_access.grant(tx, granted, guests["carol"].id, guests["dan"].id, 1)
        chat_access.grant(tx, club, None, guests["dan"].id, 1)

    await gateway.store.engine.arun(Write(grant))
    for source in (ADA, chat("eve", "matrix"), granted, club):
        assert (await ask(gateway, source, "hello")).state is TurnState.DONE, source


async def test_messages_in_a_group_that_is_no_longer_allowed_are_not_answered(start_gateway: StartGateway) -> None:
    held = HeldAgent()
    gateway = await start_gateway(held.agent, open_platforms=frozenset(), allowed_users={})
    owner = await add_member(gateway, BOB, Role.OWNER)
    await add_member(gateway, chat("dan"), Role.GUEST)
    await gateway.store.engine.arun(Write(lambda tx: chat_access.grant(tx, group("dan"), None, owner.id, 1)))
    turn_ids = [await send_message(gateway, group("dan"), f"message {number}") for number in range(3)]
    await held.started.wait()
    receipt = await send_command(gateway, group("bob"), "/pair group off")
    assert "Only members" in receipt
    turns = [await wait_for_turn(gateway, turn_id) for turn_id in turn_ids]
    assert [turn.state for turn in turns] == [TurnState.INTERRUPTED] * 3
    assert len(held.agent.requests) == 1


async def send_command(gateway: Gateway, source: SessionSource, text: str) -> str:
    return (await gateway.inbox.accept(Inbound(source=source, content=text))).reply or ""


async def test_messages_of_an_account_that_was_unlinked_are_not_answered(start_gateway: StartGateway) -> None:
    waiting = await start_gateway(open_platforms=frozenset())
    await waiting.turn_worker.stop()
    person = await add_member(waiting, ADA)
    matrix = chat("ada", "matrix")

    def link(tx: Transaction) -> None:
        people.add_identity(tx, ("matrix", "ada"), person.id, 1)
        people.remember_dm_source(tx, matrix, None)

    await waiting.store.engine.arun(Write(link))
    unlinked = [await send_message(waiting, source, "hello") for source in (ADA, group("ada"))]
    kept = [await send_message(waiting, source, "hello") for source in (matrix, build_person_source(person))]

    def unlink(tx: Transaction) -> None:
        identity = linking.find_linked_account(tx, person.id, "telegram")
        linking.unlink_account(tx, person, identity, waiting.store.config, waiting.store.clock.now())

    await waiting.store.engine.arun(Write(unlink))
    agent = ScriptedAgent("Good day.")
    answering = await start_gateway(agent, open_platforms=frozenset())
    assert [(await wait_for_turn(answering, each)).state for each in kept] == [TurnState.DONE] * 2
    assert [(await wait_for_turn(answering, each)).state for each in unlinked] == [TurnState.INTERRUPTED] * 2
    assert len(agent.requests) == 2
