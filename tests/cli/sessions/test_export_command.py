"""Tests of `palaver sessions export`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Home


def test_json_contains_the_complete_log(home: Home) -> None:
    session_id = home.add_conversation("first", "one", "second", "two", title="talk")
    home("sessions", "undo", "talk")
    document = json.loads(home.get_text("sessions", "export", "talk"))
    assert document["id"] == session_id
    assert "second" in [event["message"]["content"] for event in document["events"] if event["message"]]


def test_markdown_contains_the_visible_messages(home: Home) -> None:
    tool = {"role": "tool", "tool_name": "ls", "content": "```\na\n```"}
    home.add_conversation("**bold** question", tool, title="talk")
    text = home.get_text("sessions", "export", "talk", "--format", "markdown")
    assert text.startswith("# talk\n")
    assert "## Ada, " in text
    assert "**bold** question" in text
    assert "````\n```\na\n```\n````" in text


def test_half_of_a_surrogate_pair_is_replaced(home: Home) -> None:
    home.add_conversation("broken \ud83d heart", title="talk")
    document = json.loads(home.get_text("sessions", "export", "talk"))
    assert "broken ? heart" in [event["message"]["content"] for event in document["events"] if event["message"]]
    assert "broken" in home.get_text("sessions", "show", "talk")


def test_only_its_owner_can_read_an_exported_file_and_its_name_chooses_the_format(home: Home, tmp_path: Path) -> None:
    home.add_conversation("hello", title="talk")
    for name, first in (("talk.json", "{"), ("talk.md", "#"), ("plain", "{")):
        result = home("sessions", "export", "talk", "-o", tmp_path / name)
        assert result.stdout == ""
        assert name in result.stderr
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(first)
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


def test_a_dash_means_stdout(home: Home) -> None:
    home.add_conversation("hello", title="talk")
    assert json.loads(home.get_text("sessions", "export", "talk", "-o", "-"))["title"] == "talk"


def test_an_existing_file_is_replaced_only_with_force(home: Home, tmp_path: Path) -> None:
    home.add_conversation("hello", title="talk")
    file = tmp_path / "talk.md"
    file.write_text("old text")
    assert "--force" in home.get_error("sessions", "export", "talk", "-o", file, code=1)
    assert file.read_text() == "old text"
    home("sessions", "export", "talk", "-o", file, "--force")
    assert "hello" in file.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["talk.md"]


def test_a_missing_folder_is_named_in_the_error(home: Home, tmp_path: Path) -> None:
    home.add_conversation("hello", title="talk")
    assert "nowhere" in home.get_error("sessions", "export", "talk", "-o", tmp_path / "nowhere/x", code=1)
