"""`palaver export`: conversations, people and everything, as files and folders."""

from __future__ import annotations

import json
import stat
import zipfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Home


def test_everything_goes_into_one_file_that_only_its_owner_can_read(home: Home, tmp_path: Path) -> None:
    home.add_conversation("hello", "hi", source=home.ada)
    home.add_conversation("a secret", source=home.bob)
    path = tmp_path / "all.jsonl"
    result = home("export", "--all", "-o", path)
    assert result.stderr.startswith(f"Exported to {path} (")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert records[0] == {"type": "header", "format": "palaver.export/1", "scope": "all"}
    assert records[-1]["counts"]["session"] == 2
    assert "already exists" in home.get_error("export", "--all", "-o", path, code=1)
    home("export", "--all", "-o", path, "--force")


def test_one_conversation_and_one_person_have_nothing_of_others(home: Home, tmp_path: Path) -> None:
    session_id = home.add_conversation("hello from ada", source=home.ada, title="Greeting")
    home.add_conversation("a secret of bob", source=home.bob)
    for arguments in (["Greeting"], [session_id], ["--person", "Ada"]):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        home("export", *arguments, "-o", path)
        assert b"hello from ada" in path.read_bytes()
        assert b"secret of bob" not in path.read_bytes()


@pytest.mark.parametrize("suffix", ["md", "html"])
def test_documents_are_chosen_by_the_ending_of_the_file(home: Home, tmp_path: Path, suffix: str) -> None:
    home.add_conversation("hello *you*", "hi", title="Greeting")
    path = tmp_path / f"greeting.{suffix}"
    home("export", "Greeting", "-o", path)
    text = path.read_text()
    assert "Greeting" in text
    assert ("<html" in text) == (suffix == "html")


def test_several_conversations_become_a_folder(home: Home, tmp_path: Path) -> None:
    home.add_conversation("hello", source=home.ada)
    home.add_conversation("good day", source=home.bob)
    folder = tmp_path / "documents"
    result = home("export", "--all", "--format", "html", "-o", folder)
    assert "3 files" in result.stderr
    assert (folder / "index.html").exists()
    assert len(list(folder.glob("*.html"))) == 3


def test_a_zip_has_everything_about_a_person(home: Home, tmp_path: Path) -> None:
    home.add_conversation("hello", source=home.ada)
    home.add_conversation("a secret of bob", source=home.bob)
    path = tmp_path / "ada.zip"
    home("export", "--person", "Ada", "-o", path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert "palaver.jsonl" in archive.namelist()
        assert not any(b"secret of bob" in archive.read(name) for name in archive.namelist())
    assert "--person" in home.get_error("export", "--all", "--format", "zip", "-o", tmp_path / "x.zip", code=1)


def test_it_says_what_is_missing(home: Home, tmp_path: Path) -> None:
    assert "--all" in home.get_error("export", "-o", tmp_path / "x", code=2)
    assert "No conversation matches" in home.get_error("export", "nothing", "-o", tmp_path / "x", code=3)
