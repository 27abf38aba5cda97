"""Tests of `palaver -m` and of lines from a pipe, as processes."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cli.chat.agent_code import FAILING_AGENT_CODE, PAUSED_AGENT_CODE, QUICK_AGENT_CODE, make_later_code
from palaver.cli.chat.chat_runner import MESSAGE_SAVED_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.warm_process import WarmLauncher, WarmProcess


@dataclass
class PalaverProcesses:
    """Starts `palaver` with a home folder of its own and the demo agent."""

    launcher: WarmLauncher
    home: Path
    env: dict[str, str] = field(default_factory=dict)
    processes: list[WarmProcess] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "PALAVER_HOME": str(self.home), "PALAVER_MODEL": "demo", **self.env}

    def start(self, *args: str, code: str = QUICK_AGENT_CODE) -> WarmProcess:
        """Start Python code that starts `palaver`."""
        process = self.launcher.launch(*args, env=self.environ, code=code)
        self.processes.append(process)
        return process

    def let_answers_continue(self) -> None:
        (self.home / "continue").touch()

    def kill_all(self) -> None:
        for process in self.processes:
            process.kill()  # does nothing if it has ended
            process.communicate()

    def __call__(
        self, *args: str, stdin: str = "", exit_code: int = 0, code: str = QUICK_AGENT_CODE
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(*args, code=code)
        stdout, stderr = process.communicate(stdin, timeout=60)
        assert process.returncode == exit_code, stderr
        assert "Traceback" not in stderr
        return subprocess.CompletedProcess(args, exit_code, stdout, stderr)

    def get_json(self, *args: str, **options: Any) -> Any:
        return json.loads(self(*args, "--json", **options).stdout)


def read_first_output(process: WarmProcess) -> str:
    """Wait for the first output of a process and return it."""
    return os.read(process.stdout.fileno(), 1000).decode()


@pytest.fixture
def palaver(launcher: WarmLauncher, tmp_path: Path) -> Iterator[PalaverProcesses]:
    processes = PalaverProcesses(launcher, tmp_path / "home")
    yield processes
    processes.kill_all()


# -- one message ---------------------------------------------------------------------------------------------


def test_only_the_answer_is_printed(palaver: PalaverProcesses) -> None:
    ran = palaver("-m", "hello there")
    assert ran.stdout.startswith("You said: “hello there”. I'm the demo agent")
    assert ran.stdout.endswith("\n")
    assert ran.stderr == ""


def test_markdown_is_not_rendered_in_a_pipe(palaver: PalaverProcesses) -> None:
    stdout = palaver("chat", "-m", "show me markdown").stdout
    assert "**bold**" in stdout
    assert "| bread | 1.20 |" in stdout
    assert "\x1b" not in stdout


def test_a_message_can_come_from_stdin(palaver: PalaverProcesses) -> None:
    assert "“two lines”" in palaver("-m", "-", stdin="two\nlines\n").stdout


def test_tool_calls_are_printed_on_stderr_unless_quiet(palaver: PalaverProcesses) -> None:
    ran = palaver("-m", "remember that I like tea")
    assert "I'll remember that." in ran.stdout
    assert "→ remember" not in ran.stdout
    assert '→ remember {"text": "I like tea"}' in ran.stderr
    assert palaver("-m", "remember that I like cake", "--quiet").stderr == ""


def test_json_is_one_document(palaver: PalaverProcesses) -> None:
    answer = palaver.get_json("-m", "hello")
    assert answer["state"] == "done"
    assert "“hello”" in answer["text"]
    assert answer["error"] is None
    assert answer["usage"]["input_tokens"] > 0
    document = json.loads(palaver("sessions", "show", answer["session_id"], "--json").stdout)
    assert [event["message"]["content"] for event in document["messages"]] == ["hello", answer["text"]]


def test_json_contains_the_text_of_the_answer_without_tool_calls(palaver: PalaverProcesses) -> None:
    answer = palaver.get_json("-m", "remember that I like tea")
    assert answer["text"].startswith("I'll remember that.")
    assert "→" not in answer["text"]


def test_a_slash_command_is_run(palaver: PalaverProcesses) -> None:
    palaver("-m", "hello")
    answer = palaver.get_json("-m", "/title Trip to Lisbon")
    assert answer["state"] == "command"
    assert "Trip to Lisbon" in answer["text"]
    assert "Trip to Lisbon" in palaver("sessions", "list").stdout


def list_file_names(palaver: PalaverProcesses, session_id: str) -> list[list[str]]:
    """Return the names of the files of each message of a person."""
    document = json.loads(palaver("sessions", "show", session_id, "--json").stdout)
    contents = [each["message"]["content"] for each in document["messages"] if each["message"]["role"] == "user"]
    return [[part["name"] for part in content[1:]] if isinstance(content, list) else [] for content in contents]


def test_files_are_sent_with_a_message(palaver: PalaverProcesses, tmp_path: Path) -> None:
    (tmp_path / "two words.txt").write_text("The code is 4711.")
    (tmp_path / "b.md").write_text("# Notes")
    answer = palaver.get_json("-m", "Read it", "--file", f"{tmp_path}/two words.txt", "--file", f"{tmp_path}/b.md")
    assert answer["state"] == "done"
    assert list_file_names(palaver, answer["session_id"]) == [["two words.txt", "b.md"]]

    lines = [f"/attach {tmp_path}/two words.txt", "/attach", "/detach", f"/attach '{tmp_path}/b.md'", "Hello", "Bye"]
    ran = palaver("chat", "--new", stdin="\n".join(lines))
    assert ran.stdout.count("Attached to your next message: `two words.txt`") == 2
    assert "Your next message has no files." in ran.stdout
    assert "You said: “Hello" in ran.stdout
    newest = json.loads(palaver("sessions", "list", "--json").stdout)["sessions"][0]["id"]
    assert list_file_names(palaver, newest) == [["b.md"], []]


@pytest.mark.parametrize(
    ("name", "exit_code", "problem"),
    [
        ("missing.txt", 3, "No such file"),
        ("", 1, "is a folder"),
        ("pipe", 1, "is not a regular file"),
        ("program", 1, "This file type isn't supported"),
    ],
)
def test_a_file_that_cannot_be_sent_is_named_and_nothing_is_sent(
    palaver: PalaverProcesses, tmp_path: Path, name: str, exit_code: int, problem: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "program").write_bytes(b"\x7fELF" + bytes(range(256)))
    ran = palaver("-m", "Read it", "--file", str(tmp_path / name), exit_code=exit_code)
    assert problem in ran.stderr
    assert ran.stdout == ""
    assert json.loads(palaver("sessions", "list", "--json").stdout)["sessions"] == []


def test_retry_waits_for_the_new_answer(palaver: PalaverProcesses) -> None:
    first = palaver.get_json("-m", "hello")
    again = palaver.get_json("-m", "/retry")
    assert (again["state"], again["text"]) == ("done", first["text"])
    assert again["turn_id"] != first["turn_id"]


@pytest.mark.parametrize("text", ["/nonsense", "/stop me now", "x" * 200_001])
def test_a_rejected_message_has_its_own_exit_code(palaver: PalaverProcesses, text: str) -> None:
    ran = palaver("-m", "-", stdin=text, exit_code=10)
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: ")
    as_json = palaver("-m", "-", "--json", stdin=text, exit_code=10)
    assert json.loads(as_json.stdout)["state"] == "rejected"
    assert json.loads(as_json.stderr)["error"]["code"] == "message_rejected"


def test_a_failed_answer_has_its_own_exit_code_and_keeps_the_text_so_far(palaver: PalaverProcesses) -> None:
    ran = palaver("-m", "hello", code=FAILING_AGENT_CODE, exit_code=8)
    assert ran.stdout == "It begins\n"
    assert ran.stderr == "error: The key is not accepted.\n"
    as_json = palaver("-m", "hello", "--json", code=FAILING_AGENT_CODE, exit_code=8)
    answer = json.loads(as_json.stdout)
    assert (answer["state"], answer["text"], answer["error"]) == ("failed", "It begins", "The key is not accepted.")
    assert json.loads(as_json.stderr)["error"]["code"] == "answer_failed"


def test_an_answer_that_is_stopped_elsewhere_has_its_own_exit_code(palaver: PalaverProcesses) -> None:
    asking = palaver.start("-m", "show me markdown", code=PAUSED_AGENT_CODE)
    beginning = read_first_output(asking)
    palaver("-m", "/stop", "--continue")
    stdout, stderr = asking.communicate(timeout=30)
    assert asking.returncode == 9, stderr
    assert (beginning + stdout).startswith("## ")
    assert "bread" not in stdout


def test_an_interrupt_stops_the_answer_and_keeps_the_text_so_far(palaver: PalaverProcesses) -> None:
    asking = palaver.start("-m", "show me markdown", code=PAUSED_AGENT_CODE)
    beginning = read_first_output(asking)
    asking.send_signal(signal.SIGINT)
    stdout, stderr = asking.communicate(timeout=30)
    assert (asking.returncode, stderr) == (130, "")
    session = json.loads(palaver("sessions", "list", "--json").stdout)["sessions"][0]
    log = json.loads(palaver("sessions", "show", session["id"], "--log", "--json").stdout)["events"]
    assert [event["kind"] for event in log[-2:]] == ["message", "turn_interrupted"]
    assert log[-2]["message"]["content"].strip() == (beginning + stdout).strip()


def test_an_interrupt_while_queued_does_not_stop_the_running_answer(palaver: PalaverProcesses) -> None:
    asking = palaver.start("-m", "hello", code=PAUSED_AGENT_CODE)
    beginning = read_first_output(asking)
    waiting = palaver.start("-m", "me too")
    assert waiting.stderr is not None
    assert os.read(waiting.stderr.fileno(), 1000) == b"Queued (1 ahead)\n"
    waiting.send_signal(signal.SIGINT)
    assert (waiting.communicate(timeout=30)[0], waiting.returncode) == ("", 130)
    palaver.let_answers_continue()
    stdout, stderr = asking.communicate(timeout=60)
    assert (asking.returncode, stderr) == (0, "")
    assert (beginning + stdout).endswith("Ask me `what can you do`.\n")


def test_a_message_whose_process_is_terminated_is_answered_by_the_next_process(palaver: PalaverProcesses) -> None:
    asking = palaver.start("-m", "what can you do", code=PAUSED_AGENT_CODE)
    read_first_output(asking)
    asking.send_signal(signal.SIGTERM)
    _, stderr = asking.communicate(timeout=30)
    assert asking.returncode == 9
    assert stderr == f"error: {MESSAGE_SAVED_TEXT}\n"
    palaver("-m", "hello")  # queued behind the saved message
    session = json.loads(palaver("sessions", "list", "--json").stdout)["sessions"][0]
    transcript = palaver("sessions", "show", session["id"]).stdout
    assert transcript.index("what can you do") < transcript.index("I'm Palaver's **demo agent**")
    assert "“hello”" in transcript


def test_a_message_is_answered_on_postgres(palaver: PalaverProcesses, postgres_database: str) -> None:
    palaver.env["PALAVER_DATABASE_URL"] = postgres_database
    answer = palaver.get_json("-m", "hello", "--new")
    assert (answer["state"], "“hello”" in answer["text"]) == ("done", True)


# -- choosing a conversation ----------------------------------------------------------------------------------


def test_a_message_continues_starts_or_resumes_a_conversation(palaver: PalaverProcesses) -> None:
    first = palaver.get_json("-m", "hello")["session_id"]
    assert palaver.get_json("-m", "more")["session_id"] == first
    palaver("-m", "/title Lisbon")
    second = palaver.get_json("-m", "other", "--new")["session_id"]
    assert second != first
    assert palaver.get_json("-m", "other", "--continue")["session_id"] == second
    assert palaver.get_json("-m", "back", "--resume", "lisbon")["session_id"] == first
    assert palaver.get_json("-m", "back")["session_id"] == first
    error = palaver("-m", "back", "--resume", "Madrid", exit_code=10).stderr
    assert "Madrid" in error


def test_an_old_conversation_is_continued_only_with_continue(palaver: PalaverProcesses) -> None:
    first = palaver.get_json("-m", "hello")["session_id"]
    after_13_hours, after_26_hours = (make_later_code(timedelta(hours=hours)) for hours in (13, 26))
    assert palaver.get_json("-m", "hello", "--continue", code=after_13_hours)["session_id"] == first
    second = palaver.get_json("-m", "hello", code=after_26_hours)["session_id"]
    assert second != first
    assert palaver.get_json("-m", "hello", code=after_26_hours)["session_id"] == second


def test_continue_skips_an_empty_conversation(palaver: PalaverProcesses) -> None:
    first = palaver.get_json("-m", "hello")["session_id"]
    palaver("-m", "/new")
    assert palaver.get_json("-m", "hello", "--continue")["session_id"] == first


def test_the_reset_policy_applies_to_the_terminal(palaver: PalaverProcesses) -> None:
    first = palaver.get_json("-m", "hello")["session_id"]
    palaver.env |= {"PALAVER_SESSION_RESET_MODE": "idle", "PALAVER_SESSION_RESET_IDLE_MINUTES": "1"}
    later = make_later_code(timedelta(minutes=2))
    ran = palaver("-m", "hello again", code=later)
    assert ran.stderr != ""  # the restart is announced
    assert palaver.get_json("-m", "more", "--resume", first, code=later)["session_id"] == first


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--new", "--continue", "-m", "x"], "only one"),
        (["--json"], "-m"),
        (["-m", "x", "--resume"], "title"),
        (["--mesage", "x"], "--message"),
    ],
)
def test_a_usage_error_names_the_option(palaver: PalaverProcesses, args: list[str], text: str) -> None:
    assert text in palaver(*args, exit_code=2).stderr


def test_a_blank_message_is_an_error(palaver: PalaverProcesses) -> None:
    assert "empty" in palaver("-m", " ", exit_code=1).stderr


# -- pipes ---------------------------------------------------------------------------------------------------


def test_each_line_of_a_pipe_is_answered_in_order(palaver: PalaverProcesses) -> None:
    ran = palaver(stdin="hello\n\n/title Lisbon\nthink about the sea")
    lines = ran.stdout.splitlines()
    assert "“hello”" in lines[0]
    assert "Lisbon" in lines[1]
    assert lines[2].startswith("I have thought about the sea")
    assert "\x1b" not in ran.stdout + ran.stderr


def test_an_empty_pipe_prints_nothing(palaver: PalaverProcesses) -> None:
    ran = palaver()
    assert (ran.stdout, ran.stderr) == ("", "")


def test_after_a_rejected_line_the_next_one_is_answered(palaver: PalaverProcesses) -> None:
    ran = palaver(stdin="/nonsense\nhello\n", exit_code=10)
    assert "“hello”" in ran.stdout
    assert "/nonsense" in ran.stderr


def test_an_interrupt_ends_a_waiting_pipe(palaver: PalaverProcesses) -> None:
    process = palaver.start()
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


def test_only_the_owner_of_the_home_can_read_the_database(palaver: PalaverProcesses) -> None:
    palaver("-m", "hello")
    assert stat.S_IMODE((palaver.home / "palaver.db").stat().st_mode) & 0o077 == 0
