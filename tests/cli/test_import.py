"""`palaver import`: what it prints, refuses and brings in."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Home


def write_chatgpt_export(path: Path, *texts: str) -> Path:
    """Write an export of ChatGPT with one conversation."""
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "children": ["n0"], "message": None}}
    for number, text in enumerate(texts):
        mapping[f"n{number}"] = {
            "id": f"n{number}",
            "parent": "root" if number == 0 else f"n{number - 1}",
            "children": [f"n{number + 1}"] if number + 1 < len(texts) else [],
            "message": {
                "id": f"m{number}",
                "author": {"role": "user" if number % 2 == 0 else "assistant"},
                "create_time": 1_740_000_000 + number,
                "content": {"content_type": "text", "parts": [text]},
            },
        }
    conversation = {
        "id": "c1",
        "conversation_id": "c1",
        "title": "Trip to Lisbon",
        "create_time": 1_740_000_000,
        "update_time": 1_740_000_100,
        "current_node": f"n{len(texts) - 1}",
        "mapping": mapping,
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([conversation]))
    return path


def test_an_export_of_chatgpt_comes_in_once(home: Home, tmp_path: Path) -> None:
    path = write_chatgpt_export(tmp_path / "export.zip", "Where to?", "To Lisbon.")
    dry = home.get_json("import", "chatgpt", path, "--dry-run")
    assert (dry["dry_run"], dry["counts"]["conversations"], dry["counts"]["messages"]) == (True, 1, 2)
    assert home.get_json("sessions", "list")["sessions"] == []
    text = home.get_text("import", "chatgpt", path)
    assert "Imported:" in text
    assert "1  conversation\n" in text
    (session,) = home.get_json("sessions", "list", "--mine")["sessions"]
    assert (session["title"], session["message_count"]) == ("Trip to Lisbon", 2)
    again = home.get_json("import", "chatgpt", path)
    assert (again["counts"]["conversations"], again["counts"]["unchanged"]) == (0, 1)


def test_conversations_can_be_given_to_a_person(home: Home, tmp_path: Path) -> None:
    home.add_conversation("hello", source=home.ada)
    path = write_chatgpt_export(tmp_path / "export.zip", "Where to?")
    home("import", "chatgpt", path, "--person", "Ada")
    with home.open_store() as store:
        ada = store.get_or_create_person(home.ada)
        assert {session.title for session in store.seen_by(ada.principal).list()} == {None, "Trip to Lisbon"}


def test_an_export_of_palaver_comes_in_as_it_was(home: Home, tmp_path: Path) -> None:
    session_id = home.add_conversation("hello", "hi there", title="Greeting")
    path = tmp_path / "all.jsonl"
    home("export", "--all", "-o", path)
    other = type(home)(tmp_path / "other")
    other.path.mkdir()
    report = other.get_json("import", "palaver", path)
    assert report["counts"]["conversations"] == 1
    assert other.get_json("sessions", "show", session_id)["session"]["title"] == "Greeting"
    second = tmp_path / "second.jsonl"
    other("export", "--all", "-o", second)
    assert second.read_bytes() == path.read_bytes()


def test_what_cannot_be_read_is_refused_with_advice(home: Home, tmp_path: Path) -> None:
    assert "PATH is missing" in home.get_error("import", "chatgpt", code=2)
    assert "--person" in home.get_error("import", "palaver", tmp_path, "--person", "Ada", code=2)
    path = tmp_path / "future.jsonl"
    path.write_text('{"type":"header","format":"palaver.export/9"}\n')
    assert "Update Palaver" in home.get_error("import", "palaver", path, code=1)
    assert "can't be read" in home.get_error("import", "palaver", tmp_path / "missing.jsonl", code=1)
    assert "No person named" in home.get_error(
        "import", "chatgpt", write_chatgpt_export(tmp_path / "e.zip", "x"), "--person", "Unknown", code=3
    )
