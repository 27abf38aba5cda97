"""Tests of `palaver status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, __version__
from palaver.cli.status import describe_database
from palaver.config import Settings

if TYPE_CHECKING:
    from cli.conftest import Home


@pytest.fixture(autouse=True)
def _use_demo_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALAVER_MODEL", "demo")


def test_status_shows_database_config_file_and_agent(home: Home) -> None:
    text = home.get_text("status")
    assert __version__ in text
    assert str(home.path / "palaver.db") in text
    assert str(home.path / "config.yaml") in text
    assert "Conversations  none yet\n" in text
    assert "Demo agent" in text


def test_status_names_platforms_that_are_set_up_but_not_connected(home: Home) -> None:
    assert "Platforms" not in home.get_text("status")
    text = "platforms: {telegram: , matrix: {accounts: {work: , home: }}}\n"
    home.path.joinpath("config.yaml").write_text(text, encoding="utf-8")
    lines = "Matrix (home): not running", "Matrix (work): not running", "Telegram: not running"
    assert home.get_text("status").endswith(f"Platforms      {lines[0]}\n{' ' * 15}{lines[1]}\n{' ' * 15}{lines[2]}\n")


@pytest.mark.parametrize("count", [1, 3])
def test_status_counts_recent_conversations(home: Home, count: int) -> None:
    for _ in range(count):
        home.add_conversation("hi")
    assert f"Conversations  {count} recent\n" in home.get_text("status")


def test_status_counts_up_to_fifty_conversations(home: Home) -> None:
    with home.open_store() as store:
        for _ in range(51):
            store.get_or_create_session(home.ada, force_new=True)
            store.record_user_message(home.ada, "hi")
    assert "Conversations  50+ recent\n" in home.get_text("status")


@pytest.mark.parametrize(
    ("url", "description"),
    [
        ("sqlite:////home/ada/palaver.db", "/home/ada/palaver.db"),
        ("postgresql://ada:s3cret@db.example:5432/talk?password=s3cret", "PostgreSQL, database talk on db.example"),
        ("postgresql:///talk", "PostgreSQL, database talk on this machine"),
    ],
)
def test_a_database_is_described_without_user_and_password(url: str, description: str) -> None:
    settings = Settings(home=Path(), database_url=url, gateway=GatewayConfig())
    assert describe_database(settings) == description
