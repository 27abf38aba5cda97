"""Changing settings in the database: validated, all or nothing, recorded, undone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from palaver import Principal
from palaver.core.engines.base import Read
from palaver.core.errors import ChangeNotFound, InvalidInput, InvalidSettings, OwnerRequired, SettingsChanged
from palaver.people.model import Role
from palaver.settings import editor, table as settings_storage
from palaver.settings.editor import SettingsEdit
from support.settings import API_KEY, BOT_TOKEN, SettingsTown

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore


@pytest.fixture
def town(store: SessionStore, tmp_path: Path) -> SettingsTown:
    return SettingsTown(store, tmp_path)


@pytest.fixture
def sqlite_town(sqlite_store: SessionStore, tmp_path: Path) -> SettingsTown:
    file = "turns:\n  max_queued: 5\n"
    return SettingsTown(sqlite_store, tmp_path, {"PALAVER_TIMEZONE": "UTC", "TELEGRAM_BOT_TOKEN": BOT_TOKEN}, file)


def find_problems(town: SettingsTown, values: dict[str, Any], **options: Any) -> list[str]:
    """Try to set values, check that nothing of it is stored, and return the problems."""
    before = town.load()
    with pytest.raises(InvalidSettings) as caught:
        town.set(values, **options)
    assert town.load().state == before.state
    assert town.load().values == before.values
    problems = caught.value.facts["problems"]
    assert isinstance(problems, list)
    assert str(caught.value).split("\n") == [problem["message"] for problem in problems]
    return [problem["message"] for problem in problems]


def read_texts(store: SessionStore) -> str:
    """Return everything that the tables of settings contain."""
    tables = ("setting", "setting_change", "setting_change_item", "setting_state")
    return repr(store.engine.run(Read(lambda tx: [tx.fetch_all(f"SELECT * FROM {name}") for name in tables])))


def test_several_settings_are_stored_together_and_apply(town: SettingsTown) -> None:
    result = town.set({"turns.max_running": 4, "profiles.work": {"title": "Work", "instructions": "Be exact."}})
    assert result.change_no is not None
    settings = town.load().settings
    assert settings.turns.max_running == 4
    assert settings.agent.profiles["work"].title == "Work"
    source = town.get("turns.max_running").source
    assert (source.kind, source.set_by) == ("database", town.owner.person_id)
    assert town.get("turns.max_queued").source.kind == "default"


def test_a_change_without_any_difference_is_no_change(town: SettingsTown) -> None:
    town.set({"turns.max_running": 4, "providers.openai.api_key": API_KEY})
    version = town.load().state.version
    assert town.set({"turns.max_running": 4, "providers.openai.api_key": API_KEY}).change_no is None
    assert town.unset("turns.max_queued").change_no is None
    assert town.load().state.version == version


def test_unsetting_a_section_removes_everything_in_it(town: SettingsTown) -> None:
    town.set({"profiles.work.title": "Work", "profiles.work.description": "x", "profiles.play.title": "Play"})
    town.unset("profiles.work")
    assert list(town.load().settings.agent.profiles) == ["play"]


def test_all_is_refused_if_one_value_is_not_valid(sqlite_town: SettingsTown) -> None:
    problems = find_problems(sqlite_town, {"turns.max_running": 0, "jobs.max_running": 3, "web.port": -1})
    assert sorted(problems) == [
        "turns.max_running: 0 is not allowed (a whole number, 1 to 256)",
        "web.port: -1 is not allowed (a whole number, 0 to 65535)",
    ]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"turns.max_runing": 1}, "turns.max_runing: unknown key (did you mean max_running?)"),
        ({"turns.max_queued": 9}, "turns.max_queued: it is set by config.yaml, line 2. Change it there, or remove"),
        ({"timezone": "Europe/Berlin"}, "timezone: it is set by PALAVER_TIMEZONE. Change it there, or remove"),
        ({"platforms.telegram.settings.bot_token": BOT_TOKEN}, "platforms.telegram.settings.bot_token: it is set by T"),
        ({"database_url": "other.db"}, "database_url: it can't be changed here. Palaver needs it to open the database"),
        ({"model": "anthropic:claude"}, "model: The model 'anthropic:claude' requires an API key."),
        ({"profiles.work.toolsets": ["mcp:files"]}, "profiles.work.toolsets: there is no files in mcp_servers"),
        ({"mcp_servers.files.command": "sh"}, "mcp_servers.files.command: it starts a program on the server"),
        ({"platforms.signal.settings.program": "/bin/sh"}, "platforms.signal.settings.program: it starts a program"),
        ({"platforms.discord.settings.bot_token": "x"}, "platforms.discord.settings.bot_token is not valid: "),
        ({"platforms.discord.settings.bot": "x"}, "platforms.discord.settings.bot_token is required."),
        ({"instructions": "x" * 100_001}, "instructions: this is too long (at most 100000 characters)"),
        ({"instructions": "a\0b"}, "instructions: it contains characters that can't be stored"),
        ({"people.guest_commands": ["hep"]}, "people.guest_commands: "),
        ({"turns": 5}, "turns: 5 is not allowed (a section with keys)"),
    ],
)
def test_what_cannot_be_set_says_why_and_how_to_fix_it(
    sqlite_town: SettingsTown, values: dict[str, Any], problem: str
) -> None:
    assert find_problems(sqlite_town, values)[0].startswith(problem)


def test_the_terminal_may_set_what_starts_a_program(sqlite_town: SettingsTown) -> None:
    sqlite_town.set({"mcp_servers.files.command": "sh", "mcp_servers.files.args": ["-c", "x"]}, origin="terminal")
    assert sqlite_town.load().settings.agent.mcp_servers["files"].args == ("-c", "x")
    assert sqlite_town.get("mcp_servers.files.args").value is None  # arguments may hold secrets


def test_rules_that_span_keys_are_checked_with_all_of_them(sqlite_town: SettingsTown) -> None:
    sqlite_town.set({"model": "openai:gpt-5", "providers.openai.api_key": API_KEY})
    with pytest.raises(InvalidSettings, match="requires an API key"):
        sqlite_town.unset("providers.openai")
    sqlite_town.unset("providers.openai", "model")
    assert sqlite_town.load().values == {}


def test_texts_that_look_like_numbers_stay_texts(sqlite_town: SettingsTown) -> None:
    sqlite_town.set({"budgets.overall.day_usd": 2.5, "platforms.slack.home_channel.chat_id": 7})
    values = sqlite_town.load().values
    assert values["budgets", "overall", "day_usd"] == "2.5"
    assert values["platforms", "slack", "home_channel", "chat_id"] == "7"


def test_a_change_of_another_person_is_not_overwritten_unseen(town: SettingsTown) -> None:
    seen = town.load().state.version
    town.set({"turns.max_running": 4}, expected_version=seen)
    with pytest.raises(SettingsChanged):
        town.set({"turns.max_running": 5}, expected_version=seen)
    assert town.load().settings.turns.max_running == 4


def test_a_change_that_was_made_meanwhile_is_taken_into_account(
    town: SettingsTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = iter([{"turns.max_queued": 6}])
    store_change = editor.SettingsEditor._store

    def store_later(self: Any, *args: Any) -> int | None:
        for values in others:  # another process is faster, once
            town.set(values)
        return store_change(self, *args)

    monkeypatch.setattr(editor.SettingsEditor, "_store", store_later)
    town.set({"turns.max_running": 4})
    rules = town.load().settings.turns
    assert (rules.max_running, rules.max_queued) == (4, 6)


def test_only_owners_may_change_settings_or_see_their_history(town: SettingsTown) -> None:
    for role in (Role.MEMBER, Role.GUEST):
        other = Principal(town.owner.person_id, role)
        with pytest.raises(OwnerRequired):
            town.editor.change(other, SettingsEdit(values={"turns.max_running": 4}))
        with pytest.raises(OwnerRequired):
            town.editor.undo(other, 1)
        with pytest.raises(OwnerRequired):
            town.editor.list_history(other)


# ---- history -----------------------------------------------------------------------------------------------


def test_every_change_is_recorded_and_can_be_undone(town: SettingsTown) -> None:
    town.set({"turns.max_running": 4, "turns.max_queued": 7})
    town.set({"turns.max_running": 5}, origin="terminal")
    second, first = town.editor.list_history(town.owner)
    assert (first.origin, second.origin) == ("page", "terminal")
    assert second.person_id == town.owner.person_id
    assert [(item.key, item.before, item.after) for item in second.items] == [("turns.max_running", 4, 5)]
    town.editor.undo(town.owner, first.number)
    assert town.load().values == {}
    undone = town.editor.list_history(town.owner, limit=1)[0]
    assert undone.undoes == first.number
    town.editor.undo(town.owner, undone.number)
    rules = town.load().settings.turns
    assert (rules.max_running, rules.max_queued) == (5, 7)


def test_an_undo_is_validated_like_a_new_change(sqlite_town: SettingsTown) -> None:
    sqlite_town.set({"providers.openai.api_key": API_KEY})
    key_change = sqlite_town.editor.list_history(sqlite_town.owner)[0].number
    sqlite_town.set({"model": "openai:gpt-5"})
    with pytest.raises(InvalidSettings, match="requires an API key"):
        sqlite_town.editor.undo(sqlite_town.owner, key_change)
    with pytest.raises(ChangeNotFound):
        sqlite_town.editor.undo(sqlite_town.owner, 12345)


@pytest.mark.both_engines
def test_the_history_is_bounded(town: SettingsTown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_storage, "MAX_CHANGES", 3)
    for number in range(1, 7):
        town.set({"turns.max_running": number})
    changes = town.editor.list_history(town.owner)
    assert len(changes) == 3
    assert town.editor.list_history(town.owner, before=changes[0].number, limit=1) == [changes[1]]
    count = town.store.engine.run(Read(lambda tx: tx.fetch_one("SELECT COUNT(*) FROM setting_change_item")))
    assert count == (3,)


# ---- secrets -----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
def test_secrets_are_encrypted_and_never_shown(town: SettingsTown, capfd: pytest.CaptureFixture[str]) -> None:
    town.set({"providers.openai.api_key": f" {API_KEY}\n", "platforms.discord.enabled": False})
    assert town.load().settings.agent.providers["openai"].api_key == API_KEY
    value = town.get("providers.openai.api_key")
    assert (value.value, value.is_set, value.is_secret, value.hint) == (None, True, True, API_KEY[-4:])
    town.unset("providers")
    town.editor.undo(town.owner, town.editor.list_history(town.owner)[0].number)
    assert town.load().settings.agent.providers["openai"].api_key == API_KEY
    assert API_KEY[:-4] not in read_texts(town.store)
    assert API_KEY not in repr(town.load())
    assert API_KEY not in "".join(capfd.readouterr())


def test_a_url_with_a_password_is_a_secret(town: SettingsTown) -> None:
    town.set({"providers.a.base_url": "https://user:hunter22@example.org/v1", "providers.b.base_url": "http://x/v1"})
    assert "hunter22" not in read_texts(town.store)
    assert (town.get("providers.a.base_url").value, town.get("providers.b.base_url").value) == (None, "http://x/v1")


@pytest.mark.both_engines
def test_a_secret_that_is_moved_to_another_setting_cannot_be_read(town: SettingsTown) -> None:
    town.set({"providers.openai.api_key": API_KEY})
    town.store.engine.run(
        _write("UPDATE setting SET key = 'providers.evil.api_key' WHERE key = 'providers.openai.api_key'")
    )
    loaded = town.load()
    assert loaded.values == {}
    assert [str(problem) for problem in loaded.problems] == [
        "providers.evil.api_key: it was changed outside of Palaver and can't be decrypted. Set it again."
    ]


def test_without_its_key_a_secret_is_reported_and_can_be_set_again(town: SettingsTown) -> None:
    town.set({"providers.openai.api_key": API_KEY, "turns.max_running": 4})
    (town.home / "settings.key").unlink()
    loaded = town.load()
    assert loaded.settings.turns.max_running == 4
    [problem] = loaded.problems
    assert "its key is missing on this machine. Copy settings.key" in str(problem)
    town.set({"providers.openai.api_key": API_KEY})
    assert town.load().problems == ()
    assert town.load().settings.agent.providers["openai"].api_key == API_KEY


def test_a_wrong_key_is_reported(town: SettingsTown) -> None:
    town.set({"providers.openai.api_key": API_KEY})
    other = SettingsTown(town.store, town.home, {"PALAVER_SECRET_KEY": "z" * 40})
    assert "PALAVER_SECRET_KEY is not the key that it was encrypted with" in str(other.load().problems[0])
    short = SettingsTown(town.store, town.home, {"PALAVER_SECRET_KEY": "z"})
    assert "at least 32 characters" in str(short.load().problems[0])
    with pytest.raises(InvalidInput, match="at least 32 characters"):
        short.set({"providers.other.api_key": API_KEY})


def test_a_stored_secret_is_not_sent_to_another_address(town: SettingsTown) -> None:
    town.set({"providers.lab.base_url": "http://lab.example/v1", "providers.lab.api_key": API_KEY})
    with pytest.raises(
        InvalidSettings, match=r"providers\.lab\.api_key would be sent to this address, so enter it again"
    ):
        town.set({"providers.lab.base_url": "http://evil.example/v1"})
    with pytest.raises(InvalidSettings, match="enter it again"):
        town.unset("providers.lab.base_url")
    town.set({"providers.lab.base_url": "http://new.example/v1", "providers.lab.api_key": API_KEY})
    town.set({"providers.lab": {"base_url": "http://newer.example/v1", "api_key": API_KEY}})
    town.editor.undo(town.owner, town.editor.list_history(town.owner)[0].number)  # it was entered for that address
    assert town.load().settings.agent.providers["lab"].base_url == "http://new.example/v1"
    town.set({"providers.lab.base_url": "http://other.example/v1"}, origin="terminal")
    assert town.load().settings.agent.providers["lab"].base_url == "http://other.example/v1"


@pytest.mark.both_engines
def test_values_of_another_version_never_stop_the_start(town: SettingsTown) -> None:
    town.set({"turns.max_running": 4})
    for key, value in (
        ("future.setting", {"value": 1}),
        ("turns.max_queued", {"value": "many"}),
        ("people.guest_commands", {"value": ["teleport"]}),
        ("providers.a.api_key", {"sealed": {"format": 2}}),
    ):
        town.store.engine.run(_write(f"INSERT INTO setting VALUES ('{key}', '{json.dumps(value)}', NULL, 1)"))
    town.store.engine.run(_write("INSERT INTO setting VALUES ('broken..key', 'no json', NULL, 1)"))
    loaded = town.load()
    assert loaded.settings.turns.max_running == 4
    assert sorted(str(problem).partition(": ")[0] for problem in loaded.problems) == [
        "future",
        "people.guest_commands",
        "providers.a.api_key",
        "turns.max_queued",
    ]
    town.set({"turns.max_running": 6})  # what can't be read does not prevent other changes
    town.unset("future")
    assert town.load().settings.turns.max_running == 6


def _write(sql: str) -> Any:
    from palaver.core.engines.base import Write

    return Write(lambda tx: tx.execute(sql))
