"""Tests of rendering blocks and the status line."""

from __future__ import annotations

import re

import pytest

from palaver import SessionSource, SessionStore, TurnUsage
from palaver.cli.chat.feed_presenter import Note, PersonMessage
from palaver.cli.chat.renderer import DisplayBlock, Renderer, format_arguments, format_status_line, format_usage
from palaver.sessions.draft import Piece, PieceKind


def test_no_text_can_control_the_terminal() -> None:
    evil = "a\x1b]0;title\x07b\x1b[2Jc\x9b1md\u202e"
    blocks: list[DisplayBlock] = [
        Piece(PieceKind.TEXT, evil),
        Piece(PieceKind.REASONING, evil),
        Piece(PieceKind.RESULT, evil, name=evil, arguments=evil),
        PersonMessage(evil, evil),
        Note(evil),
    ]
    rendered = Renderer({"TERM": "xterm-256color"}).render(blocks, 60)
    assert "\x1b" not in re.sub(r"\x1b\[[0-9;]*m", "", rendered)
    assert not {"\x07", "\x9b", "\u202e"} & set(rendered)


def test_with_no_color_nothing_is_colored() -> None:
    rendered = Renderer({"TERM": "xterm-256color", "NO_COLOR": "1"}).render(
        [Note("oh", is_error=True), PersonMessage("Bob", "hi")], 60
    )
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", rendered)


def test_a_long_result_is_cut_and_says_how_much_is_missing() -> None:
    result = "\n".join(f"line {n}" for n in range(20))
    rendered = Renderer({}).render([Piece(PieceKind.RESULT, result, name="find", arguments="{}")], 60)
    assert "line 3" in rendered
    assert "line 4" not in rendered
    assert "16 more lines" in rendered


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('{"query": "cat", "limit": 3}', "query: cat, limit: 3"),
        ('{"text": "two\\nlines"}', "text: two lines"),
        ("{}", ""),
        ("[1, 2]", "[1, 2]"),
        ('{"cut": "of', '{"cut": "of'),
    ],
)
def test_arguments_are_formatted_on_one_line(arguments: str, line: str) -> None:
    assert format_arguments(arguments) == line


def test_the_status_line_fits_the_terminal() -> None:
    assert (
        format_status_line(None, "a-model", is_running=False, queued_count=0, width=80)
        == " a-model · new conversation · idle"
    )
    assert format_status_line(None, "a-model", is_running=True, queued_count=2, width=80).endswith(
        "responding (Ctrl-C to stop), 2 queued"
    )
    assert (
        format_status_line(None, "a-model", is_running=False, queued_count=0, width=28)
        == " a-model · new conve… · idle"
    )
    assert len(format_status_line(None, "a-model" * 20, is_running=False, queued_count=0, width=40)) == 40


def test_an_unknown_cost_is_shown_as_unknown(sqlite_store: SessionStore) -> None:
    session_id = sqlite_store.record_user_message(SessionSource.local_cli(), "hi").session_id
    assert format_usage(sqlite_store.get_session(session_id)) == ["0 tokens"]
    sqlite_store.update_session(session_id, TurnUsage(turn_id="1", input_tokens=1200, output_tokens=34))
    assert format_usage(sqlite_store.get_session(session_id)) == ["1,234 tokens", "cost unknown"]
    sqlite_store.update_session(session_id, TurnUsage(turn_id="2", input_tokens=1, cost="0.5"))
    assert format_usage(sqlite_store.get_session(session_id)) == ["1,235 tokens", "$0.5000 + 1 turn unpriced"]
