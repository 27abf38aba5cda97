"""Homes with several copies of each conversation: hermes-agent 0.13.0 with JSONL, and the files of the web page."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from palaver.transfer.imported import ImportedMessage, ImportedProject

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def old(read_home: Callable[[str], Any]) -> Any:
    return read_home("hermes-0.13.0")


@pytest.fixture
def page(read_home: Callable[[str], Any]) -> Any:
    return read_home("hermes-webui")


def test_copies_in_the_database_and_in_jsonl_come_in_once(old: Any) -> None:
    for origin_id, said in old.truth["seen"].items():
        assert old.texts(origin_id) == said, origin_id
    assert {item.origin_id for item in old.conversations} == old.truth["seen"].keys()


def test_it_equals_what_the_program_shows_where_that_is_complete(old: Any) -> None:
    for name in ("a", "c", "d", "undone"):
        origin_id = old.truth[name]
        shown = [[each["role"], each["content"]] for each in old.truth["shown"][origin_id] if each.get("content")]
        assert old.texts(origin_id) == shown


def test_a_turn_that_is_stored_twice_in_the_database_comes_in_once(old: Any) -> None:
    shown = [each["content"] for each in old.truth["shown"][old.truth["b"]] if each["role"] == "assistant"]
    assert (shown.count("Pong."), old.texts(old.truth["b"]).count(["assistant", "Pong."])) == (6, 3)
    assert len(old.conversation(old.truth["b"]).folded) == 2


def test_a_half_migrated_session_has_its_beginning_from_jsonl(old: Any) -> None:
    messages = [entry for entry in old.entries[old.truth["c"]] if isinstance(entry, ImportedMessage)]
    assert len(messages) == 12
    assert [entry.at for entry in messages] == sorted(entry.at for entry in messages)


def test_damaged_lines_are_reported_with_file_and_line(old: Any) -> None:
    name = f"sessions/{old.truth['corrupt']}.jsonl"
    where = [each.where for each in old.problems if each.where.startswith(name)]
    assert where == [f"{name}, line 4", f"{name}, line 6", f"{name}, line 10"]


def test_damaged_entries_of_sessions_json_are_reported(old: Any) -> None:
    where = [each.where for each in old.problems if "sessions.json" in each.where]
    assert where == [
        "sessions/sessions.json, agent:main:telegram:dm:9",
        "sessions/sessions.json, agent:main:telegram:dm:10",
    ]


def test_chats_of_an_old_home_go_on_too(old: Any) -> None:
    current = {item.source.chat_id for item in old.conversations if item.is_current}
    assert current == {"201", "202", "203", "204", "205", "206"}


def test_times_read_in_the_wrong_zone_are_corrected_by_the_database(
    tmp_path: Path, read_folder: Callable[[Path], Any], old: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder was copied to a machine in another time zone."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    moved = read_folder(tmp_path / "hermes-0.13.0")
    for origin_id in (old.truth["corrupt"], old.truth["c"]):
        assert moved.texts(origin_id) == old.truth["seen"][origin_id]
    assert any("h off" in text for text in moved.conversation(old.truth["corrupt"]).folded)


def test_every_message_is_there_once_after_compactions_by_the_real_compressor(read_home: Callable[[str], Any]) -> None:
    home = read_home("compactions-0.19.0")
    for origin_id, said in home.truth["seen"].items():
        texts = [[role, text] for role, text in home.texts(origin_id) if role != "tool"]
        assert texts == [[role, text.strip()] for role, text in said], origin_id
        summaries = [summary for summary, _ in home.compactions(origin_id)]
        assert summaries == [f"Summary {int(origin_id[1:])}"] * 2
    assert len(home.conversations) == 3


def test_the_page_and_the_database_become_one_conversation(page: Any) -> None:
    for origin_id, said in page.truth["seen"].items():
        assert page.texts(origin_id) == said, origin_id


def test_pins_projects_archive_and_branches_of_the_page_are_kept(page: Any) -> None:
    tomatoes = page.conversation("a0a0a0a0a0a0")
    assert (tomatoes.title, tomatoes.pinned, tomatoes.workspace) == ("Tomatoes", True, "/srv/garden")
    assert tomatoes.project == ImportedProject(name="Garden", color="#22aa55")
    assert tomatoes.personality == "gardener"
    assert (tomatoes.usage[0].input_tokens, str(tomatoes.usage[0].cost)) == (500, "0.01")
    assert page.conversation("b1b1b1b1b1b1").archived
    assert page.conversation("b1b1b1b1b1b1").title is None
    assert page.conversation("d3d3d3d3d3d3").parent_origin_id == "a0a0a0a0a0a0"


def test_a_compaction_on_the_page_stands_where_it_happened(page: Any) -> None:
    assert page.compactions("c2c2c2c2c2c2") == [("Four layers are on.", 2)]


def test_files_that_are_cut_off_or_no_json_are_reported(page: Any) -> None:
    where = {each.where for each in page.problems}
    assert "webui/sessions/e4e4e4e4e4e4.json, after message 3" in where
    assert "webui/sessions/f5f5f5f5f5f5.json" in where


def test_reading_leaves_no_trace_in_the_home(build_home: Callable[[str], Path], read_folder: Any) -> None:
    folder = build_home("hermes-0.13.0")
    before = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*")) if path.is_file()}
    read_folder(folder)
    assert {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*")) if path.is_file()} == before
    assert sorted(path.name for path in folder.iterdir()) == ["sessions", "state.db"]
