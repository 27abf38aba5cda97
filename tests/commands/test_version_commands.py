"""Asking again, editing in place, and choosing a version, by command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import InvalidInput, NotAllowed, NothingToDo, SessionNotFound
from palaver.sessions import log_table as events
from palaver.turns.commands.versions import choose_version, edit_message, retry_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource

    Source = Callable[..., SessionSource]


def end_turns(chat: Chat) -> None:
    chat.write(lambda tx: tx.execute("UPDATE turn SET state = 'done', ended_at = 1 WHERE state = 'queued'"))


def answer(chat: Chat, session_id: str, text: str) -> None:
    """Answer the queued turn."""
    end_turns(chat)
    chat.store.append_to_transcript(session_id, text)


def find_seq(chat: Chat, session_id: str, text: str) -> int:
    no = chat.get_session_no(session_id)
    log = chat.read(lambda tx: events.list_messages(tx, no))
    return next(event.seq for event in log if event.message is not None and event.message.text == text)


def test_retry_keeps_the_answer_and_version_goes_back_to_it(chat: Chat, dm: Source) -> None:
    session_id = chat.add_messages(dm(), "one", "1", "two", "2").session_id
    reply = chat.run(dm(), "/retry")
    assert reply.turn_id is not None
    assert (reply.data["version"], reply.data["versions"]) == (2, 2)
    assert "/version previous" in reply.text
    answer(chat, session_id, "2 again")
    assert chat.load_texts(session_id) == ["one", "1", "two", "2 again"]
    back = chat.run(dm(), "/version 1")
    assert back.text.startswith("Version 1 of 2 is now in use.")
    assert "> agent: “2”" in back.text
    assert chat.load_texts(session_id) == ["one", "1", "two", "2"]
    chat.run(dm(), "/version next")
    assert chat.load_texts(session_id) == ["one", "1", "two", "2 again"]


@pytest.mark.both_engines
def test_versions_lists_them_and_says_which_is_in_use(chat: Chat, dm: Source) -> None:
    session_id = chat.add_messages(dm(), "one", "1").session_id
    chat.run(dm(), "/retry")
    answer(chat, session_id, "1 again")
    reply = chat.run(dm(), "/versions")
    assert reply.text.startswith("Version 2 of 2 is in use:")
    assert "1. “1”" in reply.text
    assert "2. **in use** “1 again”" in reply.text
    assert [each["is_chosen"] for each in reply.data["list"]] == [False, True]


def test_why_says_which_version_the_agent_sees(chat: Chat, dm: Source) -> None:
    session_id = chat.add_messages(dm(), "one *and* two", "1").session_id
    assert "version" not in chat.run(dm(), "/why").text
    chat.run(dm(), "/retry")
    answer(chat, session_id, "1 again")
    assert "The agent sees version 2 of 2 of “one \\*and\\* two” and its answer." in chat.run(dm(), "/why").text
    chat.run(dm(), "/version 1")
    assert "The agent sees version 1 of 2" in chat.run(dm(), "/why").text


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("/version", "`/version next`"),
        ("/version x", "`/version next`"),
        ("/version 0", "`/version next`"),
        ("/version " + "9" * 5000, "`/version next`"),
        ("/version 3", "from 1 to 2"),
        ("/version 2", "already in use"),
        ("/version next", "already the last"),
        ("/versions 2", "doesn't take arguments"),
    ],
)
def test_a_version_that_cannot_be_chosen_is_explained(chat: Chat, dm: Source, command: str, text: str) -> None:
    session_id = chat.add_messages(dm(), "one", "1").session_id
    chat.run(dm(), "/retry")
    answer(chat, session_id, "1 again")
    assert text in chat.expect_error(dm(), command)


def test_without_versions_there_is_nothing_to_choose(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "one", "1")
    assert "/retry" in chat.expect_error(dm(), "/versions")
    assert "/retry" in chat.expect_error(dm(), "/version 1")


def test_no_version_is_chosen_while_the_agent_answers(chat: Chat, dm: Source) -> None:
    session_id = chat.add_messages(dm(), "one", "1").session_id
    chat.run(dm(), "/retry")
    assert "still responding" in chat.expect_error(dm(), "/version 1")
    answer(chat, session_id, "1 again")
    chat.run(dm(), "/version 1")


def test_an_earlier_message_is_asked_again_and_edited_in_place(chat: Chat, dm: Source) -> None:
    session_id = chat.add_messages(dm(), "one", "1", "two", "2").session_id
    first = find_seq(chat, session_id, "one")
    edited = chat.run_call(dm(), edit_message.call(seq=first, content="one, please"), session_id=session_id)
    answer(chat, session_id, "1, of course")
    assert chat.load_texts(session_id) == ["one, please", "1, of course"]
    retried = chat.run_call(dm(), retry_turn.call(seq=edited.data["seq"]), session_id=session_id)
    answer(chat, session_id, "again")
    assert (retried.data["version"], retried.data["versions"]) == (3, 3)
    call = choose_version.call(number=1, seq=retried.data["seq"])
    assert chat.run_call(dm(), call, session_id=session_id).data["seq"] == first
    assert chat.load_texts(session_id) == ["one", "1", "two", "2"]


def test_only_the_author_edits_a_message(chat: Chat, dm: Source) -> None:
    session_id = chat.add_messages(dm(), "one", "1").session_id
    first = find_seq(chat, session_id, "one")
    with pytest.raises((NotAllowed, SessionNotFound)):
        chat.run_call(dm("bob"), edit_message.call(seq=first, content="mine"), session_id=session_id)
    assert chat.load_texts(session_id) == ["one", "1"]


def test_a_person_without_access_sees_and_chooses_no_versions(chat: Chat, dm: Source) -> None:
    session_id = chat.add_messages(dm(), "one", "1").session_id
    chat.run(dm(), "/retry")
    answer(chat, session_id, "1 again")
    seq = find_seq(chat, session_id, "one")
    for call in (choose_version.call(number=1, seq=seq), retry_turn.call(seq=seq)):
        with pytest.raises(SessionNotFound):
            chat.run_call(dm("bob"), call, session_id=session_id)
    assert chat.load_texts(session_id) == ["one", "1 again"]


def test_a_message_that_cannot_be_edited_is_named(chat: Chat, dm: Source) -> None:
    session_id = chat.add_messages(dm(), "one", "1").session_id
    answer_seq = find_seq(chat, session_id, "1")
    for seq, content in ((answer_seq, "x"), (999, "x"), (find_seq(chat, session_id, "one"), "x" * 200_001)):
        with pytest.raises(InvalidInput):
            chat.run_call(dm(), edit_message.call(seq=seq, content=content), session_id=session_id)
    with pytest.raises(NothingToDo):
        chat.run_call(dm(), choose_version.call(number=1, seq=answer_seq), session_id=session_id)
