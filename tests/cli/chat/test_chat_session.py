"""Tests of which session a chat is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, ResetPolicy
from palaver.cli.chat import ChatMode, ChatOptions, StartMode
from palaver.cli.chat.chat_session import ChatSession
from palaver.cli.chat.feed_presenter import FeedListener
from palaver.cli.errors import MessageRejected
from palaver.config.agent_rules import AgentProfile, Profile
from palaver.core.errors import SessionNotFound
from palaver.sessions.policy import ResetMode

if TYPE_CHECKING:
    from palaver.testing import FakeClock
    from support.gateway import StartGateway


async def test_the_deletion_of_an_earlier_session_does_not_end_the_current_one(
    start_gateway: StartGateway,
) -> None:
    gateway = await start_gateway()
    chat = ChatSession(gateway, await gateway.store.aio.get_owner())
    listener = FeedListener(chat)
    deleted = (await chat.send("hello")).session_id
    assert deleted is not None
    listener.follow_session()
    current = (await chat.send("/new")).session_id
    assert current is not None
    await gateway.store.aio.delete_session(deleted)
    while not isinstance((found := await listener.next_item())[1], SessionNotFound):
        pass
    assert found[0] == deleted
    assert not await chat.leave_session(deleted)
    assert chat.session_id == current != deleted
    assert await chat.leave_session(current)
    assert await chat.load_session() == (None, gateway.agent.model)
    listener.close()


CHOICES = AgentProfile(profiles={"work": Profile()}, personalities={"pirate": "Talk like a pirate."})


@pytest.mark.both_engines
async def test_the_command_line_chooses_profile_personality_and_workspace(start_gateway: StartGateway) -> None:
    gateway = await start_gateway(profile=CHOICES)
    chat = ChatSession(gateway, await gateway.store.aio.get_owner())
    options = ChatOptions(mode=ChatMode.LINES, profile="work", personality="pirate", workspace="/srv/site")
    notices = await chat.apply_choices(options)
    assert [notice.split(" from the next")[0] for notice in notices] == [
        "This conversation uses the profile `work`",
        "This conversation uses the personality `pirate`",
        "This conversation uses the workspace `/srv/site`",
    ]
    assert (await chat.send("hello")).session_id == chat.session_id
    summary = await chat.view.summaries.get(chat.session_id or "")
    assert (summary.profile, summary.personality, summary.workspace) == ("work", "pirate", "/srv/site")
    await chat.apply_choices(ChatOptions(mode=ChatMode.LINES, profile="default"))
    assert (await chat.view.summaries.get(chat.session_id or "")).profile is None


async def test_a_choice_for_a_conversation_that_is_due_for_a_restart_leaves_the_old_one_alone(
    start_gateway: StartGateway, clock: FakeClock
) -> None:
    config = GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=10))
    gateway = await start_gateway(profile=CHOICES, config=config, clock=clock)
    chat = ChatSession(gateway, await gateway.store.aio.get_owner())
    old = (await chat.send("hello")).session_id
    clock.advance(hours=1)
    chat = ChatSession(gateway, await gateway.store.aio.get_owner())
    await chat.choose_session(StartMode.RECENT)
    await chat.apply_choices(ChatOptions(mode=ChatMode.LINES, profile="work"))
    assert (await chat.view.summaries.get(old or "")).profile is None
    assert (await chat.send("again")).session_id == chat.session_id != old
    assert (await chat.view.summaries.get(chat.session_id or "")).profile == "work"


async def test_an_unknown_profile_is_an_error(start_gateway: StartGateway) -> None:
    gateway = await start_gateway(profile=CHOICES)
    chat = ChatSession(gateway, await gateway.store.aio.get_owner())
    with pytest.raises(MessageRejected, match="Valid values: work"):
        await chat.apply_choices(ChatOptions(mode=ChatMode.LINES, profile="holiday"))
