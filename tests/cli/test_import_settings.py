"""`palaver import hermes`: the settings that decide where conversations continue, and a report that keeps its word.

`settings-0.19.0` is a home that Hermes wrote: Ada and Bo share the conversation of a group.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.app import open_store
from palaver.cli import import_settings
from palaver.config import load_settings
from transfer.readers.hermes.conftest import FIXTURES, build_database

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Home

APPLIED = {
    "sessions.group_per_user": False,
    "timezone": "Europe/Vienna",
    "session_reset.mode": "idle",
    "session_reset.idle_minutes": 720,
    "reset_by_platform.discord.mode": "daily",
    "reset_by_platform.discord.at_hour": 5,
    "reset_by_type.thread.mode": "none",
    "turns.busy_policy": "steer",
}


@pytest.fixture
def hermes(tmp_path: Path) -> Path:
    folder = tmp_path / "hermes"
    shutil.copytree(FIXTURES / "settings-0.19.0" / "home", folder)
    build_database(folder / "state.db", FIXTURES / "settings-0.19.0" / "state.sql")
    return folder


def write_in_group(home: Home, *people: str) -> list[tuple[str, int]]:
    """Let people write in the group, as a server would take it; return the conversation of each, and its length."""
    found: list[tuple[str, int]] = []
    with open_store(load_settings({}, home.path)) as store:
        for user_id, name in (("111", "Ada"), ("112", "Bo")):
            if name in people:
                group = SessionSource(
                    "telegram", "-100500", chat_type="group", chat_name="Family", user_id=user_id, user_name=name
                )
                session_id = store.record_user_message(group, f"Hello from {name}").session_id
                found.append((session_id, len(store.load_transcript(session_id))))
    return found


def get_state(document: dict[str, Any], name: str) -> tuple[str, object]:
    each = next(each for each in document["settings"]["listed"] if each["name"] == name)
    return each["state"], each["current"]


def test_a_shared_group_stays_shared_after_its_setting_is_applied(home: Home, hermes: Path) -> None:
    report = home.get_json("import", "hermes", hermes, "--settings")
    assert report["settings"]["applied"]
    (ada, before), (bo, after) = write_in_group(home, "Ada", "Bo")
    assert ada == bo
    assert (before, after) == (7, 8)
    values = {each["key"]: each["value"] for each in home.get_json("config", "list")["settings"]}
    assert values.items() >= APPLIED.items()
    home("config", "undo", str(report["settings"]["change"]))
    assert home.get_json("config", "list")["settings"] == []


def test_without_its_setting_one_person_continues_and_the_report_says_so(home: Home, hermes: Path) -> None:
    text = home.get_text("import", "hermes", hermes)
    assert "settings not applied" in text
    assert f"import hermes {hermes} --settings" in text
    assert "one of them continues it, and everyone else starts a new one" in text
    assert home.get_json("config", "list")["settings"] == []
    (ada, before), (bo, after) = write_in_group(home, "Ada", "Bo")
    assert ada != bo
    assert (before, after) == (7, 1)


def test_a_group_is_shared_by_a_second_import_if_its_conversation_was_not_continued(home: Home, hermes: Path) -> None:
    home("import", "hermes", hermes)
    report = home.get_json("import", "hermes", hermes, "--settings")
    assert (report["counts"]["conversations"], report["counts"]["lanes"]) == (1, 1)
    (ada, before), (bo, after) = write_in_group(home, "Ada", "Bo")
    assert ada == bo
    assert (before, after) == (7, 8)
    assert home.get_json("import", "hermes", hermes)["counts"]["conversations"] == 0


def test_what_ada_has_continued_alone_stays_hers(home: Home, hermes: Path) -> None:
    home("import", "hermes", hermes)
    ((ada, _),) = write_in_group(home, "Ada")
    report = home.get_json("import", "hermes", hermes, "--settings")
    assert report["counts"]["conversations"] == 0
    ((bo, count),) = write_in_group(home, "Bo")
    assert (bo == ada, count) == (False, 1)


@pytest.mark.parametrize("options", [[], ["--settings"], ["--no-settings"]])
def test_a_dry_run_counts_what_the_import_brings(home: Home, hermes: Path, options: list[str]) -> None:
    home("sessions", "list")
    before = (home.path / "palaver.db").read_bytes()
    dry = home.get_json("import", "hermes", hermes, "--dry-run", *options)
    assert home.get_json("sessions", "list")["sessions"] == []
    assert home.get_json("jobs", "list")["jobs"] == []
    assert home.get_json("config", "list")["settings"] == []
    real = home.get_json("import", "hermes", hermes, *options)
    for key in ("counts", "problems", "notes", "folded"):
        assert dry[key] == real[key], key
    assert real["counts"]["lanes"] == 2
    assert before != (home.path / "palaver.db").read_bytes()
    again = home.get_json("import", "hermes", hermes, "--dry-run")
    assert again["counts"] == home.get_json("import", "hermes", hermes)["counts"]


@pytest.mark.parametrize("name", ["hermes-0.19.0", "hermes-webui", "hermes-0.13.0"])
def test_a_dry_run_of_other_homes_counts_the_same(home: Home, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    if (FIXTURES / name / "home").exists():
        shutil.copytree(FIXTURES / name / "home", folder, dirs_exist_ok=True)
    build_database(folder / "state.db", FIXTURES / name / "state.sql")
    dry = home.get_json("import", "hermes", folder, "--dry-run")
    real = home.get_json("import", "hermes", folder)
    assert dry["counts"] == real["counts"]
    assert dry["problems"] == real["problems"]
    assert dry["notes"] == real["notes"]


def test_what_is_the_same_or_pinned_here_is_named_as_such(home: Home, hermes: Path) -> None:
    home.path.mkdir(exist_ok=True)
    (home.path / "config.yaml").write_text("session_reset:\n  mode: none\n")
    home("config", "set", "timezone", "Europe/Vienna")
    report = home.get_json("import", "hermes", hermes, "--settings")
    assert get_state(report, "timezone") == ("same", "Europe/Vienna")
    assert get_state(report, "thread_sessions_per_user") == ("same", False)
    assert get_state(report, "session_reset.mode") == ("pinned", "none")
    text = home.get_text("import", "hermes", hermes)
    assert "session_reset.mode is none here, set by config.yaml, line 2. Change it there." in text


def test_it_is_asked_once_at_a_terminal(home: Home, hermes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_settings, "is_interactive", lambda: True)
    questions: list[str] = []

    def answer(question: str, **_options: object) -> bool:
        questions.append(question)
        return len(questions) > 1

    monkeypatch.setattr("click.confirm", answer)
    text = home.get_text("import", "hermes", hermes)
    assert text.count("sessions.group_per_user: false (here: true)") == 1
    assert "settings not applied" in text
    assert "Applied " in home.get_text("import", "hermes", hermes)
    assert "the same here" in home.get_text("import", "hermes", hermes)
    assert len(questions) == 2
    assert questions[0].startswith("Apply these ")
    home("import", "hermes", hermes, "--no-settings")
    assert len(questions) == 2


def test_what_does_not_come_in_is_named_with_what_it_means(home: Home, hermes: Path) -> None:
    config = hermes / "config.yaml"
    config.write_text(
        config.read_text() + "quick_commands: {x: {}}\nmax_concurrent_sessions: 3\n"
        "platforms: {telegram: {token: 'sk-secret', extra: {require_mention: false}}}\nskins: {api_key: sk-secret}\n"
    )
    legacy = json.loads((hermes / "gateway.json").read_text())
    legacy["reset_by_platform"]["api_server"] = {"mode": "idle"}
    legacy["reset_by_platform"]["no such: thing"] = {"mode": "idle"}
    legacy["group_sessions_per_user"] = True  # config.yaml wins
    (hermes / "gateway.json").write_text(json.dumps(legacy))
    text = home.get_text("import", "hermes", hermes, "--dry-run")
    left_out = text.partition("Settings that are left out:")[2].partition("This would come in:")[0]
    for name in ("quick_commands", "max_concurrent_sessions", "platforms.telegram.require_mention", "display, skins"):
        assert f"- {name}. " in left_out
    assert "- reset_by_platform.api_server: idle. " in left_out
    assert "- reset_by_platform.no such: thing: idle. " in left_out
    assert "group_sessions_per_user: false → " in text
    assert "secret" not in text


def test_files_without_settings_have_none_to_apply(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text("[]")
    assert "--settings" in home.get_error("import", "chatgpt", path, "--settings", code=2)
    assert "settings" not in home.get_json("import", "chatgpt", path)


def test_a_job_that_others_read_has_no_tools_that_know_its_person(home: Home, hermes: Path) -> None:
    notes = home.get_json("import", "hermes", hermes)["notes"]["listed"]
    jobs = {each["name"]: each for each in home.get_json("jobs", "list")["jobs"]}
    assert jobs["Trip"]["toolsets"] == []
    assert jobs["Weather"]["toolsets"] == []  # it runs as the owner, and goes to Ada, who is another person here
    assert (jobs["Disk log"]["targets"], jobs["Disk log"]["toolsets"]) == (["local"], ["history", "memory"])
    assert "The job “No place” is paused, as it was there." in notes
    assert any("“Trip”" in note and "memories" in note for note in notes)


def test_a_job_that_only_its_person_reads_keeps_them(home: Home, hermes: Path) -> None:
    home("import", "hermes", hermes, "--me", "telegram:111")
    jobs = {each["name"]: each["toolsets"] for each in home.get_json("jobs", "list")["jobs"]}
    assert jobs["Weather"] == ["history", "memory"]
    assert jobs["Trip"] == []


def test_runs_are_in_the_project_of_runs(home: Home, hermes: Path) -> None:
    home("import", "hermes", hermes)
    runs = home.get_json("sessions", "list", "--project", "Scheduled")["sessions"]
    assert sorted(run["auto_title"] for run in runs) == ["Count the birds", "Disk log", "Disk log", "Weather"]
