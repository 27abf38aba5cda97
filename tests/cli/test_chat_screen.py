"""The chat as somebody sees it: a real process, a pseudo-terminal, and an emulator whose screen is read."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyte
import pytest

from palaver import SessionSource, SessionStore, __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 30.0  # seconds for something to appear
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
WARNING = """
import logging
from palaver.agent.demo import DemoAgent
described = DemoAgent.check_model

def warn(self, name):
    logging.getLogger("palaver.somewhere").info("not worth telling")
    logging.getLogger("palaver.somewhere").warning("the cellar is flooded")
    described(self, name)

DemoAgent.check_model = warn
from palaver.cli import main
main()
"""


class Emulator(pyte.HistoryScreen):
    """A screen that answers when it is asked where its cursor is."""

    terminal = -1

    def write_process_input(self, data: str) -> None:
        with suppress(OSError):
            os.write(self.terminal, data.encode())


class Terminal:
    """`palaver` at a terminal."""

    def __init__(self, *args: str, env: dict[str, str], script: str | None = None, columns: int = 120) -> None:
        self.raw = b""
        self._screen = Emulator(columns, 30, history=1000)
        self._stream = pyte.ByteStream(self._screen)
        program = ["-m", "palaver"] if script is None else ["-c", script]
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            for name in ("COLUMNS", "LINES", "NO_COLOR"):
                os.environ.pop(name, None)
            os.environ.update({"TERM": "xterm-256color", **env})
            os.execv(sys.executable, [sys.executable, *program, *args])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        self._screen.terminal = self._terminal
        self._code: int | None = None

    @property
    def text(self) -> str:
        """Everything that is on the screen and above it."""
        above = [
            "".join(row[column].data for column in range(self._screen.columns)) for row in self._screen.history.top
        ]
        return "\n".join(each.rstrip() for each in [*above, *self._screen.display])

    @property
    def status(self) -> str:
        """The last line of the screen."""
        return self.text.rstrip().rsplit("\n", 1)[-1]

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def wait(self, what: str | Callable[[str], bool]) -> str:
        """Look until something is shown."""
        shown = (lambda text: what in text) if isinstance(what, str) else what
        end = time.monotonic() + PATIENCE
        while not shown(self.text):
            if time.monotonic() > end or not self._look():
                raise AssertionError(f"{what!r} is not shown, but this:\n{self.text}")
        return self.text

    def say(self, text: str, until: str) -> str:
        """Type a line and wait for what follows it."""
        self.type(f"{text}\r")
        return self.wait(lambda shown: until in shown and "idle" in self.status)

    def send(self, number: signal.Signals) -> None:
        os.kill(self._pid, number)

    def code(self) -> int:
        """The exit code, once it has ended."""
        if self._code is None:
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end and self._look():
                pass
            self._code = self._reap()
        return self._code

    def close(self) -> None:
        """Take the terminal away."""
        os.close(self._terminal)
        self._terminal = -1

    def end(self) -> None:
        if self._terminal != -1:
            self.close()
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._reap()

    def _reap(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def _look(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], 0.2)
        try:
            data = os.read(self._terminal, 65536) if ready else None
        except OSError:  # how Linux says that the other side has gone
            return False
        if data is not None:
            self.raw += data
            self._stream.feed(data)
        return data != b""


class Desk:
    """A home, terminals on it, and scripts beside them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {"PALAVER_HOME": str(home), "PALAVER_MODEL": "demo"}
        self._terminals: list[Terminal] = []

    def terminal(self, *args: str, script: str | None = None, columns: int = 120, **env: str) -> Terminal:
        opened = Terminal(*args, env={**self.env, **env}, script=script, columns=columns)
        self._terminals.append(opened)
        return opened

    def chat(self, *args: str, script: str | None = None, columns: int = 120, **env: str) -> Terminal:
        """A terminal that is ready to be typed at."""
        opened = self.terminal(*args, script=script, columns=columns, **env)
        opened.wait("idle")
        return opened

    def script(self, *args: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "palaver", *args],
            env={**os.environ, **self.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return ran.stdout

    def end(self) -> None:
        for each in self._terminals:
            each.end()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    opened = Desk(tmp_path / "home")
    yield opened
    opened.end()


# -- looking -------------------------------------------------------------------------------------------------


def test_it_begins_with_who_answers_and_how_to_go_on(desk: Desk) -> None:
    terminal = desk.chat()
    assert f"Palaver {__version__} · the demo agent" in terminal.text
    assert "/help" in terminal.text
    assert terminal.status == " demo · new conversation · idle"


def test_an_answer_is_shown_as_markdown_with_its_status_below(desk: Desk) -> None:
    terminal = desk.chat()
    text = terminal.say("show me markdown", until="bread")
    assert "› show me markdown" in text
    assert "Some bold, some italic" in text
    assert " 1 first" in text
    assert "```" not in text
    terminal.wait(lambda _: bool(re.fullmatch(r" demo · untitled · \d+ tokens · \$0\.0000 · idle", terminal.status)))
    for once in ("What Markdown looks like", "A quotation", "def greet", "soup"):
        assert text.count(once) == 1


def test_tools_and_thoughts_are_shown(desk: Desk) -> None:
    terminal = desk.chat()
    text = terminal.say("remember that I like tea", until="I have remembered it")
    assert re.search(r"✓ remember  (< )?\d+\.\d s  text: I like tea", text)
    text = terminal.say("think about the sea", until="I have thought about")
    assert "I turn it over twice" in text


def test_an_answer_that_fails_says_why(desk: Desk) -> None:
    terminal = desk.chat(script=FAILING)
    text = terminal.say("hello", until="the key is not accepted")
    assert "It begins" in text
    assert "✗ no answer: the key is not accepted" in text


def test_a_warning_stands_above_the_line_and_nothing_less_is_said(desk: Desk) -> None:
    terminal = desk.chat(script=WARNING)
    terminal.say("hello", until="I heard")
    text = terminal.say("/model demo", until="the cellar is flooded")
    assert "not worth telling" not in text
    assert "✗ the cellar is flooded" in text


def test_nothing_is_coloured_where_no_colour_is_wanted(desk: Desk) -> None:
    terminal = desk.chat(NO_COLOR="1")
    terminal.say("show me markdown", until="bread")
    assert not re.search(rb"\x1b\[[0-9;]*\b(3[0-7]|38;5;\d+|9[0-7])m", terminal.raw)


def test_a_narrow_terminal_is_enough(desk: Desk) -> None:
    terminal = desk.chat(columns=30)
    terminal.type("hello\r")
    terminal.wait(lambda text: "“hello”" in " ".join(text.split()))


# -- typing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\x1b\r", "\n"], ids=["Alt-Enter", "Ctrl-J"])
def test_a_message_may_have_several_lines(desk: Desk, newline: str) -> None:
    terminal = desk.chat()
    terminal.type(f"first{newline}second")
    terminal.wait("› first\n  second")
    terminal.say("", until="“first second”")


def test_commands_are_offered_with_what_they_do(desk: Desk) -> None:
    terminal = desk.chat()
    terminal.type("/re")
    text = terminal.wait("go back to an earlier conversation")
    assert "/retry" in text
    assert "/status" not in text


def test_titles_are_offered_after_resume_and_one_takes_the_talk_there(desk: Desk) -> None:
    desk.script("-m", "hello")
    desk.script("-m", "/title Trip to Lisbon")
    terminal = desk.chat("--new")
    terminal.type("/resume tri")
    terminal.wait("Trip to Lisbon  just now")
    terminal.type("\t")
    terminal.wait("/resume Trip to Lisbon")
    terminal.say("", until="Back in Trip to Lisbon")
    terminal.wait(lambda _: "Trip to Lisbon" in terminal.status)


def test_what_was_typed_before_comes_back_and_only_its_owner_can_read_it(desk: Desk) -> None:
    first = desk.chat()
    first.say("hello there", until="“hello there”")
    first.type("\x04")
    assert first.code() == 0
    assert stat.S_IMODE((desk.home / "history").stat().st_mode) == 0o600
    second = desk.chat()
    second.type("\x1b[A")
    second.wait("\n› hello there\n")


def test_what_is_sent_during_an_answer_waits_its_turn(desk: Desk) -> None:
    terminal = desk.chat(script=SLOW)
    terminal.type("hello\r")
    terminal.wait(lambda _: "answering" in terminal.status)
    terminal.type("/queue later\r")
    terminal.wait("· waiting behind 1")
    terminal.wait(lambda _: "1 waiting" in terminal.status)
    terminal.wait("“later”")


# -- conversations -------------------------------------------------------------------------------------------


def test_new_title_and_resume_from_the_chat(desk: Desk) -> None:
    terminal = desk.chat()
    terminal.say("hello", until="“hello”")
    terminal.say("/title Lisbon", until="is called Lisbon now")
    terminal.wait(lambda _: " Lisbon · " in terminal.status)
    terminal.say("/new Garden", until="A new conversation begins: Garden")
    terminal.wait(lambda _: terminal.status == " demo · Garden · 0 tokens · idle")
    terminal.say("roses", until="“roses”")
    terminal.say("/resume Lisbon", until="Back in Lisbon")
    terminal.wait(lambda _: " Lisbon · " in terminal.status)
    terminal.say("/resume Madrid", until="None of your conversations here matches")


def test_asking_again_does_not_look_as_if_somebody_else_had_asked(desk: Desk) -> None:
    terminal = desk.chat()
    terminal.say("hello", until="“hello”")
    terminal.type("/retry\r")
    text = terminal.wait(lambda shown: shown.count("“hello”") >= 2 and "idle" in terminal.status)
    assert "elsewhere" not in text


def test_a_conversation_goes_on_and_says_so(desk: Desk) -> None:
    desk.script("-m", "hello")
    desk.script("-m", "/title Lisbon")
    assert "continuing «Lisbon», just now; /new begins afresh" in desk.chat().text
    assert "A new conversation begins" in desk.chat("--new").text
    assert "continuing" not in desk.chat().text


def test_resume_without_a_name_lists_what_there_is(desk: Desk) -> None:
    desk.script("-m", "hello")
    desk.script("-m", "/title Lisbon")
    terminal = desk.chat("--new")
    terminal.type("\x04")
    terminal.code()
    assert "1 Lisbon" in desk.chat("--resume").wait("Conversations to go back to")


def test_what_another_process_says_and_hears_is_shown_once(desk: Desk) -> None:
    terminal = desk.chat()
    terminal.say("hello", until="“hello”")
    assert "“from the side”" in desk.script("-m", "from the side", "--continue")
    text = terminal.wait(lambda shown: "“from the side”" in " ".join(shown.split()) and "idle" in terminal.status)
    assert "you, elsewhere: from the side" in text
    assert text.count("from the side") == 2
    assert text.count("“hello”") == 1


def test_what_is_asked_here_is_seen_in_another_terminal_while_it_is_answered(desk: Desk) -> None:
    desk.script("-m", "hello")
    here, there = desk.chat(script=SLOW), desk.chat()
    here.type("show me markdown\r")
    there.wait("you, elsewhere: show me markdown")
    there.wait(lambda _: "answering" in there.status)
    there.wait("What Markdown looks")
    there.type("\x03")
    there.wait("· stopped")
    here.wait("· stopped")


def test_two_terminals_keep_their_conversations_apart(desk: Desk) -> None:
    here, there = desk.chat(), desk.chat()
    here.say("hello", until="“hello”")
    here.say("/new Here", until="begins: Here")
    here.say("apples", until="“apples”")
    there.say("/new There", until="begins: There")
    there.say("pears", until="“pears”")
    here.say("cherries", until="“cherries”")
    assert "pears" not in here.text
    assert "apples" not in there.text
    assert "cherries" in desk.script("sessions", "show", "Here")
    assert "pears" in desk.script("sessions", "show", "There")


def test_a_conversation_that_is_deleted_elsewhere_is_left(desk: Desk) -> None:
    terminal = desk.chat()
    terminal.say("hello", until="“hello”")
    terminal.say("/title Lisbon", until="is called Lisbon now")
    desk.script("sessions", "delete", "Lisbon", "--yes")
    terminal.wait("this conversation was deleted")
    terminal.say("hello again", until="“hello again”")


def test_what_somebody_wrote_on_a_platform_appears_with_their_name(desk: Desk) -> None:
    """A lane that several people share, and the terminal of its owner, who takes part in it."""
    terminal = desk.chat()
    terminal.say("hello", until="“hello”")
    with SessionStore.open(desk.home / "palaver.db") as store:
        session = store.list_sessions()[0]
        store.append_to_transcript(session.id, {"role": "user", "content": "ahoy", "author": {"name": "Bob"}})
    terminal.wait("Bob: ahoy")


# -- leaving -------------------------------------------------------------------------------------------------


def test_ctrl_c_stops_a_slow_answer_keeps_what_was_said_and_a_second_one_leaves(desk: Desk) -> None:
    terminal = desk.chat(script=SLOW)
    terminal.type("show me markdown\r")
    terminal.wait("What Markdown looks")
    terminal.type("\x03")
    text = terminal.wait(lambda shown: "· stopped" in shown and "idle" in terminal.status)
    assert "What Markdown looks" in text
    assert "bread" not in text
    with SessionStore.open(desk.home / "palaver.db") as store:
        kept = store.load_transcript(store.list_sessions()[0].id)
    assert kept[-1]["role"] == "assistant"
    assert kept[-1]["content"].startswith("## What Markdown")
    time.sleep(2.1)  # so that the next one is a first one again
    terminal.type("\x03")
    terminal.wait("Ctrl-C again or Ctrl-D leaves")
    terminal.type("\x03")
    assert terminal.code() == 0


def test_ctrl_c_twice_during_an_answer_leaves_and_what_was_said_stays_on_the_screen(desk: Desk) -> None:
    terminal = desk.chat(script=SLOW)
    terminal.type("show me markdown\r")
    terminal.wait("What Markdown looks")
    terminal.type("\x03\x03")
    assert terminal.code() == 0
    assert "What Markdown looks" in terminal.text
    assert "idle" not in terminal.text  # the status is gone


def test_ctrl_c_clears_the_line(desk: Desk) -> None:
    terminal = desk.chat()
    terminal.type("a slip")
    terminal.wait("› a slip")
    terminal.type("\x03")
    terminal.wait(lambda text: "a slip" not in text)
    terminal.say("hello", until="“hello”")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_answer_that_is_left_under_way_goes_on_in_the_next_process(desk: Desk, number: signal.Signals) -> None:
    terminal = desk.chat(script=SLOW)
    terminal.type("show me markdown\r")
    terminal.wait("What Markdown looks")
    terminal.send(number)
    assert terminal.code() == 0
    assert "goes on when Palaver runs next" in terminal.text
    following = desk.chat()
    following.wait("bread")


def test_a_terminal_that_is_closed_loses_nothing(desk: Desk) -> None:
    terminal = desk.chat()
    terminal.say("hello", until="“hello”")
    terminal.close()
    terminal.end()
    assert "“hello”" in desk.chat().wait("continuing")


# -- other terminals -----------------------------------------------------------------------------------------


def test_a_dumb_terminal_gets_plain_lines(desk: Desk) -> None:
    terminal = desk.terminal(TERM="dumb", script=SLOW)
    terminal.wait("/help")
    terminal.type("/title Lisbon\r")
    terminal.wait("is called **Lisbon** now")
    terminal.type("show me markdown\r")
    terminal.wait("## What Markdown")
    terminal.type("\x03")
    terminal.wait("(stopped)")
    desk.script("-m", "from the side", "--continue")
    terminal.wait("you, elsewhere: from the side")
    terminal.wait("“from the side”")
    terminal.type("\x04")
    assert terminal.code() == 0
    assert b"\x1b" not in terminal.raw


def test_one_message_at_a_terminal_is_painted(desk: Desk) -> None:
    terminal = desk.terminal("-m", "show me markdown")
    assert terminal.code() == 0
    assert "**" not in terminal.text
    for once in ("What Markdown looks like", "A quotation", "def greet", "soup"):
        assert terminal.text.count(once) == 1


def test_the_owner_at_the_terminal_and_the_owner_of_the_store_are_one(desk: Desk) -> None:
    desk.script("-m", "hello")
    with SessionStore.open(desk.home / "palaver.db") as store:
        assert len(store.seen_by(store.owner().principal).list()) == 1
        assert store.list_sessions()[0].origin == SessionSource.local_cli()
