"""Taking back: turns, moves and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.domain.turn import TurnKind, TurnState
from palaver.storage import compactions, turns
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource

    Source = Callable[..., SessionSource]


def compact(chat: Chat, session_id: str, *, kept_from: int, messages: int) -> None:
    no, now = chat.number(session_id), to_micros(chat.clock.now())
    chat.write(lambda tx: compactions.compact(tx, no, "in short", kept_from=kept_from, messages=messages, now=now))
    chat.clock.advance(minutes=1)


def is_compacted(chat: Chat, session_id: str) -> bool:
    no = chat.number(session_id)
    return chat.read(lambda tx: compactions.current(tx, no)) is not None


# ---- /undo, /redo ------------------------------------------------------------------------------------------


def test_undo_hides_the_last_turn_and_redo_shows_it_again(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "one", "1", "two", "2")
    undone = chat(dm(), "/undo")
    assert undone.text.startswith("Undone: 1 turn, 2 messages, from “two” on.")
    assert "/redo" in undone.text
    assert chat.texts(said.session_id) == ["one", "1"]
    redone = chat(dm(), "/redo")
    assert redone.text.startswith("Back again: 1 turn, 2 messages, from “two” on.")
    assert "/undo" in redone.text
    assert chat.texts(said.session_id) == ["one", "1", "two", "2"]


def test_several_turns_are_undone_at_once_and_no_more_than_there_are(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "one", "1", "two", "2", "three", "3")
    assert "2 turns, 4 messages" in chat(dm(), "/undo 2").text
    chat(dm(), "/redo")
    reply = chat(dm(), "/undo 9")
    assert "3 turns, 6 messages" in reply.text
    assert "There were no more." in reply.text
    assert chat.texts(said.session_id) == []


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "1 2", "99999", "9" * 5000])
def test_what_is_no_number_of_turns_is_refused(chat: Chat, dm: Source, number: str) -> None:
    chat.say(dm(), "one", "1")
    assert "`/undo 2`" in chat.refused(dm(), f"/undo {number}")


def test_there_must_be_something_to_undo_or_redo(chat: Chat, dm: Source) -> None:
    assert "nothing has been said" in chat.refused(dm(), "/undo")
    chat.say(dm(), "one", "1")
    assert "nothing to redo" in chat.refused(dm(), "/redo")
    chat(dm(), "/undo")
    assert "no turn left" in chat.refused(dm(), "/undo")
    chat.say(dm(), "moved on")
    assert "moved on" in chat.refused(dm(), "/redo")


@pytest.mark.parametrize("command", ["/undo", "/redo", "/retry", "/compress"])
@pytest.mark.parametrize("running", [True, False])
def test_nothing_is_taken_back_while_the_agent_answers(chat: Chat, dm: Source, command: str, running: bool) -> None:
    said = chat.say(dm(), *"abcdefgh")
    chat(dm(), "/undo")
    chat.wait(said.session_id)
    if running:
        chat.work()
    assert "`/stop all`" in chat.refused(dm(), command)


@pytest.mark.parametrize("command", ["/redo", "/retry", "/restore"])
def test_a_command_that_stands_alone_takes_nothing_more(chat: Chat, dm: Source, command: str) -> None:
    chat.say(dm(), "one", "1")
    assert "stands alone" in chat.refused(dm(), f"{command} please")


# ---- /retry ------------------------------------------------------------------------------------------------


def test_retry_asks_the_same_message_again(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "one", "1")
    chat.store.record_user_message(dm(), {"role": "user", "content": [{"type": "text", "text": "two"}], "mood": "blue"})
    chat.store.append_to_transcript(said.session_id, ["2", {"role": "tool", "content": "x", "tool_call_id": "c"}])
    reply = chat(dm(), "/retry")
    assert "“two”" in reply.text
    last = chat.store.load_transcript(said.session_id)[-1]
    assert last == {"role": "user", "content": [{"type": "text", "text": "two"}], "mood": "blue"}
    assert len(chat.store.load_transcript(said.session_id)) == 3
    (turn,) = chat.open_turns(said.session_id)
    assert turn.id == reply.turn_id
    assert (turn.kind, turn.state, turn.person_id) == (
        TurnKind.ANSWER,
        TurnState.QUEUED,
        chat.store.person_for(dm()).id,
    )
    assert turn.input_seq == chat.log(said.session_id)[-1].seq


def test_the_answer_to_a_retry_goes_where_it_was_asked(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "one", "1")
    chat(dm(), "/retry")
    no = chat.number(said.session_id)
    row = chat.read(lambda tx: tx.one("SELECT address, reply_to FROM turn WHERE session_no = $1", no))
    assert row == ("telegram::ada", "m1")
    assert chat.read(lambda tx: turns.open_in(tx, no)).queued == 1


def test_there_must_be_something_to_retry(chat: Chat, dm: Source) -> None:
    assert "nothing has been said" in chat.refused(dm(), "/retry")
    chat.say(dm(), "one", "1")
    chat(dm(), "/undo")
    assert "asked again" in chat.refused(dm(), "/retry")


def test_a_question_far_behind_many_tool_results_is_found(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "far away")
    chat.store.append_to_transcript(said.session_id, [f"step {number}" for number in range(120)])
    chat(dm(), "/retry")
    assert chat.texts(said.session_id) == ["far away"]


# ---- /restore ----------------------------------------------------------------------------------------------


def test_restore_goes_back_one_move_after_the_other(chat: Chat, dm: Source) -> None:
    first = chat.say(dm(), "first", "1").session_id
    chat(dm(), "/new Second")
    second = chat.say(dm(), "second", "2").session_id
    chat(dm(), "/new")
    third = chat.say(dm(), "third").session_id
    reply = chat(dm(), "/restore")
    assert reply.session_id == chat.here(dm()).id == second
    assert reply.text.startswith("Back in **Second**.")
    assert f"`/resume {third}`" in reply.text
    assert "> you: “second”" in reply.text
    assert chat(dm(), "/restore").session_id == first
    assert "no earlier conversation" in chat.refused(dm(), "/restore")


def test_there_must_be_something_to_restore(chat: Chat, dm: Source) -> None:
    assert "no earlier conversation" in chat.refused(dm(), "/restore")
    chat.say(dm(), "hello")
    assert "no earlier conversation" in chat.refused(dm(), "/restore")


def test_restore_takes_back_whichever_came_last_a_summary_or_a_move(chat: Chat, dm: Source) -> None:
    first = chat.say(dm(), *"abcdefgh").session_id
    compact(chat, first, kept_from=6, messages=4)
    chat(dm(), "/new")
    assert chat(dm(), "/restore").session_id == first  # the move was later
    assert is_compacted(chat, first)
    reply = chat(dm(), "/restore")
    assert "summary of 4 messages is taken back" in reply.text
    assert not is_compacted(chat, first)
    chat(dm(), "/new")
    chat(dm(), f"/resume {first}")
    compact(chat, first, kept_from=6, messages=4)
    assert "summary" in chat(dm(), "/restore").text  # the summary was later
    assert chat.here(dm()).id == first


def test_moves_that_were_taken_back_already_do_not_hide_a_summary(chat: Chat, dm: Source) -> None:
    first = chat.say(dm(), "hello").session_id
    chat(dm(), "/new")
    second = chat.say(dm(), *"abcdefgh").session_id
    compact(chat, second, kept_from=6, messages=4)
    chat(dm(), f"/resume {first}")
    chat(dm(), "/new")
    assert [chat(dm(), "/restore").session_id for _ in range(2)] == [first, second]
    assert "summary" in chat(dm(), "/restore").text
    assert chat(dm(), "/restore").session_id == first


def test_a_summary_of_a_summary_is_taken_back_step_by_step(chat: Chat, dm: Source) -> None:
    first = chat.say(dm(), *"abcdefgh").session_id
    compact(chat, first, kept_from=4, messages=2)
    compact(chat, first, kept_from=6, messages=4)
    assert "holds again, of 2 messages" in chat(dm(), "/restore").text
    assert "as it was said" in chat(dm(), "/restore").text
    assert not is_compacted(chat, first)


# ---- /compress ---------------------------------------------------------------------------------------------


def test_compress_asks_for_a_summary(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), *"abcdef")
    reply = chat(dm(), "/compress the prices")
    assert "“the prices”" in reply.text
    assert "/restore" in reply.text
    (turn,) = chat.open_turns(said.session_id)
    assert (turn.id, turn.kind) == (reply.turn_id, TurnKind.COMPACT)
    facts = chat.read(lambda tx: tx.one("SELECT facts FROM turn WHERE id = $1", turn.id))
    assert facts == ('{"focus": "the prices"}',)
    assert chat.texts(said.session_id) == list("abcdef")


def test_too_little_is_not_compressed(chat: Chat, dm: Source) -> None:
    assert "nothing has been said" in chat.refused(dm(), "/compress")
    said = chat.say(dm(), *"abcde")
    assert "5 messages in this conversation; it takes 6" in chat.refused(dm(), "/compress")
    chat.store.append_to_transcript(said.session_id, "f")
    compact(chat, said.session_id, kept_from=4, messages=2)
    assert "4 messages since the last summary" in chat.refused(dm(), "/compress")


def test_a_focus_has_its_limits(chat: Chat, dm: Source) -> None:
    chat.say(dm(), *"abcdef")
    assert "500" in chat.refused(dm(), "/compress " + "x" * 501)
