"""Beginning, naming, finding again and branching conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, ResetPolicy, Role, SessionSource
from palaver.domain.session import StartReason
from palaver.domain.turn import BusyPolicy
from palaver.storage import session_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat

    Source = Callable[..., SessionSource]


# ---- /new, /reset ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["/new", "/reset"])
def test_a_new_conversation_begins_and_the_old_one_is_kept(chat: Chat, dm: Source, command: str) -> None:
    old = chat.say(dm(), "hello", "hi")
    reply = chat(dm(), command)
    assert reply.text.startswith("A new conversation begins.")
    assert "“hi”" in reply.text
    assert "/restore" in reply.text
    assert reply.session_id == chat.here(dm()).id != old.session_id
    assert chat.here(dm()).start_reason is StartReason.MANUAL
    assert chat.texts(old.session_id) == ["hello", "hi"]
    assert chat(dm(), "/restore").session_id == old.session_id


def test_a_guest_finds_the_way_back_too(chat: Chat, dm: Source) -> None:
    old = chat.say(dm(), "hello", "hi").session_id
    assert "/restore" in chat(dm(), "/new", role=Role.GUEST).text
    assert chat(dm(), "/restore", role=Role.GUEST).session_id == old


def test_a_new_conversation_can_have_a_title_at_once(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    assert "**Trip to Lisbon**" in chat(dm(), "/new Trip  to Lisbon").text
    assert chat.here(dm()).title == "Trip to Lisbon"


def test_a_taken_title_is_refused_and_the_next_free_one_named(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    chat(dm(), "/title Lisbon")
    assert "'lisbon #2' is free" in chat.refused(dm(), "/new lisbon")
    assert chat.here(dm()).title == "Lisbon"


def test_what_can_be_no_title_begins_nothing(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    assert "100" in chat.refused(dm(), "/new " + "x" * 101)


def test_reset_takes_no_title(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    assert "/new title" in chat.refused(dm(), "/reset Lisbon")


def test_a_conversation_in_which_nothing_was_said_is_new_already(chat: Chat, dm: Source) -> None:
    assert "Nothing has been said here yet" in chat(dm(), "/new").text
    chat.say(dm(), "hello")
    new = chat(dm(), "/new").session_id
    assert "new already" in chat(dm(), "/new").text
    reply = chat(dm(), "/new Lisbon")
    assert reply.session_id == chat.here(dm()).id == new
    assert chat.here(dm()).title == "Lisbon"
    assert "`/title -` takes that back" in reply.text


def test_a_title_begins_a_conversation_where_nothing_was_said(chat: Chat, dm: Source) -> None:
    reply = chat(dm(), "/new Lisbon")
    assert chat.here(dm()).title == "Lisbon"
    assert chat.say(dm(), "hello").session_id == reply.session_id


@pytest.mark.parametrize("running", [True, False])
def test_what_is_being_answered_goes_on_in_the_old_conversation(chat: Chat, dm: Source, running: bool) -> None:
    old = chat.say(dm(), "hello")
    chat.wait(old.session_id)
    if running:
        chat.work()
    assert "still being answered there" in chat(dm(), "/new").text
    assert len(chat.open_turns(old.session_id)) == 1


def test_a_surface_that_shows_another_conversation_is_led_to_the_new_one(chat: Chat, dm: Source) -> None:
    first = chat.say(dm(), "first")
    chat(dm(), "/new")
    empty = chat.here(dm()).id
    reply = chat(dm(), "/new", shown=first.session_id)
    assert reply.session_id == empty
    assert f"`/resume {first.session_id}`" in reply.text


# ---- /title ------------------------------------------------------------------------------------------------


def test_a_title_is_given_shown_changed_and_taken_away(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "hello")
    assert "has no title" in chat(dm(), "/title").text
    assert "`/title -` takes that back" in chat(dm(), "/title One").text
    reply = chat(dm(), "/title Two")
    assert "**Two**" in reply.text
    assert "`/title One` takes that back" in reply.text
    shown = chat(dm(), "/title").text
    assert "**Two**" in shown
    assert said.session_id in shown
    assert "`/title Two` gives it back" in chat(dm(), "/title -").text
    assert chat.here(dm()).title is None


def test_a_title_that_is_taken_or_none_is_refused(chat: Chat, dm: Source) -> None:
    chat(dm(), "/new One")
    chat.say(dm(), "hello")
    chat(dm(), "/new")
    chat.say(dm(), "hello")
    assert "'one #2' is free" in chat.refused(dm(), "/title one")
    assert "printable" in chat.refused(dm(), "/title \u200b")
    assert "Nothing has changed" in chat(dm(), "/title -").text


def test_a_title_cannot_pass_for_our_own_markdown(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    text = chat(dm(), "/title **x** [y](http://z) _a_ snake_case").text
    assert r"\*\*x\*\* \[y\](http://z) \_a\_ snake_case" in text


def test_text_that_no_database_keeps_does_no_harm(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    chat(dm(), "/title a\0b\ud800")
    assert chat.here(dm()).title == "a b?"


# ---- /resume -----------------------------------------------------------------------------------------------


def lisbon_and_more(chat: Chat, source: SessionSource) -> dict[str, str]:
    """Four conversations, the last of them the present one."""
    ids: dict[str, str] = {}
    for title in ("Lisbon", "Garden", "", "Now"):
        chat(source, f"/new {title}")
        ids[title] = chat.say(source, f"about {title or 'nothing'}", "I see.").session_id
        chat.clock.advance(hours=1)
    return ids


def test_resume_lists_titled_conversations_first_and_not_the_present_one(chat: Chat, dm: Source) -> None:
    ids = lisbon_and_more(chat, dm())
    reply = chat(dm(), "/resume")
    assert [each["id"] for each in reply.facts["sessions"]] == [ids["Garden"], ids["Lisbon"], ids[""]]
    assert "1. **Garden**, 3 h ago\n2. **Lisbon**, 4 h ago\n3. “I see.”, 2 h ago" in reply.text


def test_untitled_conversations_are_left_out_when_enough_have_titles(chat: Chat, dm: Source) -> None:
    for number in range(5):
        chat(dm(), f"/new Title {number}")
        chat.say(dm(), "hello")
    chat(dm(), "/new")
    chat.say(dm(), "untitled")
    chat(dm(), "/new")
    titles = [each["title"] for each in chat(dm(), "/resume").facts["sessions"]]
    assert titles == [f"Title {number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize("way", ["number", "title", "id", "prefix"])
def test_a_conversation_is_resumed_by_number_title_or_id(chat: Chat, dm: Source, way: str) -> None:
    ids = lisbon_and_more(chat, dm())
    named = {"number": "2", "title": "liSBon", "id": ids["Lisbon"], "prefix": ids["Lisbon"][:-2]}[way]
    reply = chat(dm(), f"/resume {named}")
    assert reply.session_id == chat.here(dm()).id == ids["Lisbon"]
    assert reply.text.startswith("Back in **Lisbon** (2 messages, the last 4 h ago).")
    assert "> you: “about Lisbon”" in reply.text
    assert "> agent: “I see.”" in reply.text
    assert chat(dm(), "/restore").session_id == ids["Now"]


def test_a_title_means_the_newest_of_its_line_and_a_number_just_that_one(chat: Chat, dm: Source) -> None:
    ids = []
    for title in ("My Project", "My Project #2", "My Project #3", "Other"):
        chat(dm(), f"/new {title}")
        ids.append(chat.say(dm(), "hello").session_id)
    assert chat(dm(), "/resume my project").session_id == ids[2]
    assert chat(dm(), "/resume My Project #2").session_id == ids[1]
    assert chat(dm(), "/resume My Project #1").session_id == ids[0]


def test_a_number_beyond_the_list_may_be_a_title(chat: Chat, dm: Source) -> None:
    chat(dm(), "/new 2048")
    game = chat.say(dm(), "a game").session_id
    chat(dm(), "/new 7")
    chat.say(dm(), "a number")
    chat(dm(), "/new")
    assert chat(dm(), "/resume 2048").session_id == game
    assert chat(dm(), "/resume 7").session_id != game


def test_what_is_there_already_is_said_to_be(chat: Chat, dm: Source) -> None:
    chat(dm(), "/new Lisbon")
    chat.say(dm(), "hello")
    before = chat.everything()
    assert chat(dm(), "/resume Lisbon").text == "You are in **Lisbon** already."
    assert chat.everything() == before


def test_what_does_not_exist_is_refused_with_the_nearest_title(chat: Chat, dm: Source) -> None:
    lisbon_and_more(chat, dm())
    assert "Did you mean **Lisbon**?" in chat.refused(dm(), "/resume Lisbom")
    assert "/sessions" in chat.refused(dm(), "/resume 99")
    assert "several" in chat.refused(dm(), "/resume 2026")


def test_nothing_to_resume_is_said_to_be_so(chat: Chat, dm: Source) -> None:
    assert "no other conversation" in chat(dm(), "/resume").text
    chat.say(dm(), "hello")
    assert "no other conversation" in chat(dm(), "/resume").text


def test_a_conversation_goes_on_in_a_place_where_nothing_was_said_yet(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "hello")
    chat(dm(), "/title Lisbon")
    other = dm(thread_id="7")
    assert chat(other, "/resume Lisbon").session_id == said.session_id
    assert chat.say(other, "and on").session_id == said.session_id


def test_what_was_resumed_or_restored_after_a_long_time_is_not_reset_at_once(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source
) -> None:
    chat = open_chat(GatewayConfig(default_reset_policy=ResetPolicy(mode="idle", idle_minutes=60)))  # type: ignore[arg-type]
    old = chat.say(dm(), "hello").session_id
    chat.clock.advance(hours=5)
    assert chat.say(dm(), "again").session_id != old
    assert chat(dm(), "/restore").session_id == old
    assert chat.say(dm(), "still there?").session_id == old
    chat.clock.advance(hours=5)
    new = chat.say(dm(), "once more").session_id
    assert new != old
    assert chat(dm(), f"/resume {old}").session_id == old
    assert chat.say(dm(), "here I am").session_id == old


def test_what_still_runs_where_one_was_is_told(chat: Chat, dm: Source) -> None:
    ids = lisbon_and_more(chat, dm())
    chat.wait(ids["Now"])
    assert "still being answered there" in chat(dm(), "/resume Lisbon").text


# ---- /branch -----------------------------------------------------------------------------------------------


def test_a_branch_is_a_copy_that_goes_on_while_the_original_stays(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "hello", "hi")
    chat(dm(), "/title Lisbon")
    reply = chat(dm(), "/branch")
    assert chat.here(dm()).id == reply.session_id != said.session_id
    assert chat.here(dm()).title == "Lisbon #2"
    chat.say(dm(), "by train")
    assert chat.texts(said.session_id) == ["hello", "hi"]
    assert chat.texts(chat.here(dm()).id) == ["hello", "hi", "by train"]
    assert "**Lisbon #2**" in reply.text
    assert chat(dm(), "/restore").session_id == said.session_id


def test_a_branch_can_have_a_title_of_its_own_or_none(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello", "hi")
    chat(dm(), "/branch")
    assert chat.here(dm()).title is None
    chat(dm(), "/branch By train")
    assert chat.here(dm()).title == "By train"
    assert "is free" in chat.refused(dm(), "/branch by train")


def test_a_branch_keeps_what_was_chosen_for_the_conversation(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello", "hi")
    chat(dm(), "/model large")
    chat(dm(), "/busy reject")
    no = chat.number(str(chat(dm(), "/branch").session_id))
    assert chat.read(lambda tx: session_settings.read(tx, no)) == session_settings.SessionSettings(
        "large", BusyPolicy.REJECT
    )


def test_there_must_be_something_to_branch_from(chat: Chat, dm: Source) -> None:
    assert "nothing has been said" in chat.refused(dm(), "/branch")
    chat.say(dm(), "hello")
    chat(dm(), "/new")
    assert "empty" in chat.refused(dm(), "/branch")
