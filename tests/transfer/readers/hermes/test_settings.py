"""The settings of Hermes, by the version that wrote them and the order of its files."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from palaver.transfer.readers.hermes import open_reader
from transfer.readers.hermes.conftest import FIXTURES, build_database

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path) -> dict[str, Any]:
    """Return the settings here by their key."""
    with closing(open_reader(folder)) as reader:
        return {each.key or each.name: each for each in reader.read_settings()}  # type: ignore[attr-defined]


def write_home(folder: Path, **files: str) -> Path:
    (folder / "sessions").mkdir(parents=True)
    for name, text in files.items():
        (folder / {"env": ".env", "config": "config.yaml", "legacy": "gateway.json"}[name]).write_text(text)
    return folder


@pytest.mark.parametrize(("version", "mode"), [(6, "both"), (17, "both"), (19, "none"), (22, "none")])
def test_without_a_setting_the_version_decides_when_conversations_restart(
    tmp_path: Path, version: int, mode: str
) -> None:
    build_database(tmp_path / "state.db", FIXTURES / "schemas" / f"v{version:02}.sql")
    found = read(tmp_path)
    assert (found["session_reset.mode"].value, found["session_reset.mode"].is_default) == (mode, True)
    assert {name: found[name].value for name in found if name.startswith("session_reset.")} == (
        {"session_reset.mode": "none"}
        if mode == "none"
        else {"session_reset.mode": "both", "session_reset.idle_minutes": 1440, "session_reset.at_hour": 4}
    )


@pytest.mark.parametrize(("config", "mode"), [("_config_version: 32", "both"), ("_config_version: 33", "none")])
def test_without_a_database_the_version_of_its_config_decides(tmp_path: Path, config: str, mode: str) -> None:
    assert read(write_home(tmp_path / "h", config=config))["session_reset.mode"].value == mode


def test_a_folder_of_which_no_version_is_known_proposes_no_restart(tmp_path: Path) -> None:
    setting = read(write_home(tmp_path / "h"))["session_reset.mode"]
    assert setting.key is None
    assert "Before 0.18.1" in setting.meaning


def test_transcripts_without_a_database_are_from_an_early_version(tmp_path: Path) -> None:
    folder = write_home(tmp_path / "h")
    (folder / "sessions" / "20260201_100000_aaaaaaaa.jsonl").write_text('{"role": "user", "content": "Hello"}\n')
    assert read(folder)["session_reset.mode"].value == "both"


def test_the_environment_wins_over_the_config_and_that_over_the_old_file(tmp_path: Path) -> None:
    found = read(
        write_home(
            tmp_path / "h",
            env="SESSION_IDLE_MINUTES=30\nSESSION_RESET_HOUR=99\n",
            config="gateway: {session_reset: {mode: both, idle_minutes: 60}, thread_sessions_per_user: 'yes'}",
            legacy='{"default_reset_policy": {"mode": "daily"}, "thread_sessions_per_user": false}',
        )
    )
    assert found["session_reset.mode"].value == "both"
    assert found["session_reset.idle_minutes"].value == 30
    assert found["session_reset.at_hour"].value == 4  # there, a wrong hour is the default
    assert found["sessions.thread_per_user"].value is True


def test_the_top_of_the_config_wins_over_its_section(tmp_path: Path) -> None:
    config = "gateway: {group_sessions_per_user: true}\ngroup_sessions_per_user: 'off'\nsession_reset: {mode: weekly}"
    found = read(write_home(tmp_path / "h", config=config))
    assert found["sessions.group_per_user"].value is False
    assert found["session_reset.mode"].value == "none"  # what Hermes does not know, it does not do


def test_settings_of_a_profile_are_named_and_not_proposed(tmp_path: Path) -> None:
    folder = write_home(tmp_path / "h", config="session_reset: {mode: none}")
    write_home(folder / "profiles" / "work", config="session_reset: {mode: idle}")
    found = read(folder)
    assert found["session_reset.mode"].value == "none"
    assert found["profile work"].shown == "session_reset.mode, session_reset.idle_minutes"


@pytest.mark.parametrize(
    ("files", "ignoring"),
    [
        ({"env": "TELEGRAM_ALLOWED_USERS=1\nDISCORD_HOME_CHANNEL=2\n"}, {"telegram"}),
        ({"env": "GATEWAY_ALLOWED_USERS=1\nDISCORD_HOME_CHANNEL=2\n"}, {"discord"}),
        ({"env": "DISCORD_HOME_CHANNEL=2\n", "config": "unauthorized_dm_behavior: ignore"}, {"discord"}),
        (
            {
                "env": "TELEGRAM_ALLOWED_USERS=1\nDISCORD_HOME_CHANNEL=2\n",
                "config": "platforms: {telegram: {unauthorized_dm_behavior: pair}, matrix: {dm_policy: disabled}}",
            },
            {"matrix"},
        ),
        ({"env": "DISCORD_HOME_CHANNEL=2\n"}, set()),
    ],
)
def test_strangers_get_no_reply_where_they_got_none(tmp_path: Path, files: dict[str, str], ignoring: set[str]) -> None:
    found = read(write_home(tmp_path / "h", **files))
    assert {key.split(".")[1] for key in found if key.endswith(".strangers")} == ignoring
