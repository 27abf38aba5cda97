"""Tests of the chat on a full terminal: a real process, a pseudo-terminal, and an emulator whose screen is read."""

from __future__ import annotations

import os
import pty
import re
import signal
import stat
import sys
import termios
from typing import TYPE_CHECKING

import pytest

from cli.chat.agent_code import FAILING_AGENT_CODE, PAUSED_AGENT_CODE, PROVIDER_AGENT_CODE, WARNING_AGENT_CODE
from palaver import SessionSource, SessionStore, __version__
from palaver.cli.chat.screen import create_raw_input

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.chat.terminal import Terminal, Terminals


# -- output --------------------------------------------------------------------------------------------------


def test_the_chat_starts_with_the_agent_and_a_hint(terminals: Terminals) -> None:
    terminal = terminals.open_cold()
    terminal.wait_for("idle")
    assert f"Palaver {__version__} · Demo agent" in terminal.text
    assert "/help" in terminal.text
    assert terminal.status_line == " demo · new conversation · idle"


def test_an_answer_is_rendered_as_markdown_above_the_status_line(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    text = terminal.send("show me markdown", until="bread")
    assert "› show me markdown" in text
    assert "Some bold, some italic" in text
    assert " 1 first" in text
    assert "```" not in text
    terminal.wait_for(
        lambda _: bool(re.fullmatch(r" demo · show me markdown · \d+ tokens · \$0\.0000 · idle", terminal.status_line))
    )
    for text_once in ("What Markdown looks like", "A quotation", "def greet", "soup"):
        assert text.count(text_once) == 1


def test_tool_calls_and_reasoning_are_shown(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    text = terminal.send("remember that I like tea", until="I'll remember that.")
    assert re.search(r"✓ remember  (< )?\d+\.\d s  text: I like tea", text)
    text = terminal.send("think about the sea", until="I have thought about")
    assert "Let me look at it again" in text


def test_a_failed_answer_shows_the_reason(terminals: Terminals) -> None:
    terminal = terminals.open_chat(code=FAILING_AGENT_CODE)
    text = terminal.send("hello", until="The key is not accepted.")
    assert "It begins" in text
    assert "✗ The key is not accepted." in text


def test_warnings_are_shown_above_the_input_and_other_log_records_are_not(terminals: Terminals) -> None:
    terminal = terminals.open_chat(code=WARNING_AGENT_CODE)
    terminal.send("hello", until="You said")
    text = terminal.send("/model demo", until="cellar flooded")
    assert "not shown" not in text
    assert "✗ cellar flooded (depth: 1 m)" in text


def test_with_no_color_nothing_is_colored(terminals: Terminals) -> None:
    terminal = terminals.open_chat(NO_COLOR="1")
    terminal.send("show me markdown", until="bread")
    assert not re.search(rb"\x1b\[[0-9;]*\b(3[0-7]|38;5;\d+|9[0-7])m", terminal.raw)


def test_the_chat_works_on_a_narrow_terminal(terminals: Terminals) -> None:
    terminal = terminals.open_chat(columns=30)
    terminal.type_keys("hello\r")
    terminal.wait_for(lambda text: "“hello”" in " ".join(text.split()))


# -- input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\x1b\r", "\n"], ids=["Alt-Enter", "Ctrl-J"])
def test_a_message_can_have_several_lines(terminals: Terminals, newline: str) -> None:
    terminal = terminals.open_chat()
    terminal.type_keys(f"first{newline}second")
    terminal.wait_for("› first\n  second")
    terminal.send("", until="“first second”")


def test_commands_are_completed_with_their_description(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    terminal.type_keys("/re")
    text = terminal.wait_for("Go back to an earlier conversation")
    assert "/retry" in text
    assert "/status" not in text


def test_titles_are_completed_after_resume(terminals: Terminals) -> None:
    terminals.run("-m", "hello")
    terminals.run("-m", "/title Trip to Lisbon")
    terminal = terminals.open_chat("--new")
    terminal.type_keys("/resume tri")
    terminal.wait_for("Trip to Lisbon  just now")
    terminal.type_keys("\t")
    terminal.wait_for("/resume Trip to Lisbon")
    terminal.send("", until="Back in Trip to Lisbon")
    terminal.wait_for(lambda _: "Trip to Lisbon" in terminal.status_line)


def test_a_file_is_attached_by_its_path_which_is_completed(terminals: Terminals, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("The code is 4711.")
    terminal = terminals.open_chat()
    terminal.type_keys("/att")
    terminal.wait_for("Attach a file to your next message.")
    terminal.type_keys(f"ach {tmp_path}/rep")
    terminal.wait_for("report.txt")
    terminal.type_keys("\t")
    terminal.wait_for("/report.txt")
    terminal.send("", until="Attached to your next message: report.txt")
    terminal.send("Read it", until="You said: “Read it")
    terminal.send("/attach", until="No files are attached.")
    terminal.send(f"/attach {tmp_path}/missing", until="No such file")


def test_the_input_history_is_restored_and_only_its_owner_can_read_it(terminals: Terminals) -> None:
    first = terminals.open_chat()
    first.send("hello there", until="“hello there”")
    first.type_keys("\x04")
    assert first.wait_for_exit() == 0
    assert stat.S_IMODE((terminals.home / "history").stat().st_mode) == 0o600
    second = terminals.open_chat()
    second.type_keys("\x1b[A")
    second.wait_for("\n› hello there\n")


def test_a_message_sent_during_an_answer_is_queued(terminals: Terminals) -> None:
    terminal = terminals.open_chat(code=PAUSED_AGENT_CODE)
    terminal.type_keys("hello\r")
    terminal.wait_for(lambda _: "responding" in terminal.status_line)
    terminal.type_keys("/queue later\r")
    terminal.wait_for("· Queued (1 ahead)")
    terminal.wait_for(lambda _: "1 queued" in terminal.status_line)
    terminals.let_answers_continue()
    terminal.wait_for("“later”")


# -- conversations -------------------------------------------------------------------------------------------


def test_new_title_and_resume_commands_switch_conversations(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    terminal.send("hello", until="“hello”")
    terminal.send("/title Lisbon", until="Renamed to Lisbon")
    terminal.wait_for(lambda _: " Lisbon · " in terminal.status_line)
    terminal.send("/new Garden", until="New conversation: Garden")
    terminal.wait_for(lambda _: terminal.status_line == " demo · Garden · 0 tokens · idle")
    terminal.send("roses", until="“roses”")
    terminal.send("/resume Lisbon", until="Back in Lisbon")
    terminal.wait_for(lambda _: " Lisbon · " in terminal.status_line)
    terminal.send("/resume Madrid", until="No conversation here matches")


def test_retry_does_not_look_like_a_message_from_elsewhere(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    terminal.send("hello", until="“hello”")
    terminal.type_keys("/retry\r")
    text = terminal.wait_for(lambda text: text.count("“hello”") >= 2 and "idle" in terminal.status_line)
    assert "elsewhere" not in text


def test_a_recent_conversation_is_continued_with_a_notice(terminals: Terminals) -> None:
    terminals.run("-m", "hello")
    terminals.run("-m", "/title Lisbon")
    terminal = terminals.open_chat()
    assert "Continuing “Lisbon” (just now)." in terminal.text
    assert "▌ you: “hello”\n▌ agent: “You said: “hello”." in terminal.text
    assert " Lisbon · " in terminal.status_line
    assert "New conversation" in terminals.open_chat("--new").text
    assert "Continuing" not in terminals.open_chat().text


@pytest.mark.parametrize("option", [("--continue",), ("--resume", "Lisbon")], ids=["continue", "resume"])
def test_a_conversation_that_is_opened_shows_its_last_exchange(terminals: Terminals, option: tuple[str, ...]) -> None:
    terminals.run("-m", "an old question")
    terminals.run("-m", "/title Lisbon")
    terminals.run("-m", "When does the train leave? " + "It is a long way. " * 20)
    terminals.run("--new", "-m", "/why") if option[0] == "--resume" else None
    text = terminals.open_chat(*option).text
    exchange = " ".join(text[text.index("▌ you:") :].replace("▌", "").split())
    assert re.match(r"you: “When does the train leave\? It is a long way\..*…” agent: “You said: “When does", exchange)
    assert "an old question" not in text


def test_a_new_conversation_has_a_title_in_the_status_line_the_window_and_the_lists(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    assert terminal.window_title == "Palaver"
    terminal.send("When does the train to Lisbon leave?", until="You said")
    terminal.wait_for(lambda _: "When does the train to Lisbon leave" in terminal.status_line)
    terminal.wait_for(lambda _: terminal.window_title == "When does the train to Lisbon leave? · Palaver")
    assert "**When does the train to Lisbon leave?**" in terminals.run("-m", "/sessions")
    assert "Terminal  " in terminals.run("sessions", "list")
    assert "When does the train to Lisbon leave?" in terminals.run("sessions", "list")
    terminal.send("/title Lisbon", until="Renamed to Lisbon")
    terminal.wait_for(lambda _: terminal.window_title == "Lisbon · Palaver")
    terminal.type_keys("\x04")
    terminal.wait_for_exit()
    assert terminal.window_title == ""


def test_the_status_line_keeps_the_spelling_of_the_model(terminals: Terminals) -> None:
    terminal = terminals.open_chat(code=PROVIDER_AGENT_CODE)
    assert terminal.status_line.startswith(" workshop:fast · ")
    terminal.send("hello", until="“hello”")
    terminal.wait_for(lambda _: "tokens" in terminal.status_line)
    assert terminal.status_line.startswith(" workshop:fast · hello · ")
    text = terminal.send("/usage", until="last used")
    assert "Model: workshop:fast (last used)" in text
    assert " · workshop:fast" in terminals.run("sessions", "show", "hello")


def test_resume_without_a_name_lists_conversations(terminals: Terminals) -> None:
    terminals.run("-m", "hello")
    terminals.run("-m", "/title Lisbon")
    terminal = terminals.open_chat("--new")
    terminal.type_keys("\x04")
    terminal.wait_for_exit()
    assert "1 Lisbon" in terminals.open_chat("--resume").wait_for("Conversations you can resume")


def test_messages_and_answers_of_another_process_are_shown_once(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    terminal.send("hello", until="“hello”")
    assert "“from the side”" in terminals.run("-m", "from the side", "--continue")
    text = terminal.wait_for(
        lambda text: "“from the side”" in " ".join(text.split()) and "idle" in terminal.status_line
    )
    assert "You (elsewhere): from the side" in text
    assert text.count("from the side") == 2
    assert text.count("“hello”") == 1


def test_another_terminal_shows_the_question_and_the_growing_answer(terminals: Terminals) -> None:
    terminals.run("-m", "hello")
    # Either of them may run the turn.
    first, second = terminals.open_chat(code=PAUSED_AGENT_CODE), terminals.open_chat(code=PAUSED_AGENT_CODE)
    first.type_keys("show me markdown\r")
    second.wait_for("You (elsewhere): show me markdown")
    second.wait_for(lambda _: "responding" in second.status_line)
    second.wait_for("What Markdown looks")
    second.type_keys("\x03")
    second.wait_for("· Stopped")
    first.wait_for("· Stopped")


def test_two_terminals_can_be_in_different_conversations(terminals: Terminals) -> None:
    first, second = terminals.open_chat(), terminals.open_chat()
    first.send("hello", until="“hello”")
    first.send("/new Here", until="conversation: Here")
    first.send("apples", until="“apples”")
    second.send("/new There", until="conversation: There")
    second.send("pears", until="“pears”")
    first.send("cherries", until="“cherries”")
    assert "pears" not in first.text
    assert "apples" not in second.text
    assert "cherries" in terminals.run("sessions", "show", "Here")
    assert "pears" in terminals.run("sessions", "show", "There")


def test_a_chat_leaves_a_conversation_that_is_deleted_elsewhere(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    terminal.send("hello", until="“hello”")
    terminal.send("/title Lisbon", until="Renamed to Lisbon")
    terminals.run("sessions", "delete", "Lisbon", "--yes")
    terminal.wait_for("This conversation was deleted")
    terminal.send("hello again", until="“hello again”")


def test_a_message_from_a_platform_is_shown_with_the_name_of_its_author(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    terminal.send("hello", until="“hello”")
    with SessionStore.open(terminals.home / "palaver.db") as store:
        session = store.list_sessions()[0]
        store.append_to_transcript(session.id, {"role": "user", "content": "ahoy", "author": {"name": "Bob"}})
    terminal.wait_for("Bob: ahoy")


# -- quitting ------------------------------------------------------------------------------------------------


def test_ctrl_c_stops_the_answer_and_keeps_its_text_and_a_double_press_quits(terminals: Terminals) -> None:
    terminal = terminals.open_chat(code=PAUSED_AGENT_CODE)
    terminal.type_keys("show me markdown\r")
    terminal.wait_for("What Markdown looks")
    terminal.type_keys("\x03")
    text = terminal.wait_for(lambda text: "· Stopped" in text and "idle" in terminal.status_line)
    assert "What Markdown looks" in text
    assert "bread" not in text
    with SessionStore.open(terminals.home / "palaver.db") as store:
        transcript = store.load_transcript(store.list_sessions()[0].id)
    assert transcript[-1]["role"] == "assistant"
    assert transcript[-1]["content"].startswith("## What Markdown")
    (terminals.home / "later").touch()  # this is no double press
    terminal.type_keys("\x03")
    terminal.wait_for("Press Ctrl-C again or Ctrl-D to quit")
    terminal.type_keys("\x03")
    assert terminal.wait_for_exit() == 0


def test_a_double_ctrl_c_during_an_answer_quits_and_its_text_stays_on_the_screen(terminals: Terminals) -> None:
    terminal = terminals.open_chat(code=PAUSED_AGENT_CODE)
    terminal.type_keys("show me markdown\r")
    terminal.wait_for("What Markdown looks")
    terminal.type_keys("\x03\x03")
    assert terminal.wait_for_exit() == 0
    assert "What Markdown looks" in terminal.text
    assert "idle" not in terminal.text  # the status line is gone


def test_ctrl_c_clears_the_input_and_the_up_arrow_brings_it_back(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    terminal.type_keys("a draft\nof two lines")
    terminal.wait_for("› a draft\n  of two lines")
    terminal.type_keys("\x03")
    terminal.wait_for(lambda text: "a draft" not in text and "Press the up arrow to get it back" in text)
    terminal.type_keys("\x1b[A")
    terminal.wait_for("› a draft\n  of two lines")
    terminal.send("", until="“a draft of two lines”")
    terminal.type_keys("\x04")
    terminal.wait_for_exit()
    assert "is saved" not in terminal.text


def press_ctrl_c_twice(terminal: Terminal) -> None:
    terminal.type_keys("\x03\x03")


def stop_the_answer_and_quit(terminal: Terminal) -> None:
    terminal.type_keys("\x1b[A\x1b[B")  # looking at the history does not hide the draft either
    terminal.type_keys("\x1b[A")
    terminal.wait_for("› sent before")
    terminal.type_keys("\x03\x03")


@pytest.mark.parametrize(
    "quit_chat",
    [
        press_ctrl_c_twice,
        stop_the_answer_and_quit,
        lambda terminal: terminal.send_signal(signal.SIGTERM),
        lambda terminal: terminal.send_signal(signal.SIGHUP),
    ],
    ids=["Ctrl-C twice", "Ctrl-C twice in the history", "SIGTERM", "SIGHUP"],
)
def test_a_draft_survives_quitting(terminals: Terminals, quit_chat: Callable[[Terminal], None]) -> None:
    (terminals.home).mkdir()
    (terminals.home / "history").write_text("\n# 2026-11-15 08:12:00\n+sent before\n")
    terminal = terminals.open_chat()
    terminal.type_keys("my precious draft")
    terminal.wait_for("› my precious draft")
    quit_chat(terminal)
    assert terminal.wait_for_exit() == 0
    assert "Your unsent message is saved. Press the up arrow in the next chat to get it back." in terminal.text
    next_terminal = terminals.open_chat()
    next_terminal.type_keys("\x1b[A")
    next_terminal.wait_for("› my precious draft")


def test_a_draft_survives_the_closing_of_the_terminal(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    terminal.type_keys("my precious draft")
    terminal.wait_for("› my precious draft")
    terminal.close()
    terminal.wait_for_exit()
    assert "+my precious draft" in (terminals.home / "history").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_unfinished_answer_continues_in_the_next_process(terminals: Terminals, number: signal.Signals) -> None:
    terminal = terminals.open_chat(code=PAUSED_AGENT_CODE)
    terminal.type_keys("show me markdown\r")
    terminal.wait_for("What Markdown looks")
    terminal.send_signal(number)
    assert terminal.wait_for_exit() == 0
    assert "It continues when Palaver runs again." in terminal.text
    next_terminal = terminals.open_chat()
    next_terminal.wait_for("bread")


def test_closing_the_terminal_loses_nothing(terminals: Terminals) -> None:
    terminal = terminals.open_chat()
    terminal.send("hello", until="“hello”")
    terminal.close()
    terminal.kill()
    assert "“hello”" in terminals.open_chat().wait_for("Continuing")


def test_the_person_at_the_terminal_is_the_owner_of_the_store(terminals: Terminals) -> None:
    terminals.run("-m", "hello")
    with SessionStore.open(terminals.home / "palaver.db") as store:
        assert len(store.seen_by(store.get_owner().principal).list()) == 1
        assert store.list_sessions()[0].origin == SessionSource.local_cli()


def test_the_input_stays_raw_while_something_is_printed_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In cooked mode the terminal would echo keys, and an Enter would add a line instead of sending."""
    master, slave = pty.openpty()
    with os.fdopen(master, "rb"), os.fdopen(slave, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        raw_input = create_raw_input()
        with raw_input.raw_mode():
            raw = termios.tcgetattr(slave)
            with raw_input.cooked_mode():  # prompt_toolkit does this to print
                assert termios.tcgetattr(slave) == raw
        assert termios.tcgetattr(slave) != raw
