"""What a summary must keep: a table of conversations with summaries that are good enough, and others."""

from __future__ import annotations

from typing import Any

import pytest

from palaver.agent.summary_facts import (
    MAX_IDENTIFIERS,
    MAX_READ_CHARS,
    MissingFacts,
    add_missing_facts,
    find_missing_facts,
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


TRIP = [
    user("Book the hotel for 2026-12-24, order AB-123456. It must not cost more than $1,200.50 for 5 days."),
    agent("Done: https://hotel.example/booking/77?x=1 confirms it."),
    user("Send the bill to ada.l@example.org and put it into ~/Documents/trip/bill.pdf please, at 14:30."),
    agent("Sent."),
]
GOOD = (
    "Ada booked a hotel (order AB-123456) for December 24, 2026, at most $1200.50 for 5 days. The bill goes to"
    " ada.l@example.org and ~/Documents/trip/bill.pdf at 14:30."
)


@pytest.mark.parametrize(
    ("messages", "summary"),
    [
        (TRIP, GOOD),
        (TRIP, GOOD.upper()),
        (TRIP, GOOD.replace("$1200.50", "1.200,50 USD").replace("14:30", "half past two")),
        ([user("hello"), agent("Hi! How are you?"), user("good")], "They greeted each other."),
        ([user("I am 38, born in 1988, have 2 cats, use python3 and gpt-4, and live in a 4-room flat.")], "About Ada."),
        ([user("Call +43 660 123 45 67")], "Call +436601234567"),
        ([user("see http://www.Example.org/a/")], "The page is https://example.org/a"),
        ([user("Am 3.12. um 9:05, 20 %")], "3. Dezember, 9 Uhr 5, 20 Prozent"),
        ([agent("It is ABC-12345.")], "An id."),  # said once, by the agent
        ([user("Which one?"), agent("The red one.")], "They chose."),  # answered
        ([agent("Shall I order the red bicycle for you?")], "The agent asked whether to order a red bicycle."),
        ([user("- [ ] buy new tires\n- [x] wash")], "To do: new tires must be bought."),
        ([{"role": "tool", "content": "order ZZ-998877", "tool_call_id": "1"}, user("ok")], "Fine."),
        ([user("x" * MAX_READ_CHARS + " AB-123456")], "Something pasted."),
    ],
)
def test_a_summary_that_keeps_what_matters_is_accepted(messages: list[dict[str, Any]], summary: str) -> None:
    assert find_missing_facts(summary, messages) == MissingFacts([], [])


@pytest.mark.parametrize(
    ("messages", "summary", "mentioned", "open_items"),
    [
        (TRIP, "A hotel was booked.", {"AB-123456", "ada.l@example.org", "~/Documents/trip/bill.pdf"}, []),
        (TRIP, GOOD.replace("AB-123456", "AB-123465"), {"AB-123456"}, []),
        (TRIP, GOOD.replace("ada.l@", "ada@"), {"ada.l@example.org"}, []),
        ([user("It is `rm -rf build`, really.")], "A command.", {"rm -rf build"}, []),
        ([user("Ticket #4711 and 9876543")], "Two tickets.", {"#4711", "9876543"}, []),
        ([agent("It is ABC-12345."), agent("ABC-12345 is shipped.")], "Shipped.", {"ABC-12345"}, []),
        ([user("3 kg of flour, 250 g of sugar, 20 %")], "Ingredients.", {"3 kg", "250 g", "20 %"}, []),
        ([user("3 kg of flour, 250 g of sugar, 20 %")], "20 % of it.", {"3 kg", "250 g"}, []),
        ([agent("Shall I order the red bicycle?")], "They spoke.", set(), ["Shall I order the red bicycle?"]),
        ([user("Soll ich das rote Fahrrad bestellen?")], "Gespräch.", set(), ["Soll ich das rote Fahrrad bestellen?"]),
        ([user("- [ ] buy new tires"), agent("Noted.")], "They spoke.", set(), ["buy new tires"]),
        ([user("TODO: call the dentist")], "They spoke.", set(), ["call the dentist"]),
    ],
)
def test_a_summary_that_loses_something_is_refused(
    messages: list[dict[str, Any]], summary: str, mentioned: set[str], open_items: list[str]
) -> None:
    missing = find_missing_facts(summary, messages)
    assert mentioned <= set(missing.mentioned)
    assert missing.open_items == open_items
    completed = add_missing_facts(summary, missing)
    assert find_missing_facts(completed, messages).count == 0


def test_what_the_previous_summary_has_is_kept() -> None:
    previous = "Order AB-123456."
    assert find_missing_facts("They spoke on.", [user("and now?"), agent("Yes.")], previous).mentioned == ["AB-123456"]
    assert find_missing_facts("Order AB-123456.", [user("and now?"), agent("Yes.")], previous).count == 0


def test_of_many_identifiers_the_newest_count() -> None:
    messages = [user(f"order AB-{100000 + number}") for number in range(100)]
    missing = find_missing_facts("Orders.", messages)
    assert missing.mentioned == [f"AB-{100099 - number}" for number in range(MAX_IDENTIFIERS)]
    assert len(add_missing_facts("Orders.", missing)) < 1000
