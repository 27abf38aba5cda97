"""Accounts on several platforms become one person, and are separated again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.accounts import merge_table as person_merge
from palaver.core.clock import to_micros
from palaver.memory import table as memories
from palaver.memory.service import MemoryOperations
from palaver.people import table as people
from palaver.people.model import Role
from palaver.prompts import table as saved_prompts
from palaver.prompts.service import SavedPromptOperations
from palaver.sessions import hidden_ranges as read_marks, projects_table as projects, table as sessions
from palaver.sessions.inbound import Outcome
from palaver.sessions.keys import DmScope
from support.people import Town, chat, find_code, group
from support.store_content import dump_tables

if TYPE_CHECKING:
    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.testing import FakeClock

OLGA, ADA, BOB = chat("olga"), chat("ada"), chat("bob")
ADAS_MATRIX = chat("ada-m", "matrix")
TABLES = (
    *("person", "identity", "audience_member", "project", "read_mark", "memory", "attachment", "share", "session"),
    *("lane", "event", "turn", "link_code", "chat_access"),
)


@pytest.fixture
def town(store: SessionStore, clock: FakeClock) -> Town:
    return Town(store, clock)


async def claim(town: Town, first: SessionSource, second: SessionSource) -> str:
    """Ask for a code at the first source and send it from the second; return the reply."""
    code = find_code(await town.ask(first, "/link"))
    return await town.ask(second, f"/link {code}")


async def link(town: Town, first: SessionSource, second: SessionSource) -> str:
    """Link two accounts, with both confirmations; return the last reply, or the one that refuses the code."""
    reply = await claim(town, first, second)
    if "link confirm" not in reply:
        return reply
    assert "Nothing is shared until" in await town.ask(first, "/link confirm")
    return await town.ask(second, "/link confirm")


async def get_role(town: Town, source: SessionSource) -> Role | None:
    person = await town.find_person(source)
    return person.role if person else None


# ---- linking -----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_stranger_with_a_code_is_the_person_who_asked_for_it(town: Town) -> None:
    ada = await town.add_person(ADA)
    reply = await link(town, ADA, ADAS_MATRIX)
    assert reply.startswith("Linked: both accounts belong to **Ada**, a member.")
    assert await town.find_person(ADAS_MATRIX) == ada
    assert (await town.get_told(ADA))[-1].startswith("Ada-M (Matrix, ada-m) is now linked to you.")
    assert (await town.send(ADAS_MATRIX, "hello")).is_stored


async def test_the_owners_telegram_is_theirs_after_one_code_from_the_terminal(town: Town) -> None:
    owner = town.store.get_owner()
    assert "an owner" in await link(town, SessionSource.local_cli(), chat("me"))
    assert await town.find_person(chat("me")) == owner


@pytest.mark.both_engines
async def test_everything_of_both_belongs_to_the_one_who_stays(town: Town) -> None:
    ada = await town.add_account("Ada")
    on_page = await town.send(town.page(ada), "written on the page")
    guest = await town.add_person(ADA)
    in_chat = await town.send(ADA, "written in a chat")
    now = to_micros(town.clock.now())

    def add_belongings(tx: Transaction) -> None:
        for person in (ada, guest):
            projects.create(tx, person.id, "Trips", None, now)
            saved_prompts.create(tx, person.id, {"name": "Explain", "text": f"Explain, {person.name}"}, now)
        projects.create(tx, guest.id, "Garden", None, now)
        saved_prompts.create(tx, guest.id, {"name": "Translate", "text": "Translate {{text}}"}, now)
        row = people.find_by_id(tx, guest.id)
        assert row is not None
        memories.add(tx, row.audience_no, memories.NewMemory(text="likes tea", person_id=guest.id), now)
        no, trips = projects.get_by_id_or_name(tx, guest.id, "Trips")
        session_row = sessions.get(tx, in_chat.session_id or "")
        sessions.move_to_project(tx, session_row, trips.id, no, now, guest.id)
        read_marks.mark_read(tx, session_row.no, guest.id, 2, now)

    await town.write(add_belongings)
    assert "belong to **Ada**" in await link(town, town.page(ada), ADA)
    view = town.store.aio.seen_by(ada.principal)
    assert {session.id for session in await view.list()} == {on_page.session_id, in_chat.session_id}
    assert [memory.memory.text for memory in await view.part(MemoryOperations).list()] == ["likes tea"]
    assert not (await view.part(MemoryOperations).list())[0].shared
    found = {project.name: project.session_count for project in await view.projects.list()}
    assert found == {"Garden": 0, "Trips": 0, "Trips 2": 1}
    prompts = {prompt.name: prompt.text for prompt in await view.part(SavedPromptOperations).list()}
    assert prompts == {"Explain": "Explain, Ada", "Explain 2": "Explain, Ada", "Translate": "Translate {{text}}"}
    assert await town.rows("SELECT id FROM saved_prompt WHERE person_id = $1", guest.id) == []
    no = await town.read(lambda tx: sessions.get_no(tx, in_chat.session_id or ""))
    assert await town.read(lambda tx: read_marks.list_read_seqs(tx, no)) == {ada.id: 2}
    hits = await view.search("chat")
    assert [hit.session_id for hit in hits] == [in_chat.session_id]
    assert await town.rows("SELECT person_id FROM turn WHERE person_id = $1", guest.id) == []
    old_view = town.store.aio.seen_by(guest.principal)
    assert list(await old_view.list()) == []
    summaries = await view.summaries.list()
    assert {summary.owner_name for summary in summaries} == {"Ada"}


async def test_of_two_people_the_one_who_can_sign_in_stays(town: Town) -> None:
    member = await town.add_person(ADA)
    on_page = await town.add_account("Ada L.")
    assert "belong to **Ada L.**" in await link(town, ADA, town.page(on_page))
    assert await town.find_person(ADA) == on_page
    assert member != on_page


@pytest.mark.both_engines
async def test_a_code_never_works_upward(town: Town) -> None:
    await town.add_person(OLGA, Role.OWNER)
    bob = await town.add_person(BOB)
    reply = await link(town, BOB, OLGA)
    assert reply.startswith("That code is from an account with fewer rights than yours.")
    assert await town.find_person(BOB) == bob
    assert "an owner" in await link(town, OLGA, BOB)  # the owner's own code
    assert await get_role(town, BOB) is Role.OWNER


async def test_a_guest_becomes_a_member_only_by_the_members_code(town: Town) -> None:
    await town.add_person(ADA, Role.MEMBER)
    rules_town = Town(town.store, town.clock, rules=type(town.rules)(open_platforms=frozenset({BOB.platform})))
    await rules_town.send(BOB, "hello")
    assert "fewer rights" in await link(rules_town, BOB, ADA)
    assert await get_role(town, BOB) is Role.GUEST
    assert "a member" in await link(rules_town, ADA, BOB)
    assert await get_role(town, BOB) is Role.MEMBER


async def test_two_people_who_can_sign_in_stay_two(town: Town) -> None:
    ada, bob = await town.add_account("Ada"), await town.add_account("Bob")
    assert "can't become one" in await link(town, town.page(ada), town.page(bob))
    assert await town.find_person(town.page(bob)) == bob


@pytest.mark.both_engines
async def test_a_code_of_the_other_kind_is_refused_with_the_right_command_and_like_any_wrong_one(town: Town) -> None:
    ada = await town.add_account("Ada", Role.OWNER)
    pairing_code = find_code(await town.ask(ADAS_MATRIX, "hello"))
    refused = await town.ask(town.page(ada), f"/link {pairing_code}")
    assert "`/pair ABCD-EFGH`" in refused
    assert refused == await town.ask(town.page(ada), "/link ABCD-EFGH")
    assert await town.find_person(ADAS_MATRIX) is None
    link_code = find_code(await town.ask(town.page(ada), "/link"))
    refused = await town.ask(town.page(ada), f"/pair {link_code} member")
    assert "`/link ABCD-EFGH`" in refused
    assert refused == await town.ask(town.page(ada), "/pair ABCD-EFGH member")
    assert "Nothing is shared yet" in await town.ask(ADAS_MATRIX, f"/link {link_code}")  # it still works


async def test_a_code_works_once_for_a_short_time_and_in_private(town: Town, clock: FakeClock) -> None:
    await town.add_person(ADA)
    assert "direct message" in await town.ask(group("ada"), "/link")
    code = find_code(await town.ask(ADA, "/link"))
    assert "already linked" in await town.ask(ADA, f"/link {code}")
    newer = find_code(await town.ask(ADA, "/link"))
    assert "isn't valid" in await town.ask(ADAS_MATRIX, f"/link {code}")  # replaced
    question = await town.ask(ADAS_MATRIX, f"/link {newer}")
    assert "Nothing is shared yet" in question
    assert await town.ask(ADAS_MATRIX, f"/link {newer}") == question  # the same account may ask again
    assert "isn't valid" in await town.ask(chat("eve"), f"/link {newer}")
    await town.ask(ADA, "/link confirm")
    assert "Linked" in await town.ask(ADAS_MATRIX, "/link confirm")
    assert "isn't valid" in await town.ask(chat("eve"), f"/link {newer}")
    late = find_code(await town.ask(ADA, "/link"))
    clock.advance(minutes=15)
    assert "isn't valid" in await town.ask(chat("eve"), f"/link {late}")
    assert await town.find_person(chat("eve")) is None


async def test_strangers_cannot_guess_codes(town: Town) -> None:
    replies = [await town.ask(chat("eve"), "/link ABCD-EFGH") for _ in range(15)]
    assert replies[-1].startswith("Too many attempts.")
    replies = [await town.ask(chat(f"eve{number}"), "/link ABCD-EFGH") for number in range(100)]
    assert replies[-1].startswith("Too many attempts.")
    await town.add_person(ADA)  # whom that does not lock out
    assert "isn't valid" in await town.ask(ADA, "/link ABCD-EFGH")


async def test_a_merge_that_fails_leaves_everything_as_it_was(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    await town.add_person(ADA)
    await town.add_person(ADAS_MATRIX)
    await town.send(ADAS_MATRIX, "hello")
    await claim(town, ADA, ADAS_MATRIX)
    await town.ask(ADA, "/link confirm")
    before = dump_tables(town.store, *TABLES)

    def fail(*_arguments: object) -> None:
        raise RuntimeError("the process dies here")

    monkeypatch.setattr(person_merge, "_move_named_rows", fail)
    with pytest.raises(RuntimeError):
        await town.send(ADAS_MATRIX, "/link confirm")
    assert dump_tables(town.store, *TABLES) == before
    monkeypatch.undo()
    assert "Linked" in await town.ask(ADAS_MATRIX, "/link confirm")


# ---- one conversation everywhere ---------------------------------------------------------------------------


@pytest.fixture
def one_town(open_store: OpenStore, clock: FakeClock) -> Town:
    return Town(open_store(GatewayConfig(dm_scope=DmScope.PERSON)), clock)


@pytest.mark.both_engines
async def test_with_dm_scope_person_linked_accounts_continue_one_conversation(one_town: Town) -> None:
    town = one_town
    ada = await town.add_account("Ada")
    await town.add_person(ADA)
    first = await town.send(ADA, "on telegram")
    await link(town, town.page(ada), ADA)
    await link(town, ADA, ADAS_MATRIX)
    second = await town.send(ADAS_MATRIX, "on matrix")
    third = await town.send(town.page(ada), "on the page", session_id=first.session_id)
    assert first.session_id == second.session_id == third.session_id
    texts = [message["content"] for message in town.store.load_transcript(first.session_id or "")]
    assert texts == ["on telegram", "on matrix", "on the page"]
    addresses = [address for (address,) in await town.rows("SELECT address FROM turn ORDER BY no")]
    assert addresses == ["telegram::chat-ada", "matrix::chat-ada-m", None]
    await town.add_person(BOB)
    other = await town.send(BOB, "another person")
    assert other.session_id != first.session_id
    assert "on telegram" not in await town.ask(BOB, "/search telegram")


async def test_both_have_a_conversation_before_they_are_linked(one_town: Town) -> None:
    await one_town.add_person(ADA)
    await one_town.add_person(ADAS_MATRIX)
    in_telegram, in_matrix = await one_town.send(ADA, "one"), await one_town.send(ADAS_MATRIX, "two")
    await link(one_town, ADA, ADAS_MATRIX)
    assert (await one_town.send(ADAS_MATRIX, "three")).session_id == in_telegram.session_id
    reply = await one_town.send(ADAS_MATRIX, f"/resume {in_matrix.session_id}")
    assert reply.outcome is Outcome.COMMAND
    assert (await one_town.send(ADA, "four")).session_id == in_matrix.session_id


# ---- separating --------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_separated_account_that_was_a_strangers_is_one_again(town: Town) -> None:
    ada = await town.add_person(ADA)
    await link(town, ADA, ADAS_MATRIX)
    said = await town.send(ADAS_MATRIX, "a secret")
    reply = await town.ask(ADA, "/unlink matrix")
    assert reply.startswith("Unlinked: Matrix, ada-m.")
    assert (await town.get_told(ADAS_MATRIX))[-1].startswith("This account is no longer linked to Ada.")
    assert await get_role(town, ADAS_MATRIX) is Role.GUEST
    assert find_code(await town.ask(ADAS_MATRIX, "hello"))
    view = town.store.aio.seen_by(ada.principal)
    assert said.session_id in {session.id for session in await view.list()}
    eve = await town.add_person(ADAS_MATRIX)  # it gets access again, as another person
    again = await town.send(ADAS_MATRIX, "hello")
    assert again.session_id != said.session_id
    assert "secret" not in await town.ask(ADAS_MATRIX, "/sessions")
    assert await town.ask(ADAS_MATRIX, "/restore") == "There is no earlier conversation to restore."
    assert (await town.send(ADAS_MATRIX, "still mine")).session_id == again.session_id
    assert {session.id for session in await town.store.aio.seen_by(eve.principal).list()} == {again.session_id}


async def test_without_a_name_the_account_one_writes_from_is_separated(town: Town) -> None:
    ada = await town.add_account("Ada")
    await link(town, town.page(ada), ADA)
    await link(town, town.page(ada), ADAS_MATRIX)
    assert "Which account?" in await town.ask(town.page(ada), "/unlink")
    assert "stays with **Ada**" in await town.ask(ADA, "/unlink")
    assert await get_role(town, ADA) is Role.GUEST


async def test_the_only_account_and_accounts_of_others_cannot_be_separated(town: Town) -> None:
    await town.add_person(ADA)
    await town.add_person(chat("bob", "matrix"))
    assert "only account" in await town.ask(ADA, "/unlink")
    missing = await town.ask(ADA, "/unlink slack")
    assert (await town.ask(ADA, "/unlink matrix")).replace("matrix", "slack") == missing
    assert (await town.ask(ADA, "/unlink matrix:bob")).replace("matrix:bob", "slack") == missing


async def test_several_accounts_on_a_platform_are_named_by_their_ids(town: Town) -> None:
    await town.add_person(ADA)
    await link(town, ADA, chat("ada2"))
    assert "telegram:ada, telegram:ada2" in await town.ask(ADA, "/unlink telegram")
    assert "Unlinked" in await town.ask(ADA, "/unlink telegram:ada2")


# ---- who am I ----------------------------------------------------------------------------------------------


async def test_whoami_says_person_role_accounts_and_places(town: Town) -> None:
    ada = await town.add_account("Ada")
    await link(town, town.page(ada), ADA)
    await town.send(ADA, "hello")
    reply = await town.ask(ADA, "/whoami")
    assert reply.startswith("You're **Ada**, a member.")
    assert "Telegram (ada)" in reply
    assert "in your direct messages on Telegram" in reply
    in_group = await town.ask(group("ada"), "/whoami")
    assert "Telegram" not in in_group
    assert "direct message" in in_group
