"""The memories in the instructions of a turn: chosen once, the same bytes from then on, and never those of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.agent.base import TextDelta
from palaver.agent.compaction import SUMMARY_REQUEST
from palaver.core.engines.base import Write
from palaver.memory.queue import MAX_BLOCK_CHARS
from palaver.memory.service import MemoryOperations
from palaver.testing import ScriptedAgent
from support.gateway import make_member, send_message, wait_for_turn

if TYPE_CHECKING:
    from palaver import SessionStore, SessionView
    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.gateway.gateway import Gateway
    from support.gateway import MakeSource, StartGateway

SHARED = GatewayConfig(group_sessions_per_user=False)
HEADING = "The newest memories of earlier conversations"


def answer(request: AgentRequest) -> list[AgentEvent]:
    is_summary = str(request.messages[-1]["content"]).startswith(SUMMARY_REQUEST)
    return [TextDelta("They talked." if is_summary else "Fine.")]


async def get_instructions(gateway: Gateway, source: SessionSource, text: str = "hello") -> str:
    """Return the instructions with which a message is answered."""
    await make_member(gateway.store, source)
    await wait_for_turn(gateway, await send_message(gateway, source, text))
    assert isinstance(gateway.agent, ScriptedAgent)
    return gateway.agent.requests[-1].instructions


def open_view(store: SessionStore, source: SessionSource) -> SessionView:
    return store.seen_by(store.get_or_create_person(source).principal)


async def test_memories_are_chosen_at_the_start_and_at_each_compaction(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway(ScriptedAgent(answer))
    memories = open_view(gateway.store, dm()).part(MemoryOperations)
    cat = memories.remember('My "cat" is called Mo.').memory
    first = await get_instructions(gateway, dm())
    assert first.splitlines()[-1] == rf'- {cat.id} ({cat.created_at:%Y-%m-%d}): "My \"cat\" is called Mo."'
    memories.remember("I like tea.")
    assert await get_instructions(gateway, dm()) == first
    await get_instructions(gateway, dm(), "third")
    await get_instructions(gateway, dm(), "/compress")
    later = await get_instructions(gateway, dm())
    assert later.startswith(first.partition(HEADING)[0])
    assert [line[-10:] for line in later.splitlines()[-2:]] == ['like tea."', 'alled Mo."']
    assert await get_instructions(gateway, dm()) == later


@pytest.mark.both_engines
async def test_what_is_forgotten_or_edited_changes_at_once(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(answer))
    memories = open_view(gateway.store, dm()).part(MemoryOperations)
    cat, tea = memories.remember("My cat is called Mo.").memory, memories.remember("I like tea.").memory
    assert "Mo" in await get_instructions(gateway, dm())
    memories.forget(cat.id)
    memories.update(tea.id, "I like coffee.")
    changed = await get_instructions(gateway, dm())
    assert "Mo" not in changed
    assert "tea" not in changed
    assert changed.endswith('"I like coffee."')
    memories.forget(tea.id)
    assert HEADING not in await get_instructions(gateway, dm())


@pytest.mark.both_engines
async def test_the_oldest_are_left_out(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(answer))
    memories = open_view(gateway.store, dm()).part(MemoryOperations)
    for number in range(30):
        memories.remember(f"number {number} {'x' * 100}")
    block = (await get_instructions(gateway, dm())).partition(HEADING)[2]
    assert "number 29 " in block
    assert "number 5 " not in block
    assert len(block) < MAX_BLOCK_CHARS + 200
    memories.update(memories.list()[0].memory.id, "y" * 2000)  # longer than all that fits
    assert HEADING not in await get_instructions(gateway, dm())


async def test_people_without_the_memory_toolset_are_told_of_none(
    start_gateway: StartGateway, dm: MakeSource, group: MakeSource
) -> None:
    gateway = await start_gateway(ScriptedAgent(answer))
    for source in (dm("ada"), group("bob"), dm("guest")):
        open_view(gateway.store, source).part(MemoryOperations).remember("A private fact.")
    await get_instructions(gateway, dm("ada"))
    await send_message(gateway, dm("ada"), "/tools off memory")
    assert "fact" not in await get_instructions(gateway, dm("ada"))
    assert "fact" not in await get_instructions(gateway, group("bob"))  # others read the answers there
    await wait_for_turn(gateway, await send_message(gateway, dm("guest"), "hello"))
    assert isinstance(gateway.agent, ScriptedAgent)
    assert "fact" not in gateway.agent.requests[-1].instructions


async def test_nothing_private_reaches_a_shared_conversation(start_gateway: StartGateway, group: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(answer), config=SHARED)
    store = gateway.store
    for name in ("ada", "bob"):
        open_view(store, group(name)).part(MemoryOperations).remember(f"{name} has a secret.")
    await make_member(store, group("ada"))
    await send_message(gateway, group("ada"), "hello")
    await send_message(gateway, group("ada"), "/memory add The club meets on Monday.")
    await send_message(gateway, group("ada"), "/new")
    for name in ("ada", "bob", "ada"):
        block = (await get_instructions(gateway, group(name))).partition(HEADING)[2]
        assert "The club meets on Monday." in block
        assert "secret" not in block
    in_private = SessionSource("discord", "bob", user_id="bob", user_name="Bob")
    block = (await get_instructions(gateway, in_private)).partition(HEADING)[2]
    assert "bob has a secret." in block
    assert "The club meets on Monday." in block
    assert "ada has" not in block  # an id may have these letters, too


@pytest.mark.both_engines
async def test_a_conversation_that_others_read_loses_its_memories(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(answer))
    open_view(gateway.store, dm()).part(MemoryOperations).remember("A private fact.")
    assert "fact" in await get_instructions(gateway, dm())
    session_id = (await gateway.store.aio.get_or_create_session(dm())).session_id
    gateway.store.engine.run(
        Write(
            lambda tx: tx.execute(
                "INSERT INTO lane (key, session_no, source, audience_no, shared, updated_at)"
                " SELECT 'agent:main:discord:group:club', no, source, audience_no, 1, 0 FROM session WHERE id = $1",
                session_id,
            )
        )
    )
    assert "fact" not in await get_instructions(gateway, dm())
