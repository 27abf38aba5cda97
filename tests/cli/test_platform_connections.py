"""`palaver platforms connect`, `test` and `link`, beside a server that runs the account or without one."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import AccountRefused
from palaver.delivery.adapter import AccountInfo
from palaver.delivery.model import AccountState, LinkingPrompt
from palaver.gateway import supervisor as connected_platforms
from palaver.live import feed
from support.gateway import TIMEOUT_SECONDS
from support.platform_accounts import PigeonAccount, PigeonAdapter, is_live, run_gateways, wait_for_health

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from click.testing import Result

    from cli.conftest import Home
    from support.platform_accounts import StartAccounts

platforms_cli = importlib.import_module("palaver.cli.platforms")  # the package has the command of that name


@pytest.fixture(autouse=True)
def _notice_changes_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALAVER_MODEL", "demo")
    monkeypatch.setattr(connected_platforms, "MIN_INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(feed, "CATCH_UP_SECONDS", 0.01)
    monkeypatch.setattr(platforms_cli, "POLL_SECONDS", 0.01)


@pytest.fixture
async def start_accounts(home: Home) -> AsyncIterator[StartAccounts]:
    home("status")
    async with run_gateways(f"sqlite:///{home.path / 'palaver.db'}") as start:
        yield start


async def run(home: Home, *args: str, code: int = 0) -> Result:
    return await asyncio.to_thread(home, "platforms", *args, code=code)


async def test_a_refused_account_is_connected_now_and_tested(home: Home, start_accounts: StartAccounts) -> None:
    problem = "The token was revoked. Create a new one."

    async def refuse(_adapter: PigeonAdapter) -> None:
        if problem:
            raise AccountRefused(problem)

    info = AccountInfo(name="@homer\x1b[2J", warnings=("Privacy mode is on.",), details=("Version 2",))
    gateway = await start_accounts(PigeonAccount(on_probe=refuse, info=info))
    await wait_for_health(gateway, lambda each: each.state is AccountState.REFUSED)
    failed = await run(home, "connect", "pigeon", code=1)
    assert failed.stdout.startswith("Pigeon doesn't work (")
    assert failed.stdout.endswith(f"): {problem}\n")
    problem = ""
    connected = (await run(home, "connect", "pigeon")).stdout.splitlines()
    assert connected[0].startswith("Pigeon works: signed in as @homer (")
    assert connected[1:] == ["Warning: Privacy mode is on.", "Details: Version 2"]
    assert (await run(home, "connect", "pigeon")).stdout == "Pigeon is already connected.\n"
    document = await asyncio.to_thread(home.get_json, "platforms", "test", "pigeon")
    assert (document["state"], document["details"], document["last_test"]["error"]) == ("live", ["Version 2"], None)
    assert "Details        Version 2\n" in (await run(home, "show", "pigeon")).stdout


def test_an_account_is_tested_before_a_server_runs_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", "k" * 32)
    monkeypatch.setenv("WEBHOOK_URL", "http://example.org/hook")
    lines = home("platforms", "test", "webhook").stdout.splitlines()
    assert lines[0].startswith("Webhook works: signed in")
    assert lines[1].startswith("Warning: Answers are sent without encryption.")
    assert lines[-1].startswith("No server runs it yet. Start one with `")
    error = home.get_error("platforms", "connect", "webhook", code=1)
    assert "No server is running this account. Start one with `" in error
    monkeypatch.setenv("WEBHOOK_SECRET", "short")
    result = home("platforms", "test", "webhook", code=1)
    assert result.stdout.startswith("Webhook doesn't work (< 0.1 s): WEBHOOK_SECRET is not valid:")
    assert "Accounts: webhook." in home("platforms", "test", "signal", code=2).stderr


def test_an_account_that_has_to_be_linked_says_so_before_a_server_runs_it(home: Home) -> None:
    program = """import sys; print('{"state": "ready", "version": "library 1"}', flush=True); sys.stdin.read()"""
    settings = {"child_command": [sys.executable, "-c", program]}
    document = {"platforms": {"whatsapp-web": {"settings": settings}}}
    home("status")
    home.path.joinpath("config.yaml").write_text(json.dumps(document), encoding="utf-8")
    lines = home("platforms", "test", "whatsapp-web", code=1).stdout.splitlines()
    assert lines[0].startswith("WhatsApp Web is not linked with a phone yet. Start a server with `")
    assert lines[0].endswith("platforms link whatsapp-web`.")
    assert lines[1:] == ["Details: library 1"]


async def test_linking_shows_each_code_and_ends_when_the_account_is_connected(
    home: Home, start_accounts: StartAccounts
) -> None:
    account = PigeonAccount(info=AccountInfo(name="+49 30 1234"))
    next_step = asyncio.Event()

    async def link_first(adapter: PigeonAdapter) -> None:
        assert adapter.link is not None
        for code in ("AAAA-1111", "BBBB-2222"):
            adapter.link.report_linking(LinkingPrompt(instructions="Scan it.", qr_text=f"pair:{code}", code=code))
            await next_step.wait()
            next_step.clear()
        adapter.link.report_connected()
        await asyncio.Event().wait()

    account.on_run = link_first
    gateway = await start_accounts(account)
    await wait_for_health(gateway, lambda each: each.state is AccountState.LINKING)
    listed = (await run(home)).stdout
    assert "waiting to be linked" in listed
    assert "platforms link pigeon" in listed
    shown = await run(home, "show", "pigeon")
    assert "AAAA" not in listed + shown.stdout + (await run(home, "--json")).stdout
    waiting = await run(home, "test", "pigeon", code=1)
    assert waiting.stdout.startswith("Pigeon waits to be linked. Run `")
    drawn: list[str] = []
    link = asyncio.create_task(follow_link(home, drawn))
    await wait_until_drawn(drawn, "AAAA-1111")
    next_step.set()
    await wait_until_drawn(drawn, "BBBB-2222")
    next_step.set()
    result = await link
    assert result.stdout.splitlines()[-1] == "Pigeon is linked and connected as +49 30 1234."
    assert "Code: AAAA-1111" in result.stdout
    assert "Scan it." in result.stdout
    again = await run(home, "link", "pigeon")
    assert again.stdout == "Pigeon is linked and connected as +49 30 1234.\n"


async def follow_link(home: Home, drawn: list[str]) -> Result:
    """Run `palaver platforms link pigeon`, and note what it draws."""
    draw = platforms_cli._draw

    def draw_and_note(*args: object, **options: object) -> str:
        text: str = draw(*args, **options)
        drawn.append(text)
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platforms_cli, "_draw", draw_and_note)
        return await run(home, "link", "pigeon")


async def wait_until_drawn(drawn: list[str], text: str) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not any(text in each for each in drawn):  # noqa: ASYNC110  (another thread draws)
            await asyncio.sleep(0.01)


async def test_an_account_that_is_refused_cannot_be_linked_and_one_that_no_process_runs_neither(
    home: Home, start_accounts: StartAccounts
) -> None:
    async def refuse(_adapter: PigeonAdapter) -> None:
        raise AccountRefused("This phone was unlinked.")

    account = PigeonAccount(on_probe=refuse)
    gateway = await start_accounts(account)
    await wait_for_health(gateway, lambda each: each.state is AccountState.REFUSED)
    assert (await run(home, "link", "pigeon", code=1)).stderr == "Pigeon is not linked: This phone was unlinked.\n"
    assert account.history.count("create") == 2  # it was tried again
    live = await start_accounts(PigeonAccount("live"))
    await wait_for_health(live, is_live, "live")
    await gateway.stop(0)
    result = await asyncio.to_thread(home, "platforms", "link", "telegram", code=2)
    assert "There is no account 'telegram'." in result.stderr
