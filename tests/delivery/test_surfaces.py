"""A conversation continues on another platform, and the chats it is in are told; home channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, HomeChannel, Platform, SessionSource
from palaver.people.model import Role
from palaver.sessions.home_channels import list_home_channels
from palaver.sessions.keys import DmScope
from support.people import Town, chat, find_code, group

if TYPE_CHECKING:
    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.people.model import Person
    from palaver.testing import FakeClock

ADA, ADAS_MATRIX, BOB = chat("ada"), chat("ada-m", "matrix"), chat("bob")
CONTINUES_ON_MATRIX = (
    "This conversation continues in your direct messages on Matrix. Messages you send here still reach it."
)


@pytest.fixture
def town(store: SessionStore, clock: FakeClock) -> Town:
    return Town(store, clock)


@pytest.fixture
async def ada(town: Town) -> Person:
    """Ada, who has accounts on the page, on Telegram and on Matrix."""
    return await link_ada(town)


async def link_ada(town: Town) -> Person:
    person = await town.add_account("Ada")
    for source in (ADA, ADAS_MATRIX):
        code = find_code(await town.ask(town.page(person), "/link"))
        await town.ask(source, f"/link {code}")
        await town.ask(town.page(person), "/link confirm")
        await town.ask(source, "/link confirm")
    return person


# ---- resuming ----------------------------------------------------------------------------------------------


async def test_a_conversation_is_resumed_on_another_platform_and_the_first_is_told_once(
    town: Town, ada: Person
) -> None:
    first = await town.send(ADA, "the night train")
    await town.send(ADAS_MATRIX, "something else")
    resumed = await town.send(ADAS_MATRIX, f"/resume {first.session_id}")
    assert resumed.session_id == first.session_id
    assert (await town.get_told(ADA))[-1] == CONTINUES_ON_MATRIX
    told = len(await town.get_told(ADA))
    assert (await town.send(ADAS_MATRIX, "and back?")).session_id == first.session_id
    await town.send(ADAS_MATRIX, f"/resume {first.session_id}")  # already here
    assert len(await town.get_told(ADA)) == told
    assert (await town.send(ADA, "still here")).session_id == first.session_id
    assert ada.name in (await town.ask(ADA, "/whoami"))


@pytest.mark.usefixtures("ada")
async def test_a_chat_that_has_moved_on_is_not_told(town: Town) -> None:
    first = await town.send(ADA, "the night train")
    await town.send(ADA, "/new")
    told = await town.get_told(ADA)
    await town.send(ADAS_MATRIX, f"/resume {first.session_id}")
    assert await town.get_told(ADA) == told


async def test_a_message_on_the_page_tells_the_chat_once(town: Town, ada: Person) -> None:
    first = await town.send(ADA, "the night train")
    before = len(await town.get_told(ADA))
    for text in ("from the page", "and again"):
        await town.send(town.page(ada), text, session_id=first.session_id)
    assert (await town.get_told(ADA))[before:] == [
        "This conversation continues on the web page. Messages you send here still reach it."
    ]
    await town.send(ADA, "back in the chat")
    await town.send(town.page(ada), "and on the page", session_id=first.session_id)
    assert len(await town.get_told(ADA)) == before + 2


@pytest.mark.usefixtures("ada")
async def test_people_cannot_resume_conversations_of_others(town: Town) -> None:
    first = await town.send(ADA, "the night train")
    await town.add_person(BOB)
    missing = await town.ask(BOB, "/resume 20200101_000000_00000000")
    reply = await town.ask(BOB, f"/resume {first.session_id}")
    assert reply.replace(first.session_id or "", "?") == missing.replace("20200101_000000_00000000", "?")
    assert all("continues" not in text for text in await town.get_told(ADA))


# ---- handing off -------------------------------------------------------------------------------------------


async def test_handoff_continues_on_the_other_platform_and_tells_both(town: Town, ada: Person) -> None:
    first = await town.send(ADA, "the night train")
    reply = await town.ask(ADA, "/handoff matrix")
    assert reply == CONTINUES_ON_MATRIX + " The agent is still responding there; nothing is lost."
    notice = (await town.get_told(ADAS_MATRIX))[-1]
    assert notice.startswith("**the night train** continues here, from Telegram.")
    assert "you: “the night train”" in notice
    assert (await town.send(ADAS_MATRIX, "go on")).session_id == first.session_id
    on_page = await town.ask(town.page(ada), "/handoff telegram", session_id=first.session_id)
    assert on_page.startswith("This conversation continues in your direct messages on Telegram.")


async def test_handoff_works_with_one_lane_for_a_person(open_store: OpenStore, clock: FakeClock) -> None:
    town = Town(open_store(GatewayConfig(dm_scope=DmScope.PERSON)), clock)
    await link_ada(town)
    first = await town.send(ADA, "the night train")
    assert (await town.ask(ADA, "/handoff matrix")).startswith(CONTINUES_ON_MATRIX)
    assert (await town.send(ADAS_MATRIX, "go on")).session_id == first.session_id


@pytest.mark.usefixtures("ada")
async def test_handoff_goes_to_ones_own_chats_only(town: Town) -> None:
    await town.send(ADA, "hello")
    await town.add_person(BOB)
    bobs = chat("bob-d", "discord")
    await town.add_person(bobs)
    await town.send(bobs, "hello")
    missing = await town.ask(ADA, "/handoff discord:nowhere")
    assert missing.startswith("You have no chat with me at")
    assert (await town.ask(ADA, "/handoff discord:chat-bob-d")).replace("chat-bob-d", "nowhere") == missing
    assert (await town.ask(ADA, "/handoff discord")).startswith("You have no chat with me at Discord.")
    assert (await town.ask(ADA, "/handoff telegram")) == "You're already on Telegram."
    assert "web page has all" in await town.ask(ADA, "/handoff web")
    assert "Where to?" in await town.ask(ADA, "/handoff")
    assert await town.get_told(bobs) == []


@pytest.mark.both_engines
async def test_a_shared_conversation_is_not_handed_off(open_store: OpenStore, clock: FakeClock) -> None:
    town = Town(open_store(GatewayConfig(group_sessions_per_user=False)), clock)
    await link_ada(town)
    await town.send(group("ada"), "hello")
    assert "Several people share" in await town.ask(group("ada"), "/handoff matrix")


# ---- home channels -----------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_the_chosen_home_channel_wins_over_the_settings(open_store: OpenStore, clock: FakeClock) -> None:
    configured = HomeChannel(Platform.TELEGRAM, "-100", "Family")
    config = GatewayConfig(connected_platforms=(Platform.TELEGRAM,), home_channels={Platform.TELEGRAM: configured})
    town = Town(open_store(config), clock)
    await town.add_person(chat("olga"), Role.OWNER)
    reply = await town.ask(group("olga", "ops"), "/sethome")
    assert reply.startswith("This chat is now the home channel of Telegram")
    [status] = (await list_home_channels(town.store)).values()
    assert status.is_chosen
    assert status.channel == HomeChannel(Platform.TELEGRAM, "ops", "ops")
    assert "**Home channel of Telegram**: ops, `telegram:ops`" in await town.ask(chat("olga"), "/platforms")
    await town.add_person(ADA)
    assert "ops" not in await town.ask(ADA, "/platforms")
    assert "from the server settings applies again" in await town.ask(chat("olga"), "/sethome off")
    [status] = (await list_home_channels(town.store)).values()
    assert (status.is_chosen, status.channel) == (False, configured)
    assert "No home channel" in await town.ask(chat("olga"), "/sethome off")


async def test_a_home_channel_where_we_may_not_always_write_is_told(open_store: OpenStore, clock: FakeClock) -> None:
    config = GatewayConfig(connected_platforms=(Platform.TELEGRAM,), reply_hours={Platform.TELEGRAM: 24})
    town = Town(open_store(config), clock)
    await town.add_person(chat("olga"), Role.OWNER)
    assert "Telegram lets me write here only within 24 hours after" in await town.ask(chat("olga"), "/sethome")


async def test_only_owners_choose_home_channels_and_only_in_chats(town: Town) -> None:
    await town.add_person(ADA)
    assert (await town.ask(ADA, "/sethome")).startswith("Only an owner can use /sethome.")
    assert "no chat here" in await town.ask(SessionSource.local_cli(), "/sethome")
    assert await list_home_channels(town.store) == {}


async def test_an_owner_hands_off_to_a_home_channel(town: Town) -> None:
    await town.add_person(chat("olga"), Role.OWNER)
    await town.ask(group("olga", "ops"), "/sethome")
    first = await town.send(chat("olga"), "the report")
    assert "in “ops” on Telegram" in await town.ask(chat("olga"), "/handoff telegram:ops")
    assert (await town.send(group("olga", "ops"), "go on")).session_id == first.session_id
    await town.add_person(ADA)
    await town.send(ADA, "hello")
    assert "no chat with me" in await town.ask(ADA, "/handoff telegram:ops")
