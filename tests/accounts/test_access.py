"""Who may talk to the agent, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver import Platform
from palaver.accounts.accounts import Accounts
from palaver.config.agent_rules import TurnRules
from palaver.core.errors import ConfigError
from palaver.people.model import Role
from palaver.sessions.inbound import Inbound, Outcome
from support.people import Town, chat, find_code, group

if TYPE_CHECKING:
    from palaver import SessionSource, SessionStore
    from palaver.testing import FakeClock

ADA, BOB = chat("ada"), chat("bob")
LIMITED: dict[str, Any] = {"messages_per_minute": {Role.MEMBER: 6, Role.GUEST: 2}}


@pytest.fixture
def town(store: SessionStore, clock: FakeClock) -> Town:
    return Town(store, clock, TurnRules(**LIMITED))


async def test_accounts_in_the_allow_list_may_speak_on_their_platform_as_guests(
    store: SessionStore, clock: FakeClock
) -> None:
    town = Town(store, clock, TurnRules(allowed_users={Platform.TELEGRAM: frozenset({"ada"})}))
    assert (await town.send(ADA, "hello")).is_stored
    assert (await town.send(group("ada"), "hello")).is_stored
    person = await town.find_person(ADA)
    assert person is not None
    assert person.role is Role.GUEST
    assert find_code(await town.ask(chat("ada", "matrix"), "hello"))  # the same id elsewhere is another person
    named = chat("eve")
    assert find_code(await town.ask(type(named)("telegram", "chat-eve", user_id="eve", user_name="ada"), "hello"))


async def test_a_person_who_sends_too_much_is_told_when_to_try_again(town: Town, clock: FakeClock) -> None:
    await town.add_person(ADA)
    receipts = [await town.inbox.accept(_message(ADA, number)) for number in range(8)]
    assert [receipt.is_stored for receipt in receipts] == [True] * 6 + [False] * 2
    assert receipts[-1].outcome is Outcome.REJECTED
    assert receipts[-1].facts == {"error": "too_many_messages", "limit": 6, "retry_after": 11}
    assert receipts[-1].reply == (
        "You're sending messages too fast: members can send 6 a minute. This one wasn't saved. Try again in 11 s."
    )
    assert (await town.send(BOB, "hello")).outcome is Outcome.REJECTED  # a stranger, who is not counted
    clock.advance(seconds=10)
    assert (await town.send(ADA, "now")).is_stored
    assert not (await town.send(ADA, "and now?")).is_stored
    clock.advance(minutes=1)
    assert (await town.send(ADA, "later")).is_stored


def _message(source: SessionSource, number: int) -> Inbound:
    return Inbound(source=source, content=f"message {number}", message_id=f"x{number}")


@pytest.mark.both_engines
async def test_commands_count_too_but_stop_always_works(town: Town) -> None:
    await town.add_person(ADA)
    outcomes = [(await town.send(ADA, "/status", message_id=f"s{number}")).outcome for number in range(9)]
    assert outcomes[0] is Outcome.COMMAND
    assert outcomes[-1] is Outcome.REJECTED
    assert (await town.send(ADA, "/title x")).outcome is Outcome.REJECTED
    assert "too fast" not in await town.ask(ADA, "/stop")


async def test_the_same_message_again_is_not_counted(town: Town) -> None:
    await town.add_person(ADA)
    for _ in range(10):
        receipt = await town.send(ADA, "hello", message_id="x1")
    assert receipt.outcome is Outcome.DUPLICATE
    assert (await town.send(ADA, "another")).is_stored


async def test_owners_have_no_limit_and_all_processes_count_together(store: SessionStore, clock: FakeClock) -> None:
    here, there = (Town(store, clock, TurnRules(**LIMITED)) for _ in range(2))
    await here.add_person(chat("olga"), Role.OWNER)
    await here.add_person(ADA)
    for number in range(20):
        assert (await here.inbox.accept(_message(chat("olga"), number))).is_stored
    for number in range(6):
        assert (await (here, there)[number % 2].inbox.accept(_message(ADA, number))).is_stored
    assert not (await here.inbox.accept(_message(ADA, 6))).is_stored
    assert not (await there.inbox.accept(_message(ADA, 7))).is_stored


async def test_a_clock_that_is_set_back_locks_no_person_out(town: Town, clock: FakeClock) -> None:
    await town.add_person(ADA)
    for number in range(6):
        await town.inbox.accept(_message(ADA, number))
    clock.advance(days=-1)
    assert (await town.send(ADA, "hello")).is_stored


async def test_the_operator_chooses_the_commands_of_guests(store: SessionStore, clock: FakeClock) -> None:
    rules = TurnRules(open_platforms=frozenset({Platform.TELEGRAM}), guest_commands=frozenset({"help", "busy"}))
    town = Town(store, clock, rules)
    await town.send(ADA, "hello")
    assert (await town.send(ADA, "/busy steer")).outcome is Outcome.COMMAND
    assert (await town.ask(ADA, "/new")).startswith("Guests can't use /new.")
    assert "/new" not in await town.ask(ADA, "/help")


@pytest.mark.parametrize("name", ["pair", "sethome", "nonsense"])
def test_guests_cannot_be_given_commands_of_owners_or_unknown_ones(
    store: SessionStore, clock: FakeClock, name: str
) -> None:
    with pytest.raises(ConfigError, match=f"people.guest_commands: {name} is not allowed"):
        Town(store, clock, TurnRules(guest_commands=frozenset({name})))


@pytest.mark.both_engines
async def test_a_removed_guest_loses_their_direct_messages(town: Town) -> None:
    await town.add_person(chat("olga"), Role.OWNER)
    code = find_code(await town.ask(ADA, "hello"))
    await town.ask(chat("olga"), f"/pair {code} guest")
    assert (await town.send(ADA, "hello")).is_stored
    person = await town.find_person(ADA)
    assert person is not None
    await Accounts(town.store).open_people(town.store.get_owner().principal).remove(person.id)
    assert find_code(await town.ask(ADA, "hello"))
