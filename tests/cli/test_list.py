"""`palaver sessions list`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource, TurnUsage
from palaver.cli import output

if TYPE_CHECKING:
    from cli.conftest import Home


def test_a_fresh_home_has_no_conversations_yet(home: Home) -> None:
    assert home.text("sessions", "list") == "no conversations yet\n"
    assert home.json("sessions", "list") == {"sessions": [], "cursor": None}


def test_a_list_shows_id_age_place_count_and_title_newest_first(home: Home) -> None:
    old = home.said("the old one", "yes", title="Garden", ago=timedelta(days=2), source=home.bob)
    new = home.said("hello", "hi", "how are you?", ago=timedelta(minutes=3), title="Greetings")
    head, first, second = home.text("sessions", "list").splitlines()
    assert head.split() == ["ID", "ACTIVE", "WHERE", "MSGS", "TITLE"]
    assert re.split(" {2,}", first) == [new, "3 min ago", "Telegram, Ada", "3", "Greetings"]
    assert second.split() == [old, "2", "d", "ago", "Signal,", "Bob", "2", "Garden"]


def test_a_conversation_without_a_title_is_listed_by_what_was_last_said(home: Home) -> None:
    home.said("what is the time?", "nearly five")
    assert "“nearly five”" in home.text("sessions", "list")


def test_wide_characters_keep_the_columns_in_line(home: Home) -> None:
    home.said("hello", title="plain")
    home.said("你好", title="天气", source=SessionSource("signal", "9", user_id="9", user_name="李雷"))
    home.said("hi", title="joined", source=SessionSource("signal", "8", user_id="8", user_name="A 👨‍👩‍👧 e\u0301"))
    lines = home.text("sessions", "list").splitlines()
    titles = ("TITLE", "joined", "天气", "plain")
    columns = {output.cells(line[: line.index(title)]) for line, title in zip(lines, titles, strict=True)}
    assert len(columns) == 1


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_on_a_terminal_every_line_fits_and_ids_stay_whole(
    home: Home, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    source = SessionSource("telegram", "-5", chat_type="group", chat_name="家族 " * 20, user_id="1")
    ids = [home.said("hi", source=source, title=f"{'宽 title ' * 10}{number}") for number in range(2)]
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    lines = home.text("sessions", "list", env={"COLUMNS": str(width)}).splitlines()
    assert max(map(output.cells, lines)) <= width
    assert all(any(each in line for line in lines) for each in ids)
    assert all("title" in line for line in lines[1:])


def test_text_that_looks_like_markup_is_shown_as_it_is(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.said("hi", title="[bold]loud[/bold] :smile:")
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    assert "[bold]loud[/bold] :smile:" in home.text("sessions", "list", env={"COLUMNS": "120"})


def test_a_cursor_goes_on_where_a_page_ended(home: Home) -> None:
    for number in range(3):
        home.said("hi", title=f"talk {number}", ago=timedelta(minutes=number))
    first = home.json("sessions", "list", "--limit", "2")
    assert [each["title"] for each in first["sessions"]] == ["talk 0", "talk 1"]
    rest = home.json("sessions", "list", "--limit", "2", "--cursor", first["cursor"])
    assert [each["title"] for each in rest["sessions"]] == ["talk 2"]
    assert rest["cursor"] is None
    assert f"--cursor {first['cursor']}" in home("sessions", "list", "--limit", "2").stderr


def test_a_cursor_at_the_end_says_so(home: Home) -> None:
    home.said("hi")
    cursor = home.json("sessions", "list", "--limit", "1")["cursor"]
    assert home.text("sessions", "list", "--cursor", cursor) == "no more conversations\n"


def test_the_owner_sees_everybody_and_mine_narrows_to_their_own(home: Home) -> None:
    theirs = home.said("hello from Ada")
    own = home.said("note to myself", source=home.owner)
    assert {each["id"] for each in home.json("sessions", "list")["sessions"]} == {theirs, own}
    assert [each["id"] for each in home.json("sessions", "list", "--mine")["sessions"]] == [own]


def test_archived_and_pinned_are_lists_of_their_own(home: Home) -> None:
    home.said("a", title="kept")
    home.said("b", title="away")
    home("sessions", "archive", "away")
    home("sessions", "pin", "kept")
    assert "away" not in home.text("sessions", "list")
    assert "away" in home.text("sessions", "list", "--archived")
    pinned = home.text("sessions", "list", "--pinned")
    assert "★ kept" in pinned
    assert "away" not in pinned


def test_a_list_that_is_empty_says_which_one(home: Home) -> None:
    assert home.text("sessions", "list", "--archived") == "no archived conversations\n"
    assert home.text("sessions", "list", "--pinned") == "no pinned conversations\n"
    home.said("hi", title="only one")
    home("sessions", "archive", "only one")
    assert "--archived" in home.text("sessions", "list")


def test_a_project_narrows_the_list(home: Home) -> None:
    home.said("a", title="inside")
    home.said("b", title="outside")
    home("projects", "create", "Travel")
    assert home.text("sessions", "list", "--project", "travel") == "no conversations in project 'travel'\n"
    home("sessions", "move", "inside", "Travel")
    listed = home.text("sessions", "list", "--project", "Travel")
    assert "inside" in listed
    assert "outside" not in listed


def test_a_session_as_json_has_every_key_and_times_in_utc(home: Home) -> None:
    session_id = home.said(
        "hello", "hi", usage=TurnUsage(turn_id="t", model="m", input_tokens=10, output_tokens=3, cost="0.0000001")
    )
    [session] = home.json("sessions", "list")["sessions"]
    assert session["id"] == session_id
    assert session["title"] is None
    assert (session["platform"], session["chat_type"], session["source"]["user_name"]) == ("telegram", "dm", "Ada")
    assert (session["message_count"], session["pinned"], session["archived"]) == (2, False, False)
    assert session["usage"]["cost_usd"] == "0.0000001"
    assert session["usage"]["input_tokens"] == 10
    created = datetime.fromisoformat(session["created_at"])
    assert created.utcoffset() == timedelta()
    assert abs(datetime.now(UTC) - created) < timedelta(minutes=5)
    for name in ("ended_at", "end_reason", "project_id", "parent_id", "last_message_at", "key", "preview", "name"):
        assert name in session
