"""Two accounts become one person only after both sides were told what they share, and have confirmed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.accounts.accounts import Accounts
from palaver.core.clock import to_micros
from palaver.memory import table as memories
from palaver.operation import person_erasure
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.inbound import ButtonPressed
from support.people import Town, chat, find_code, group
from support.store_content import dump_tables

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.testing import FakeClock

ADA, EVE = chat("ada"), chat("eve", "matrix")
BELONGINGS = ("person", "identity", "audience_member", "session", "lane", "memory", "linked_row", "chat_access", "job")


@pytest.fixture
def town(store: SessionStore, clock: FakeClock) -> Town:
    return Town(store, clock)


async def claim(town: Town, first: SessionSource, second: SessionSource) -> str:
    """Ask for a code at the first source and send it from the second; return the question."""
    code = find_code(await town.ask(first, "/link"))
    return await town.ask(second, f"/link {code}")


async def are_linked(town: Town) -> bool:
    ada, eve = await town.find_person(ADA), await town.find_person(EVE)
    assert ada is not None
    return eve is not None and ada.id == eve.id


async def settle_two_people(town: Town) -> None:
    """Let Ada be a member with two conversations and a memory, and Eve a member with one conversation."""
    ada = await town.add_person(ADA)
    await town.add_person(EVE)
    await town.send(ADA, "one")
    await town.ask(ADA, "/new")
    await town.send(ADA, "two")
    await town.send(EVE, "three")

    def remember(tx: Transaction) -> None:
        row = people.find_by_id(tx, ada.id)
        assert row is not None
        memories.add(tx, row.audience_no, memories.NewMemory(text="likes tea", person_id=ada.id), 1)

    await town.write(remember)


@pytest.mark.both_engines
async def test_a_code_alone_shares_nothing_and_each_side_is_told_only_what_it_gives(town: Town) -> None:
    await settle_two_people(town)
    before = dump_tables(town.store, *BELONGINGS)
    question = await claim(town, ADA, EVE)
    assert dump_tables(town.store, *BELONGINGS) == before
    assert question.startswith("This code is from **Ada** (Telegram). Nothing is shared yet.")
    assert "**You share**: 1 conversation. Ada sees" in question
    assert "2 conversations" not in question
    assert "memory" not in question
    assert "member" not in question, "the role of the other side is not told before it has confirmed"
    told = (await town.get_told(ADA))[-1]
    assert told.startswith("**Eve (Matrix, eve)** wants to be linked to you with your code.")
    assert "**You share**: 2 conversations, 1 memory. Eve sees" in told
    assert "1 conversation." not in told
    assert "What is new after the link stays with Ada" in told


@pytest.mark.both_engines
@pytest.mark.parametrize("order", [(ADA, EVE), (EVE, ADA)])
async def test_the_second_confirmation_links_in_either_order(
    town: Town, order: tuple[SessionSource, SessionSource]
) -> None:
    await settle_two_people(town)
    await claim(town, ADA, EVE)
    first, second = order
    assert "Nothing is shared until" in await town.ask(first, "/link confirm")
    assert "Nothing is shared until" in await town.ask(first, "/link confirm")  # once more changes nothing
    assert not await are_linked(town)
    told = (await town.get_told(second))[-1]
    assert ("(2 conversations, 1 memory)" if first is ADA else "(1 conversation)") in told, "now it may know"
    assert "a member, for both" in told
    assert (await town.ask(second, "/link confirm")).startswith("Linked: both accounts belong to **Ada**, a member.")
    assert await are_linked(town)
    assert (await town.get_told(first))[-1].startswith("Eve (Matrix, eve) is now linked to you.")
    assert "There is no link" in await town.ask(first, "/link confirm")


@pytest.mark.both_engines
@pytest.mark.parametrize("who", [ADA, EVE])
async def test_either_side_can_cancel_and_then_the_code_is_worthless(town: Town, who: SessionSource) -> None:
    await settle_two_people(town)
    code = find_code(await town.ask(ADA, "/link"))
    await town.ask(EVE, f"/link {code}")
    await town.ask(EVE if who is ADA else ADA, "/link confirm")
    assert "Canceled. Nothing was shared" in await town.ask(who, "/link cancel")
    assert "canceled by the other side" in (await town.get_told(EVE if who is ADA else ADA))[-1]
    assert "isn't valid" in await town.ask(EVE, f"/link {code}")
    assert "There is no link" in await town.ask(EVE, "/link confirm")
    assert not await are_linked(town)
    assert await town.rows("SELECT * FROM link_code") == []


async def test_a_link_that_waits_expires(town: Town, clock: FakeClock) -> None:
    await settle_two_people(town)
    await claim(town, ADA, EVE)
    await town.ask(ADA, "/link confirm")
    clock.advance(minutes=15)
    assert "There is no link" in await town.ask(EVE, "/link confirm")
    assert not await are_linked(town)


async def test_only_the_two_sides_can_confirm_and_only_in_private(town: Town) -> None:
    await settle_two_people(town)
    await town.add_person(chat("mallory"), Role.OWNER)
    await claim(town, ADA, EVE)
    await town.ask(ADA, "/link confirm")
    assert "There is no link" in await town.ask(chat("mallory"), "/link confirm")
    assert "There is no link" in await town.ask(chat("stranger"), "/link confirm")
    assert "direct message" in await town.ask(group("eve", platform="matrix"), "/link confirm", is_addressed=True)
    assert "There is no link" in await town.ask(chat("mallory"), "/link cancel")
    assert not await are_linked(town)
    assert "Linked" in await town.ask(EVE, "/link confirm")


async def test_a_guest_whom_a_group_lets_talk_cannot_confirm_there(town: Town) -> None:
    await town.add_person(chat("olga"), Role.OWNER)
    await town.ask(group("olga"), "/pair group", is_addressed=True)
    await town.add_person(ADA)
    guest = chat("guest")
    await claim(town, ADA, guest)
    await town.ask(ADA, "/link confirm")
    reply = await town.ask(group("guest"), "/link confirm", is_addressed=True)
    assert "direct message" in reply
    found = await town.find_person(group("guest"))
    assert found is None or found.role is Role.GUEST


@pytest.mark.both_engines
async def test_both_confirm_at_once_and_are_linked_once(town: Town) -> None:
    await settle_two_people(town)
    await claim(town, ADA, EVE)
    replies = await asyncio.gather(town.ask(ADA, "/link confirm"), town.ask(EVE, "/link confirm"))
    assert sorted(reply.split(" ")[0] for reply in replies) == ["Confirmed.", "Linked:"]
    assert await are_linked(town)


async def test_the_same_message_twice_confirms_once(town: Town) -> None:
    await settle_two_people(town)
    await claim(town, ADA, EVE)
    first = await town.ask(ADA, "/link confirm", message_id="same")
    assert await town.ask(ADA, "/link confirm", message_id="same") == first
    assert not await are_linked(town)


@pytest.mark.both_engines
@pytest.mark.parametrize("change", ["role", "removal", "erasure", "link", "new code", "unlink"])
@pytest.mark.parametrize("who", ["issuer", "sender"])
async def test_a_link_that_waits_ends_when_a_side_changes(town: Town, change: str, who: str) -> None:
    await settle_two_people(town)
    changed, other = (ADA, EVE) if who == "issuer" else (EVE, ADA)
    extra = chat("extra", "discord")
    await claim(town, changed, extra)
    await town.ask(changed, "/link confirm")
    await town.ask(extra, "/link confirm")
    await claim(town, ADA, EVE)
    await town.ask(changed, "/link confirm")
    person = await town.find_person(changed)
    assert person is not None
    owner = Accounts(town.store).open_people(town.store.get_owner().principal)
    if change == "role":
        await owner.update(person.id, role=Role.OWNER)
    elif change == "removal":
        await owner.remove(person.id)
    elif change == "erasure":
        await town.write(
            lambda tx: person_erasure.begin(
                tx, person_erasure.describe_person(tx, person.id), to_micros(town.clock.now())
            )
        )
    elif change == "link":
        later = chat("later", "discord")
        await claim(town, changed, later)
        await town.ask(changed, "/link confirm")
        await town.ask(later, "/link confirm")
    elif change == "new code":
        await town.ask(changed, "/link")
    else:
        await town.ask(changed, "/unlink discord")
    reply = await town.ask(other, "/link confirm")
    assert "There is no link" in reply
    assert await town.rows("SELECT claim_account FROM link_code WHERE claim_account IS NOT NULL") == []


async def test_a_stranger_who_gets_access_meanwhile_has_to_start_again(town: Town) -> None:
    await town.add_person(ADA)
    await claim(town, ADA, EVE)
    await town.add_person(EVE)
    await town.ask(ADA, "/link confirm")
    assert "has changed meanwhile" in await town.ask(EVE, "/link confirm")
    assert not await are_linked(town)


async def test_a_button_confirms_its_own_question_only(town: Town) -> None:
    await settle_two_people(town)
    await claim(town, ADA, EVE)

    async def press(source: SessionSource, data: str, press_id: str) -> str:
        pressed = ButtonPressed(source=source, data=data, press_id=press_id, message_id="1")
        return (await town.inbox.accept(pressed)).reply or ""

    async def list_buttons(platform: str) -> str:
        rows = await town.rows(
            "SELECT buttons FROM delivery WHERE platform = $1 AND buttons IS NOT NULL ORDER BY no DESC", platform
        )
        return str(rows[0][0])

    old = (await list_buttons("telegram")).split('"')[3]
    assert old.startswith("link-confirm:")
    await claim(town, ADA, EVE)
    new = (await list_buttons("telegram")).split('"')[3]
    assert old != new
    assert await press(ADA, old, "p1") == "This button no longer works."
    assert await press(EVE, old, "p2") == "This button no longer works."
    assert "has confirmed, too" in await press(ADA, new, "p3")
    assert (await press(EVE, (await list_buttons("matrix")).split('"')[3], "p4")).startswith("Linked")
    assert await are_linked(town)


@pytest.mark.both_engines
async def test_the_person_at_the_terminal_is_never_linked_to_another(town: Town) -> None:
    owner = town.store.get_owner()
    mallory = await town.add_account("Mallory")
    reply = await claim(town, SessionSource.local_cli(), town.page(mallory))
    assert "can't become one" in reply
    assert town.store.get_owner() == owner


async def test_an_account_with_a_past_is_not_linked_by_its_pairing_code(town: Town) -> None:
    await town.add_person(chat("olga"), Role.OWNER)
    await town.add_person(EVE, Role.GUEST)
    code = find_code(await town.ask(EVE, "hello"))
    assert "both sides have to confirm" in await town.ask(chat("olga"), f"/pair {code} me")
    eve, olga = await town.find_person(EVE), await town.find_person(chat("olga"))
    assert eve != olga
