"""What is chosen for one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.domain.events import EventKind
from palaver.domain.person import Role
from palaver.domain.profile import ToolsetRule, TurnRules
from palaver.domain.turn import BusyPolicy
from palaver.storage import session_settings
from palaver.storage.session_settings import SessionSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource

    Source = Callable[..., SessionSource]


def settings(chat: Chat, source: SessionSource) -> SessionSettings:
    no = chat.number(chat.here(source).id)
    found: SessionSettings = chat.read(lambda tx: session_settings.read(tx, no))
    return found


def changes(chat: Chat, source: SessionSource) -> list[dict[str, object]]:
    return [dict(event.facts) for event in chat.log(chat.here(source).id) if event.kind is EventKind.CHANGED]


def test_a_model_is_chosen_for_this_conversation_and_given_up_again(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    reply = chat(dm(), "/model large")
    assert "`large` answers" in reply.text
    assert "`/model default` takes that back" in reply.text
    assert settings(chat, dm()).model == "large"
    assert "`large` answers here (chosen for this conversation)" in chat(dm(), "/model").text
    assert "`/model large` takes that back" in chat(dm(), "/model default").text
    assert settings(chat, dm()) == SessionSettings()
    assert changes(chat, dm()) == [
        {"setting": "model", "value": "large", "was": None},
        {"setting": "model", "value": None, "was": "large"},
    ]
    person = chat.store.person_for(dm()).id
    assert {event.person_id for event in chat.log(chat.here(dm()).id) if event.kind is EventKind.CHANGED} == {person}


def test_model_alone_shows_what_can_be_chosen(chat: Chat, dm: Source) -> None:
    for _ in range(2):
        reply = chat(dm(), "/model")
        assert "`small` answers here (the default)" in reply.text
        assert "- `small`\n- `large`" in reply.text
        chat.say(dm(), "hello")


def test_a_model_that_is_none_is_refused(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    assert chat.refused(dm(), "/model huge") == "there is no model 'huge'; choose small or large"


@pytest.mark.parametrize("command", ["/model large", "/busy steer"])
def test_choosing_again_what_holds_changes_nothing(chat: Chat, dm: Source, command: str) -> None:
    chat.say(dm(), "hello")
    chat(dm(), command)
    assert "takes that back" not in chat(dm(), command).text
    assert len(changes(chat, dm())) == 1


@pytest.mark.parametrize("command", ["/model large", "/busy steer"])
def test_something_can_be_chosen_before_anything_is_said(chat: Chat, dm: Source, command: str) -> None:
    reply = chat(dm(), command)
    assert chat.say(dm(), "hello").session_id == reply.session_id
    assert settings(chat, dm()) != SessionSettings()


@pytest.mark.parametrize("policy", BusyPolicy)
def test_what_happens_while_the_agent_is_busy_is_chosen(chat: Chat, dm: Source, policy: BusyPolicy) -> None:
    chat.say(dm(), "hello")
    reply = chat(dm(), f"/busy {policy.upper()}")
    assert f"(`{policy}`)" in reply.text
    assert "`/busy default` takes that back" in reply.text
    assert settings(chat, dm()).busy is policy
    assert f"(`{policy}`). That is chosen for this conversation." in chat(dm(), "/busy").text
    chat(dm(), "/busy default")
    assert settings(chat, dm()).busy is None


def test_busy_alone_shows_what_holds_and_what_can_be_chosen(chat: Chat, dm: Source) -> None:
    chat.rules = TurnRules(busy=BusyPolicy.INTERRUPT)
    for _ in range(2):
        text = chat(dm(), "/busy").text
        assert "(`interrupt`). That is the default." in text
        for name in (*BusyPolicy, "default"):
            assert f"- `/busy {name}`" in text
        chat.say(dm(), "hello")


def test_what_is_no_policy_is_refused(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    assert "`queue`, `steer`, `interrupt`, `reject`, `default`" in chat.refused(dm(), "/busy shout")


def test_a_choice_holds_in_its_own_conversation_alone(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    chat(dm(), "/model large")
    chat(dm(), "/new")
    assert settings(chat, dm()) == SessionSettings()


# -- tools ---------------------------------------------------------------------------------------------------


def test_toolsets_are_switched_off_and_on_and_that_is_told_and_taken_back(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    assert "- `memory` (on): remembers" in chat(dm(), "/tools").text
    reply = chat(dm(), "/tools off memory MCP:Files")
    assert "off in this conversation: `mcp:files`, `memory`" in reply.text
    assert "`/tools on mcp:files memory` takes that back" in reply.text
    assert settings(chat, dm()).toolsets_off == ("mcp:files", "memory")
    assert "- `memory` (off): remembers" in chat(dm(), "/tools").text
    assert "**Tools that are off here**: `mcp:files`, `memory`" in chat(dm(), "/status").text
    assert "`/tools off memory` takes that back" in chat(dm(), "/tools on memory").text
    assert "all its tools" in chat(dm(), "/tools default").text
    assert settings(chat, dm()) == SessionSettings()
    assert changes(chat, dm()) == [
        {"setting": "toolsets", "value": ["mcp:files", "memory"], "was": []},
        {"setting": "toolsets", "value": ["mcp:files"], "was": ["mcp:files", "memory"]},
        {"setting": "toolsets", "value": [], "was": ["mcp:files"]},
    ]


def test_switching_what_is_so_already_is_no_event(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    chat(dm(), "/tools on memory")
    chat(dm(), "/tools default")
    assert changes(chat, dm()) == []


@pytest.mark.parametrize(
    "text", ["/tools memory", "/tools off", "/tools on", "/tools default memory", "/tools off kitchen"]
)
def test_a_switch_that_makes_no_sense_is_refused(chat: Chat, dm: Source, text: str) -> None:
    chat.say(dm(), "hello")
    assert "tools" in chat.refused(dm(), text)


def test_only_what_the_rules_give_can_be_switched(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    chat.rules = TurnRules(toolsets={"memory": ToolsetRule(roles=frozenset({Role.OWNER}))})
    assert "there are: mcp:files" in chat.refused(dm(), "/tools off memory")
    assert "`memory`" not in chat(dm(), "/tools").text
    assert "`memory`" in chat(dm(), "/tools", role=Role.OWNER).text


def test_a_copy_inherits_what_was_chosen(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello", "hi")
    for text in ("/tools off memory", "/model large", "/busy steer", "/branch"):
        chat(dm(), text)
    assert settings(chat, dm()) == SessionSettings("large", BusyPolicy.STEER, ("memory",))
