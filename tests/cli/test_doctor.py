"""`palaver doctor`: what it finds in a healthy and in a broken installation, and that it changes nothing."""

from __future__ import annotations

import json
from shlex import quote
from typing import TYPE_CHECKING, Any

import pytest

from drivers.openai_server import KEY, OpenAIServer, reply_with_error, reply_with_text
from palaver.core.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cli.conftest import Home


@pytest.fixture(autouse=True)
def _use_demo_agent(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.path.mkdir(mode=0o700, parents=True)
    monkeypatch.setenv("PALAVER_MODEL", "demo")


@pytest.fixture
def provider() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


def diagnose(home: Home, *options: str, code: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Return the findings by subject."""
    document = json.loads(home("doctor", "--json", *options, code=code).stdout)
    assert document["ok"] is (code == 0)
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in document["findings"]:
        assert finding["severity"] == "ok" or finding["fix"], finding
        found.setdefault(finding["subject"], []).append(finding)
    return found


def list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def use_provider(home: Home, monkeypatch: pytest.MonkeyPatch, provider: OpenAIServer, more: str = "") -> None:
    monkeypatch.delenv("PALAVER_MODEL")
    text = f"model: openai:small\nproviders:\n  openai:\n    api_key: {KEY}\n    base_url: {provider.url}\n{more}"
    home.path.joinpath("config.yaml").write_text(text, encoding="utf-8")
    home.path.joinpath("config.yaml").chmod(0o600)


def test_a_healthy_installation_has_no_problems(home: Home) -> None:
    home.add_conversation("hello", "hi")
    home.path.chmod(0o700)
    found = diagnose(home)
    assert {each["severity"] for each in found["Database"] + found["Home folder"] + found["Configuration"]} == {"ok"}
    text = home.get_text("doctor")
    assert "schema is up to date" in text
    assert "a demo answers" in text


def test_a_new_installation_is_not_created_by_looking_at_it(home: Home) -> None:
    before = list_files(home.path)
    assert "doesn't exist yet" in diagnose(home)["Database"][0]["text"]
    assert list_files(home.path) == before


def test_the_full_check_reads_everything(home: Home) -> None:
    home.add_conversation("hello", "hi")
    found = diagnose(home, "--full", "--offline")
    assert found["Database file"][0]["text"] == "No errors."


def test_wrong_keys_in_the_configuration_are_named_with_their_line(home: Home) -> None:
    home.path.joinpath("config.yaml").write_text("modle: demo\nweb: {port: x}\n", encoding="utf-8")
    problems = diagnose(home, "--offline", code=1)["Configuration"]
    assert "config.yaml:1: modle: unknown key (did you mean model?)" in problems[0]["text"]
    assert "web.port" in problems[1]["text"]
    assert "config.yaml" in problems[0]["fix"]


def test_a_file_that_is_not_yaml_is_reported(home: Home) -> None:
    home.path.joinpath("config.yaml").write_text("model: [1,\n", encoding="utf-8")
    assert "not valid YAML" in diagnose(home, code=1)["Configuration"][0]["text"]


def test_open_permissions_come_with_the_command_that_closes_them(home: Home) -> None:
    home.add_conversation("hello")
    home.path.chmod(0o755)
    home.path.joinpath("palaver.db").chmod(0o644)
    finding = diagnose(home, "--offline")["Home folder"][0]
    assert finding["severity"] == "warning"
    assert f"chmod 700 {quote(str(home.path))}" in finding["fix"]
    assert f"chmod 600 {quote(str(home.path / 'palaver.db'))}" in finding["fix"]


def test_a_damaged_database_is_reported_and_not_touched(home: Home) -> None:
    home.add_conversation("hello")
    database = home.path / "palaver.db"
    damaged = b"not a database, " * 1000
    database.write_bytes(damaged)
    for name in ("palaver.db-wal", "palaver.db-shm"):
        home.path.joinpath(name).unlink(missing_ok=True)
    finding = diagnose(home, code=1)["Database"][0]
    assert "is damaged" in finding["text"]
    assert "restore" in finding["fix"]
    assert database.read_bytes() == damaged


def test_a_database_of_a_newer_version_is_reported(home: Home) -> None:
    with home.open_store() as store:
        store.engine.run(
            Write(lambda tx: tx.execute("INSERT INTO migration (name, applied_at) VALUES ('9999_future', 1)"))
        )
    finding = diagnose(home, "--offline", code=1)["Database"][0]
    assert "9999_future" in finding["text"]
    assert "upgrade" in finding["fix"]


def test_a_placeholder_in_place_of_a_token_is_found(home: Home) -> None:
    home.add_conversation("hello")
    text = "platforms: {telegram: {settings: {token: your-token-here}}}\n"
    home.path.joinpath("config.yaml").write_text(text, encoding="utf-8")
    finding = diagnose(home, "--offline", code=1)["Telegram"][0]
    assert "token" in finding["text"]


def test_a_missing_attached_file_is_found(home: Home) -> None:
    with home.open_store() as store:
        person = store.get_owner()
        insert = (
            "INSERT INTO attachment (id, name, media_type, size, sha256, person_id, created_at)"
            " VALUES ('a_0123', 'x', 'text/plain', 1, 'abcd', $1, 1)"
        )
        store.engine.run(Write(lambda tx: tx.execute(insert, person.id)))
    assert "a_0123" in diagnose(home, "--offline", code=1)["Attached files"][0]["text"]


def test_a_model_that_answers_is_reported_with_its_time(
    home: Home, monkeypatch: pytest.MonkeyPatch, provider: OpenAIServer
) -> None:
    use_provider(home, monkeypatch, provider)
    home.add_conversation("hello")
    provider.add_replies(reply_with_text("ready"))
    assert "openai:small answered in" in diagnose(home)["Model"][0]["text"]
    assert len(provider.requests) == 1
    with home.open_store() as store:
        used = store.engine.run(Read(lambda tx: tx.fetch_all("SELECT input_tokens, output_tokens FROM usage")))
        assert used == [(10, 5)]
        assert store.engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM model_call"))) == []


def test_a_wrong_key_is_reported_in_the_providers_words_without_the_key(
    home: Home, monkeypatch: pytest.MonkeyPatch, provider: OpenAIServer
) -> None:
    use_provider(home, monkeypatch, provider)
    home.add_conversation("hello")
    provider.add_replies(reply_with_error(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"))
    result = home("doctor", "--json", code=1)
    assert KEY not in result.output
    finding = next(each for each in json.loads(result.stdout)["findings"] if each["subject"] == "Model")
    assert "Incorrect API key provided" in finding["text"]
    assert "providers" in finding["fix"]


def test_a_budget_that_is_used_up_is_respected(
    home: Home, monkeypatch: pytest.MonkeyPatch, provider: OpenAIServer
) -> None:
    use_provider(home, monkeypatch, provider, "budgets: {overall: {day_tokens: 1}}\n")
    home.add_conversation("hello")
    finding = diagnose(home)["Model"][0]
    assert "was not tried" in finding["text"]
    assert provider.requests == []


def test_offline_asks_no_model(home: Home, monkeypatch: pytest.MonkeyPatch, provider: OpenAIServer) -> None:
    use_provider(home, monkeypatch, provider)
    home.add_conversation("hello")
    assert "Model" not in diagnose(home, "--offline")
    assert provider.requests == []


# -- repairs ------------------------------------------------------------------------------------------------


def damage_counters(home: Home) -> str:
    session_id = home.add_conversation("hello", "hi")
    with home.open_store() as store:
        store.engine.run(Write(lambda tx: tx.execute("UPDATE session SET message_count = 9")))
    return session_id


def test_wrong_counters_are_found_with_the_command_that_repairs_them(home: Home) -> None:
    session_id = damage_counters(home)
    [finding] = diagnose(home, "--full", "--offline", code=1)["Logs, counters and search index"]
    assert finding["code"] == "integrity_repairable"
    assert "doctor --repair" in finding["fix"]
    assert "--yes" in home.get_error("doctor", "--repair", code=2)
    assert "integrity_repairable" in str(diagnose(home, "--full", "--offline", code=1))  # nothing was changed
    text = home.get_text("doctor", "--repair", "--yes")
    assert text == f"Repaired: conversation {session_id}: number of messages was 9, now 2.\n"
    assert diagnose(home, "--full", "--offline")["Logs, counters and search index"][0]["severity"] == "ok"
    assert home.get_text("doctor", "--repair") == "Nothing to repair.\n"


def test_a_repair_as_json_names_what_it_changed_and_what_it_left(home: Home) -> None:
    damage_counters(home)
    lost = home.add_conversation("hello", "hi")
    with home.open_store() as store:
        delete = "DELETE FROM event WHERE session_no = (SELECT no FROM session WHERE id = $1)"
        store.engine.run(Write(lambda tx: tx.execute(delete, lost)))
    document = json.loads(home("doctor", "--repair", "--yes", "--json", code=1).stdout)
    assert document["ok"] is False
    assert len(document["repaired"]) >= 1
    assert document["left"] == [f"conversation {lost} has no log"]
