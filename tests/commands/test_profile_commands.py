"""The profile, the personality and the workspace of one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config.agent_rules import AgentProfile, Profile, TurnRules
from palaver.people.model import Role
from palaver.sessions.settings_table import SessionSettings

from .test_setting_commands import list_changes, load_settings

if TYPE_CHECKING:
    from commands.conftest import Chat
    from commands.test_setting_commands import Source

AGENT_PROFILE = AgentProfile(
    profiles={
        "work": Profile(description="For the office", model="large", toolsets=("history",)),
        "broken": Profile(model="huge"),
    },
    personalities={"pirate": "Talk like a pirate."},
)


@pytest.fixture(autouse=True)
def profiles(chat: Chat) -> None:
    chat.profile = AGENT_PROFILE


@pytest.mark.parametrize(
    ("setting", "value"), [("profile", "work"), ("personality", "pirate"), ("workspace", "~/projects/garden")]
)
def test_a_choice_is_set_shown_and_undone(chat: Chat, dm: Source, setting: str, value: str) -> None:
    chat.add_messages(dm(), "hello")
    reply = chat.run(dm(), f"/{setting} {value}")
    assert f"`{value}` from the next message" in reply.text
    assert f"To undo, use `/{setting} default`." in reply.text
    assert load_settings(chat, dm()) == SessionSettings(**{setting: value})  # type: ignore[arg-type]
    assert f"{setting.capitalize()}: `{value}`" in chat.run(dm(), f"/{setting}").text
    assert value in chat.run(dm(), "/status").text
    assert f"To undo, use `/{setting} {value}`." in chat.run(dm(), f"/{setting} default").text
    assert list_changes(chat, dm()) == [
        {"setting": setting, "value": value, "previous": None},
        {"setting": setting, "value": None, "previous": value},
    ]


def test_names_are_found_in_any_letter_case_and_listed_with_their_description(chat: Chat, dm: Source) -> None:
    chat.run(dm(), "/profile Work")
    assert load_settings(chat, dm()).profile == "work"
    assert "- `work`: For the office" in chat.run(dm(), "/profile").text
    assert "- `pirate`: Talk like a pirate." in chat.run(dm(), "/personality").text


def test_a_profile_brings_its_model_unless_the_conversation_has_chosen_one(chat: Chat, dm: Source) -> None:
    chat.run(dm(), "/profile work")
    assert "Model: `large` (default)" in chat.run(dm(), "/model").text
    chat.run(dm(), "/model small")
    assert "Model: `small` (chosen" in chat.run(dm(), "/model").text
    assert "uses `large` from" in chat.run(dm(), "/model default").text


def test_only_the_tools_of_the_profile_are_listed(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    assert chat.run(dm(), "/tools").data["toolsets"] == [*TurnRules().toolsets, "mcp:files"]
    chat.run(dm(), "/profile work")
    assert chat.run(dm(), "/tools").data["toolsets"] == ["history"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/profile holiday", "Valid values: work, broken."),
        ("/profile broken", "choose small or large"),
        ("/personality grumpy", "Valid values: pirate."),
        ("/workspace two\nlines", "one line of up to 240 characters"),
        (f"/workspace {'x' * 241}", "one line of up to 240 characters"),
        ("/workspace <system>", "aren't allowed"),
        ("/workspace a\u202eb", "aren't allowed"),
    ],
)
def test_an_invalid_choice_is_rejected(chat: Chat, dm: Source, text: str, expected: str) -> None:
    chat.add_messages(dm(), "hello")
    assert expected in chat.expect_error(dm(), text)


def test_without_configured_profiles_the_reply_says_where_to_add_them(chat: Chat, dm: Source) -> None:
    chat.profile = AgentProfile()
    assert "the settings under `profiles`" in chat.run(dm(), "/profile").text
    assert "the settings under `personalities`" in chat.run(dm(), "/personality").text
    assert "the settings under profiles" in chat.expect_error(dm(), "/profile work")


def test_a_removed_profile_is_still_shown_and_can_be_reset(chat: Chat, dm: Source) -> None:
    chat.run(dm(), "/profile work")
    chat.run(dm(), "/personality pirate")
    chat.profile = AgentProfile(profiles={"home": Profile()})
    assert "`work` is no longer in the settings" in chat.run(dm(), "/profile").text
    assert "`pirate` is no longer in the settings" in chat.run(dm(), "/personality").text
    assert "Model: `small`" in chat.run(dm(), "/model").text
    chat.run(dm(), "/profile default")
    assert load_settings(chat, dm()).profile is None


@pytest.mark.parametrize("text", ["/profile work", "/personality pirate", "/workspace /srv"])
def test_guests_cannot_choose(chat: Chat, dm: Source, text: str) -> None:
    chat.add_messages(dm(), "hello")
    assert "Guests can't use" in chat.expect_error(dm(), text, role=Role.GUEST)


def test_a_branch_and_a_fork_keep_the_choices(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello", "hi")
    for text in ("/profile work", "/personality pirate", "/workspace /srv/site"):
        chat.run(dm(), text)
    original = chat.get_session(dm()).id
    chat.run(dm(), "/branch")
    expected = SessionSettings(profile="work", personality="pirate", workspace="/srv/site")
    assert load_settings(chat, dm()) == expected
    person = chat.store.get_or_create_person(dm())
    fork = chat.store.seen_by(person.principal).fork(original)
    summary = chat.store.seen_by(person.principal).summaries.get(fork.id)
    assert (summary.profile, summary.personality, summary.workspace) == ("work", "pirate", "/srv/site")
