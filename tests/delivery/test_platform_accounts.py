"""Leases of accounts: one holder at a time, and what an earlier one writes is refused."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from palaver.core.engines.base import Read, Write
from palaver.core.errors import LeaseLost
from palaver.core.source import Platform
from palaver.delivery import accounts_table as platform_accounts
from palaver.delivery.model import AccountState, AccountStatus, ConnectionTest, LinkingPrompt

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.delivery.accounts_table import Fence

pytestmark = pytest.mark.both_engines


KEY = (Platform.TELEGRAM, "work")
LIVE = AccountStatus(
    state=AccountState.LIVE,
    since=datetime(2026, 1, 2, tzinfo=UTC),
    name="@bot \ud83d\ude00\0",
    user_id="7",
    warnings=("one", "two"),
    error="it broke",
    error_at=datetime(2026, 1, 1, tzinfo=UTC),
    last_message_at=datetime(2026, 1, 3, tzinfo=UTC),
    details=("version 2",),
    linking=LinkingPrompt(
        instructions="Scan it.", qr_text="pair:1", code="AB", expires_at=datetime(2026, 1, 4, tzinfo=UTC)
    ),
    last_test=ConnectionTest(number=3, finished_at=datetime(2026, 1, 5, tzinfo=UTC), seconds=0.25, error="no"),
)


def acquire(store: SessionStore, owner: str, now: int, dead: frozenset[str] = frozenset()) -> Fence | None:
    def run(tx: Transaction) -> Fence | None:
        assert platform_accounts.can_acquire(tx, KEY, now, dead.__contains__) in {True, False}
        found = platform_accounts.acquire(tx, KEY, owner, now + 45, now, dead.__contains__)
        return None if found is None else found[0]

    return store.engine.run(Write(run))


def check(store: SessionStore, fence: Fence) -> None:
    store.engine.run(Write(lambda tx: platform_accounts.check_fence(tx, fence)))


def test_a_lease_is_held_by_one_owner_until_it_expires(store: SessionStore) -> None:
    first = acquire(store, "a", 100)
    assert first is not None
    assert acquire(store, "b", 100 + 44) is None
    check(store, first)
    assert store.engine.run(Write(lambda tx: platform_accounts.renew(tx, first, 190, LIVE)))
    assert acquire(store, "b", 189) is None
    second = acquire(store, "b", 190)
    assert second is not None
    assert second.lease_no == first.lease_no + 1
    check(store, second)
    with pytest.raises(LeaseLost):
        check(store, first)
    assert not store.engine.run(Write(lambda tx: platform_accounts.renew(tx, first, 999, LIVE)))
    assert not store.engine.run(Write(lambda tx: platform_accounts.renew(tx, first, None, LIVE)))
    check(store, second)


def test_a_lease_of_a_dead_process_is_taken_at_once(store: SessionStore) -> None:
    first = acquire(store, "a", 100)
    assert first is not None
    assert acquire(store, "b", 101, frozenset({"c"})) is None
    assert acquire(store, "b", 101, frozenset({"a"})) is not None
    with pytest.raises(LeaseLost):
        check(store, first)


def test_a_lease_that_was_given_back_is_free_and_allows_no_more_writes(store: SessionStore) -> None:
    first = acquire(store, "a", 100)
    assert first is not None
    assert store.engine.run(Write(lambda tx: platform_accounts.renew(tx, first, None, LIVE)))
    with pytest.raises(LeaseLost):
        check(store, first)
    assert acquire(store, "b", 101) is not None


def test_the_status_comes_back_as_it_was_stored(store: SessionStore) -> None:
    fence = acquire(store, "a", 100)
    assert fence is not None
    store.engine.run(Write(lambda tx: platform_accounts.renew(tx, fence, 145, LIVE)))
    [row] = store.engine.run(Read(platform_accounts.list_accounts))
    assert (row.platform, row.account, row.lease_owner, row.lease_until) == (*KEY, "a", 145)
    assert row.status.name == "@bot 😀 "
    assert {name: getattr(row.status, name) for name in ("state", "since", "user_id", "warnings", "error")} == {
        "state": LIVE.state,
        "since": LIVE.since,
        "user_id": "7",
        "warnings": ("one", "two"),
        "error": "it broke",
    }
    assert (row.status.error_at, row.status.last_message_at) == (LIVE.error_at, LIVE.last_message_at)
    assert (row.status.details, row.status.linking, row.status.last_test) == (
        LIVE.details,
        LIVE.linking,
        LIVE.last_test,
    )


def test_tests_of_a_connection_are_counted_and_a_renewal_keeps_the_count(store: SessionStore) -> None:
    def request() -> int:
        return store.engine.run(Write(lambda tx: platform_accounts.request_test(tx, KEY)))

    assert request() == 0
    fence = acquire(store, "a", 100)
    assert fence is not None
    assert (request(), request()) == (1, 2)
    store.engine.run(Write(lambda tx: platform_accounts.renew(tx, fence, 145, LIVE)))
    [row] = store.engine.run(Read(platform_accounts.list_accounts))
    assert row.test_no == 2


def test_an_account_is_taken_over_only_after_what_its_owner_was_storing(store: SessionStore) -> None:
    """Between the check of a fence and the commit there is no moment for another process to begin."""
    first = acquire(store, "a", 100)
    assert first is not None
    has_checked, may_commit, order = threading.Event(), threading.Event(), list[str]()

    def store_something(tx: Transaction) -> None:
        platform_accounts.check_fence(tx, first)
        has_checked.set()
        assert may_commit.wait(60)

    def write() -> None:
        store.engine.run(Write(store_something))
        order.append("stored")

    def take_over() -> None:
        assert acquire(store, "b", 200) is not None
        order.append("taken over")

    writer, taker = threading.Thread(target=write), threading.Thread(target=take_over)
    writer.start()
    assert has_checked.wait(60)
    taker.start()
    taker.join(0.3)
    assert taker.is_alive()
    may_commit.set()
    for thread in (writer, taker):
        thread.join(60)
    assert sorted(order) == ["stored", "taken over"]
