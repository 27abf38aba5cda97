"""Tests of the chat on a terminal that can only show lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.chat.agent_code import PAUSED_AGENT_CODE

if TYPE_CHECKING:
    from cli.chat.terminal import Terminals


def test_a_dumb_terminal_gets_plain_lines(terminals: Terminals) -> None:
    terminal = terminals.open(TERM="dumb", code=PAUSED_AGENT_CODE)
    terminal.wait_for("/help")
    terminal.type_keys("/title Lisbon\r")
    terminal.wait_for("Renamed to **Lisbon**")
    terminal.type_keys("show me markdown\r")
    terminal.wait_for("## What Markdown")
    terminal.type_keys("\x03")
    terminal.wait_for("(Stopped)")
    terminals.let_answers_continue()
    terminals.run("-m", "from the side", "--continue")
    terminal.wait_for("You (elsewhere): from the side")
    terminal.wait_for("“from the side”")
    terminal.type_keys("\x04")
    assert terminal.wait_for_exit() == 0
    assert b"\x1b" not in terminal.raw
