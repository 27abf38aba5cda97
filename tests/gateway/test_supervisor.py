"""Accounts on platforms stay connected, each for itself; one process runs each."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import AccountRefused, ConnectionLost, LeaseLost, StoreUnavailable
from palaver.core.logs import hide_in_logs
from palaver.core.source import SessionSource
from palaver.delivery.adapter import AccountInfo
from palaver.delivery.model import AccountState
from palaver.gateway.account_runner import ConnectionTiming
from palaver.sessions.inbound import Cursor, Inbound
from support.gateway import wait_for_turn, wait_until
from support.log_lines import capture_log_lines
from support.platform_accounts import (
    PIGEON,
    QUICK,
    SECRET,
    PigeonAccount,
    PigeonAdapter,
    get_health,
    is_live,
    run_gateways,
    wait_for_health,
)

if TYPE_CHECKING:
    import io
    from collections.abc import AsyncIterator, Iterator

    from support.platform_accounts import StartAccounts

pytestmark = pytest.mark.slow


@pytest.fixture
async def start_accounts(store_url: str) -> AsyncIterator[StartAccounts]:
    async with run_gateways(store_url) as start:
        yield start


async def fail(_adapter: PigeonAdapter) -> None:
    raise RuntimeError(f"GET https://sky/bot{SECRET}/fly: 500")


async def hang(_adapter: PigeonAdapter) -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:  # a bug: it cannot be stopped
            await asyncio.sleep(1)
            return


def fail_to_create(_number: int) -> None:
    raise RuntimeError("bug")


# -- states -------------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_live_account_is_shown_with_its_name_warnings_and_last_message(start_accounts: StartAccounts) -> None:
    info = AccountInfo(name="@homer", user_id="7", warnings=("Switch privacy mode off with @BotFather.",))
    account = PigeonAccount(info=info)
    gateway = await start_accounts(account)
    health = await wait_for_health(gateway, is_live)
    assert gateway.platforms == {PIGEON}
    assert health.status is not None
    assert (health.status.name, health.status.user_id, health.status.warnings) == ("@homer", "7", info.warnings)
    assert health.status.last_message_at is None
    await wait_for_turn(gateway, (await account.last.say("hello")).turn_id)
    await wait_until(lambda: account.last.sent)
    after = await wait_for_health(gateway, lambda each: each.status and each.status.last_message_at)
    assert after.status is not None
    assert after.status.since == health.status.since


async def test_the_start_waits_for_no_platform_and_the_stop_is_bounded(start_accounts: StartAccounts) -> None:
    slow, stubborn = PigeonAccount("slow", on_probe=hang), PigeonAccount("stubborn", on_run=hang, on_close=hang)
    gateway = await start_accounts(slow, stubborn, timing=replace(QUICK, close=0.05))
    await wait_until(lambda: stubborn.history == ["create", "run"])
    health = await get_health(gateway, "slow")
    assert health.state in {AccountState.OFF, AccountState.CONNECTING}
    async with asyncio.timeout(20):
        await gateway.stop(0)


@pytest.mark.parametrize(
    ("behavior", "words"),
    [
        ({"on_create": fail_to_create}, "Unexpected error (RuntimeError). The log of the server has the details."),
        ({"on_probe": fail}, "Unexpected error (RuntimeError). The log of the server has the details."),
        ({"on_run": fail}, "Unexpected error (RuntimeError). The log of the server has the details."),
        ({"on_run": fail, "on_close": fail}, "Unexpected error (RuntimeError). The log of the server has the details."),
    ],
    ids=["create", "probe", "run", "close"],
)
async def test_one_account_fails_alone_and_tries_again(
    start_accounts: StartAccounts, behavior: dict[str, Any], words: str
) -> None:
    good, bad = PigeonAccount("good"), PigeonAccount("bad", **behavior)
    gateway = await start_accounts(bad, good)
    await wait_until(lambda: bad.history.count("create") > 2)
    assert "close" in bad.history or bad.on_close is fail or not bad.adapters
    health = await wait_for_health(gateway, lambda each: each.status and each.status.error, "bad")
    assert health.status is not None
    assert (health.state, health.status.error) == (AccountState.CONNECTING, words)
    await wait_for_health(gateway, is_live, "good")
    await wait_for_turn(gateway, (await good.last.say("hello")).turn_id)
    await wait_until(lambda: good.last.sent)
    assert gateway.accounts.has_problem


@pytest.mark.both_engines
async def test_an_account_that_works_again_is_live_and_keeps_its_last_error(start_accounts: StartAccounts) -> None:
    async def lose_connection(adapter: PigeonAdapter) -> None:
        if len(adapter.owner.adapters) < 3:
            raise ConnectionLost("The platform's server is down.")

    account = PigeonAccount(on_probe=lose_connection)
    gateway = await start_accounts(account)
    health = await wait_for_health(gateway, is_live)
    assert health.status is not None
    assert health.status.error == "The platform's server is down."
    assert account.history == ["create", "close", "create", "close", "create", "run"]
    assert not gateway.accounts.has_problem


async def test_a_refused_account_waits_long_and_shows_the_words_of_the_platform(start_accounts: StartAccounts) -> None:
    async def refuse(_adapter: PigeonAdapter) -> None:
        raise AccountRefused(f"The token {SECRET} was revoked. Create a new one.")

    account = PigeonAccount(on_probe=refuse)
    gateway = await start_accounts(account)
    health = await wait_for_health(gateway, lambda each: each.state is AccountState.REFUSED)
    assert health.status is not None
    assert health.status.error == "The token … was revoked. Create a new one."
    assert account.history == ["create", "close"]
    assert gateway.platforms == frozenset()
    again = PigeonAccount("again", on_probe=refuse)
    await start_accounts(again, timing=replace(QUICK, refused_pause=0.01))
    await wait_until(lambda: again.history.count("create") > 2)
    assert account.history == ["create", "close"]


async def test_a_deaf_account_is_closed_and_connected_again_with_a_new_adapter(start_accounts: StartAccounts) -> None:
    account = PigeonAccount()  # its adapters report once, when they connect

    def set_silence(number: int) -> None:
        account.silence_seconds = 0.1 if number == 1 else 60.0

    account.on_create = set_silence
    gateway = await start_accounts(account, timing=replace(QUICK, first_pause=2.0, max_pause=2.0))
    health = await wait_for_health(
        gateway, lambda each: each.state is AccountState.UNRESPONSIVE and each.status and each.status.error
    )
    assert health.status is not None
    assert health.status.error == "Nothing was heard from the platform for too long."
    assert gateway.accounts.list_live_adapters() == {}
    await wait_for_health(gateway, is_live)
    first, second = account.history[:-2], account.history[-2:]
    assert first in (["create", "run", "end", "close"], ["create", "close"])  # on a busy machine it may not run in time
    assert second == ["create", "run"]
    assert account.adapters[0] is not account.adapters[1]


async def test_what_an_ended_connection_still_reports_is_refused(start_accounts: StartAccounts) -> None:
    account = PigeonAccount()
    gateway = await start_accounts(account)
    await wait_for_health(gateway, is_live)
    link = account.last.link
    assert link is not None
    await gateway.stop(0)
    with pytest.raises(LeaseLost):
        await link.accept(Inbound(source=SessionSource(PIGEON, "1", user_id="1"), content="late"))
    with pytest.raises(LeaseLost):
        await link.save_cursor(Cursor("5"))
    link.report_connected()
    assert (await get_health(gateway)).state is AccountState.OFF


# -- pauses -------------------------------------------------------------------------------------------------


def test_pauses_double_up_to_five_minutes_with_jitter() -> None:
    timing = ConnectionTiming()
    for failures, full in ((1, 1), (2, 2), (5, 16), (9, 256), (10, 300), (1000, 300)):
        pauses = {timing.compute_pause(failures) for _ in range(20)}
        assert all(full / 2 <= pause <= full for pause in pauses)
        assert len(pauses) > 1


@pytest.mark.parametrize(("stable", "grows"), [(60.0, True), (0.0, False)])
async def test_pauses_start_again_after_the_account_was_live_for_a_while(
    start_accounts: StartAccounts, caplog: pytest.LogCaptureFixture, stable: float, grows: bool
) -> None:
    async def connect_and_end(adapter: PigeonAdapter) -> None:
        assert adapter.link is not None
        adapter.link.report_connected()

    account = PigeonAccount(on_run=connect_and_end)
    with caplog.at_level(logging.WARNING):
        await start_accounts(account, timing=replace(QUICK, stable=stable, first_pause=0.002, max_pause=0.3))
        await wait_until(lambda: account.history.count("create") > 8)
    pauses = [vars(each)["retry_seconds"] for each in caplog.records if each.message == "platform_account_disconnected"]
    assert (max(pauses[:8]) > 0.05) is grows


# -- one process per account --------------------------------------------------------------------------------


async def test_one_of_two_processes_runs_an_account_and_the_other_takes_over_after_it_was_closed(
    start_accounts: StartAccounts,
) -> None:
    first = PigeonAccount()
    one = await start_accounts(first)
    await wait_for_health(one, is_live)
    second = PigeonAccount()
    closed_before: list[list[str]] = []
    second.on_create = lambda _number: closed_before.append(list(first.history))
    two = await start_accounts(second)
    await wait_until(lambda: two.platforms == {PIGEON})  # answers can be sent there, by the other process
    assert (second.history, two.accounts.list_live_adapters()) == ([], {})
    assert (await get_health(two)).state is AccountState.LIVE
    await one.stop(0)
    await wait_until(lambda: second.history == ["create", "run"])
    assert closed_before == [["create", "run", "end", "close"]]
    await wait_for_health(two, is_live)


async def test_a_process_that_was_paused_loses_its_account_and_can_write_nothing_for_it(
    start_accounts: StartAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    timing = replace(QUICK, lease=0.4)
    first = PigeonAccount()
    one = await start_accounts(first, timing=timing)
    await wait_for_health(one, is_live)
    link = first.last.link
    assert link is not None
    await link.save_cursor(Cursor("1"))
    [runner] = one.accounts._runners.values()
    renew, is_paused = runner._leases.renew, asyncio.Event()

    async def pause(*args: Any) -> None:
        await is_paused.wait()
        await renew(*args)

    monkeypatch.setattr(runner._leases, "renew", pause)
    second = PigeonAccount()
    two = await start_accounts(second, timing=timing)
    await wait_until(lambda: second.history == ["create", "run"])
    assert first.history == ["create", "run"]  # it does not know yet
    with pytest.raises(LeaseLost):
        await link.accept(Inbound(source=SessionSource(PIGEON, "1", user_id="1"), content="late", message_id="9"))
    with pytest.raises(LeaseLost):
        await link.accept(
            Inbound(source=SessionSource(PIGEON, "1", user_id="1"), content="late", message_id="9"), cursor=Cursor("0")
        )
    with pytest.raises(LeaseLost):
        await link.save_cursor(Cursor("0"))
    assert second.last.link is not None
    assert await second.last.link.load_cursor() == "1"
    assert not await two.store.aio.has_any_sessions()
    is_paused.set()
    await wait_until(lambda: first.history == ["create", "run", "end", "close"])
    await wait_for_health(two, is_live)


async def test_a_process_that_cannot_reach_the_database_gives_its_account_up(
    start_accounts: StartAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = PigeonAccount()
    gateway = await start_accounts(account, timing=replace(QUICK, lease=0.3))
    await wait_for_health(gateway, is_live)
    [runner] = gateway.accounts._runners.values()
    original = runner._leases.renew

    async def lose(*_args: Any) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(runner._leases, "renew", lose)
    await wait_until(lambda: account.history[:4] == ["create", "run", "end", "close"])
    monkeypatch.setattr(runner._leases, "renew", original)
    await wait_for_health(gateway, is_live)


async def test_accounts_of_one_platform_are_separate(start_accounts: StartAccounts) -> None:
    work, home = PigeonAccount("work"), PigeonAccount("home")
    gateway = await start_accounts(work, home)
    await wait_for_health(gateway, is_live, "work")
    await wait_for_health(gateway, is_live, "home")
    for account in (work, home):
        await wait_for_turn(gateway, (await account.last.say("hello", user="ada", message_id="1")).turn_id)
    await wait_until(lambda: work.last.sent and home.last.sent)
    assert [message.address.account for message in (*work.last.sent, *home.last.sent)] == ["work", "home"]


# -- secrets ------------------------------------------------------------------------------------------------


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    with capture_log_lines() as lines:
        yield lines


async def test_secrets_of_an_account_are_in_no_log_line_and_in_no_status(
    start_accounts: StartAccounts, log_lines: io.StringIO
) -> None:
    hide_in_logs([SECRET])

    async def refuse(_adapter: PigeonAdapter) -> None:
        raise AccountRefused(f"Bad token {SECRET}")

    bad, worse = PigeonAccount("bad", on_probe=refuse), PigeonAccount("worse", on_run=fail, on_close=fail)
    worse.info = AccountInfo(warnings=(f"{SECRET} is old",))
    gateway = await start_accounts(bad, worse)
    await wait_for_health(gateway, lambda each: each.status and each.status.error, "bad")
    await wait_for_health(gateway, lambda each: each.status and each.status.error, "worse")
    stored = f"{await get_health(gateway, 'bad')!r} {await get_health(gateway, 'worse')!r}"
    assert "… is old" in stored
    assert "platform_account_close_failed" in log_lines.getvalue()
    assert "hunter2" not in stored + log_lines.getvalue()
