"""The tools `list_chats` and `send_message`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, Role, SessionSource
from palaver.agent.base import TextDelta, ToolFailed
from palaver.config.agent_rules import ToolsetRule, TurnRules
from palaver.core.engines.base import Read, Write
from palaver.core.errors import LeaseLost
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.sessions import table as sessions, turn_leases, turns_table as turns
from palaver.sessions.context import Redactor
from palaver.sessions.gateway_config import HomeChannel
from palaver.testing import ScriptedAgent
from palaver.turns.tools import MAX_SENDS_PER_TURN, AgentMessages, SendCounter, Toolbox
from support.gateway import ask, make_member, wait_until
from support.messaging import add_writer, get_now

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.agent.base import AgentEvent, AgentRequest, Tool
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Principal
    from palaver.sessions.turn_leases import TurnLease
    from support.gateway import StartGateway

    Source = Callable[..., SessionSource]

REDACTOR = Redactor(b"a secret of this installation...")
RULES = TurnRules(toolsets={"messaging": ToolsetRule()})
SHARED_GROUPS = GatewayConfig(
    group_sessions_per_user=False,
    home_channels={Platform.TELEGRAM: HomeChannel(Platform.TELEGRAM, "-100777", "Family")},
)


@dataclass
class Asker:
    """A person whose message the agent answers now, and the tools that it has for them."""

    store: SessionStore
    source: SessionSource
    principal: Principal
    redactor: Redactor | None = None
    tools: dict[str, Tool] = field(init=False)
    session_id: str = field(init=False)

    def __post_init__(self) -> None:
        engine = self.store._engine
        recorded = self.store.record_user_message(self.source, "Please send it.")
        self.session_id = recorded.session_id
        row = engine.run(Read(lambda tx: sessions.get(tx, recorded.session_id)))
        address = f"{self.source.platform}::{self.source.chat_id}"

        def claim(tx: Transaction) -> TurnLease:
            request = turns.TurnRequest(
                session_no=row.no, input_seq=recorded.seq, person_id=self.principal.person_id, address=address
            )
            turns.enqueue(tx, request, get_now(self.store))
            limits = turn_leases.ClaimRequest(
                owner="tests/1/1/x", lease_until=2**60, max_turns=1, max_running=9, max_running_per_person=9
            )
            return turn_leases.claim_turns(tx, limits, get_now(self.store))[0]

        lease = engine.run(Write(claim))
        redactor = self.redactor if self.store.config.redact_pii else None
        make_messages = partial(AgentMessages, store=self.store, counter=SendCounter(), redactor=redactor)
        toolbox = Toolbox(engine, self.store._clock, RULES, make_messages=make_messages)
        tools = toolbox.list_palaver_tools(self.principal, row, recorded.seq, lease=lease)
        self.tools = {tool.name: tool for tool in tools}

    async def use(self, name: str, **arguments: Any) -> str:
        return await self.tools[name].run(arguments)

    async def get_failure(self, name: str, **arguments: Any) -> str:
        with pytest.raises(ToolFailed) as caught:
            await self.use(name, **arguments)
        return str(caught.value)


@pytest.mark.both_engines
async def test_a_message_goes_to_another_chat_of_the_person(store: SessionStore, dm: Source, group: Source) -> None:
    discord = SessionSource("discord", "d1", user_id="ada", user_name="Ada")
    ada = add_writer(store, discord)
    add_writer(store, group("ada"))
    asker = Asker(store, discord, ada)
    assert asker.tools["send_message"].has_side_effects
    assert asker.tools["send_message"].sends_messages
    listed = await asker.use("list_chats")
    assert '- target "discord:club": "Club" (group on Discord)' in listed
    result = await asker.use("send_message", target="discord:club", text="Practice is at six.")
    assert "Queued for delivery to “Club”" in result
    rows = store._engine.run(Read(lambda tx: tx.fetch_all("SELECT address, content, turn_no FROM delivery")))
    assert rows == [("discord::club", "Practice is at six.", None)]


async def test_it_is_stored_who_asked_for_it(store: SessionStore, dm: Source) -> None:
    owner = add_writer(store, dm("olga"), Role.OWNER)
    add_writer(store, dm("ben"))
    asker = Asker(store, dm("olga"), owner)
    await asker.use("send_message", target="telegram:ben", text="Call me.")
    entry = store.find_entry("agent:main:telegram:dm:ben")
    assert entry is not None
    sent = store.load_events(entry.session_id)[-1].message
    assert sent is not None
    assert sent.role == "assistant"
    assert sent.extra["sent_by"] == {
        "kind": "agent",
        "name": "Olga",
        "job_id": None,
        "run_id": None,
        "session_id": asker.session_id,
    }


@pytest.mark.both_engines
async def test_nothing_is_sent_to_the_chat_that_is_answered_anyway(store: SessionStore, dm: Source) -> None:
    asker = Asker(store, dm(), add_writer(store, dm()))
    for target in ("telegram:ada", "origin"):
        assert "your answer appears there by itself" in await asker.get_failure(
            "send_message", target=target, text="Hello"
        )
    assert not store._engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM delivery")))


async def test_people_cannot_send_to_the_chats_of_others(store: SessionStore, dm: Source) -> None:
    add_writer(store, dm("ada"))
    asker = Asker(store, dm("ben"), add_writer(store, dm("ben")))
    assert "telegram:ada" not in await asker.use("list_chats", search="")
    foreign = await asker.get_failure("send_message", target="telegram:ada", text="I am watching.")
    unknown = await asker.get_failure("send_message", target="telegram:unknown", text="I am watching.")
    assert foreign == unknown.replace("unknown", "ada")
    assert not store._engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM delivery")))


@pytest.mark.parametrize("is_shared", [True, False])
async def test_a_group_reaches_only_itself_and_home_channels(
    open_store: OpenStore, dm: Source, group: Source, is_shared: bool
) -> None:
    """Every person in the group could make the agent send something, and reads the list of chats."""
    home = SHARED_GROUPS.home_channels
    store = open_store(GatewayConfig(group_sessions_per_user=not is_shared, home_channels=home))
    add_writer(store, dm("ada"), Role.OWNER)
    owner = add_writer(store, group("olga"), Role.OWNER)
    add_writer(store, group("olga", chat="secret"), Role.OWNER)
    asker = Asker(store, group("olga"), owner)
    listed = await asker.use("list_chats")
    assert "discord:club" in listed
    assert "telegram:-100777" in listed
    assert "secret" not in listed
    assert "telegram:ada" not in listed
    for target in ("discord:secret", "telegram:ada", "local"):
        assert "is not a chat that you can send to" in await asker.get_failure(
            "send_message", target=target, text="Everything that I know."
        )
    assert "Queued" in await asker.use("send_message", target="telegram", text="Dinner at eight.")


@pytest.mark.both_engines
async def test_a_turn_sends_a_bounded_number_of_messages(store: SessionStore, dm: Source, group: Source) -> None:
    discord = SessionSource("discord", "d1", user_id="ada", user_name="Ada")
    ada = add_writer(store, discord)
    add_writer(store, group("ada"))
    asker = Asker(store, discord, ada)
    for number in range(MAX_SENDS_PER_TURN):
        await asker.use("send_message", target="discord:club", text=f"Message {number}")
    failure = await asker.get_failure("send_message", target="discord:club", text="One more")
    assert f"at most {MAX_SENDS_PER_TURN}" in failure
    [(count,)] = store._engine.run(Read(lambda tx: tx.fetch_all("SELECT COUNT(*) FROM delivery")))
    assert count == MAX_SENDS_PER_TURN


@pytest.mark.both_engines
async def test_a_turn_that_another_worker_has_taken_over_sends_nothing(
    store: SessionStore, dm: Source, group: Source
) -> None:
    discord = SessionSource("discord", "d1", user_id="ada", user_name="Ada")
    ada = add_writer(store, discord)
    add_writer(store, group("ada"))
    asker = Asker(store, discord, ada)
    store._engine.run(Write(lambda tx: tx.execute("UPDATE turn SET lease_owner = 'another/1/1/x'")))
    with pytest.raises(LeaseLost):
        await asker.use("send_message", target="discord:club", text="Practice is at six.")
    assert store._engine.run(Read(lambda tx: tx.fetch_all("SELECT no FROM delivery"))) == []


@pytest.mark.both_engines
async def test_ids_stay_hidden_from_the_agent(open_store: OpenStore, dm: Source) -> None:
    store = open_store(GatewayConfig(redact_pii=True, connected_platforms=(Platform.TELEGRAM,)))
    number = SessionSource("telegram", "491701234567", user_id="491701234567", user_name="+49 170 1234567")
    add_writer(store, number)
    owner = add_writer(store, dm("olga"), Role.OWNER)
    asker = Asker(store, dm("olga"), owner, REDACTOR)
    listed = await asker.use("list_chats")
    hidden = REDACTOR.redact_chat("telegram", "491701234567")
    assert hidden in listed
    assert "1234567" not in listed
    result = await asker.use("send_message", target=hidden, text="Hello")
    assert "1234567" not in result
    assert store._engine.run(Read(lambda tx: tx.fetch_all("SELECT address FROM delivery"))) == [
        ("telegram::491701234567",)
    ]


async def test_a_reply_to_what_the_agent_sent_is_understood(start_gateway: StartGateway) -> None:
    ada = SessionSource(LOOPBACK, "ada", user_id="ada", user_name="Ada")
    club = SessionSource(LOOPBACK, "club", chat_name="Club", chat_type="group", user_id="ada", user_name="Ada")

    async def script(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        last = request.messages[-1]["content"]
        if "send" in last:
            [tool] = [tool for tool in request.tools if tool.name == "send_message"]
            await tool.run({"target": "loopback:club", "text": "Practice is at six."})
        yield TextDelta("Done.")

    agent, loopback = ScriptedAgent(script), LoopbackAdapter()
    gateway = await start_gateway(agent, loopback=loopback, config=GatewayConfig(group_sessions_per_user=False))
    await make_member(gateway.store, ada)
    await ask(gateway, club, "hello")
    await ask(gateway, ada, "send it to the club")
    await wait_until(lambda: [each for each in loopback.sent if each.body == "Practice is at six."])
    await ask(gateway, club, "Why six?")
    texts = [message["content"] for message in agent.requests[-1].messages]
    assert texts[-3:-1] == [
        '["Ada" asked you in another conversation, and you sent the following message here.]',
        "Practice is at six.",
    ]
    assert "## Where you can send messages" in agent.requests[-1].instructions
