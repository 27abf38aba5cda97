"""Tests of `palaver sessions list`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource, TurnUsage
from palaver.cli import output
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write

if TYPE_CHECKING:
    from cli.conftest import Home


def test_a_new_home_has_no_conversations(home: Home) -> None:
    assert home.get_text("sessions", "list") == "No conversations yet.\n"
    assert home.get_json("sessions", "list") == {"sessions": [], "next_cursor": None}


def test_the_list_shows_id_age_chat_message_count_and_title_newest_first(home: Home) -> None:
    old = home.add_conversation("the old one", "yes", title="Garden", ago=timedelta(days=2), source=home.bob)
    new = home.add_conversation("hello", "hi", "how are you?", ago=timedelta(minutes=3), title="Greetings")
    head, first, second = home.get_text("sessions", "list").splitlines()
    assert head.split() == ["ID", "ACTIVE", "CHAT", "MESSAGES", "TITLE"]
    assert re.split(" {2,}", first) == [new, "3 min ago", "Telegram, Ada", "3", "Greetings"]
    assert second.split() == [old, "2", "d", "ago", "Signal,", "Bob", "2", "Garden"]


def test_a_conversation_without_a_chosen_title_is_listed_with_its_first_words(home: Home) -> None:
    home.add_conversation("what is the time?", "nearly five")
    assert "what is the time?" in home.get_text("sessions", "list")


def test_wide_characters_keep_the_columns_aligned(home: Home) -> None:
    home.add_conversation("hello", title="plain")
    home.add_conversation("你好", title="天气", source=SessionSource("signal", "9", user_id="9", user_name="李雷"))
    home.add_conversation(
        "hi", title="joined", source=SessionSource("signal", "8", user_id="8", user_name="A 👨‍👩‍👧 e\u0301")
    )
    lines = home.get_text("sessions", "list").splitlines()
    titles = ("TITLE", "joined", "天气", "plain")
    columns = {output.get_display_width(line[: line.index(title)]) for line, title in zip(lines, titles, strict=True)}
    assert len(columns) == 1


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_on_a_terminal_every_line_fits_and_no_id_is_cut(
    home: Home, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    source = SessionSource("telegram", "-5", chat_type="group", chat_name="家族 " * 20, user_id="1")
    ids = [home.add_conversation("hi", source=source, title=f"{'宽 title ' * 10}{number}") for number in range(2)]
    monkeypatch.setattr(output, "is_stdout_terminal", lambda: True)
    lines = home.get_text("sessions", "list", env={"COLUMNS": str(width)}).splitlines()
    assert max(map(output.get_display_width, lines)) <= width
    assert all(any(session_id in line for line in lines) for session_id in ids)
    assert all("title" in line for line in lines[1:])


def test_text_that_looks_like_markup_is_not_interpreted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.add_conversation("hi", title="[bold]loud[/bold] :smile:")
    monkeypatch.setattr(output, "is_stdout_terminal", lambda: True)
    assert "[bold]loud[/bold] :smile:" in home.get_text("sessions", "list", env={"COLUMNS": "120"})


def test_a_cursor_continues_where_a_page_ended(home: Home) -> None:
    for number in range(3):
        home.add_conversation("hi", title=f"talk {number}", ago=timedelta(minutes=number))
    first = home.get_json("sessions", "list", "--limit", "2")
    assert [session["title"] for session in first["sessions"]] == ["talk 0", "talk 1"]
    rest = home.get_json("sessions", "list", "--limit", "2", "--cursor", first["next_cursor"])
    assert [session["title"] for session in rest["sessions"]] == ["talk 2"]
    assert rest["next_cursor"] is None
    assert f"--cursor {first['next_cursor']}" in home("sessions", "list", "--limit", "2").stderr


def test_a_cursor_at_the_end_lists_nothing_more(home: Home) -> None:
    home.add_conversation("hi")
    cursor = home.get_json("sessions", "list", "--limit", "1")["next_cursor"]
    assert home.get_text("sessions", "list", "--cursor", cursor) == "No more conversations.\n"


def test_the_owner_sees_all_conversations_and_with_mine_only_their_own(home: Home) -> None:
    others = home.add_conversation("hello from Ada")
    own = home.add_conversation("note to myself", source=home.owner)
    assert {session["id"] for session in home.get_json("sessions", "list")["sessions"]} == {others, own}
    assert [session["id"] for session in home.get_json("sessions", "list", "--mine")["sessions"]] == [own]


def test_archived_and_pinned_conversations_have_their_own_lists(home: Home) -> None:
    home.add_conversation("a", title="important")
    home.add_conversation("b", title="finished")
    home("sessions", "archive", "finished")
    home("sessions", "pin", "important")
    assert "finished" not in home.get_text("sessions", "list")
    assert "finished" in home.get_text("sessions", "list", "--archived")
    pinned = home.get_text("sessions", "list", "--pinned")
    assert "★ important" in pinned
    assert "finished" not in pinned


def test_expired_conversations_are_listed_with_when_and_why_they_ended(home: Home) -> None:
    expired = home.add_conversation("a", title="yesterday's")
    manual = home.add_conversation("b", title="left")  # which has ended the one before by force
    end_session(home, expired, "daily", hours=3)
    end_session(home, manual, "manual", hours=2)
    [session] = home.get_json("sessions", "list", "--expired")["sessions"]
    assert (session["id"], session["end_reason"]) == (expired, "daily")
    text = home.get_text("sessions", "list", "--expired", env={"COLUMNS": "120"})
    assert "ENDED" in text
    assert "3 h ago, daily" in text
    assert "left" not in text
    assert "ENDED" not in home.get_text("sessions", "list", env={"COLUMNS": "120"})
    assert "Use only one of --pinned and --expired." in home("sessions", "list", "--expired", "--pinned", code=2).stderr
    assert home.get_json("sessions", "list", "--expired", "--mine")["sessions"] == []


def end_session(home: Home, session_id: str, reason: str, hours: int) -> None:
    ended_at = to_micros(datetime.now(UTC) - timedelta(hours=hours))
    end = "UPDATE session SET ended_at = $2, end_reason = $3 WHERE id = $1"
    with home.open_store() as store:
        store.engine.run(Write(lambda tx: tx.execute(end, session_id, ended_at, reason)))


def test_an_empty_list_says_which_list_it_is(home: Home) -> None:
    assert home.get_text("sessions", "list", "--archived") == "No archived conversations.\n"
    assert home.get_text("sessions", "list", "--pinned") == "No pinned conversations.\n"
    assert home.get_text("sessions", "list", "--expired") == "No expired conversations.\n"
    home.add_conversation("hi", title="only one")
    home("sessions", "archive", "only one")
    assert "--archived" in home.get_text("sessions", "list")


def test_a_project_filters_the_list(home: Home) -> None:
    home.add_conversation("a", title="inside")
    home.add_conversation("b", title="outside")
    home("projects", "create", "Travel")
    assert home.get_text("sessions", "list", "--project", "travel") == "No conversations in project 'travel'.\n"
    home("sessions", "move", "inside", "Travel")
    text = home.get_text("sessions", "list", "--project", "Travel")
    assert "inside" in text
    assert "outside" not in text


def test_a_session_in_json_has_every_key_and_times_in_utc(home: Home) -> None:
    session_id = home.add_conversation(
        "hello", "hi", usage=TurnUsage(turn_id="t", model="m", input_tokens=10, output_tokens=3, cost="0.0000001")
    )
    [session] = home.get_json("sessions", "list")["sessions"]
    assert session["id"] == session_id
    assert session["title"] is None
    assert (session["platform"], session["chat_type"], session["source"]["user_name"]) == ("telegram", "dm", "Ada")
    assert (session["message_count"], session["pinned"], session["archived"]) == (2, False, False)
    assert session["usage"]["cost_usd"] == "0.0000001"
    assert session["usage"]["input_tokens"] == 10
    created = datetime.fromisoformat(session["created_at"])
    assert created.utcoffset() == timedelta()
    assert abs(datetime.now(UTC) - created) < timedelta(minutes=5)
    for name in ("ended_at", "end_reason", "project_id", "parent_id", "last_message_at", "key", "preview"):
        assert name in session
    assert session["display_name"] == "hello"


def test_a_list_can_leave_out_platforms_projects_and_profiles(home: Home) -> None:
    home.add_conversation("train to lisbon", title="Lisbon")
    thought = home.add_conversation("a train of thought", source=home.bob)
    home("projects", "create", "Travel")
    home("sessions", "move", "Lisbon", "Travel")

    def list_ids(*options: str) -> list[str]:
        return [session["id"] for session in home.get_json("sessions", "list", *options)["sessions"]]

    assert list_ids("--project", "none") == [thought]
    assert list_ids("--without-platform", "telegram") == [thought]
    assert list_ids("--without-platform", "telegram", "--without-platform", "signal") == []
    assert len(list_ids("--profile", "default")) == 2
    assert "No conversations match." in home.get_text("sessions", "list", "--profile", "work")


def test_a_list_can_be_filtered_by_platform_date_and_words(home: Home) -> None:
    lisbon = home.add_conversation("train to lisbon")
    thought = home.add_conversation("a train of thought", source=home.bob)

    def list_ids(*options: str) -> list[str]:
        return [session["id"] for session in home.get_json("sessions", "list", *options)["sessions"]]

    assert list_ids("--platform", "signal") == [thought]
    assert list_ids("--query", "train -thought") == [lisbon]
    assert list_ids("--after", "2020-01-01") == [thought, lisbon]
    assert list_ids("--before", "2020-01-01") == []
    assert "No conversations match." in home.get_text("sessions", "list", "--platform", "matrix")
