"""What is a command and what is not, who may use which, and that every one of them is explained."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import Role
from palaver.domain.turn import BusyPolicy
from palaver.services import commands
from palaver.services.commands import COMMANDS, Parsed
from palaver.services.commands.permissions import FOR_GUESTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource
    from palaver.services.commands.base import Command

    Source = Callable[..., SessionSource]

EVERY = [command.name for command in COMMANDS]
WANTED = (
    "new reset resume sessions title retry undo redo restore why branch compress usage status stop queue steer model"
    " tools busy search export help"
)
PAGE = (Path(__file__).parents[3] / "docs/reference/commands.md").read_text(encoding="utf-8")
SECTIONS = {
    match[1]: match[2]
    for match in re.finditer(r"^### `/([a-z]+)[^`]*`\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
}


# ---- what is a command -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("/new", ("new", "")),
        ("/new  My title ", ("new", "My title")),
        ("/NEW x", ("new", "x")),
        ("/new@my_bot title", ("new", "title")),
        ("/new@my_bot", ("new", "")),
        ("/steer first\nsecond", ("steer", "first\nsecond")),
        ("/new\nsecond line", ("new", "second line")),
        ("/no-such_thing2 x", ("no-such_thing2", "x")),
        ("/etc/passwd is a file", None),
        ("//x", None),
        ("/", None),
        ("/ new", None),
        ("/1", None),
        ("/-x", None),
        ("/new: what is new?", None),
        ("/néw", None),
        (" /new", None),
        ("say /new", None),
        ("first\n/new", None),
        ("", None),
    ],
)
def test_a_command_is_a_slash_and_a_name_at_the_very_beginning(text: str, parsed: tuple[str, str] | None) -> None:
    assert commands.parse(text) == parsed


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("/queue and then this", BusyPolicy.QUEUE),
        ("/steer look there", BusyPolicy.STEER),
        ("/queue", None),
        ("/queue clear", None),
        ("/queue Clear", None),
        ("/queue clear the table", BusyPolicy.QUEUE),
        ("/steer", None),
        ("/steer clear", BusyPolicy.STEER),
        ("/new title", None),
        ("/nothing at all", None),
    ],
)
def test_queue_and_steer_with_a_text_are_messages(text: str, policy: BusyPolicy | None) -> None:
    parsed = commands.parse(text)
    assert parsed is not None
    assert commands.busy_policy(parsed) is policy
    assert commands.is_message(parsed) is (policy is not None)


def test_only_a_search_waits_for_the_index() -> None:
    assert [name for name in EVERY if commands.searches(Parsed(name, ""))] == ["search"]
    assert not commands.searches(Parsed("nothing", ""))


def test_every_command_is_there_once() -> None:
    assert sorted(EVERY) == sorted(WANTED.split())
    names = [name for command in COMMANDS for name in (command.name, *command.aliases)]
    assert len(names) == len(set(names))
    for name in names:
        assert commands.find(name.upper()) is commands.find(name) is not None
    assert commands.find("nothing") is None


def test_a_terminal_is_offered_every_command() -> None:
    offered = commands.completions()
    assert [each.name for each in offered] == [f"/{name}" for name in EVERY]
    assert all(each.summary for each in offered)


# ---- what is none ------------------------------------------------------------------------------------------


def test_an_unknown_command_offers_the_nearest_and_changes_nothing(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    before = chat.everything()
    assert chat(dm(), "/udno").text == "There is no command `/udno`. Did you mean `/undo`? /help lists them all."
    assert chat(dm(), "/xyzzy").text == "There is no command `/xyzzy`. /help lists them all."
    assert chat.everything() == before


# ---- help --------------------------------------------------------------------------------------------------


def test_help_lists_every_command_with_a_line(chat: Chat, dm: Source) -> None:
    text = chat(dm(), "/help").text
    for command in COMMANDS:
        assert f"- `/{command.name}" in text
        assert command.summary in text
    assert chat(dm(), "/start").text == text  # what Telegram sends first


@pytest.mark.parametrize("command", COMMANDS, ids=EVERY)
def test_every_command_explains_itself(chat: Chat, dm: Source, command: Command) -> None:
    text = chat(dm(), f"/help {command.name}").text
    assert text == chat(dm(), f"/help /{command.name.upper()}").text
    for part in (command.summary, command.help, command.example, command.usage):
        assert part in text
    assert command.help
    parsed = commands.parse(command.example)
    assert parsed is not None
    assert commands.find(parsed.name) is command


def test_help_about_nothing_offers_the_nearest(chat: Chat, dm: Source) -> None:
    assert "`/undo`" in chat.refused(dm(), "/help udno")


# ---- guests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_guests_use_only_what_is_for_them(chat: Chat, dm: Source, name: str) -> None:
    chat.say(dm(), "hello", "hi")
    if name not in FOR_GUESTS:
        assert chat.refused(dm(), f"/{name}", role=Role.GUEST).startswith(f"As a guest you may not use /{name}")
        assert f"`/{name}" not in chat(dm(), "/help", role=Role.GUEST).text
        assert "no command" in chat.refused(dm(), f"/help {name}", role=Role.GUEST)
    else:
        assert f"`/{name}" in chat(dm(), "/help", role=Role.GUEST).text


def test_the_table_of_guests_names_commands() -> None:
    wanted = "new reset title undo redo retry stop help status usage why sessions resume restore search"
    assert sorted(FOR_GUESTS) == sorted(wanted.split())


def test_a_guest_is_not_offered_what_is_not_for_guests(chat: Chat, dm: Source) -> None:
    assert "/model" in chat(dm(), "/modle").text
    assert "/model" not in chat(dm(), "/modle", role=Role.GUEST).text


# ---- the page ----------------------------------------------------------------------------------------------


def test_the_reference_has_every_command_and_no_other() -> None:
    assert sorted(SECTIONS) == sorted(EVERY)


@pytest.mark.parametrize("command", COMMANDS, ids=EVERY)
def test_the_reference_shows_usage_example_and_other_names(command: Command) -> None:
    assert f"### `/{command.name} {command.usage}".rstrip() + "`\n" in PAGE
    assert f"\n{command.example}\n" in SECTIONS[command.name]
    for alias in command.aliases:
        assert f"`/{alias}`" in SECTIONS[command.name]
    assert ("Not for guests." in " ".join(SECTIONS[command.name].split())) is (command.name not in FOR_GUESTS)
