"""Starting, renaming, resuming and branching conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, ResetPolicy, Role, SessionSource
from palaver.sessions import settings_table as session_settings
from palaver.sessions.model import StartReason
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat

    Source = Callable[..., SessionSource]


# ---- /new, /reset ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["/new", "/reset"])
def test_new_starts_a_conversation_and_keeps_the_old_one(chat: Chat, dm: Source, command: str) -> None:
    old = chat.add_messages(dm(), "hello", "hi")
    reply = chat.run(dm(), command)
    assert reply.text.startswith("New conversation.")
    assert "**hello**" in reply.text
    assert "/restore" in reply.text
    assert reply.session_id == chat.get_session(dm()).id != old.session_id
    assert chat.get_session(dm()).start_reason is StartReason.MANUAL
    assert chat.load_texts(old.session_id) == ["hello", "hi"]
    assert chat.run(dm(), "/restore").session_id == old.session_id


def test_guests_can_go_back_too(chat: Chat, dm: Source) -> None:
    old = chat.add_messages(dm(), "hello", "hi").session_id
    assert "/restore" in chat.run(dm(), "/new", role=Role.GUEST).text
    assert chat.run(dm(), "/restore", role=Role.GUEST).session_id == old


def test_new_takes_a_title(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    assert "**Trip to Lisbon**" in chat.run(dm(), "/new Trip  to Lisbon").text
    assert chat.get_session(dm()).title == "Trip to Lisbon"


def test_a_used_title_is_rejected_and_a_free_one_suggested(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    chat.run(dm(), "/title Lisbon")
    assert "'lisbon #2' is free" in chat.expect_error(dm(), "/new lisbon")
    assert chat.get_session(dm()).title == "Lisbon"


def test_an_invalid_title_starts_nothing(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    assert "100" in chat.expect_error(dm(), "/new " + "x" * 101)


def test_reset_takes_no_title(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    assert "/new title" in chat.expect_error(dm(), "/reset Lisbon")


def test_new_stays_in_an_empty_conversation(chat: Chat, dm: Source) -> None:
    assert "There are no messages here yet" in chat.run(dm(), "/new").text
    chat.add_messages(dm(), "hello")
    new = chat.run(dm(), "/new").session_id
    assert "already new" in chat.run(dm(), "/new").text
    reply = chat.run(dm(), "/new Lisbon")
    assert reply.session_id == chat.get_session(dm()).id == new
    assert chat.get_session(dm()).title == "Lisbon"
    assert "To undo, use `/title -`." in reply.text


def test_new_with_a_title_starts_a_conversation_before_the_first_message(chat: Chat, dm: Source) -> None:
    reply = chat.run(dm(), "/new Lisbon")
    assert chat.get_session(dm()).title == "Lisbon"
    assert chat.add_messages(dm(), "hello").session_id == reply.session_id


@pytest.mark.parametrize("running", [True, False])
def test_the_old_conversation_still_gets_its_answer(chat: Chat, dm: Source, running: bool) -> None:
    old = chat.add_messages(dm(), "hello")
    chat.queue_turn(old.session_id)
    if running:
        chat.claim_turns()
    assert "still responding there" in chat.run(dm(), "/new").text
    assert len(chat.list_open_turns(old.session_id)) == 1


def test_new_moves_a_surface_that_shows_another_conversation(chat: Chat, dm: Source) -> None:
    first = chat.add_messages(dm(), "first")
    chat.run(dm(), "/new")
    empty = chat.get_session(dm()).id
    reply = chat.run(dm(), "/new", session_id=first.session_id)
    assert reply.session_id == empty
    assert f"`/resume {first.session_id}`" in reply.text


# ---- /title ------------------------------------------------------------------------------------------------


def test_title_sets_shows_changes_and_removes_the_title(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "hello")
    assert "is called **hello**" in chat.run(dm(), "/title").text
    assert "To undo, use `/title -`." in chat.run(dm(), "/title One").text
    reply = chat.run(dm(), "/title Two")
    assert "**Two**" in reply.text
    assert "To undo, use `/title One`." in reply.text
    shown = chat.run(dm(), "/title").text
    assert "**Two**" in shown
    assert recorded.session_id in shown
    assert "To undo, use `/title Two`." in chat.run(dm(), "/title -").text
    assert chat.get_session(dm()).title is None


def test_a_used_or_invalid_title_is_rejected(chat: Chat, dm: Source) -> None:
    chat.run(dm(), "/new One")
    chat.add_messages(dm(), "hello")
    chat.run(dm(), "/new")
    chat.add_messages(dm(), "hello")
    assert "'one #2' is free" in chat.expect_error(dm(), "/title one")
    assert "printable" in chat.expect_error(dm(), "/title \u200b")
    assert "No change" in chat.run(dm(), "/title -").text


def test_markdown_in_a_title_is_escaped(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    text = chat.run(dm(), "/title **x** [y](http://z) _a_ snake_case").text
    assert r"\*\*x\*\* \[y\](http://z) \_a\_ snake_case" in text


def test_characters_that_cannot_be_stored_are_replaced(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    chat.run(dm(), "/title a\0b\ud800")
    assert chat.get_session(dm()).title == "a b?"


# ---- /resume -----------------------------------------------------------------------------------------------


def start_four_conversations(chat: Chat, source: SessionSource) -> dict[str, str]:
    """Start four conversations and return their ids by title; the last one is current."""
    ids: dict[str, str] = {}
    for title in ("Lisbon", "Garden", "", "Now"):
        chat.run(source, f"/new {title}")
        ids[title] = chat.add_messages(source, f"about {title or 'nothing'}", "I see.").session_id
        chat.clock.advance(hours=1)
    return ids


def test_resume_lists_titled_conversations_first_without_the_current_one(chat: Chat, dm: Source) -> None:
    ids = start_four_conversations(chat, dm())
    reply = chat.run(dm(), "/resume")
    assert [each["id"] for each in reply.data["sessions"]] == [ids["Garden"], ids["Lisbon"], ids[""]]
    assert "1. **Garden**, 3 h ago\n2. **Lisbon**, 4 h ago\n3. **about nothing**, 2 h ago" in reply.text


def test_resume_leaves_out_untitled_conversations_if_enough_have_titles(chat: Chat, dm: Source) -> None:
    for number in range(5):
        chat.run(dm(), f"/new Title {number}")
        chat.add_messages(dm(), "hello")
    chat.run(dm(), "/new")
    chat.add_messages(dm(), "untitled")
    chat.run(dm(), "/new")
    titles = [each["title"] for each in chat.run(dm(), "/resume").data["sessions"]]
    assert titles == [f"Title {number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize("way", ["number", "title", "id", "prefix"])
def test_resume_takes_a_number_a_title_or_an_id(chat: Chat, dm: Source, way: str) -> None:
    ids = start_four_conversations(chat, dm())
    target = {"number": "2", "title": "liSBon", "id": ids["Lisbon"], "prefix": ids["Lisbon"][:-2]}[way]
    reply = chat.run(dm(), f"/resume {target}")
    assert reply.session_id == chat.get_session(dm()).id == ids["Lisbon"]
    assert reply.text.startswith("Back in **Lisbon** (2 messages, last active 4 h ago).")
    assert "> you: “about Lisbon”" in reply.text
    assert "> agent: “I see.”" in reply.text
    assert chat.run(dm(), "/restore").session_id == ids["Now"]


def test_resume_by_title_finds_the_newest_and_by_number_exactly_that_one(chat: Chat, dm: Source) -> None:
    ids = []
    for title in ("My Project", "My Project #2", "My Project #3", "Other"):
        chat.run(dm(), f"/new {title}")
        ids.append(chat.add_messages(dm(), "hello").session_id)
    assert chat.run(dm(), "/resume my project").session_id == ids[2]
    assert chat.run(dm(), "/resume My Project #2").session_id == ids[1]
    assert chat.run(dm(), "/resume My Project #1").session_id == ids[0]


def test_resume_treats_a_number_beyond_the_list_as_a_title(chat: Chat, dm: Source) -> None:
    chat.run(dm(), "/new 2048")
    game = chat.add_messages(dm(), "a game").session_id
    chat.run(dm(), "/new 7")
    chat.add_messages(dm(), "a number")
    chat.run(dm(), "/new")
    assert chat.run(dm(), "/resume 2048").session_id == game
    assert chat.run(dm(), "/resume 7").session_id != game


def test_resuming_the_current_conversation_changes_nothing(chat: Chat, dm: Source) -> None:
    chat.run(dm(), "/new Lisbon")
    chat.add_messages(dm(), "hello")
    before = chat.dump_tables()
    assert chat.run(dm(), "/resume Lisbon").text == "You're already in **Lisbon**."
    assert chat.dump_tables() == before


def test_resume_suggests_a_similar_title(chat: Chat, dm: Source) -> None:
    start_four_conversations(chat, dm())
    assert "Did you mean **Lisbon**?" in chat.expect_error(dm(), "/resume Lisbom")
    assert "/sessions" in chat.expect_error(dm(), "/resume 99")
    assert "everal" in chat.expect_error(dm(), "/resume 2026")


def test_resume_says_if_there_is_nothing_to_resume(chat: Chat, dm: Source) -> None:
    assert "no other conversations" in chat.run(dm(), "/resume").text
    chat.add_messages(dm(), "hello")
    assert "no other conversations" in chat.run(dm(), "/resume").text


def test_a_conversation_can_be_resumed_in_a_new_chat(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "hello")
    chat.run(dm(), "/title Lisbon")
    other = dm(thread_id="7")
    assert chat.run(other, "/resume Lisbon").session_id == recorded.session_id
    assert chat.add_messages(other, "and on").session_id == recorded.session_id


def test_an_old_conversation_is_not_reset_right_after_it_was_resumed(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source
) -> None:
    chat = open_chat(GatewayConfig(default_reset_policy=ResetPolicy(mode="idle", idle_minutes=60)))  # type: ignore[arg-type]
    old = chat.add_messages(dm(), "hello").session_id
    chat.clock.advance(hours=5)
    assert chat.add_messages(dm(), "again").session_id != old
    assert chat.run(dm(), "/restore").session_id == old
    assert chat.add_messages(dm(), "still there?").session_id == old
    chat.clock.advance(hours=5)
    new = chat.add_messages(dm(), "once more").session_id
    assert new != old
    assert chat.run(dm(), f"/resume {old}").session_id == old
    assert chat.add_messages(dm(), "here I am").session_id == old


def test_resume_mentions_answers_that_are_still_to_come(chat: Chat, dm: Source) -> None:
    ids = start_four_conversations(chat, dm())
    chat.queue_turn(ids["Now"])
    assert "still responding there" in chat.run(dm(), "/resume Lisbon").text


# ---- /branch -----------------------------------------------------------------------------------------------


def test_branch_continues_in_a_copy_and_keeps_the_original(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "hello", "hi")
    chat.run(dm(), "/title Lisbon")
    reply = chat.run(dm(), "/branch")
    assert chat.get_session(dm()).id == reply.session_id != recorded.session_id
    assert chat.get_session(dm()).title == "Lisbon #2"
    chat.add_messages(dm(), "by train")
    assert chat.load_texts(recorded.session_id) == ["hello", "hi"]
    assert chat.load_texts(chat.get_session(dm()).id) == ["hello", "hi", "by train"]
    assert "**Lisbon #2**" in reply.text
    assert chat.run(dm(), "/restore").session_id == recorded.session_id


def test_a_branch_can_have_its_own_title_or_none(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello", "hi")
    chat.run(dm(), "/branch")
    assert chat.get_session(dm()).title is None
    chat.run(dm(), "/branch By train")
    assert chat.get_session(dm()).title == "By train"
    assert "is free" in chat.expect_error(dm(), "/branch by train")


def test_a_branch_keeps_the_settings_of_the_conversation(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello", "hi")
    chat.run(dm(), "/model large")
    chat.run(dm(), "/busy reject")
    no = chat.get_session_no(str(chat.run(dm(), "/branch").session_id))
    assert chat.read(lambda tx: session_settings.load(tx, no)) == session_settings.SessionSettings(
        model="large", busy_policy=BusyPolicy.REJECT
    )


def test_an_empty_conversation_cannot_be_branched(chat: Chat, dm: Source) -> None:
    assert "no messages here yet" in chat.expect_error(dm(), "/branch")
    chat.add_messages(dm(), "hello")
    chat.run(dm(), "/new")
    assert "nothing to branch from" in chat.expect_error(dm(), "/branch")
