"""`/platforms`: members see what is connected, owners see what is wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, Platform, Role
from palaver.core.clock import to_micros
from palaver.delivery import accounts_table as platform_accounts
from palaver.delivery.model import AccountState, AccountStatus, LinkingPrompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver.core.engines.base import Transaction
    from support.gateway import MakeSource as Source

CONFIG = GatewayConfig(
    connected_platforms=(Platform.TELEGRAM, Platform.MATRIX), account_names={Platform.TELEGRAM: ("home", "work")}
)


@pytest.fixture
def chat(open_chat: Callable[[GatewayConfig], Chat]) -> Chat:
    """A chat on a gateway with one account that is live, one that is refused, and one that does not run."""
    chat = open_chat(CONFIG)
    now = chat.clock.now()
    live = AccountStatus(
        state=AccountState.LIVE, since=now, name="@bot_*x*", last_message_at=now, warnings=("Privacy mode is on.",)
    )
    refused = AccountStatus(state=AccountState.REFUSED, since=now, error="Token revoked.", error_at=now)

    def run(tx: Transaction) -> None:
        for name, status in (("home", live), ("work", refused)):
            key, until = (Platform.TELEGRAM, name), to_micros(now + timedelta(hours=9))
            acquired = platform_accounts.acquire(tx, key, "x/1/1/x", until, to_micros(now), lambda _owner: False)
            assert acquired is not None
            platform_accounts.renew(tx, acquired[0], until, status)

    chat.write(run)
    return chat


def test_owners_are_told_how_to_link_an_account_and_its_code_is_never_shown_in_a_chat(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source, group: Source
) -> None:
    chat = open_chat(CONFIG)
    now = chat.clock.now()
    prompt = LinkingPrompt(instructions="Scan it.", qr_text="pair:hunter2", code="HUNTER2")
    status = AccountStatus(state=AccountState.LINKING, since=now, linking=prompt)

    def run(tx: Transaction) -> None:
        key, until = (Platform.TELEGRAM, "home"), to_micros(now + timedelta(hours=9))
        acquired = platform_accounts.acquire(tx, key, "x/1/1/x", until, to_micros(now), lambda _owner: False)
        assert acquired is not None
        platform_accounts.renew(tx, acquired[0], until, status)

    chat.write(run)
    by_member = chat.run(dm(), "/platforms")
    assert "**Telegram (home)**: waiting to be linked" in by_member.text
    assert "palaver platforms link" not in by_member.text
    by_owner = chat.run(group(), "/platforms", role=Role.OWNER)
    assert "`palaver platforms link telegram@home`" in by_owner.text
    assert "hunter2" not in f"{by_member} {by_owner}".lower()


def test_members_see_which_platforms_are_connected(chat: Chat, dm: Source) -> None:
    reply = chat.run(dm(), "/platforms")
    assert reply.text == (
        "- **Matrix**: not running\n- **Telegram (home)**: connected (just now)\n- **Telegram (work)**: needs attention"
    )
    assert reply.data == {
        "accounts": [
            {"platform": "matrix", "account": "", "state": "off"},
            {"platform": "telegram", "account": "home", "state": "live"},
            {"platform": "telegram", "account": "work", "state": "refused"},
        ]
    }


def test_owners_see_errors_and_what_is_missing(chat: Chat, dm: Source) -> None:
    chat.clock.advance(minutes=5)
    reply = chat.run(dm(), "/platforms", role=Role.OWNER)
    assert reply.text.splitlines() == [
        "- **Matrix**: not running",
        "- **Telegram (home)**: connected (5 min ago), as @bot\\_\\*x\\*",
        "  - Last message: 5 min ago",
        "  - Privacy mode is on.",
        "- **Telegram (work)**: needs attention",
        "  - Last error, 5 min ago: Token revoked.",
    ]
    assert reply.data["accounts"][2]["error"] == "Token revoked."


def test_guests_cannot_use_it(chat: Chat, dm: Source) -> None:
    assert "/platforms" in chat.expect_error(dm(), "/platforms", role=Role.GUEST)


def test_without_platforms(open_chat: Callable[[GatewayConfig], Chat], dm: Source) -> None:
    assert open_chat(GatewayConfig()).run(dm(), "/platforms").text == "No chat platforms are set up."
