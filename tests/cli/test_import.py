"""`palaver import`: what it prints, refuses and brings in."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

from cli.pseudo_terminal import run_in_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Home
    from support.warm_process import WarmLauncher


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


def write_openclaw_state(folder: Path) -> Path:
    """Write a state folder of OpenClaw with a chat on Telegram."""
    sessions = folder / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    head = {"type": "session", "version": 3, "id": "one", "timestamp": "2026-01-05T08:00:00.000Z", "cwd": "/srv"}
    message = {"role": "user", "content": "Hello", "timestamp": 1_767_600_001_000}
    line = {"type": "message", "id": "a", "parentId": None, "timestamp": "2026-01-05T08:00:01.000Z", "message": message}
    (sessions / "one.jsonl").write_text(f"{json.dumps(head)}\n{json.dumps(line)}\n")
    entry = {"sessionId": "one", "deliveryContext": {"channel": "telegram", "to": "telegram:4242"}}
    (sessions / "sessions.json").write_text(json.dumps({"agent:main:telegram:direct:4242": entry}))
    return folder


def test_a_chat_account_of_the_owner_is_named_and_the_import_can_be_repeated_with_it(
    home: Home, tmp_path: Path
) -> None:
    folder = write_openclaw_state(tmp_path / "openclaw")
    report = home.get_json("import", "openclaw", folder)
    assert "`--me telegram:4242`" in "".join(report["notes"]["listed"])
    assert home.get_json("sessions", "list", "--mine")["sessions"] == []
    dry = home.get_json("import", "openclaw", folder, "--me", "telegram:4242", "--dry-run")
    report = home.get_json("import", "openclaw", folder, "--me", "telegram:4242")
    assert dry | {"dry_run": False} == report
    assert report["counts"]["linked"] == 1
    assert len(home.get_json("sessions", "list", "--mine")["sessions"]) == 1
    assert home.get_json("import", "openclaw", folder, "--me", "telegram:4242")["counts"]["linked"] == 0


def test_an_account_that_cannot_be_the_owners_is_refused(home: Home, tmp_path: Path) -> None:
    folder = write_openclaw_state(tmp_path / "openclaw")
    refused = home("import", "openclaw", folder, "--me", "telegram:42", code=1)
    assert "'telegram:42' is not a chat account in these files" in refused.stderr
    assert "telegram:4242: 1 conversation" in refused.stderr
    home("import", "openclaw", folder, "--me", "telegram:4242", "--person", "Ada", code=2)
    home("import", "palaver", folder, "--me", "telegram:4242", code=2)
    chatgpt = write_chatgpt_export(tmp_path / "export.zip", "Where to?")
    assert "They name no chat accounts." in home("import", "chatgpt", chatgpt, "--me", "telegram:42", code=1).stderr
    assert home.get_json("sessions", "list")["sessions"] == []


def test_at_a_terminal_the_owner_is_asked_which_accounts_are_theirs(
    launcher: WarmLauncher, home: Home, tmp_path: Path
) -> None:
    folder = write_openclaw_state(tmp_path / "openclaw")
    arguments = ("--home", str(home.path), "import", "openclaw", str(folder))
    code, output = run_in_terminal(launcher, *arguments, "--dry-run", keys=b"\n")
    assert (code, "1  telegram:4242: 1 conversation" in output, "--me telegram:4242" in output) == (0, True, True)
    for options in (("--yes",), ("--json",), ("--person", "owner")):
        code, output = run_in_terminal(launcher, *arguments, "--dry-run", *options, keys=b"\n")
        assert (code, "Which of these" in output) == (0, False), output
    code, output = run_in_terminal(launcher, *arguments, keys=b"1\n")
    assert (code, "chat account that is yours now" in output) == (0, True), output
    code, output = run_in_terminal(launcher, *arguments, keys=b"1\n")
    assert (code, "Which of these" in output) == (0, False), output
    assert len(home.get_json("sessions", "list", "--mine")["sessions"]) == 1
