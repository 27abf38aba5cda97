"""`palaver sessions export`, and files that are written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver.cli import files
from palaver.domain.errors import InvalidInput, PalaverError

if TYPE_CHECKING:
    from cli.conftest import Home


def test_json_holds_the_whole_log(home: Home) -> None:
    session_id = home.said("first", "one", "second", "two", title="talk")
    home("sessions", "undo", "talk")
    document = json.loads(home.text("sessions", "export", "talk"))
    assert document["id"] == session_id
    assert "second" in [event.get("content") for event in document["events"]]


def test_markdown_holds_what_can_be_read(home: Home) -> None:
    tool = {"role": "tool", "tool_name": "ls", "content": "```\na\n```"}
    home.said("**bold** question", tool, title="talk")
    text = home.text("sessions", "export", "talk", "--format", "markdown")
    assert text.startswith("# talk\n")
    assert "## Ada, " in text
    assert "**bold** question" in text
    assert "````\n```\na\n```\n````" in text


def test_a_half_of_a_surrogate_pair_survives_in_json(home: Home) -> None:
    home.said("broken \ud83d heart", title="talk")
    document = json.loads(home.text("sessions", "export", "talk"))
    assert "broken \ud83d heart" in [event.get("content") for event in document["events"]]
    assert "broken" in home.text("sessions", "show", "talk")


def test_a_file_is_written_for_its_owner_alone_and_its_name_may_choose_the_format(home: Home, tmp_path: Path) -> None:
    home.said("hello", title="talk")
    for name, first in (("talk.json", "{"), ("talk.md", "#"), ("plain", "{")):
        result = home("sessions", "export", "talk", "-o", tmp_path / name)
        assert result.stdout == ""
        assert name in result.stderr
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(first)
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


def test_a_dash_is_standard_output(home: Home) -> None:
    home.said("hello", title="talk")
    assert json.loads(home.text("sessions", "export", "talk", "-o", "-"))["title"] == "talk"


def test_an_existing_file_is_replaced_only_by_force(home: Home, tmp_path: Path) -> None:
    home.said("hello", title="talk")
    file = tmp_path / "talk.md"
    file.write_text("precious")
    assert "--force" in home.error("sessions", "export", "talk", "-o", file, code=1)
    assert file.read_text() == "precious"
    home("sessions", "export", "talk", "-o", file, "--force")
    assert "hello" in file.read_text()
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["talk.md"]


def test_a_missing_folder_is_named(home: Home, tmp_path: Path) -> None:
    home.said("hello", title="talk")
    assert "nowhere" in home.error("sessions", "export", "talk", "-o", tmp_path / "nowhere/x", code=1)


@pytest.mark.parametrize("force", [False, True])
def test_what_is_not_a_file_is_never_replaced(tmp_path: Path, force: bool) -> None:
    with pytest.raises(InvalidInput, match="not a file"):
        files.write_whole(tmp_path, "text", force=force)
    with pytest.raises(InvalidInput, match="not a file"):
        files.write_whole(Path("/dev/null"), "text", force=force)


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    files.write_whole(link, "new", force=True)
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "x"
    file.write_text("old")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(PalaverError, match="No space left"):
        files.write_whole(file, "new", force=True)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    monkeypatch.setattr("os.fsync", lambda _: file.write_text("somebody else's"))
    with pytest.raises(InvalidInput, match="exists already"):
        files.write_whole(file, "ours", force=False)
    assert file.read_text() == "somebody else's"


def test_a_file_system_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    files.write_whole(tmp_path / "x", "text", force=False)
    assert (tmp_path / "x").read_text() == "text"
    assert len(list(tmp_path.iterdir())) == 1
