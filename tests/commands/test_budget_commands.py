"""/budget: how a person's budget stands, and how owners change limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from palaver.config.agent_rules import AgentProfile, Profile, TurnRules
from palaver.config.budget_rules import BudgetKey, BudgetLimit, BudgetPeriod, BudgetRules, BudgetScope, BudgetUnit
from palaver.core.errors import NotFound
from palaver.money import table as budget_limits
from palaver.people.model import Role
from support.budgets import DOLLAR, store_usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource

    Source = Callable[..., SessionSource]

PERSON, ALL, PROFILE = BudgetScope.PERSON, BudgetScope.ALL, BudgetScope.PROFILE


def make_limit(scope: BudgetScope, amount: int, unit: BudgetUnit = BudgetUnit.USD) -> BudgetLimit:
    return BudgetLimit(key=BudgetKey(scope, "", BudgetPeriod.DAY), unit=unit, amount=amount)


@pytest.fixture
def limited(chat: Chat) -> Chat:
    """A chat whose config.yaml allows each person $5 a day, and everybody together $20."""
    rules = BudgetRules(limits=(make_limit(PERSON, 5 * DOLLAR), make_limit(ALL, 20 * DOLLAR)))
    return replace(chat, rules=TurnRules(budgets=rules), profile=AgentProfile(profiles={"research": Profile()}))


@pytest.mark.both_engines
def test_a_person_sees_what_they_have_used(limited: Chat, dm: Source) -> None:
    person = limited.register(dm())
    limited.write(
        lambda tx: store_usage(
            tx, PERSON, person.id, limited.clock.now(), nanos=DOLLAR, tokens=12_000, held_nanos=DOLLAR // 4
        )
    )
    reply = limited.run(dm(), "/budget")
    today, month = reply.text.split("\n")[1:3]
    assert "Today: $1.00 of $5.00 (25%) (plus $0.25 held for running calls), 12,000 tokens; resets 20" in today
    assert "(UTC)" in today
    assert "This month: $1.00 (plus $0.25 held for running calls), 12,000 tokens; no limit; resets" in month
    assert reply.data["budgets"][0]["limit_usd"] == "5"


def test_nothing_used_and_no_limit_is_said_plainly(chat: Chat, dm: Source) -> None:
    assert "Today: $0.00, 0 tokens; no limit; resets" in chat.run(dm(), "/budget").text


def test_a_call_without_a_known_price_is_not_free(limited: Chat, dm: Source) -> None:
    person = limited.register(dm())
    limited.write(lambda tx: store_usage(tx, PERSON, person.id, limited.clock.now(), tokens=5, unpriced_calls=2))
    assert "plus 2 calls whose price is unknown" in limited.run(dm(), "/budget").text


@pytest.mark.both_engines
def test_members_learn_nothing_of_others(limited: Chat, dm: Source) -> None:
    ada = limited.register(dm("ada"))
    limited.write(lambda tx: store_usage(tx, PERSON, ada.id, limited.clock.now(), nanos=7 * DOLLAR, tokens=777))
    limited.write(lambda tx: store_usage(tx, ALL, "", limited.clock.now(), nanos=7 * DOLLAR, tokens=777))
    reply = limited.run(dm("ben"), "/budget")
    assert "7" not in reply.text.replace("2027", "").split("resets")[0]
    assert "Everybody" not in reply.text
    assert {budget["scope"] for budget in reply.data["budgets"]} == {"person"}
    owner_text = limited.run(dm("ben"), "/budget", role=Role.OWNER).text
    assert "**Everybody together**\n- Today: $7.00 of $20.00 (35%), 777 tokens" in owner_text


def test_members_learn_that_the_budget_of_everybody_is_used_up_and_no_amount(limited: Chat, dm: Source) -> None:
    limited.write(lambda tx: store_usage(tx, ALL, "", limited.clock.now(), nanos=21 * DOLLAR))
    reply = limited.run(dm(), "/budget")
    assert "The daily budget of everybody together is used up until 20" in reply.text
    assert "21" not in reply.text.replace("2021", "").split("used up")[0]
    assert "$20" not in reply.text
    assert reply.data["used_up"] == [{"scope": "all", "period": "day"}]


@pytest.mark.both_engines
def test_the_profile_of_the_conversation_is_shown_to_owners(limited: Chat, dm: Source) -> None:
    limited.run(dm(), "/profile research")
    limited.write(lambda tx: store_usage(tx, PROFILE, "research", limited.clock.now(), nanos=3 * DOLLAR))
    assert "**Profile research**\n- Today: $3.00" in limited.run(dm(), "/budget", role=Role.OWNER).text
    assert "research" not in limited.run(dm(), "/budget").text


def test_others_in_a_group_read_no_amounts(limited: Chat, group: Source) -> None:
    assert "Use /budget in a direct message" in limited.expect_error(group(), "/budget")
    assert "direct message" in limited.expect_error(group(), "/budget set all day $5", role=Role.OWNER)


@pytest.mark.parametrize(
    ("command", "key", "unit", "amount"),
    [
        ("/budget set all month $50", BudgetKey(ALL, "", BudgetPeriod.MONTH), BudgetUnit.USD, 50 * DOLLAR),
        ("/budget set everyone day 200k tokens", BudgetKey(PERSON, "", BudgetPeriod.DAY), BudgetUnit.TOKENS, 200_000),
        ("/budget SET jobs DAY $0.10", BudgetKey(BudgetScope.JOB, "", BudgetPeriod.DAY), BudgetUnit.USD, DOLLAR // 10),
        (
            "/budget set profile research day $1",
            BudgetKey(PROFILE, "research", BudgetPeriod.DAY),
            BudgetUnit.USD,
            DOLLAR,
        ),
    ],
)
def test_an_owner_sets_limits(
    limited: Chat, dm: Source, command: str, key: BudgetKey, unit: BudgetUnit, amount: int
) -> None:
    assert limited.run(dm(), command, role=Role.OWNER).text.startswith("Limit set. ")
    assert limited.read(budget_limits.list_all) == [BudgetLimit(key=key, unit=unit, amount=amount)]


@pytest.mark.both_engines
def test_an_owner_raises_lifts_and_clears_the_limit_of_a_person(limited: Chat, dm: Source) -> None:
    ada = limited.register(dm("ada"))
    reply = limited.run(dm("ben"), f"/budget set {ada.name} day $9.50", role=Role.OWNER)
    assert f"{ada.name}, today: $0.00 of $9.50 (0%)" in reply.text
    assert "of $9.50" in limited.run(dm("ada"), "/budget").text
    limited.run(dm("ben"), f"/budget set {ada.id} day none", role=Role.OWNER)
    assert "Today: $0.00, 0 tokens; no limit" in limited.run(dm("ada"), "/budget").text
    cleared = limited.run(dm("ben"), f"/budget clear person {ada.name} day", role=Role.OWNER)
    assert "server settings apply" in cleared.text
    assert "of $5.00" in limited.run(dm("ada"), "/budget").text
    assert "No limit was set here." in limited.run(dm("ben"), f"/budget clear {ada.id} day", role=Role.OWNER).text


@pytest.mark.parametrize(
    "command", ["/budget set all day $5", "/budget set everyone day none", "/budget clear all day"]
)
def test_only_owners_change_limits(limited: Chat, dm: Source, command: str) -> None:
    assert "Only an owner" in limited.expect_error(dm(), command)
    assert limited.read(budget_limits.list_all) == []


def test_a_member_cannot_find_out_who_exists(limited: Chat, dm: Source) -> None:
    ada = limited.register(dm("ada"))
    errors = {limited.expect_error(dm("ben"), f"/budget set {name} day $5") for name in (ada.name, "unknown")}
    assert len(errors) == 1


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/budget set", "Examples: `set all month $50`"),
        ("/budget set all", "Examples:"),
        ("/budget all day $5", "`/budget set all month $50`"),
        ("/budget set all day", "How much? Use `$5`"),
        ("/budget set all day 5", "“5” is not an amount. Examples: `$5`"),
        ("/budget clear all day $5", "takes no amount"),
        ("/budget set Unknown day $5", "There is no person “Unknown”."),
        ("/budget set job nightly day $5", "There is no job “nightly”."),
        ("/budget set profile cooking day $5", "There is no profile “cooking” (research)."),
        ("/budget set " + "x" * 400 + " day $5", "Examples:"),
    ],
)
def test_mistakes_are_explained(limited: Chat, dm: Source, command: str, words: str) -> None:
    assert words in limited.expect_error(dm(), command, role=Role.OWNER)


@pytest.mark.both_engines
def test_the_limit_of_a_profile_that_was_removed_can_be_cleared(limited: Chat, dm: Source) -> None:
    limited.run(dm(), "/budget set profile research day $1", role=Role.OWNER)
    without = replace(limited, profile=AgentProfile())
    with pytest.raises(NotFound, match="There is no profile “research”"):
        without.run(dm(), "/budget set profile research day $2", role=Role.OWNER)
    reply = without.run(dm(), "/budget clear profile research day", role=Role.OWNER)
    assert reply.text.startswith("Limit removed; the server settings apply.")
    assert limited.read(budget_limits.list_all) == []


def test_the_limit_for_each_person_is_said_without_what_was_used(limited: Chat, dm: Source) -> None:
    reply = limited.run(dm(), "/budget set everyone day 2k tokens", role=Role.OWNER)
    assert reply.text == "Limit set. Each person, daily: $5.00 and 2,000 tokens."
    reply = limited.run(dm(), "/budget set jobs month none", role=Role.OWNER)
    assert reply.text == "Limit set. Each job, monthly: no limit."
