"""A person with a phone number, a LID and a BSUID is one person, and a number that changes hands gives nothing away."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.accounts.sender_merge import merge_source
from palaver.config.agent_rules import TurnRules
from palaver.core.source import ChatType, Platform
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.inbound import ChatMoved, MessageReaction, Outcome
from support.people import Town, find_code

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Person
    from palaver.sessions.inbound import Receipt
    from palaver.testing import FakeClock

ADAS_NUMBER, ADAS_BSUID = "4917011111", "DE.111"
BOBS_NUMBER, BOBS_BSUID = "4917022222", "DE.222"
NEW_NUMBER, NEW_BSUID = "4917099999", "DE.999"


def dm(
    number: str | None, lasting: str | None = None, *, platform: str = "whatsapp", account: str = ""
) -> SessionSource:
    """Return the source of a direct message that names these ids of its sender."""
    ids = [each for each in (number, lasting) if each]
    return SessionSource(
        platform, ids[0], user_id=ids[0], user_id_alt=ids[1] if len(ids) > 1 else None, user_name="Ada", account=account
    )


def group(number: str | None, lasting: str | None = None) -> SessionSource:
    source = dm(number, lasting, platform="whatsapp-web")
    return replace(source, chat_id="club@g.us", chat_type=ChatType.GROUP)


@pytest.fixture
def town(store: SessionStore, clock: FakeClock) -> Town:
    return Town(store, clock)


async def find_person(town: Town, source: SessionSource) -> Person | None:
    config, now = town.store.config, town.clock.now()
    row = await town.write(lambda tx: people.find_by_source(tx, merge_source(tx, source, config, now)))
    return row.person if row else None


async def find_address(town: Town, receipt: Receipt) -> str:
    ((address,),) = await town.rows("SELECT address FROM turn WHERE id = $1", receipt.turn_id)
    return str(address)


async def add_person(town: Town, source: SessionSource, role: Role = Role.MEMBER) -> Receipt:
    """Give a person access, and let them say something."""
    await town.add_person(source, role)
    receipt = await town.send(source, "my secret")
    assert receipt.is_stored
    return receipt


# ---- one person ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [dm(None, ADAS_BSUID), dm(ADAS_NUMBER), dm(ADAS_NUMBER, ADAS_BSUID)])
async def test_any_known_id_is_the_same_person_and_conversation(town: Town, later: SessionSource) -> None:
    first = await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    again = await town.send(later, "it's me")
    assert (again.session_id, again.session_key) == (first.session_id, first.session_key)
    assert await find_address(town, again) == await find_address(town, first) == f"whatsapp::{ADAS_NUMBER}"


async def test_an_id_that_comes_later_is_remembered(town: Town) -> None:
    first = await add_person(town, dm(ADAS_NUMBER))
    assert (await town.send(dm(ADAS_NUMBER, ADAS_BSUID), "now with a name")).session_id == first.session_id
    assert (await town.send(dm(None, ADAS_BSUID), "without my number")).session_id == first.session_id


async def test_a_person_first_seen_without_a_number_keeps_their_address(town: Town) -> None:
    first = await add_person(town, dm(None, ADAS_BSUID))
    again = await town.send(dm(ADAS_NUMBER, ADAS_BSUID), "here is my number")
    assert again.session_id == first.session_id
    assert (await town.send(dm(ADAS_NUMBER), "only the number")).session_id == first.session_id
    assert await find_address(town, again) == f"whatsapp::{ADAS_BSUID}"


async def test_a_lid_and_a_number_are_one_person_in_groups_and_alone(town: Town) -> None:
    first = await add_person(town, group("4917011111@s.whatsapp.net", "777@lid"))
    assert (await town.send(group(None, "777@lid"), "again")).session_id == first.session_id
    assert (await town.send(group("4917011111@s.whatsapp.net"), "again")).session_id == first.session_id
    alone = await town.send(dm(None, "777:3@lid", platform="whatsapp-web"), "alone")
    assert await find_address(town, alone) == "whatsapp-web::4917011111"


@pytest.mark.both_engines
async def test_two_ids_known_as_two_people_become_one(town: Town) -> None:
    first = await add_person(town, dm(ADAS_NUMBER), Role.MEMBER)
    second = await town.add_person(dm(None, ADAS_BSUID), Role.OWNER)
    both = await town.send(dm(ADAS_NUMBER, ADAS_BSUID), "I am one")
    person = await find_person(town, dm(ADAS_NUMBER))
    assert person == await find_person(town, dm(None, ADAS_BSUID))
    assert person is not None
    assert (person.id, person.role) == (second.id, Role.OWNER)
    assert both.session_id == first.session_id


async def test_a_stranger_is_approved_with_all_ids(town: Town) -> None:
    code = find_code(await town.ask(dm(ADAS_NUMBER, ADAS_BSUID), "hello"))
    assert await town.rows("SELECT * FROM sender_id") == []  # a stranger who only writes is not stored
    await town.ask(SessionSource.local_cli(), f"/pair {code} guest")
    assert (await town.send(dm(None, ADAS_BSUID), "again")).is_stored


async def test_a_message_that_comes_again_under_another_id_is_one_message(town: Town) -> None:
    await add_person(town, dm(ADAS_NUMBER))
    first = await town.send(dm(ADAS_NUMBER), "once", message_id="wamid.1")
    again = await town.send(dm(ADAS_NUMBER, ADAS_BSUID), "once", message_id="wamid.1")
    assert (again.outcome, again.seq) == (Outcome.DUPLICATE, first.seq)


async def test_reactions_and_reading_commands_are_folded(town: Town) -> None:
    first = await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    await town.send(dm(ADAS_NUMBER), "look", message_id="wamid.9")
    reaction = MessageReaction(source=dm(None, ADAS_BSUID), message_id="wamid.9", emoji="👍")
    assert (await town.inbox.accept(reaction)).outcome is Outcome.RECORDED
    status = await town.send(dm(None, ADAS_BSUID), "/status")
    assert (status.outcome, status.session_id) == (Outcome.COMMAND, first.session_id)


async def test_allowed_users_match_any_id(store: SessionStore, clock: FakeClock) -> None:
    rules = TurnRules(allowed_users={Platform.WHATSAPP: frozenset({f"+{ADAS_NUMBER}"})})
    town = Town(store, clock, rules)
    assert (await town.send(dm(None, ADAS_BSUID), "who am I?")).outcome is Outcome.REJECTED
    assert (await town.send(dm(ADAS_NUMBER, ADAS_BSUID), "with my number")).is_stored
    assert (await town.send(dm(None, ADAS_BSUID), "without it")).is_stored
    assert (await town.send(dm(BOBS_NUMBER, BOBS_BSUID), "me too")).outcome is Outcome.REJECTED


# ---- changed numbers -------------------------------------------------------------------------------------------


def move(old: SessionSource, number: str = NEW_NUMBER, lasting: str | None = NEW_BSUID) -> ChatMoved:
    ids = (number, lasting) if lasting else (number,)
    return ChatMoved(source=old, new_chat_id=number, new_user_ids=ids)


@pytest.mark.both_engines
async def test_a_changed_number_takes_the_person_and_the_chat_along(town: Town) -> None:
    first = await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    assert (await town.inbox.accept(move(dm(ADAS_NUMBER, ADAS_BSUID)))).outcome is Outcome.RECORDED
    again = await town.send(dm(NEW_NUMBER, NEW_BSUID), "my new number")
    assert again.session_id == first.session_id
    assert await find_address(town, again) == f"whatsapp::{NEW_NUMBER}"
    # What was sent before the change and comes late is still theirs, but the number is free.
    assert (await town.send(dm(None, ADAS_BSUID), "late")).session_id == first.session_id
    assert (await town.send(dm(ADAS_NUMBER, BOBS_BSUID), "who is this?")).outcome is Outcome.REJECTED
    assert (await town.inbox.accept(move(dm(ADAS_NUMBER, ADAS_BSUID)))).outcome is Outcome.IGNORED


async def test_what_comes_late_does_not_move_the_person_back(town: Town) -> None:
    """Meta repeats webhooks for days: the old number may have a new holder by then."""
    first = await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    first_move = move(dm(ADAS_NUMBER, ADAS_BSUID))
    second_move = move(dm(NEW_NUMBER, NEW_BSUID), "4917033333", "DE.333")
    await town.inbox.accept(first_move)
    await town.inbox.accept(second_move)
    bob = dm(ADAS_NUMBER, BOBS_BSUID)
    bobs = await add_person(town, bob)
    for late in (first_move, second_move):
        assert (await town.inbox.accept(late)).outcome is Outcome.IGNORED
    late_message = await town.send(dm(ADAS_NUMBER, ADAS_BSUID), "written long ago")
    assert late_message.session_id == first.session_id
    assert await find_address(town, late_message) == "whatsapp::4917033333"
    assert (await town.send(bob, "it is my number")).session_id == bobs.session_id
    assert (await town.send(dm(ADAS_NUMBER), "it is my number")).session_id == bobs.session_id


async def test_a_changed_number_of_a_stranger_is_ignored(town: Town) -> None:
    assert (await town.inbox.accept(move(dm(ADAS_NUMBER)))).outcome is Outcome.IGNORED


async def test_a_person_who_wrote_under_the_new_ids_first_is_united(town: Town) -> None:
    first = await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    early = await add_person(town, dm(NEW_NUMBER, NEW_BSUID))
    await town.inbox.accept(move(dm(ADAS_NUMBER, ADAS_BSUID)))
    person = await find_person(town, dm(NEW_NUMBER))
    assert person is not None
    again = await town.send(dm(NEW_NUMBER, NEW_BSUID), "again")
    assert again.session_id == first.session_id
    assert (await town.send(dm(None, ADAS_BSUID), "late")).session_id == first.session_id
    assert await town.ask(dm(NEW_NUMBER), "/restore")  # what they said before this was known is theirs, too
    assert (await town.send(dm(NEW_NUMBER), "and on")).session_id == early.session_id


async def test_a_lasting_id_with_another_number_moves_the_chat(town: Town) -> None:
    first = await add_person(town, dm("4917011111", "777@lid", platform="whatsapp-web"))
    again = await town.send(dm("4917099999", "777@lid", platform="whatsapp-web"), "new number")
    assert again.session_id == first.session_id
    assert await find_address(town, again) == "whatsapp-web::4917099999"


# ---- no person becomes another person ----------------------------------------------------------------------------


@pytest.mark.parametrize("first_ids", [(ADAS_NUMBER, ADAS_BSUID), (None, ADAS_BSUID)])
async def test_the_new_holder_of_a_number_gets_nothing_of_the_old_one(
    town: Town, first_ids: tuple[str | None, str]
) -> None:
    first = await add_person(town, dm(*first_ids))
    await town.send(dm(ADAS_NUMBER, ADAS_BSUID), "my number")
    bob = dm(ADAS_NUMBER, BOBS_BSUID)
    stranger = await town.send(bob, "hello")
    assert (stranger.outcome, stranger.session_id) == (Outcome.REJECTED, None)
    assert await find_person(town, bob) is None
    await town.add_person(bob)
    answer = await town.send(bob, "I have access now")
    assert answer.session_id not in {None, first.session_id}
    assert (await town.ask(bob, "/restore")) != ""
    # The first holder is still themselves, at an address that is theirs alone.
    again = await town.send(dm(None, ADAS_BSUID), "still me")
    assert again.session_id == first.session_id
    assert await find_address(town, again) == f"whatsapp::{ADAS_BSUID}"
    assert await find_person(town, dm(ADAS_NUMBER)) == await find_person(town, bob)


@pytest.mark.both_engines
async def test_answers_on_their_way_do_not_reach_the_new_holder(town: Town) -> None:
    await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    await town.ask(dm(ADAS_NUMBER, ADAS_BSUID), "/whoami")
    await town.send(dm(ADAS_NUMBER, BOBS_BSUID), "hello")
    rows = await town.rows("SELECT address, content FROM delivery ORDER BY no")
    assert [address for address, content in rows if "Ada" in content] == [f"whatsapp::{ADAS_BSUID}"]


async def test_a_number_that_a_person_moves_to_is_taken_from_its_former_holder(town: Town) -> None:
    """Ada gets the number that Bob had: she does not become Bob, and Bob's conversation stays his."""
    ada = await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    bob = await add_person(town, dm(BOBS_NUMBER))  # seen without a lasting id
    adas_person = await find_person(town, dm(ADAS_NUMBER))
    await town.inbox.accept(move(dm(ADAS_NUMBER, ADAS_BSUID), BOBS_NUMBER, NEW_BSUID))
    again = await town.send(dm(BOBS_NUMBER, NEW_BSUID), "my new number")
    assert again.session_id == ada.session_id != bob.session_id
    assert await find_person(town, dm(BOBS_NUMBER)) == adas_person
    await town.ask(dm(BOBS_NUMBER), "/restore")
    assert (await town.send(dm(BOBS_NUMBER), "still Ada")).session_id == ada.session_id


async def test_a_person_with_a_number_is_not_united_with_the_former_holder_of_their_next_one(town: Town) -> None:
    ada = await add_person(town, dm("4917011111", "777@lid", platform="whatsapp-web"))
    bob = await add_person(town, dm("4917022222", platform="whatsapp-web"))
    again = await town.send(dm("4917022222", "777@lid", platform="whatsapp-web"), "new number")
    assert again.session_id == ada.session_id != bob.session_id


@pytest.mark.both_engines
async def test_the_group_lane_of_a_person_is_not_continued_by_the_new_holder(town: Town) -> None:
    first = await add_person(town, group("4917011111", "777@lid"))
    await town.add_person(group("4917011111", "888@lid"))
    other = await town.send(group("4917011111", "888@lid"), "hello all")
    assert other.session_id != first.session_id
    assert (await town.send(group(None, "777@lid"), "still me")).session_id == first.session_id


async def test_a_late_change_of_number_does_not_move_the_new_holder(town: Town) -> None:
    """Bob has Ada's number already when we hear that she has another one."""
    ada = await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    await town.send(dm(ADAS_NUMBER, BOBS_BSUID), "hello")
    bob = await add_person(town, dm(ADAS_NUMBER, BOBS_BSUID))
    assert bob.session_id != ada.session_id
    assert (await town.inbox.accept(move(dm(ADAS_NUMBER, ADAS_BSUID)))).outcome is Outcome.RECORDED
    assert (await town.send(dm(NEW_NUMBER, NEW_BSUID), "my new number")).session_id == ada.session_id
    assert (await town.send(dm(ADAS_NUMBER, BOBS_BSUID), "still Bob")).session_id == bob.session_id


async def test_the_changed_number_of_a_stranger_does_not_move_who_has_the_number_now(town: Town) -> None:
    bob = await add_person(town, dm(ADAS_NUMBER, BOBS_BSUID))
    assert (await town.inbox.accept(move(dm(ADAS_NUMBER, ADAS_BSUID)))).outcome is Outcome.IGNORED
    assert (await town.send(dm(NEW_NUMBER, NEW_BSUID), "hello")).outcome is Outcome.REJECTED
    assert (await town.send(dm(ADAS_NUMBER, BOBS_BSUID), "still Bob")).session_id == bob.session_id


async def test_ids_that_were_used_before_the_change_was_known_are_lasting(town: Town) -> None:
    """They wrote under the new ids first. The next holder of that number is still another person."""
    first = await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    await add_person(town, dm(NEW_NUMBER, NEW_BSUID))
    await town.inbox.accept(move(dm(ADAS_NUMBER, ADAS_BSUID)))
    assert (await town.send(dm(NEW_NUMBER, BOBS_BSUID), "hello")).outcome is Outcome.REJECTED
    again = move(dm(NEW_NUMBER, NEW_BSUID), "4917033333", "DE.333")
    assert (await town.inbox.accept(again)).outcome is Outcome.RECORDED
    assert (await town.send(dm("4917033333", "DE.333"), "moved twice")).session_id == first.session_id


async def test_a_person_known_by_a_lasting_id_alone_keeps_it_after_a_change(town: Town) -> None:
    first = await add_person(town, dm(None, ADAS_BSUID))
    change = ChatMoved(source=dm(None, ADAS_BSUID), new_chat_id=NEW_BSUID, new_user_ids=(NEW_BSUID,))
    assert (await town.inbox.accept(change)).outcome is Outcome.RECORDED
    assert (await town.inbox.accept(change)).outcome is Outcome.IGNORED
    late = await town.send(dm(ADAS_NUMBER, ADAS_BSUID), "written before")
    assert late.session_id == first.session_id
    assert await find_address(town, late) == f"whatsapp::{NEW_BSUID}"


async def test_a_number_that_a_person_gave_up_belongs_to_no_person(store: SessionStore, clock: FakeClock) -> None:
    """Also if the person is stored under their lasting id."""
    town = Town(store, clock, TurnRules(allowed_users={Platform.WHATSAPP_WEB: frozenset({ADAS_NUMBER})}))
    web = "whatsapp-web"
    await town.add_person(dm(None, "777@lid", platform=web), Role.GUEST)
    assert (await town.send(dm(ADAS_NUMBER, "777@lid", platform=web), "allowed")).is_stored
    assert (await town.send(dm(NEW_NUMBER, "777@lid", platform=web), "no more")).outcome is Outcome.REJECTED
    assert await find_person(town, dm(ADAS_NUMBER, platform=web)) is None
    assert await find_person(town, dm(NEW_NUMBER, platform=web)) is not None


@pytest.mark.parametrize(
    ("platform", "adas_id", "bobs_id"), [("whatsapp", ADAS_BSUID, BOBS_BSUID), ("whatsapp-web", "777@lid", "888@lid")]
)
async def test_the_new_holder_of_a_number_is_a_stranger_to_all_our_accounts(
    town: Town, platform: str, adas_id: str, bobs_id: str
) -> None:
    """Ada has written to one account of ours only, and the new holder of her number writes to another one."""
    ada = await add_person(town, dm(ADAS_NUMBER, adas_id, platform=platform, account="one"), Role.OWNER)
    bob = dm(ADAS_NUMBER, bobs_id, platform=platform, account="two")
    assert (await town.send(bob, "hello")).outcome is Outcome.REJECTED
    assert await find_person(town, bob) is None
    again = await town.send(dm(ADAS_NUMBER, adas_id, platform=platform, account="one"), "still me")
    assert again.session_id == ada.session_id


@pytest.mark.both_engines
async def test_a_request_is_approved_for_the_person_who_is_known_meanwhile(town: Town) -> None:
    first = await add_person(town, dm(None, ADAS_BSUID))
    code = find_code(await town.ask(dm(ADAS_NUMBER), "without my id"))
    await town.send(dm(ADAS_NUMBER, ADAS_BSUID), "with both")
    await town.ask(SessionSource.local_cli(), f"/pair {code} member")
    assert (await town.send(dm(ADAS_NUMBER), "again")).session_id == first.session_id
    assert len(await town.rows("SELECT 1 FROM identity WHERE platform = 'whatsapp'")) == 1
    assert (await town.send(dm(ADAS_NUMBER, BOBS_BSUID), "hello")).outcome is Outcome.REJECTED


async def test_two_businesses_know_a_person_by_two_bsuids(town: Town) -> None:
    """The other one could be a new holder of the number: the person asks for access there, too, and keeps both."""
    one, two = dm(ADAS_NUMBER, ADAS_BSUID, account="one"), dm(ADAS_NUMBER, "DE.333", account="two")
    first = await add_person(town, one)
    code = find_code(await town.ask(two, "the other number"))
    await town.ask(SessionSource.local_cli(), f"/pair {code} member")
    other = await town.send(two, "again")
    for _ in range(2):
        assert (await town.send(one, "again")).session_id == first.session_id
        assert (await town.send(two, "again")).session_id == other.session_id
    assert (await town.send(dm(None, "DE.333", account="two"), "again")).session_id == other.session_id
    await town.inbox.accept(move(one))
    await town.inbox.accept(move(two, NEW_NUMBER, "DE.444"))
    assert (await town.send(dm(NEW_NUMBER, NEW_BSUID, account="one"), "moved")).session_id == first.session_id
    assert (await town.send(dm(NEW_NUMBER, "DE.444", account="two"), "moved")).session_id == other.session_id


async def test_two_numbers_of_one_business_are_told_of_one_change(town: Town) -> None:
    one, two = (dm(ADAS_NUMBER, ADAS_BSUID, account=each) for each in ("one", "two"))
    first = await add_person(town, one)
    other = await town.send(two, "the other number")
    assert (await town.inbox.accept(move(one))).outcome is Outcome.RECORDED
    assert (await town.inbox.accept(move(two))).outcome is Outcome.IGNORED
    assert (await town.send(dm(NEW_NUMBER, NEW_BSUID, account="one"), "again")).session_id == first.session_id
    assert (await town.send(dm(None, NEW_BSUID, account="two"), "again")).session_id == other.session_id


async def test_a_number_changes_hands_before_or_after_a_message_but_not_during_it(town: Town) -> None:
    """Otherwise the answer to Ada's message would go to the number that is Bob's by then."""
    await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    config, now = town.store.config, town.clock.now()
    is_folded, is_taken = threading.Event(), threading.Event()

    def accept_adas_message(tx: Transaction) -> bool:
        merge_source(tx, dm(None, ADAS_BSUID), config, now)
        is_folded.set()
        return is_taken.wait(0.3)

    accepting = asyncio.create_task(town.write(accept_adas_message))
    await asyncio.to_thread(is_folded.wait)
    taking = asyncio.create_task(town.send(dm(ADAS_NUMBER, BOBS_BSUID), "hello"))
    taking.add_done_callback(lambda _: is_taken.set())
    assert not await accepting
    assert (await taking).outcome is Outcome.REJECTED


async def test_ids_that_a_person_writes_or_chooses_as_a_name_mean_nothing(town: Town) -> None:
    first = await add_person(town, dm(ADAS_NUMBER, ADAS_BSUID))
    mallory = replace(dm(BOBS_NUMBER, BOBS_BSUID), user_name=ADAS_NUMBER, chat_name=ADAS_BSUID)
    assert (await town.send(mallory, f"I am {ADAS_NUMBER}")).outcome is Outcome.REJECTED
    await town.add_person(mallory)
    assert (await town.send(mallory, ADAS_BSUID)).session_id != first.session_id


@pytest.mark.both_engines
async def test_both_can_sign_in_stay_two_people(town: Town) -> None:
    ada, bob = await town.add_account("Ada"), await town.add_account("Bob")

    def link(tx: object) -> None:
        people.add_identity(tx, ("whatsapp", ADAS_NUMBER), ada.id, 1)  # type: ignore[arg-type]
        people.add_identity(tx, ("whatsapp", BOBS_BSUID), bob.id, 1)  # type: ignore[arg-type]

    await town.write(link)
    await town.send(dm(ADAS_NUMBER, BOBS_BSUID), "who is this?")
    assert (await find_person(town, dm(None, BOBS_BSUID))) == bob
    assert (await find_person(town, dm(ADAS_NUMBER))) == bob
    assert len(await town.rows("SELECT 1 FROM identity WHERE person_id = $1 AND platform = 'whatsapp'", ada.id)) == 1


@pytest.mark.both_engines
async def test_unlinking_gives_an_account_all_its_ids_back(town: Town) -> None:
    owner = town.store.get_owner()
    code = find_code(await town.ask(SessionSource.local_cli(), "/link"))
    await town.ask(dm(ADAS_NUMBER, ADAS_BSUID), f"/link {code}")
    await town.ask(SessionSource.local_cli(), "/link confirm")
    await town.ask(dm(ADAS_NUMBER, ADAS_BSUID), "/link confirm")
    assert await find_person(town, dm(None, ADAS_BSUID)) == owner
    await town.ask(dm(ADAS_NUMBER, ADAS_BSUID), "/unlink")
    ada = await find_person(town, dm(None, ADAS_BSUID))
    assert ada is not None
    assert ada.id != owner.id
    assert ada.role is Role.GUEST
    assert await find_person(town, dm(ADAS_NUMBER)) == ada
