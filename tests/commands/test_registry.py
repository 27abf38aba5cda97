"""What is a command and what isn't, who may use which, and that each one is explained and documented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import Role
from palaver.accounts.commands import (
    allow_group,
    answer_request,
    create_code,
    link_account,
    list_requests,
    show_person,
    unlink_account,
)
from palaver.commands.command import CommandAction, CommandCall, MessageCall
from palaver.delivery.commands import hand_off_session, remove_home, set_home
from palaver.inbox.registry import COMMANDS, REGISTRY, find_command, parse_command
from palaver.people.model import DEFAULT_GUEST_COMMANDS as GUEST_COMMANDS, OWNER_COMMANDS
from palaver.sessions.export import DocumentFormat
from palaver.sessions.search_text import FilterText
from palaver.sessions.turn import BusyPolicy
from palaver.turns.commands.conversation import (
    branch_session,
    list_resumable_sessions,
    resume_session,
    set_title,
    show_title,
    start_session,
)
from palaver.turns.commands.history import compact_session, redo_turns, restore_session, undo_turns
from palaver.turns.commands.query import (
    export_conversation,
    find_sessions,
    list_sessions,
    search_messages,
)
from palaver.turns.commands.settings import (
    choose_busy_policy,
    choose_model,
    choose_personality,
    choose_profile,
    choose_workspace,
    list_models,
    list_profiles,
    list_tools,
    show_busy_policy,
    switch_tools,
)
from palaver.turns.commands.status import explain_session, show_status, show_usage
from palaver.turns.commands.versions import choose_version, clear_queue, list_queue, list_versions, retry_turn, stop_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource
    from palaver.commands.command import Command

    Source = Callable[..., SessionSource]

COMMAND_NAMES = [command.name for command in COMMANDS]
EXPECTED_NAMES = (
    "new reset resume sessions title retry undo redo restore why branch compress usage status stop queue steer model"
    " profile personality workspace tools sethere busy search export platforms whoami memory link unlink pair handoff"
    " sethome jobs budget help versions version"
)
PAGE = (Path(__file__).parents[2] / "docs/reference/commands.md").read_text(encoding="utf-8")
SECTIONS = {
    match[1]: match[2]
    for match in re.finditer(r"^### `/([a-z]+)[^`]*`\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
}


# ---- parsing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("/new", start_session.call(title=None)),
        ("/new  My title ", start_session.call(title="My title")),
        ("/NEW x", start_session.call(title="x")),
        ("/new@my_bot title", start_session.call(title="title")),
        ("/new@my_bot", start_session.call(title=None)),
        ("/new\nsecond line", start_session.call(title="second line")),
        ("/reset", start_session.call()),
        ("/resume", list_resumable_sessions.call()),
        ("/resume 2", resume_session.call(target="2")),
        ("/title", show_title.call()),
        ("/title Lisbon", set_title.call(title="Lisbon")),
        ("/title -", set_title.call(title=None)),
        ("/branch", branch_session.call(title=None)),
        ("/fork By train", branch_session.call(title="By train")),
        ("/undo", undo_turns.call(turns=1)),
        ("/undo 3", undo_turns.call(turns=3)),
        ("/redo", redo_turns.call()),
        ("/retry", retry_turn.call()),
        ("/versions", list_versions.call()),
        ("/version 2", choose_version.call(number=2)),
        ("/version next", choose_version.call(step=1)),
        ("/version previous", choose_version.call(step=-1)),
        ("/restore", restore_session.call()),
        ("/compress", compact_session.call(focus=None)),
        ("/compact the prices", compact_session.call(focus="the prices")),
        ("/stop", stop_run.call(clear_queue=False)),
        ("/stop ALL", stop_run.call(clear_queue=True)),
        ("/queue", list_queue.call()),
        ("/queue clear", clear_queue.call()),
        ("/queue Clear", clear_queue.call()),
        ("/queue clear the table", MessageCall("queue", "clear the table", BusyPolicy.QUEUE)),
        ("/queue and then this", MessageCall("queue", "and then this", BusyPolicy.QUEUE)),
        ("/steer first\nsecond", MessageCall("steer", "first\nsecond", BusyPolicy.STEER)),
        ("/steer clear", MessageCall("steer", "clear", BusyPolicy.STEER)),
        ("/model", list_models.call()),
        ("/model large", choose_model.call(model="large")),
        ("/model Default", choose_model.call(model=None)),
        ("/busy", show_busy_policy.call()),
        ("/busy Steer", choose_busy_policy.call(policy=BusyPolicy.STEER)),
        ("/busy default", choose_busy_policy.call(policy=None)),
        ("/profile", list_profiles.call()),
        ("/profile work", choose_profile.call(profile="work")),
        ("/personality DEFAULT", choose_personality.call(personality=None)),
        ("/workspace ~/my garden", choose_workspace.call(workspace="~/my garden")),
        ("/tools", list_tools.call()),
        ("/tools off memory mcp:files", switch_tools.call(switches={"memory": False, "mcp:files": False})),
        ("/tools ON memory", switch_tools.call(switches={"memory": True})),
        ("/tools default", switch_tools.call(switches=None)),
        ("/sessions", list_sessions.call()),
        ("/sessions 2", list_sessions.call(page=2)),
        ("/sessions Lisbon night", find_sessions.call(typed=FilterText(words="Lisbon night"), query="Lisbon night")),
        ("/search night train", search_messages.call(typed=FilterText(words="night train"), query="night train")),
        ("/why", explain_session.call()),
        ("/usage", show_usage.call()),
        ("/status", show_status.call()),
        ("/export", export_conversation.call(export_format=DocumentFormat.MARKDOWN)),
        ("/export md", export_conversation.call(export_format=DocumentFormat.MARKDOWN)),
        ("/export JSON", export_conversation.call(export_format=DocumentFormat.JSON)),
        ("/help", REGISTRY.list_commands.call()),
        ("/start", REGISTRY.list_commands.call()),
        ("/whoami", show_person.call()),
        ("/link", create_code.call()),
        ("/link abcd-efgh", link_account.call(code="abcd-efgh")),
        ("/unlink", unlink_account.call(account="")),
        ("/unlink Telegram", unlink_account.call(account="Telegram")),
        ("/pair", list_requests.call()),
        ("/pair ABCD EFGH", answer_request.call(code="ABCD EFGH", answer=None)),
        ("/pair abcd-efgh Guest", answer_request.call(code="abcd-efgh", answer="guest")),
        ("/pair abcd-efgh deny", answer_request.call(code="abcd-efgh", answer="deny")),
        ("/pair group", allow_group.call(is_allowed=True)),
        ("/pair group OFF", allow_group.call(is_allowed=False)),
        ("/sethome", set_home.call()),
        ("/sethome off", remove_home.call()),
        ("/handoff matrix:!a:b.org", hand_off_session.call(target="matrix:!a:b.org")),
        ("/help /UNDO", REGISTRY.explain_command.call(name="undo")),
        ("/no-such_thing2 x", REGISTRY.explain_unknown_command.call(name="no-such_thing2")),
    ],
)
def test_text_becomes_a_call_with_typed_arguments(text: str, call: CommandCall | MessageCall) -> None:
    assert parse_command(text) == call


@pytest.mark.parametrize(
    "text",
    [
        *("/etc/passwd is a file", "//x", "/", "/ new", "/1", "/-x", "/new: what is new?", "/néw"),
        *(" /new", "say /new", "first\n/new", ""),
    ],
)
def test_only_a_slash_and_a_name_at_the_very_beginning_make_a_command(text: str) -> None:
    assert parse_command(text) is None


def test_only_search_needs_an_up_to_date_index() -> None:
    searching = [name for name in COMMAND_NAMES if _parse_with_text(name).action.searches]
    assert searching == ["search"]


def _parse_with_text(name: str) -> CommandCall:
    call = parse_command(f"/{name} word")
    if isinstance(call, MessageCall):
        call = parse_command(f"/{name}")
    assert isinstance(call, CommandCall)
    return call


READING = {
    *("resume", "title", "model", "profile", "personality", "workspace", "busy", "tools", "queue"),  # without arguments
    *("sessions", "search", "why", "usage", "status", "export", "help", "whoami", "memory", "pair", "platforms"),
    *("jobs", "budget", "versions", "sethere"),
}


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_commands_that_change_nothing_are_declared_as_reading(name: str) -> None:
    call = parse_command(f"/{name} word") if name == "search" else parse_command(f"/{name}")
    assert isinstance(call, CommandCall)
    if name not in {"steer", "handoff", "version"}:  # which are refused without arguments
        assert call.action.reads is (name in READING)


def test_every_action_belongs_to_a_command() -> None:
    from palaver.accounts import commands as people_commands
    from palaver.delivery import commands as place_commands
    from palaver.jobs import commands as job_commands
    from palaver.memory import commands as memory_commands
    from palaver.money import commands as budget_commands
    from palaver.turns.commands import (
        conversation as conversation_commands,
        history as history_commands,
        query as query_commands,
        settings as profile_commands,
        status as status_commands,
        versions as version_commands,
    )

    modules = (
        *(conversation_commands, history_commands, profile_commands, query_commands),
        *(status_commands, people_commands, place_commands, memory_commands),
        *(job_commands, budget_commands, version_commands),
    )
    actions = [value for module in modules for value in vars(module).values() if isinstance(value, CommandAction)]
    assert len(actions) > len(COMMANDS)
    assert {action.command for action in actions} <= set(COMMAND_NAMES)


# ---- the list of commands ----------------------------------------------------------------------------------


def test_every_command_is_registered_once() -> None:
    assert sorted(COMMAND_NAMES) == sorted(EXPECTED_NAMES.split())
    names = [name for command in COMMANDS for name in (command.name, *command.aliases)]
    assert len(names) == len(set(names))
    for name in names:
        assert find_command(name.upper()) is find_command(name) is not None
    assert find_command("nothing") is None


def test_terminals_complete_every_command() -> None:
    completions = REGISTRY.list_completions()
    assert [completion.name for completion in completions] == [f"/{name}" for name in COMMAND_NAMES]
    assert all(completion.summary for completion in completions)


def test_an_unknown_command_suggests_a_similar_one_and_changes_nothing(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    before = chat.dump_tables()
    reply = chat.run(dm(), "/udno")
    assert reply.text == "Unknown command `/udno`. Did you mean `/undo`? Use /help to list all commands."
    assert reply.data == {"unknown_command": "udno"}
    assert chat.run(dm(), "/xyzzy").text == "Unknown command `/xyzzy`. Use /help to list all commands."
    assert chat.dump_tables() == before


# ---- help --------------------------------------------------------------------------------------------------


def test_help_lists_every_command_with_its_summary(chat: Chat, dm: Source) -> None:
    text = chat.run(dm(), "/help", role=Role.OWNER).text
    for command in COMMANDS:
        assert f"- `/{command.name}" in text
        assert command.summary in text
    assert chat.run(dm(), "/start", role=Role.OWNER).text == text  # Telegram sends this first


@pytest.mark.parametrize("command", COMMANDS, ids=COMMAND_NAMES)
def test_help_explains_every_command(chat: Chat, dm: Source, command: Command) -> None:
    text = chat.run(dm(), f"/help {command.name}", role=Role.OWNER).text
    assert text == chat.run(dm(), f"/help /{command.name.upper()}", role=Role.OWNER).text
    for part in (command.summary, command.help, command.example, command.usage):
        assert part in text
    assert command.help
    example = parse_command(command.example)
    assert example is not None
    assert example.command == {"reset": "new"}.get(command.name, command.name)


def test_help_about_an_unknown_command_suggests_a_similar_one(chat: Chat, dm: Source) -> None:
    assert "`/undo`" in chat.expect_error(dm(), "/help udno")


# ---- guests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_guests_can_use_only_their_commands(chat: Chat, dm: Source, name: str) -> None:
    chat.add_messages(dm(), "hello", "hi")
    if name not in GUEST_COMMANDS:
        assert chat.expect_error(dm(), f"/{name}", role=Role.GUEST).startswith(f"Guests can't use /{name}.")
        assert f"`/{name}" not in chat.run(dm(), "/help", role=Role.GUEST).text
        assert "Unknown command" in chat.expect_error(dm(), f"/help {name}", role=Role.GUEST)
    else:
        assert f"`/{name}" in chat.run(dm(), "/help", role=Role.GUEST).text


def test_the_commands_of_guests_are_these() -> None:
    expected = "new reset title undo redo retry stop help status usage why sessions resume restore search"
    expected += " link unlink whoami versions version"
    assert sorted(GUEST_COMMANDS) == sorted(expected.split())


@pytest.mark.parametrize("name", sorted(OWNER_COMMANDS))
def test_members_cannot_use_commands_of_owners(chat: Chat, dm: Source, name: str) -> None:
    assert chat.expect_error(dm(), f"/{name}").startswith(f"Only an owner can use /{name}.")
    assert f"`/{name}" not in chat.run(dm(), "/help").text
    assert "Unknown command" in chat.expect_error(dm(), f"/help {name}")


def test_suggestions_leave_out_what_a_guest_cannot_use(chat: Chat, dm: Source) -> None:
    assert "/model" in chat.run(dm(), "/modle").text
    assert "/model" not in chat.run(dm(), "/modle", role=Role.GUEST).text


def test_a_guest_with_bad_arguments_is_told_about_the_permission(chat: Chat, dm: Source) -> None:
    assert "Guests can't use /busy" in chat.expect_error(dm(), "/busy whatever", role=Role.GUEST)


# ---- the reference page ------------------------------------------------------------------------------------


def test_the_reference_has_a_section_for_every_command() -> None:
    assert sorted(SECTIONS) == sorted(COMMAND_NAMES)


@pytest.mark.parametrize("command", COMMANDS, ids=COMMAND_NAMES)
def test_the_reference_shows_usage_example_aliases_and_permission(command: Command) -> None:
    assert f"### `/{command.name} {command.usage}".rstrip() + "`\n" in PAGE
    assert f"\n{command.example}\n" in SECTIONS[command.name]
    for alias in command.aliases:
        assert f"`/{alias}`" in SECTIONS[command.name]
    not_for_guests = "Not available to guests." in " ".join(SECTIONS[command.name].split())
    assert not_for_guests is (command.name not in GUEST_COMMANDS)
