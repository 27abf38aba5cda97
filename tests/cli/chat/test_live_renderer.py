"""Tests of showing the answer to `palaver -m` on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.cli.chat.renderer import LiveRenderer
from palaver.sessions.draft import Piece, PieceKind

if TYPE_CHECKING:
    import pytest

    from cli.chat.terminal import Terminals


def test_the_answer_to_one_message_is_rendered_on_a_terminal(terminals: Terminals) -> None:
    terminal = terminals.open("-m", "show me markdown")
    assert terminal.wait_for_exit() == 0
    assert "**" not in terminal.text
    for text_once in ("What Markdown looks like", "A quotation", "def greet", "soup"):
        assert terminal.text.count(text_once) == 1


def test_an_answer_is_drawn_as_soon_as_it_grows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thread that draws later can come between two blocks, and then a part of the answer is there twice."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    renderer = LiveRenderer(quiet=False)
    for text in ("Hello", " there"):
        renderer.show(Piece(PieceKind.TEXT, text))
        assert text.strip() in capsys.readouterr().out
    renderer.end()
