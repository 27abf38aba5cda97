"""Tests of `palaver deliveries`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver.sessions.delivery import DeliveryState
from support.deliveries import add_undelivered

if TYPE_CHECKING:
    from cli.conftest import Home


@pytest.fixture
def ids(home: Home) -> list[str]:
    """Return an uncertain answer to Ada, an older failed one to her, and an uncertain one to Bob, the oldest."""
    with home.open_store() as store:
        return [
            add_undelivered(store, home.ada, error="The line\x1b[2J broke."),
            add_undelivered(store, home.ada, DeliveryState.FAILED, error="Blocked.", ago=timedelta(hours=1)),
            add_undelivered(store, home.bob, ago=timedelta(hours=2)),
        ]


def list_states(home: Home) -> dict[str, str]:
    return {each["id"]: each["state"] for each in home.get_json("deliveries")["deliveries"]}


def test_without_undelivered_messages(home: Home) -> None:
    assert home.get_text("deliveries") == "No undelivered messages.\n"
    assert home.get_json("deliveries", "list") == {"deliveries": []}
    assert home.get_json("deliveries", "resend", "--all", "--yes") == {"resolved": [], "unchanged": []}


def test_they_are_listed_and_filtered(home: Home, ids: list[str]) -> None:
    result = home("deliveries")
    assert all(each in result.stdout for each in ids)
    assert "telegram:100" in result.stdout
    assert "not delivered" in result.stdout
    assert "\x1b[2J" not in result.stdout
    assert "deliveries --help" in result.stderr
    assert list(list_states(home)) == ids
    for options, expected in {
        ("--state", "failed"): ids[1:2],
        ("--platform", "signal"): ids[2:],
        ("--to", "telegram:100"): ids[:2],
        ("--before", "2020-01-01"): [],
    }.items():
        found = home.get_json("deliveries", "list", *options)["deliveries"]
        assert [each["id"] for each in found] == expected
    assert home.get_text("deliveries", "list", "--mine") == "No undelivered messages.\n"
    assert "no chat" in home.get_error("deliveries", "list", "--to", "telegram", code=1)


def test_one_is_shown_with_its_reason(home: Home, ids: list[str]) -> None:
    text = home.get_text("deliveries", "show", ids[0])
    assert "telegram:100" in text
    assert "The line broke." in text
    assert home.get_json("deliveries", "show", ids[1])["error"] == "Blocked."
    assert "d_0" in home.get_error("deliveries", "show", "d_0", code=3)


def test_many_are_settled_at_once(home: Home, ids: list[str]) -> None:
    assert "--yes" in home.get_error("deliveries", "resend", ids[0], code=2)
    assert home.get_json("deliveries", "mark-sent", "--all", "--yes")["resolved"] == [ids[0], ids[2]]
    assert list_states(home) == {ids[1]: "failed"}
    assert home.get_text("deliveries", "dismiss", "--platform", "telegram", "--yes") == "Dismissed: 1 message.\n"
    assert list_states(home) == {}


def test_messages_are_settled_by_their_ids(home: Home, ids: list[str]) -> None:
    assert home.get_text("deliveries", "mark-not-sent", ids[0], "--yes") == "Marked as not delivered: 1 message.\n"
    assert list_states(home)[ids[0]] == "failed"
    text = home.get_text("deliveries", "resend", *ids[:2], "d_0", "--yes")
    assert text == "Queued again: 2 messages. 1 message had been settled before, or was not found.\n"
    assert list_states(home) == {ids[2]: "uncertain"}
    home.get_error("deliveries", "resend", ids[0], "--yes", code=6)
    home.get_error("deliveries", "resend", "d_0", "--yes", code=3)


@pytest.mark.parametrize("arguments", [(), ("d_1", "--all"), ("d_1", "--platform", "telegram")])
def test_either_ids_or_filters_are_needed(home: Home, arguments: tuple[str, ...]) -> None:
    assert "--all" in home.get_error("deliveries", "dismiss", *arguments, "--yes", code=2)
