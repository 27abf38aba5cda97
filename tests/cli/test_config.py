"""`palaver config`: values with where they come from, changes, history, undo and the rotation of the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cli.pseudo_terminal import run_in_terminal
from palaver.cli.program import program
from support.settings import API_KEY

if TYPE_CHECKING:
    from cli.conftest import Home
    from support.warm_process import WarmLauncher


@pytest.fixture(autouse=True)
def hide_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "PALAVER_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PALAVER_TIMEZONE", "UTC")


def set_secret(home: Home, key: str, secret: str) -> str:
    """Pipe a secret into `palaver config set`."""
    args = ["--home", str(home.path), "config", "set", key]
    result = CliRunner().invoke(program, args, input=secret + "\n")
    assert result.exit_code == 0, result.output
    return result.output


def test_values_are_listed_with_their_sources(home: Home) -> None:
    home.path.mkdir()
    (home.path / "config.yaml").write_text("turns:\n  max_queued: 5\n", encoding="utf-8")
    home("config", "set", "turns.max_running", "4", "fallback_models", "demo")
    lines = [line.split() for line in home.get_text("config", "list").splitlines()]
    assert ["turns.max_running", "4", "database"] in lines
    assert ["turns.max_queued", "5", "config.yaml,", "line", "2"] in lines
    assert ["timezone", "UTC", "environment", "variable", "PALAVER_TIMEZONE"] in lines
    assert ["fallback_models", '["demo"]', "database"] in lines
    assert len(lines) == 5
    assert "turns.timeout_minutes" in home.get_text("config", "list", "--all")
    below = home.get_json("config", "list", "turns")["settings"]
    assert {value["key"] for value in below if value["is_set"]} == {"turns.max_running", "turns.max_queued"}


def test_a_value_is_shown_set_and_unset(home: Home) -> None:
    assert home.get_text("config", "get", "turns.max_running") == "8\n"
    assert home.get_text("config", "set", "turns.max_running", "4") == "turns.max_running = 4 (database)\n"
    assert home.get_json("config", "get", "turns.max_running")["source"]["kind"] == "database"
    assert home.get_text("config", "unset", "turns") == "turns.max_running = 8 (default)\n"
    assert home.get_text("config", "unset", "turns") == "Nothing to change.\n"
    assert "Start the server again to apply web.port." in home("config", "set", "web.port", "9000").stderr


def test_values_are_read_by_the_kind_of_their_setting(home: Home) -> None:
    home("config", "set", "memory.learn", "true", "people.guest_commands", "help, new", "agent", "007")
    home("config", "set", "platforms.slack.home_channel.chat_id", "12:30", "web.port", "null")
    values = {value["key"]: value["value"] for value in home.get_json("config", "list")["settings"]}
    assert values["memory.learn"] is True
    assert values["people.guest_commands"] == ["help", "new"]
    assert (values["agent"], values["platforms.slack.home_channel.chat_id"]) == ("007", "12:30")
    assert values["web.port"] is None


def test_what_is_not_valid_changes_nothing_and_says_why(home: Home) -> None:
    error = home.get_error("config", "set", "turns.max_running", "0", "turns.max_queued", "9", code=1)
    assert error == "error: turns.max_running: 0 is not allowed (a whole number, 1 to 256)\n"
    assert "did you mean max_running?" in home.get_error("config", "set", "turns.max_runing", "1", code=1)
    assert "needs it to open the database" in home.get_error("config", "set", "database_url", "x.db", code=1)
    assert "is set by PALAVER_TIMEZONE" in home.get_error("config", "set", "timezone", "Asia/Tokyo", code=1)
    assert "There is no setting 'turns'" in home.get_error("config", "get", "turns", code=3)
    home.get_error("config", "set", "turns.max_running", "4", "turns.max_queued", code=2)
    assert home.get_json("config", "history")["changes"] == []


def test_a_secret_is_piped_in_and_never_shown(home: Home) -> None:
    error = home.get_error("config", "set", "providers.openai.api_key", API_KEY, code=2)
    assert "is a secret, and other users of this machine can see command lines" in error
    assert (
        set_secret(home, "providers.openai.api_key", API_KEY) == "providers.openai.api_key = set (…cdef) (database)\n"
    )
    texts = [home.get_text("config", "get", "providers.openai.api_key"), home.get_text("config", "list", "--json")]
    texts += [home.get_text("config", "history"), home.get_text("config", "history", "--json")]
    assert API_KEY not in "".join(texts)
    assert API_KEY.encode() not in (home.path / "palaver.db").read_bytes()
    assert oct((home.path / "settings.key").stat().st_mode & 0o777) == "0o600"
    assert "Model: openai:gpt" in home.get_text("status")


def test_a_secret_is_asked_for_without_being_echoed(launcher: WarmLauncher, home: Home) -> None:
    args = ("--home", str(home.path), "config", "set", "providers.openai.api_key")
    code, output = run_in_terminal(launcher, *args, keys=f"{API_KEY}\r".encode())
    assert (code, API_KEY in output) == (0, False)
    assert home.get_json("config", "get", "providers.openai.api_key")["hint"] == API_KEY[-4:]


def test_changes_are_listed_and_undone(home: Home) -> None:
    home("config", "set", "turns.max_running", "4")
    set_secret(home, "providers.openai.api_key", API_KEY)
    newest, oldest = home.get_json("config", "history")["changes"]
    assert (oldest["origin"], oldest["person_name"]) == ("terminal", "owner")
    assert oldest["items"] == [{"key": "turns.max_running", "before": None, "after": 4, "is_secret": False}]
    assert home.get_text("config", "undo", str(newest["number"])) == "providers.openai.api_key = not set (default)\n"
    assert f"undoes {newest['number']}" in home.get_text("config", "history")
    home.get_error("config", "undo", "99", code=3)


def test_the_key_is_rotated(home: Home) -> None:
    home.get_error("config", "rotate-key", code=6)
    set_secret(home, "providers.openai.api_key", API_KEY)
    before = (home.path / "settings.key").read_text()
    assert home.get_text("config", "rotate-key") == "Encrypted 1 secret with a new key.\n"
    assert (home.path / "settings.key").read_text() != before
    assert home.get_json("config", "get", "providers.openai.api_key")["problem"] is None


def test_a_lost_key_is_explained(home: Home) -> None:
    set_secret(home, "providers.openai.api_key", API_KEY)
    home("config", "set", "model", "openai:gpt-5")
    (home.path / "settings.key").unlink()
    assert "its key is missing on this machine" in home("config", "get", "providers.openai.api_key").stderr
    assert "No model can answer." in home.get_text("status")
    set_secret(home, "providers.openai.api_key", API_KEY)
    assert "Model: openai:gpt-5" in home.get_text("status")
