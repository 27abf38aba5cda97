"""`palaver platforms`: what the database knows, beside a running server or without one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from palaver.cli.running_servers import RunningServer, announce_server
from palaver.core.background import create_lease_owner
from palaver.core.engines.base import Read, Write
from palaver.core.source import Platform
from palaver.delivery import accounts_table as platform_accounts
from palaver.delivery.model import AccountState, AccountStatus

if TYPE_CHECKING:
    from cli.conftest import Home
    from palaver.core.engines.base import Transaction

TOKEN = "1234567:AAHunter2-hunter2-hunter2-hunter2-AAA"
HINT = "No server is running here. Start one with `"


@pytest.fixture(autouse=True)
def _without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALAVER_MODEL", "demo")
    for name in ("TELEGRAM_BOT_TOKEN", "MATRIX_ACCESS_TOKEN", "MATRIX_HOMESERVER"):
        monkeypatch.delenv(name, raising=False)


def run_account(home: Home, status: AccountStatus, *, account: str = "", owner: str | None = None) -> None:
    """Store what a server would store about an account that it runs."""
    now = round(datetime.now(UTC).timestamp() * 1e6)
    key, until = (Platform.TELEGRAM, account), now + 45_000_000

    def run(tx: Transaction) -> None:
        acquired = platform_accounts.acquire(tx, key, owner or create_lease_owner(), until, now, lambda _owner: False)
        assert acquired is not None
        assert platform_accounts.renew(tx, acquired[0], until, status)

    with home.open_store() as store:
        store.engine.run(Write(run))


def make_status(state: AccountState, **fields: object) -> AccountStatus:
    since = datetime.now(UTC) - timedelta(minutes=3)
    return AccountStatus(state=state, since=since, **fields)  # type: ignore[arg-type]


def test_without_platforms_and_without_a_server(home: Home) -> None:
    result = home("platforms")
    assert result.stdout == "No chat platforms are set up.\n"
    assert result.stderr.startswith(HINT)
    assert home.get_json("platforms") == {"server_running": False, "accounts": []}
    assert home.get_json("platforms", "list") == {"server_running": False, "accounts": []}


def test_a_running_server_without_platforms_is_noticed(home: Home) -> None:
    home("status")
    with announce_server(home.path, 1, RunningServer(url="http://127.0.0.1:1", network_url=None)):
        assert home("platforms").stderr == ""


def test_accounts_of_a_running_server_are_listed_with_state_and_problem(home: Home) -> None:
    run_account(home, make_status(AccountState.LIVE, name="@bot", warnings=("Privacy mode is on.",)))
    error = "The token was revoked.\x1b[2J Create\na new one."
    run_account(home, make_status(AccountState.REFUSED, error=error, error_at=datetime.now(UTC)), account="work")
    result = home("platforms")
    assert result.stderr == ""
    lines = [line.split("  ") for line in result.stdout.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells[1:] == [
        ["telegram", "connected", "3 min ago", "never", "0", "0", "Privacy mode is on."],
        [
            "telegram@work",
            "needs attention",
            "3 min ago",
            "never",
            "0",
            "0",
            "The token was revoked. Create a new one.",
        ],
    ]
    shown = home.get_text("platforms", "show", "telegram@work")
    assert "State          needs attention\n" in shown
    assert ": The token was revoked. Create a new one.\n" in shown
    document = home.get_json("platforms")
    assert document["server_running"] is True
    assert [(each["account"], each["state"], each["name"]) for each in document["accounts"]] == [
        ("", "live", "@bot"),
        ("work", "refused", None),
    ]


def test_an_account_whose_process_was_killed_is_not_running(home: Home) -> None:
    host, *_ = create_lease_owner().split("/")
    run_account(home, make_status(AccountState.LIVE), owner=f"{host}/{2**22 + 1}/7/dead")
    home.path.joinpath("config.yaml").write_text("platforms: {telegram: {settings: {bot_token: x}}}", encoding="utf-8")
    result = home("platforms")
    assert "not running" in result.stdout
    assert result.stderr.startswith(HINT)


def test_settings_that_do_not_work_are_told_before_a_server_starts_and_show_no_secret(home: Home) -> None:
    text = f"platforms: {{irc: {{}}, pigeon: {{settings: {{token: {TOKEN}}}}}}}"
    home("status")
    home.path.joinpath("config.yaml").write_text(text, encoding="utf-8")
    listed = home.get_text("platforms")
    assert "No installed package provides the platform irc." in listed
    assert "unter2" not in listed + home.get_text("platforms", "show", "pigeon") + home("platforms", "--json").stdout


def test_an_unknown_account_is_an_error_that_lists_the_others(home: Home) -> None:
    run_account(home, make_status(AccountState.LIVE), account="work")
    assert "Accounts: telegram@work." in home("platforms", "show", "telegram", code=2).stderr


def test_a_terminal_chat_connects_to_no_platform(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    home.path.mkdir(exist_ok=True)
    home.path.joinpath("config.yaml").write_text(
        f"platforms: {{telegram: {{settings: {{bot_token: '{TOKEN}'}}}}}}", encoding="utf-8"
    )
    assert home("chat", "-m", "hello").stdout
    with home.open_store() as store:
        assert store.engine.run(Read(platform_accounts.list_accounts)) == []


def test_the_home_channel_is_shown(home: Home) -> None:
    home("status")
    text = 'platforms: {telegram: {home_channel: {chat_id: "-7", name: Ops}}}'
    home.path.joinpath("config.yaml").write_text(text, encoding="utf-8")
    assert "Home channel   Ops, telegram:-7" in home("platforms", "show", "telegram").stdout
    assert home.get_json("platforms", "show", "telegram")["home_channel"] == "telegram:-7"
