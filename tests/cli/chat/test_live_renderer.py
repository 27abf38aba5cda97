"""Tests of showing the answer to `palaver -m` on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.chat.terminal import Terminals


def test_the_answer_to_one_message_is_rendered_on_a_terminal(terminals: Terminals) -> None:
    terminal = terminals.open("-m", "show me markdown")
    assert terminal.wait_for_exit() == 0
    assert "**" not in terminal.text
    for text_once in ("What Markdown looks like", "A quotation", "def greet", "soup"):
        assert terminal.text.count(text_once) == 1
