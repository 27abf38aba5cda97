"""Tests of showing the answer to `palaver -m` on a terminal."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from palaver.cli.chat.live_renderer import LiveRenderer
from palaver.domain.draft import Piece, PieceKind

if TYPE_CHECKING:
    from cli.chat.terminal import Terminals


def test_the_answer_to_one_message_is_rendered_on_a_terminal(terminals: Terminals) -> None:
    terminal = terminals.open("-m", "show me markdown")
    assert terminal.wait_for_exit() == 0
    assert "**" not in terminal.text
    for text_once in ("What Markdown looks like", "A quotation", "def greet", "soup"):
        assert terminal.text.count(text_once) == 1


def test_no_other_thread_draws_while_an_answer_is_printed() -> None:
    """Two threads that draw at once leave lines behind, so that a part of the answer is there twice."""
    threads = threading.enumerate()
    renderer = LiveRenderer(quiet=False)
    renderer.show(Piece(PieceKind.TEXT, "Hello"))
    assert threading.enumerate() == threads
    renderer.end()
