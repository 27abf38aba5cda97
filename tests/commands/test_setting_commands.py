"""Settings of one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config.agent_rules import ToolsetRule, TurnRules
from palaver.people.model import Role
from palaver.sessions import settings_table as session_settings
from palaver.sessions.events import EventKind
from palaver.sessions.settings_table import SessionSettings
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource
    from palaver.sessions.events import Event

    Source = Callable[..., SessionSource]


def load_settings(chat: Chat, source: SessionSource) -> SessionSettings:
    no = chat.get_session_no(chat.get_session(source).id)
    return chat.read(lambda tx: session_settings.load(tx, no))


def list_change_events(chat: Chat, source: SessionSource) -> list[Event]:
    events = chat.load_events(chat.get_session(source).id)
    return [event for event in events if event.kind is EventKind.SETTING_CHANGED]


def list_changes(chat: Chat, source: SessionSource) -> list[dict[str, object]]:
    return [dict(event.facts) for event in list_change_events(chat, source)]


def test_model_chooses_a_model_and_goes_back_to_the_default(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    reply = chat.run(dm(), "/model large")
    assert "uses `large` from the next message" in reply.text
    assert "To undo, use `/model default`." in reply.text
    assert load_settings(chat, dm()).model == "large"
    assert "Model: `large` (chosen for this conversation)" in chat.run(dm(), "/model").text
    assert "To undo, use `/model large`." in chat.run(dm(), "/model default").text
    assert load_settings(chat, dm()) == SessionSettings()
    assert list_changes(chat, dm()) == [
        {"setting": "model", "value": "large", "previous": None},
        {"setting": "model", "value": None, "previous": "large"},
    ]
    person = chat.store.get_or_create_person(dm()).id
    assert {
        event.person_id
        for event in chat.load_events(chat.get_session(dm()).id)
        if event.kind is EventKind.SETTING_CHANGED
    } == {person}


def test_model_lists_the_available_models(chat: Chat, dm: Source) -> None:
    for _ in range(2):
        reply = chat.run(dm(), "/model")
        assert "Model: `small` (default)" in reply.text
        assert "- `small`\n- `large`" in reply.text
        chat.add_messages(dm(), "hello")


def test_an_unknown_model_is_rejected(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    assert chat.expect_error(dm(), "/model huge") == "there is no model 'huge'; choose small or large"


@pytest.mark.parametrize("command", ["/model large", "/busy steer"])
def test_choosing_the_same_again_changes_nothing(chat: Chat, dm: Source, command: str) -> None:
    chat.add_messages(dm(), "hello")
    chat.run(dm(), command)
    assert "To undo" not in chat.run(dm(), command).text
    assert len(list_changes(chat, dm())) == 1


@pytest.mark.parametrize("command", ["/model large", "/busy steer"])
def test_settings_can_be_chosen_before_the_first_message(chat: Chat, dm: Source, command: str) -> None:
    reply = chat.run(dm(), command)
    assert chat.add_messages(dm(), "hello").session_id == reply.session_id
    assert load_settings(chat, dm()) != SessionSettings()


@pytest.mark.parametrize("policy", BusyPolicy)
def test_busy_chooses_a_policy_and_goes_back_to_the_default(chat: Chat, dm: Source, policy: BusyPolicy) -> None:
    chat.add_messages(dm(), "hello")
    reply = chat.run(dm(), f"/busy {policy.upper()}")
    assert f"(`{policy}`)" in reply.text
    assert "To undo, use `/busy default`." in reply.text
    assert load_settings(chat, dm()).busy_policy is policy
    assert f"(`{policy}`, chosen for this conversation)." in chat.run(dm(), "/busy").text
    chat.run(dm(), "/busy default")
    assert load_settings(chat, dm()).busy_policy is None


def test_busy_shows_the_current_policy_and_the_others(chat: Chat, dm: Source) -> None:
    chat.rules = TurnRules(busy_policy=BusyPolicy.INTERRUPT)
    for _ in range(2):
        text = chat.run(dm(), "/busy").text
        assert "(`interrupt`, default)." in text
        for name in (*BusyPolicy, "default"):
            assert f"- `/busy {name}`" in text
        chat.add_messages(dm(), "hello")


def test_an_unknown_policy_is_rejected(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    assert "`queue`, `steer`, `interrupt`, `reject`, `default`" in chat.expect_error(dm(), "/busy shout")


def test_a_setting_applies_to_one_conversation_only(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    chat.run(dm(), "/model large")
    chat.run(dm(), "/new")
    assert load_settings(chat, dm()) == SessionSettings()


# -- tools ---------------------------------------------------------------------------------------------------


def test_tools_are_turned_off_and_on(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    assert "- `memory` (on): remembers" in chat.run(dm(), "/tools").text
    reply = chat.run(dm(), "/tools off memory MCP:Files")
    assert "Turned off in this conversation from the next message: `mcp:files`, `memory`." in reply.text
    assert "To undo, use `/tools on mcp:files memory`." in reply.text
    assert load_settings(chat, dm()).disabled_toolsets == ("mcp:files", "memory")
    assert "- `memory` (off): remembers" in chat.run(dm(), "/tools").text
    assert "**Tools off**: `mcp:files`, `memory`" in chat.run(dm(), "/status").text
    assert "To undo, use `/tools off memory`." in chat.run(dm(), "/tools on memory").text
    assert "All tools are on" in chat.run(dm(), "/tools default").text
    assert load_settings(chat, dm()) == SessionSettings()
    assert list_changes(chat, dm()) == [
        {"setting": "toolsets", "value": ["mcp:files", "memory"], "previous": []},
        {"setting": "toolsets", "value": ["mcp:files"], "previous": ["mcp:files", "memory"]},
        {"setting": "toolsets", "value": [], "previous": ["mcp:files"]},
    ]


def test_a_switch_that_changes_nothing_is_no_event(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    chat.run(dm(), "/tools on memory")
    chat.run(dm(), "/tools default")
    assert list_changes(chat, dm()) == []


@pytest.mark.parametrize(
    "text", ["/tools memory", "/tools off", "/tools on", "/tools default memory", "/tools off kitchen"]
)
def test_an_invalid_switch_is_rejected(chat: Chat, dm: Source, text: str) -> None:
    chat.add_messages(dm(), "hello")
    assert "tools" in chat.expect_error(dm(), text)


def test_only_allowed_tools_can_be_switched(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    chat.rules = TurnRules(toolsets={"memory": ToolsetRule(roles=frozenset({Role.OWNER}))})
    assert "alid values: mcp:files" in chat.expect_error(dm(), "/tools off memory")
    assert "`memory`" not in chat.run(dm(), "/tools").text
    assert "`memory`" in chat.run(dm(), "/tools", role=Role.OWNER).text


def test_a_branch_inherits_the_settings(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello", "hi")
    for text in ("/tools off memory", "/model large", "/busy steer", "/branch"):
        chat.run(dm(), text)
    assert load_settings(chat, dm()) == SessionSettings(
        model="large", busy_policy=BusyPolicy.STEER, disabled_toolsets=("memory",)
    )
