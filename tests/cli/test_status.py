"""`palaver status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, __version__
from palaver.cli.status import database
from palaver.config import Settings

if TYPE_CHECKING:
    from cli.conftest import Home


@pytest.fixture(autouse=True)
def _demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALAVER_MODEL", "demo")


def test_it_says_where_the_data_is_and_who_answers(home: Home) -> None:
    text = home.text("status")
    assert __version__ in text
    assert str(home.path / "palaver.db") in text
    assert str(home.path / "config.yaml") in text
    assert "no conversations yet" in text
    assert "the demo agent" in text


@pytest.mark.parametrize(("count", "said"), [(1, "1 recent conversation\n"), (3, "3 recent conversations\n")])
def test_conversations_are_counted(home: Home, count: int, said: str) -> None:
    for _ in range(count):
        home.said("hi")
    assert said in home.text("status")


def test_counting_stops_at_fifty(home: Home) -> None:
    with home.store() as store:
        for _ in range(51):
            store.get_or_create_session(home.ada, force_new=True)
            store.record_user_message(home.ada, "hi")
    assert "50+ recent conversations" in home.text("status")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////home/ada/palaver.db", "/home/ada/palaver.db"),
        ("postgresql://ada:s3cret@db.example:5432/talk?password=s3cret", "PostgreSQL, database talk on db.example"),
        ("postgresql:///talk", "PostgreSQL, database talk on this machine"),
    ],
)
def test_a_database_is_named_without_its_secrets(url: str, shown: str) -> None:
    settings = Settings(home=Path(), database_url=url, gateway=GatewayConfig(), platform_settings={})
    assert database(settings) == shown
