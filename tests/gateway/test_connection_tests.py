"""An owner connects an account now, tests its connection, or links it with a phone, whichever process runs it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore
from palaver.core.engines.base import Read
from palaver.core.errors import AccountNotRunning, AccountRefused, ConnectionLost
from palaver.delivery.accounts_table import find_account
from palaver.delivery.adapter import AccountInfo
from palaver.delivery.model import AccountState, LinkingPrompt
from palaver.delivery.wire import account_to_json
from palaver.gateway import supervisor as connected_platforms
from palaver.gateway.account_runner import AccountLeases
from palaver.gateway.supervisor import probe_without_server, run_connection_test
from palaver.live import feed
from support.gateway import wait_until
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

    from palaver.delivery.model import AccountStatus
    from support.platform_accounts import StartAccounts

pytestmark = pytest.mark.both_engines


KEY = (PIGEON, "")
PROMPT = LinkingPrompt(
    instructions="Open Pigeon on your phone, then Settings → Linked devices.",
    qr_text="pigeon:link-hunter2",
    code="HUNT-ER22",
    expires_at=datetime(2030, 1, 1, tzinfo=UTC),
)


@pytest.fixture(autouse=True)
def _notice_requests_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connected_platforms, "MIN_INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(feed, "CATCH_UP_SECONDS", 0.01)


@pytest.fixture
async def start_accounts(store_url: str) -> AsyncIterator[StartAccounts]:
    async with run_gateways(store_url) as start:
        yield start


@pytest.fixture
def other_store(store_url: str) -> Iterator[SessionStore]:
    """A store as another process on the same database has it."""
    with SessionStore.open(store_url) as store:
        yield store


async def ask(store: SessionStore, wait_seconds: float = 30.0) -> AccountStatus:
    return await run_connection_test(store, KEY, wait_seconds=wait_seconds)


async def test_a_refused_account_is_connected_at_once_when_another_process_asks(
    start_accounts: StartAccounts, other_store: SessionStore
) -> None:
    problem = "The token was revoked. Create a new one."

    async def refuse(_adapter: PigeonAdapter) -> None:
        if problem:
            raise AccountRefused(problem)

    account = PigeonAccount(on_probe=refuse, info=AccountInfo(name="@homer", details=("version 2",)))
    gateway = await start_accounts(account)
    await wait_for_health(gateway, lambda each: each.state is AccountState.REFUSED)
    status = await ask(other_store)
    assert status.last_test is not None
    assert (status.state, status.last_test.number, status.last_test.error) == (AccountState.REFUSED, 1, problem)
    assert account.history == ["create", "close", "create", "close"]
    problem = ""
    status = await ask(other_store)
    assert status.last_test is not None
    assert (status.state, status.last_test.number, status.last_test.error) == (AccountState.LIVE, 2, None)
    assert (status.name, status.details) == ("@homer", ("version 2",))
    assert account.history[4:] == ["create", "run"]


async def test_a_pause_after_a_lost_connection_ends_when_an_owner_asks_and_only_once(
    start_accounts: StartAccounts, other_store: SessionStore
) -> None:
    async def lose(_adapter: PigeonAdapter) -> None:
        raise ConnectionLost("The platform's server is down.")

    account = PigeonAccount(on_probe=lose)
    gateway = await start_accounts(account, timing=replace(QUICK, first_pause=500, max_pause=500))
    await wait_for_health(gateway, lambda each: each.status and each.status.error)
    first, second = await asyncio.gather(ask(other_store), ask(other_store))
    for status in (first, second):
        assert status.last_test is not None
        assert status.last_test.error == "The platform's server is down."
    assert account.history.count("create") in {2, 3}  # the requests may have been noticed one after the other
    await get_health(gateway)
    assert account.history.count("create") in {2, 3}


async def test_a_live_account_signs_in_again_and_goes_on(
    start_accounts: StartAccounts, other_store: SessionStore
) -> None:
    account = PigeonAccount(info=AccountInfo(name="@homer"))
    gateway = await start_accounts(account)
    await wait_for_health(gateway, is_live)
    account.info = AccountInfo(
        name="@homing", warnings=("Switch privacy mode off.",), details=(f"token {SECRET}", "linked 3 days ago")
    )
    status = await ask(other_store)
    assert status.last_test is not None
    assert status.last_test.error is None
    assert (status.state, status.name, status.warnings) == (AccountState.LIVE, "@homing", ("Switch privacy mode off.",))
    assert status.details == ("token …", "linked 3 days ago")
    assert account.history == ["create", "run"]


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (AccountRefused(f"The token {SECRET} was revoked."), "The token … was revoked."),
        (RuntimeError(SECRET), "Unexpected error (RuntimeError). The log of the server has the details."),
        (None, "The platform did not answer within 0.05 seconds."),
    ],
    ids=["refused", "bug", "silent"],
)
async def test_a_test_of_a_live_account_that_fails_says_why_and_leaves_the_connection(
    start_accounts: StartAccounts, other_store: SessionStore, problem: Exception | None, words: str
) -> None:
    async def fail_later(adapter: PigeonAdapter) -> None:
        if adapter.link is None:
            return
        if problem is None:
            await asyncio.Event().wait()
        else:
            raise problem

    account = PigeonAccount(on_probe=fail_later)
    gateway = await start_accounts(account, timing=replace(QUICK, test=0.05))
    await wait_for_health(gateway, is_live)
    status = await ask(other_store)
    assert status.last_test is not None
    assert (status.state, status.last_test.error) == (AccountState.LIVE, words)
    assert account.history == ["create", "run"]


async def test_a_connection_that_ends_during_its_test_is_the_outcome_of_the_test(
    start_accounts: StartAccounts, other_store: SessionStore
) -> None:
    async def hang_while_running(adapter: PigeonAdapter) -> None:
        if adapter.link is not None:
            adapter.disconnect(ConnectionLost("The line was cut."))
            await asyncio.Event().wait()

    account = PigeonAccount(on_probe=hang_while_running)
    gateway = await start_accounts(account, timing=replace(QUICK, first_pause=500, max_pause=500))
    await wait_for_health(gateway, is_live)
    status = await ask(other_store)
    assert status.last_test is not None
    assert (status.state, status.last_test.error) == (AccountState.CONNECTING, "The line was cut.")


async def test_a_test_without_result_ends_and_says_so(start_accounts: StartAccounts, other_store: SessionStore) -> None:
    async def hang(_adapter: PigeonAdapter) -> None:
        await asyncio.Event().wait()

    gateway = await start_accounts(PigeonAccount(on_probe=hang))
    await wait_for_health(gateway, lambda each: each.state is AccountState.CONNECTING)
    status = await ask(other_store, wait_seconds=0)
    assert status.last_test is not None
    assert status.last_test.error == "There is no result after 0 seconds. It is still being connected."


async def test_an_account_that_no_process_runs_is_told_and_can_be_probed_without_a_server(
    start_accounts: StartAccounts, other_store: SessionStore
) -> None:
    with pytest.raises(AccountNotRunning):
        await ask(other_store)
    account = PigeonAccount(info=AccountInfo(name="@homer", warnings=("One thing is missing.",)))
    status = await probe_without_server(other_store, account.configured)
    assert status.last_test is not None
    assert (status.state, status.name, status.last_test.error) == (AccountState.OFF, "@homer", None)
    assert account.history == ["create", "close"]

    async def refuse(_adapter: PigeonAdapter) -> None:
        raise AccountRefused(f"The token {SECRET} was revoked.")

    status = await probe_without_server(other_store, PigeonAccount(on_probe=refuse).configured)
    assert status.last_test is not None
    assert status.last_test.error == "The token … was revoked."
    gateway = await start_accounts(account)  # the lease was given back
    await wait_for_health(gateway, is_live)
    with pytest.raises(AccountNotRunning, match="just started"):
        await probe_without_server(other_store, account.configured)


async def test_an_account_that_is_not_linked_says_so_before_a_server_runs_it(other_store: SessionStore) -> None:
    account = PigeonAccount(info=AccountInfo(is_linked=False))
    status = await probe_without_server(other_store, account.configured)
    assert (status.state, status.last_test and status.last_test.error) == (AccountState.LINKING, None)
    stored = await other_store.engine.arun(Read(lambda tx: find_account(tx, KEY)))
    assert stored is not None
    assert stored.status.state is AccountState.OFF


async def test_a_request_that_no_process_has_noticed_is_answered_by_the_next_one(
    start_accounts: StartAccounts, other_store: SessionStore
) -> None:
    leases = AccountLeases(other_store)
    lease = await leases.try_acquire(KEY)
    assert lease is not None
    waiting = asyncio.create_task(ask(other_store, wait_seconds=0))
    await waiting
    status = waiting.result()
    await leases.release(lease, replace(status, last_test=None))
    gateway = await start_accounts(PigeonAccount())
    health = await wait_for_health(gateway, lambda each: each.status and each.status.last_test)
    assert health.status is not None
    assert health.status.last_test is not None
    assert (health.state, health.status.last_test.number) == (AccountState.LIVE, 1)


# -- linking ------------------------------------------------------------------------------------------------


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    with capture_log_lines() as lines:
        yield lines


async def test_an_account_shows_what_to_scan_until_it_is_linked_and_never_in_a_log_line(
    start_accounts: StartAccounts, other_store: SessionStore, log_lines: io.StringIO
) -> None:
    is_linked = asyncio.Event()

    async def link_first(adapter: PigeonAdapter) -> None:
        assert adapter.link is not None
        adapter.link.report_linking(PROMPT)
        await is_linked.wait()
        adapter.link.report_connected()
        await asyncio.Event().wait()

    account = PigeonAccount(on_run=link_first)
    gateway = await start_accounts(account)
    health = await wait_for_health(gateway, lambda each: each.state is AccountState.LINKING)
    assert health.status is not None
    assert health.status.linking == PROMPT
    assert "hunter2" not in f"{health!r} {account_to_json(health)}".lower()
    status = await ask(other_store)
    assert (status.state, status.last_test and status.last_test.error) == (AccountState.LINKING, None)
    account.last.link.report_linking(replace(PROMPT, code="HUNT-ER23"))  # type: ignore[union-attr]
    await wait_for_health(gateway, lambda each: each.status and each.status.linking != PROMPT)
    is_linked.set()
    health = await wait_for_health(gateway, is_live)
    assert health.status is not None
    assert health.status.linking is None
    await wait_until(lambda: "platform_account_live" in log_lines.getvalue())
    assert "hunt" not in log_lines.getvalue().lower()


async def test_a_prompt_of_a_process_that_was_stopped_is_no_longer_shown(start_accounts: StartAccounts) -> None:
    async def link_forever(adapter: PigeonAdapter) -> None:
        assert adapter.link is not None
        adapter.link.report_linking(PROMPT)
        await asyncio.Event().wait()

    gateway = await start_accounts(PigeonAccount(on_run=link_forever))
    await wait_for_health(gateway, lambda each: each.state is AccountState.LINKING)
    await gateway.accounts.stop()
    health = await get_health(gateway)
    assert health.status is not None
    assert (health.state, health.status.linking) == (AccountState.OFF, None)
