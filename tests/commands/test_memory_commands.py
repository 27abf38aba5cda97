"""`/memory`: the same scope as everywhere, in every chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig
from palaver.config.agent_rules import MemoryRules
from palaver.memory.service import MemoryOperations
from palaver.sessions.inbound import Inbound
from support.gateway import make_member

if TYPE_CHECKING:
    from palaver import SessionSource
    from palaver.gateway.gateway import Gateway
    from palaver.sessions.inbound import Receipt
    from support.gateway import MakeSource, StartGateway

SHARED = GatewayConfig(group_sessions_per_user=False)


async def run(gateway: Gateway, source: SessionSource, text: str) -> Receipt:
    await make_member(gateway.store, source)
    return await gateway.inbox.accept(Inbound(source=source, content=text))


async def get_facts(gateway: Gateway, source: SessionSource, text: str) -> dict[str, Any]:
    facts = (await run(gateway, source, text)).facts
    assert facts is not None
    return facts


async def get_reply(gateway: Gateway, source: SessionSource, text: str) -> str:
    return (await run(gateway, source, text)).reply or ""


async def test_memories_are_added_listed_edited_and_forgotten(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(memory=MemoryRules(learn=True))
    assert (await get_reply(gateway, dm(), "/memory")).startswith("There are no memories yet.")
    added = await run(gateway, dm(), "/memory add My *cat* is called Mo.")
    assert added.facts is not None
    memory = added.facts["memory"]
    assert (memory["text"], memory["origin"], memory["shared"]) == ("My *cat* is called Mo.", "person", False)
    assert added.reply == f"Saved only for you: “My \\*cat\\* is called Mo.” (`{memory['id']}`)."
    listed = await run(gateway, dm(), "/memories")
    assert f"- `{memory['id']}` My \\*cat\\* is called Mo. (written by you, " in (listed.reply or "")
    assert (listed.reply or "").endswith("The agent also learns facts when a conversation ends.")
    assert [each["id"] for each in (await get_facts(gateway, dm(), "/memory list"))["memories"]] == [memory["id"]]
    assert "Mo" in await get_reply(gateway, dm(), "/memory find cat")
    assert "No memories match `dog`" in await get_reply(gateway, dm(), "/memory find dog")
    assert (
        await get_reply(gateway, dm(), f"/memory edit {memory['id']} My cat is Bo.") == "Changed to: “My cat is Bo.”."
    )
    assert await get_reply(gateway, dm(), f"/memory forget {memory['id']}") == "Forgotten: “My cat is Bo.”."
    assert "There are no memories yet." in await get_reply(gateway, dm(), "/memory list")


@pytest.mark.parametrize("arguments", ["add", "edit m_1", "forget", "forget m_1 m_2", "find", "something"])
async def test_wrong_arguments_are_explained(start_gateway: StartGateway, dm: MakeSource, arguments: str) -> None:
    gateway = await start_gateway()
    assert "`/memory add text`" in await get_reply(gateway, dm(), f"/memory {arguments}")


async def test_people_cannot_reach_the_memories_of_others(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    of_bob = (await get_facts(gateway, dm("bob"), "/memory add Bob has a boat."))["memory"]["id"]
    for text in (f"/memory forget {of_bob}", f"/memory edit {of_bob} Ada has a boat.", "/memory", "/memory find boat"):
        reply = await get_reply(gateway, dm("ada"), text)
        assert "Bob" not in reply
        assert reply == (await get_reply(gateway, dm("ada"), text.replace(of_bob, "m_0"))).replace("m_0", of_bob)
    assert "Bob has a boat." in await get_reply(gateway, dm("bob"), "/memory")


async def test_in_a_shared_chat_it_is_about_the_chat(start_gateway: StartGateway, group: MakeSource) -> None:
    gateway = await start_gateway(config=SHARED)
    store = gateway.store
    private = (
        store.seen_by(store.get_or_create_person(group("ada")).principal)
        .part(MemoryOperations)
        .remember("Ada has a secret.")
    )
    assert "Send a message first" in await get_reply(gateway, group("ada"), "/memory add The club meets.")
    for name in ("ada", "bob"):
        await run(gateway, group(name), "hello")
    added = await run(gateway, group("ada"), "/memory add The club meets on Monday.")
    assert (added.reply or "").startswith("Saved for everybody in this chat")
    listed = await get_reply(gateway, group("bob"), "/memory")
    assert "The club meets on Monday. (written by Ada, " in listed
    assert "secret" not in listed
    assert "secret" not in await get_reply(gateway, group("ada"), "/memory")
    reply = await get_reply(gateway, group("ada"), f"/memory forget {private.memory.id}")
    assert "There is no memory" in reply


async def test_in_a_personal_lane_of_a_group_it_is_refused(start_gateway: StartGateway, group: MakeSource) -> None:
    gateway = await start_gateway()
    store = gateway.store
    memory = (
        store.seen_by(store.get_or_create_person(group()).principal)
        .part(MemoryOperations)
        .remember("Ada has a secret.")
        .memory
    )
    await run(gateway, group(), "hello")
    for text in ("/memory", "/memory add x", f"/memory forget {memory.id}", f"/memory edit {memory.id} x"):
        assert (
            await get_reply(gateway, group(), text) == "Other people read this chat. Use /memory in a direct message."
        )


async def test_guests_have_no_memory_command(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    receipt = await gateway.inbox.accept(Inbound(source=dm("guest"), content="/memory"))
    assert "memories" not in (receipt.reply or "")
