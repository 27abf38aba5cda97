"""Tests of `palaver chat --temporary`: it answers like any other chat, says what it is, and leaves nothing behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cli.chat.agent_code import FAILING_AGENT_CODE, PAUSED_AGENT_CODE
from cli.chat.test_one_shot import PalaverProcesses, palaver
from palaver.cli.chat.temporary import BANNER

if TYPE_CHECKING:
    from pathlib import Path

    from cli.chat.terminal import Terminals

__all__ = ["palaver"]

SECRET = "xylophone"


def find_secret(home: Path) -> list[Path]:
    """Return the files that contain what was said."""
    files = [file for file in home.rglob("*") if file.is_file()]
    assert files
    return [file for file in files if SECRET.encode() in file.read_bytes()]


def is_prompt_shown(text: str) -> bool:
    return text.rstrip().endswith("›")


def test_one_message_is_answered_and_nowhere_stored(palaver: PalaverProcesses) -> None:
    ran = palaver("chat", "--temporary", "-m", f"my {SECRET}")
    assert f"You said: “my {SECRET}”" in ran.stdout
    assert find_secret(palaver.home) == []
    assert json.loads(palaver("sessions", "list", "--json").stdout)["sessions"] == []


def test_json_has_no_conversation(palaver: PalaverProcesses) -> None:
    answer = palaver.get_json("--temporary", "-m", "hello")
    assert (answer["session_id"], answer["turn_id"], answer["state"]) == (None, None, "done")
    assert answer["usage"]["input_tokens"] > 0


def test_the_lines_of_a_pipe_are_one_conversation(palaver: PalaverProcesses) -> None:
    ran = palaver("--temporary", stdin=f"the {SECRET}\n\nsecond\n")
    assert BANNER in ran.stderr
    assert "“second”" in ran.stdout
    assert find_secret(palaver.home) == []


def test_a_failure_and_a_command_are_errors(palaver: PalaverProcesses) -> None:
    ran = palaver("--temporary", "-m", "hello", code=FAILING_AGENT_CODE, exit_code=8)
    assert "The key is not accepted." in ran.stderr
    ran = palaver("--temporary", "-m", "/new", exit_code=1)
    assert "Commands don't work in a temporary conversation" in ran.stderr


@pytest.mark.parametrize("option", [["--new"], ["--continue"], ["--resume", "x"], ["--workspace", "x"]])
def test_it_cannot_continue_anything(palaver: PalaverProcesses, option: list[str]) -> None:
    assert "--temporary can't be used with" in palaver("--temporary", *option, exit_code=2).stderr


def test_a_chat_in_a_terminal_is_gone_when_it_ends(terminals: Terminals) -> None:
    terminal = terminals.open("--temporary")
    terminal.wait_for("not saved, not in search or memory")
    terminal.type_keys(f"where is my {SECRET}\r")
    terminal.wait_for(f"You said: “where is my {SECRET}”")
    terminal.wait_for(is_prompt_shown)
    terminal.type_keys("and now?\r")
    terminal.wait_for("You said: “and now?”")
    terminal.wait_for(is_prompt_shown)
    terminal.type_keys("\x04")
    assert terminal.wait_for_exit() == 0
    assert find_secret(terminals.home) == []
    assert not (terminals.home / "history").exists()


def test_ctrl_c_stops_the_answer_and_the_chat_goes_on(terminals: Terminals) -> None:
    terminal = terminals.open("--temporary", code=PAUSED_AGENT_CODE)
    terminal.wait_for("not saved")
    terminal.type_keys("show me markdown\r")
    terminal.wait_for("What Markdown")
    terminal.type_keys("\x03")
    terminal.wait_for(lambda text: "The answer is incomplete: stopped" in text and is_prompt_shown(text))
    terminal.type_keys("hello\r")
    terminal.wait_for("You said: “hello”")
    terminal.type_keys("\x03")
    terminal.wait_for(lambda text: text.count("incomplete: stopped") == 2 and is_prompt_shown(text))
    terminal.type_keys("\x04")
    assert terminal.wait_for_exit() == 0


def test_a_terminal_without_escape_codes_works_too(terminals: Terminals) -> None:
    terminal = terminals.open("--temporary", TERM="dumb")
    terminal.wait_for("not saved")
    terminal.type_keys("hello\r")
    terminal.wait_for("You said: “hello”")
    terminal.type_keys("\x04")
    assert terminal.wait_for_exit() == 0
    assert b"\x1b" not in terminal.raw
