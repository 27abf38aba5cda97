"""Tests of `palaver people erase` and `palaver sessions prune`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cli.pseudo_terminal import run_in_terminal

if TYPE_CHECKING:
    from cli.conftest import Home
    from support.warm_process import WarmLauncher


def list_names(home: Home) -> set[str]:
    return {person["name"] for person in home.get_json("people", "list")["people"]}


def test_a_dry_run_counts_and_keeps_the_person(home: Home) -> None:
    home.add_conversation("a secret", "an answer", source=home.ada)
    home.add_conversation("hello", source=home.bob)
    counts = home.get_json("people", "erase", "ada", "--dry-run")
    assert counts["is_erased"] is False
    assert (counts["counts"]["conversations"], counts["counts"]["messages"]) == (1, 2)
    text = home.get_text("people", "erase", "ada", "--dry-run")
    assert text.startswith("Would erase 'Ada':\n  1 conversation\n  2 messages in them\n")
    assert list_names(home) == {"Ada", "Bob", "owner"}


def test_a_person_is_erased_after_their_name_was_typed(launcher: WarmLauncher, home: Home) -> None:
    home.add_conversation("a secret", source=home.ada)
    home.add_conversation("hello", source=home.bob)
    arguments = ("--home", str(home.path), "people", "erase", "ada")
    code, output = run_in_terminal(launcher, *arguments, keys=b"Bob\n")
    assert (code, "Nothing was erased" in output) == (1, True), output
    assert list_names(home) == {"Ada", "Bob", "owner"}
    code, output = run_in_terminal(launcher, *arguments, keys=b"ada\n")
    assert (code, "Erased 'Ada'" in output) == (0, True), output
    assert list_names(home) == {"Bob", "owner"}
    assert [session["preview"] for session in home.get_json("sessions", "list")["sessions"]] == ["hello"]


def test_a_script_erases_with_yes_and_the_file_has_nothing_left(home: Home) -> None:
    home.add_conversation("a zebraquux secret", source=home.ada)
    home("people", "erase", "ada", code=2)  # needs a confirmation
    report = home.get_json("people", "erase", "ada", "--yes", "--rewrite-file")
    assert (report["is_erased"], report["counts"]["conversations"]) == (True, 1)
    assert b"zebraquux" not in (home.path / "palaver.db").read_bytes()
    assert "No person named 'ada'" in home("people", "erase", "ada", "--yes", code=3).stderr


def test_the_owner_at_the_terminal_cannot_be_erased(home: Home) -> None:
    result = home("people", "erase", "owner", "--yes", code=4)
    assert "person at the terminal" in result.stderr


def test_old_conversations_are_pruned_after_a_look(home: Home) -> None:
    home.add_conversation("old", source=home.ada, ago=timedelta(days=100))
    pinned = home.add_conversation("old and pinned", source=home.bob, ago=timedelta(days=200))
    home("sessions", "pin", pinned)
    home.add_conversation("new", source=home.owner)
    text = home.get_text("sessions", "prune", "--older-than", "90d", "--dry-run")
    assert text.startswith("1 conversation would be deleted: 1 message, about 0.0 MB")
    home("sessions", "prune", "--older-than", "90d", code=2)  # needs a confirmation
    report = home.get_json("sessions", "prune", "--older-than", "90d", "--yes")
    assert (report["sessions"], report["is_dry_run"]) == (1, False)
    assert {session["preview"] for session in home.get_json("sessions", "list")["sessions"]} == {
        "old and pinned",
        "new",
    }
    assert "No conversation is that old" in home.get_text("sessions", "prune", "--older-than", "90d", "--yes")
    assert "is not an age" in home("sessions", "prune", "--older-than", "soon", code=2).stderr


def test_the_status_says_how_long_conversations_are_kept(home: Home) -> None:
    assert "kept until a person deletes them" in home.get_text("status")
    (home.path / "config.yaml").write_text("retention:\n  max_age_days: 90\n")
    assert "deleted 90 days after the last activity" in home.get_text("status")
    (home.path / "config.yaml").write_text("retention:\n  max_age_days: 0\n")
    assert "retention.max_age_days" in home("status", code=7).stderr
