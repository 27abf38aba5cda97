"""Tests of `palaver shares`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from palaver.cli.running_servers import RunningServer, announce_server
from palaver.sessions.share import ShareNotFound
from palaver.sessions.shares import Shares

if TYPE_CHECKING:
    from cli.conftest import Home


def share_conversation(home: Home) -> tuple[str, str]:
    """Share a conversation of another person as the owner; return its id and its secret."""
    session_id = home.add_conversation("hello", title="Lisbon")
    with home.open_store() as store:
        created = asyncio.run(Shares(store).create(store.get_owner().principal, session_id, everything=True))
    return created.id, created.secret


def test_the_list_shows_what_is_shared_and_by_whom(home: Home) -> None:
    assert home("shares", "list").stdout == "Nothing is shared.\n"
    share_id, _ = share_conversation(home)
    [share] = home.get_json("shares", "list")["shares"]
    assert (share["id"], share["title"], share["message_count"]) == (share_id, "Lisbon", 1)
    assert home.get_json("shares", "list", "--mine")["shares"] == [share]
    text = home("shares", "list").stdout
    assert share_id in text
    assert share["person"]["name"] in text
    assert "shares link ID" in home("shares", "list").stderr


def test_the_link_of_a_share_can_be_printed_again(home: Home) -> None:
    share_id, secret = share_conversation(home)
    home.path.joinpath("config.yaml").write_text("web: {public_url: 'https://chat.example.org/'}\n")
    assert home("shares", "link", share_id).stdout == f"https://chat.example.org/shared#{secret}\n"
    assert home.get_json("shares", "link", share_id) == {"link": f"https://chat.example.org/shared#{secret}"}
    [share] = home.get_json("shares", "list")["shares"]
    assert share["path"] == f"/shared#{secret}"
    assert "not found" in home("shares", "link", "sh_0123456789abcdef", code=3).stderr


def test_the_link_of_a_share_is_that_of_the_running_server_or_of_the_settings(home: Home) -> None:
    share_id, secret = share_conversation(home)
    home.path.joinpath("config.yaml").write_text("web: {port: 9999}\n")
    assert home("shares", "link", share_id).stdout == f"http://localhost:9999/shared#{secret}\n"
    with announce_server(
        home.path, 1234, RunningServer(url="http://localhost:1234", network_url="http://10.0.0.7:1234")
    ):
        assert home("shares", "link", share_id).stdout == f"http://10.0.0.7:1234/shared#{secret}\n"
    assert "works only on this machine" in home("shares", "link", share_id).stderr


def test_a_share_that_was_ended_no_longer_works(home: Home) -> None:
    share_id, secret = share_conversation(home)
    home("shares", "end", share_id, code=2)  # asks first
    assert home("shares", "end", share_id, "--yes").stdout == "No longer shared. The link has stopped working.\n"
    with home.open_store() as store:

        async def open_share() -> None:
            await Shares(store).open(secret)

        with pytest.raises(ShareNotFound):
            asyncio.run(open_share())
    assert "not found" in home("shares", "end", share_id, "--yes", code=3).stderr


def test_when_a_link_expires_can_be_changed(home: Home) -> None:
    share_id, secret = share_conversation(home)
    assert home.get_json("shares", "list")["shares"][0]["expires_at"] is None
    assert home("shares", "expire", share_id, "7d").stdout.startswith("The link expires on ")
    in_days = datetime.fromisoformat(home.get_json("shares", "list")["shares"][0]["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < in_days <= timedelta(days=7)
    share = home.get_json("shares", "expire", share_id, "2099-12-31")
    assert datetime.fromisoformat(share["expires_at"]) == datetime(2100, 1, 1).astimezone()
    assert "2100-01-01 00:00" in home("shares", "list").stdout
    assert home("shares", "expire", share_id, "never").stdout == "The link no longer expires.\n"
    assert "never, 7d or a date" in home("shares", "expire", share_id, "tomorrow", code=2).stderr
    assert "has passed" in home("shares", "expire", share_id, "2020-01-01", code=1).stderr
    assert "not found" in home("shares", "expire", "sh_0123456789abcdef", "1d", code=3).stderr
    assert secret not in home("shares", "list").stdout
