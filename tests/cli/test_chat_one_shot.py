"""`palaver -m` and lines from a pipe, as processes."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLOW = """
from palaver.agent.demo import DemoAgent
DemoAgent.__init__.__kwdefaults__["pace"] = 0.3
from palaver.cli import main
main()
"""
FAILING = """
from palaver.agent.base import TextDelta
from palaver.agent.demo import DemoAgent
from palaver.domain.errors import AgentRefused

async def run(self, request):
    yield TextDelta("It begins")
    raise AgentRefused("the key is not accepted")

DemoAgent.run = run
from palaver.cli import main
main()
"""


@dataclass
class Process:
    """The `palaver` command on a home of its own, answered by the demo agent."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "PALAVER_HOME": str(self.home), "PALAVER_MODEL": "demo", **self.env}

    def start(self, *args: str, script: str | None = None) -> subprocess.Popen[str]:
        program = ["-m", "palaver"] if script is None else ["-c", script]
        process = subprocess.Popen(
            [sys.executable, *program, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        for process in self.started:
            process.kill()  # one that has ended is not disturbed
            process.communicate()

    def __call__(
        self, *args: str, typed: str = "", code: int = 0, script: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(*args, script=script)
        out, err = process.communicate(typed, timeout=60)
        assert process.returncode == code, err
        assert "Traceback" not in err
        return subprocess.CompletedProcess(args, code, out, err)

    def json(self, *args: str, **how: Any) -> Any:
        return json.loads(self(*args, "--json", **how).stdout)


def first_words(process: subprocess.Popen[str]) -> str:
    """What it prints first, as soon as it does."""
    assert process.stdout is not None
    return os.read(process.stdout.fileno(), 1000).decode()


@pytest.fixture
def palaver(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path / "home")
    yield process
    process.end()


# -- one message ---------------------------------------------------------------------------------------------


def test_a_message_is_answered_and_nothing_else_is_printed(palaver: Process) -> None:
    ran = palaver("-m", "hello there")
    assert ran.stdout.startswith("This is the demo agent")
    assert "“hello there”" in ran.stdout
    assert ran.stdout.endswith("\n")
    assert ran.stderr == ""


def test_markdown_stays_markdown_in_a_pipe(palaver: Process) -> None:
    out = palaver("chat", "-m", "show me markdown").stdout
    assert "**bold**" in out
    assert "| bread | 1.20 |" in out
    assert "\x1b" not in out


def test_a_message_can_come_from_standard_input(palaver: Process) -> None:
    assert "“two lines”" in palaver("-m", "-", typed="two\nlines\n").stdout


def test_tools_are_told_on_standard_error_unless_quiet(palaver: Process) -> None:
    ran = palaver("-m", "remember that I like tea")
    assert "I have remembered it" in ran.stdout
    assert "→ remember" not in ran.stdout
    assert '→ remember {"text": "I like tea"}' in ran.stderr
    assert palaver("-m", "remember that I like cake", "--quiet").stderr == ""


def test_programs_get_one_document(palaver: Process) -> None:
    answer = palaver.json("-m", "hello")
    assert answer["state"] == "done"
    assert "“hello”" in answer["text"]
    assert answer["error"] is None
    assert answer["usage"]["input_tokens"] > 0
    shown = json.loads(palaver("sessions", "show", answer["session_id"], "--json").stdout)
    assert [event["message"]["content"] for event in shown["messages"]] == ["hello", answer["text"]]


def test_the_whole_text_of_an_answer_is_in_the_document_also_around_tools(palaver: Process) -> None:
    answer = palaver.json("-m", "remember that I like tea")
    assert answer["text"].startswith("I have remembered it")
    assert "→" not in answer["text"]


def test_a_command_is_carried_out(palaver: Process) -> None:
    palaver("-m", "hello")
    answer = palaver.json("-m", "/title Trip to Lisbon")
    assert answer["state"] == "command"
    assert "Trip to Lisbon" in answer["text"]
    assert "Trip to Lisbon" in palaver("sessions", "list").stdout


def test_a_command_that_asks_again_waits_for_the_answer(palaver: Process) -> None:
    first = palaver.json("-m", "hello")
    again = palaver.json("-m", "/retry")
    assert (again["state"], again["text"]) == ("done", first["text"])
    assert again["turn_id"] != first["turn_id"]


@pytest.mark.parametrize("text", ["/nonsense", "/stop me now", "x" * 200_001])
def test_what_is_not_taken_leaves_with_its_own_code(palaver: Process, text: str) -> None:
    ran = palaver("-m", "-", typed=text, code=10)
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: ")
    as_json = palaver("-m", "-", "--json", typed=text, code=10)
    assert json.loads(as_json.stdout)["state"] == "refused"
    assert json.loads(as_json.stderr)["error"]["code"] == "message_refused"


def test_an_answer_that_fails_leaves_with_its_own_code_and_keeps_what_was_said(palaver: Process) -> None:
    ran = palaver("-m", "hello", script=FAILING, code=8)
    assert ran.stdout == "It begins\n"
    assert ran.stderr == "error: no answer: the key is not accepted\n"
    as_json = palaver("-m", "hello", "--json", script=FAILING, code=8)
    answer = json.loads(as_json.stdout)
    assert (answer["state"], answer["text"], answer["error"]) == ("failed", "It begins", "the key is not accepted")
    assert json.loads(as_json.stderr)["error"]["code"] == "answer_failed"


def test_an_answer_that_is_stopped_elsewhere_leaves_with_its_own_code(palaver: Process) -> None:
    asking = palaver.start("-m", "show me markdown", script=SLOW)
    begun = first_words(asking)
    palaver("-m", "/stop", "--continue")
    out, err = asking.communicate(timeout=30)
    assert asking.returncode == 9, err
    assert (begun + out).startswith("## What")
    assert "bread" not in out


def test_an_interrupt_stops_the_answer_and_keeps_what_was_said(palaver: Process) -> None:
    asking = palaver.start("-m", "show me markdown", script=SLOW)
    begun = first_words(asking)
    asking.send_signal(signal.SIGINT)
    out, err = asking.communicate(timeout=30)
    assert (asking.returncode, err) == (130, "")
    shown = json.loads(palaver("sessions", "list", "--json").stdout)["sessions"][0]
    log = json.loads(palaver("sessions", "show", shown["id"], "--log", "--json").stdout)["events"]
    assert [event["kind"] for event in log[-2:]] == ["message", "interrupted"]
    assert log[-2]["message"]["content"].strip() == (begun + out).strip()


def test_an_interrupt_while_waiting_leaves_the_answer_before_alone(palaver: Process) -> None:
    asking = palaver.start("-m", "hello", script=SLOW)
    begun = first_words(asking)
    waiting = palaver.start("-m", "me too")
    assert waiting.stderr is not None
    assert os.read(waiting.stderr.fileno(), 1000) == b"waiting behind 1\n"
    waiting.send_signal(signal.SIGINT)
    assert (waiting.communicate(timeout=30)[0], waiting.returncode) == ("", 130)
    out, err = asking.communicate(timeout=60)
    assert (asking.returncode, err) == (0, "")
    assert (begun + out).endswith("Ask me `what can you do`.\n")


def test_a_message_whose_process_is_told_to_end_is_answered_by_the_next(palaver: Process) -> None:
    asking = palaver.start("-m", "what can you do", script=SLOW)
    first_words(asking)
    asking.send_signal(signal.SIGTERM)
    _, err = asking.communicate(timeout=30)
    assert asking.returncode == 9
    assert err == "error: Palaver was told to end; the message is kept, and answered when Palaver runs next\n"
    palaver("-m", "hello")  # waits behind the one that was kept
    shown = palaver("sessions", "show", json.loads(palaver("sessions", "list", "--json").stdout)["sessions"][0]["id"])
    assert shown.stdout.index("what can you do") < shown.stdout.index("without a model. Try")
    assert "“hello”" in shown.stdout


def test_it_works_on_postgres(palaver: Process, postgres_database: str) -> None:
    palaver.env["PALAVER_DATABASE_URL"] = postgres_database
    answer = palaver.json("-m", "hello", "--new")
    assert (answer["state"], "“hello”" in answer["text"]) == ("done", True)


# -- which conversation --------------------------------------------------------------------------------------


def test_a_conversation_goes_on_begins_afresh_or_is_resumed(palaver: Process) -> None:
    first = palaver.json("-m", "hello")["session_id"]
    assert palaver.json("-m", "more")["session_id"] == first
    palaver("-m", "/title Lisbon")
    second = palaver.json("-m", "other", "--new")["session_id"]
    assert second != first
    assert palaver.json("-m", "other", "--continue")["session_id"] == second
    assert palaver.json("-m", "back", "--resume", "lisbon")["session_id"] == first
    assert palaver.json("-m", "back")["session_id"] == first
    error = palaver("-m", "back", "--resume", "Madrid", code=10).stderr
    assert "Madrid" in error


def test_an_old_conversation_is_left_unless_it_is_to_go_on(palaver: Process) -> None:
    first = palaver.json("-m", "hello")["session_id"]
    later = "import time; real = time.time; time.time = lambda: real() + 13 * 3600\n"
    later += "import palaver.domain.clock as c; from datetime import datetime, timedelta, UTC\n"
    later += "c.SystemClock.now = lambda self: datetime.now(UTC) + timedelta(hours=13)\n"
    later += "from palaver.cli import main; main()"
    assert palaver.json("-m", "hello", "--continue", script=later)["session_id"] == first
    palaver("-m", "hello", script=later)
    assert palaver.json("-m", "hello", script=later)["session_id"] != palaver.json("-m", "x", "--new")["session_id"]


def test_the_last_conversation_is_found_behind_an_empty_one(palaver: Process) -> None:
    first = palaver.json("-m", "hello")["session_id"]
    palaver("-m", "/new")
    assert palaver.json("-m", "hello", "--continue")["session_id"] == first


def test_the_reset_policy_holds_at_the_terminal_too(palaver: Process) -> None:
    first = palaver.json("-m", "hello")["session_id"]
    palaver.env |= {"PALAVER_SESSION_RESET_MODE": "idle", "PALAVER_SESSION_RESET_IDLE_MINUTES": "1"}
    later = "import palaver.domain.clock as c; from datetime import datetime, timedelta, UTC\n"
    later += "c.SystemClock.now = lambda self: datetime.now(UTC) + timedelta(minutes=2)\n"
    later += "from palaver.cli import main; main()"
    ran = palaver("-m", "hello again", script=later)
    assert ran.stderr != ""  # the reset is told
    assert palaver.json("-m", "more", "--resume", first, script=later)["session_id"] == first


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--new", "--continue", "-m", "x"], "choose one"),
        (["--json"], "-m"),
        (["-m", "x", "--resume"], "title"),
        (["--mesage", "x"], "--message"),
    ],
)
def test_a_slip_on_the_command_line_is_answered_with_help(palaver: Process, args: list[str], said: str) -> None:
    assert said in palaver(*args, code=2).stderr


def test_a_message_of_blanks_is_none(palaver: Process) -> None:
    assert "nothing" in palaver("-m", " ", code=1).stderr


# -- a pipe --------------------------------------------------------------------------------------------------


def test_each_line_of_a_pipe_is_answered_in_turn(palaver: Process) -> None:
    ran = palaver(typed="hello\n\n/title Lisbon\nthink about the sea")
    lines = ran.stdout.splitlines()
    assert "“hello”" in lines[0]
    assert "Lisbon" in lines[1]
    assert lines[2].startswith("I have thought about the sea")
    assert "\x1b" not in ran.stdout + ran.stderr


def test_an_empty_pipe_says_nothing(palaver: Process) -> None:
    ran = palaver()
    assert (ran.stdout, ran.stderr) == ("", "")


def test_a_line_that_is_not_taken_is_told_and_the_next_one_is_answered(palaver: Process) -> None:
    ran = palaver(typed="/nonsense\nhello\n", code=10)
    assert "“hello”" in ran.stdout
    assert "/nonsense" in ran.stderr


def test_an_interrupt_ends_a_pipe_that_waits(palaver: Process) -> None:
    process = palaver.start()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("/help new\n")
    process.stdin.flush()
    assert process.stdout.readline() != ""
    process.stdin.write("hello\n")
    process.stdin.flush()
    while "what can you do" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.communicate()[1] == ""


def test_only_the_owner_of_the_home_can_read_what_is_there(palaver: Process) -> None:
    palaver("-m", "hello")
    assert stat.S_IMODE((palaver.home / "palaver.db").stat().st_mode) & 0o077 == 0
