"""Undoing exchanges, moves and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.clock import to_micros
from palaver.sessions import turns_table as turns, versions_table as compactions
from palaver.sessions.turn import TurnKind, TurnState

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource

    Source = Callable[..., SessionSource]


def compact(chat: Chat, session_id: str, *, kept_from: int, messages: int) -> None:
    no, now = chat.get_session_no(session_id), to_micros(chat.clock.now())
    new = compactions.NewCompaction(
        summary="in short", first_kept_seq=kept_from, last_replaced_seq=kept_from - 1, message_count=messages
    )
    chat.write(lambda tx: compactions.create(tx, no, new, now))
    chat.clock.advance(minutes=1)


def is_compacted(chat: Chat, session_id: str) -> bool:
    no = chat.get_session_no(session_id)
    return chat.read(lambda tx: compactions.find_current(tx, no)) is not None


# ---- /undo, /redo ------------------------------------------------------------------------------------------


@pytest.mark.both_engines
def test_undo_hides_the_last_exchange_and_redo_brings_it_back(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "one", "1", "two", "2")
    undone = chat.run(dm(), "/undo")
    assert undone.text.startswith("Undone: 1 exchange (2 messages), starting with “two”.")
    assert "/redo" in undone.text
    assert chat.load_texts(recorded.session_id) == ["one", "1"]
    redone = chat.run(dm(), "/redo")
    assert redone.text.startswith("Redone: 1 exchange (2 messages), starting with “two”.")
    assert "/undo" in redone.text
    assert chat.load_texts(recorded.session_id) == ["one", "1", "two", "2"]


def test_undo_takes_a_number_and_stops_at_the_beginning(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "one", "1", "two", "2", "three", "3")
    assert "2 exchanges (4 messages)" in chat.run(dm(), "/undo 2").text
    chat.run(dm(), "/redo")
    reply = chat.run(dm(), "/undo 9")
    assert "3 exchanges (6 messages)" in reply.text
    assert "There were no more." in reply.text
    assert chat.load_texts(recorded.session_id) == []


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "1 2", "99999", "9" * 5000])
def test_undo_rejects_what_is_no_number_of_exchanges(chat: Chat, dm: Source, number: str) -> None:
    chat.add_messages(dm(), "one", "1")
    assert "`/undo 2`" in chat.expect_error(dm(), f"/undo {number}")


def test_undo_and_redo_need_something_to_change(chat: Chat, dm: Source) -> None:
    assert "no messages here yet" in chat.expect_error(dm(), "/undo")
    chat.add_messages(dm(), "one", "1")
    assert "nothing to redo" in chat.expect_error(dm(), "/redo")
    chat.run(dm(), "/undo")
    assert "nothing to undo" in chat.expect_error(dm(), "/undo")
    chat.add_messages(dm(), "moved on")
    assert "has continued since" in chat.expect_error(dm(), "/redo")


@pytest.mark.parametrize("command", ["/undo", "/redo", "/retry", "/compress"])
@pytest.mark.parametrize("running", [True, False])
def test_history_cannot_be_changed_while_the_agent_is_responding(
    chat: Chat, dm: Source, command: str, running: bool
) -> None:
    recorded = chat.add_messages(dm(), *"abcdefgh")
    chat.run(dm(), "/undo")
    chat.queue_turn(recorded.session_id)
    if running:
        chat.claim_turns()
    assert "`/stop all`" in chat.expect_error(dm(), command)


@pytest.mark.parametrize("command", ["/redo", "/retry", "/restore"])
def test_commands_without_arguments_reject_them(chat: Chat, dm: Source, command: str) -> None:
    chat.add_messages(dm(), "one", "1")
    assert "doesn't take arguments" in chat.expect_error(dm(), f"{command} please")


# ---- /retry ------------------------------------------------------------------------------------------------


def test_retry_asks_the_same_message_again(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "one", "1")
    chat.store.record_user_message(dm(), {"role": "user", "content": [{"type": "text", "text": "two"}], "mood": "blue"})
    chat.store.append_to_transcript(recorded.session_id, ["2", {"role": "tool", "content": "x", "tool_call_id": "c"}])
    reply = chat.run(dm(), "/retry")
    assert "“two”" in reply.text
    last = chat.store.load_transcript(recorded.session_id)[-1]
    assert last == {"role": "user", "content": [{"type": "text", "text": "two"}], "mood": "blue"}
    assert len(chat.store.load_transcript(recorded.session_id)) == 3
    (turn,) = chat.list_open_turns(recorded.session_id)
    assert turn.id == reply.turn_id
    assert (turn.kind, turn.state, turn.person_id) == (
        TurnKind.ANSWER,
        TurnState.QUEUED,
        chat.store.get_or_create_person(dm()).id,
    )
    assert turn.input_seq == chat.load_events(recorded.session_id)[-1].seq


@pytest.mark.both_engines
def test_the_answer_to_a_retry_goes_to_the_chat_it_was_asked_in(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "one", "1")
    chat.run(dm(), "/retry")
    no = chat.get_session_no(recorded.session_id)
    row = chat.read(lambda tx: tx.fetch_one("SELECT address, reply_to FROM turn WHERE session_no = $1", no))
    assert row == ("telegram::ada", "m1")
    assert chat.read(lambda tx: turns.load_open(tx, no)).queued_count == 1


def test_retry_needs_a_message(chat: Chat, dm: Source) -> None:
    assert "no messages here yet" in chat.expect_error(dm(), "/retry")
    chat.add_messages(dm(), "one", "1")
    chat.run(dm(), "/undo")
    assert "no message here to retry" in chat.expect_error(dm(), "/retry")


@pytest.mark.both_engines
def test_retry_finds_a_message_far_behind_many_answers(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "far away")
    chat.store.append_to_transcript(recorded.session_id, [f"step {number}" for number in range(120)])
    chat.run(dm(), "/retry")
    assert chat.load_texts(recorded.session_id) == ["far away"]


# ---- /restore ----------------------------------------------------------------------------------------------


def test_restore_goes_back_one_move_at_a_time(chat: Chat, dm: Source) -> None:
    first = chat.add_messages(dm(), "first", "1").session_id
    chat.run(dm(), "/new Second")
    second = chat.add_messages(dm(), "second", "2").session_id
    chat.run(dm(), "/new")
    third = chat.add_messages(dm(), "third").session_id
    reply = chat.run(dm(), "/restore")
    assert reply.session_id == chat.get_session(dm()).id == second
    assert reply.text.startswith("Back in **Second**.")
    assert f"`/resume {third}`" in reply.text
    assert "> you: “second”" in reply.text
    assert chat.run(dm(), "/restore").session_id == first
    assert "no earlier conversation" in chat.expect_error(dm(), "/restore")


def test_restore_needs_an_earlier_conversation(chat: Chat, dm: Source) -> None:
    assert "no earlier conversation" in chat.expect_error(dm(), "/restore")
    chat.add_messages(dm(), "hello")
    assert "no earlier conversation" in chat.expect_error(dm(), "/restore")


def test_restore_reverts_the_last_move_or_summary_whichever_is_newer(chat: Chat, dm: Source) -> None:
    first = chat.add_messages(dm(), *"abcdefgh").session_id
    compact(chat, first, kept_from=6, messages=4)
    chat.run(dm(), "/new")
    assert chat.run(dm(), "/restore").session_id == first  # the move was later
    assert is_compacted(chat, first)
    reply = chat.run(dm(), "/restore")
    assert reply.text.startswith("Removed the summary of 4 messages.")
    assert not is_compacted(chat, first)
    chat.run(dm(), "/new")
    chat.run(dm(), f"/resume {first}")
    compact(chat, first, kept_from=6, messages=4)
    assert "summary" in chat.run(dm(), "/restore").text  # the summary was later
    assert chat.get_session(dm()).id == first


@pytest.mark.both_engines
def test_moves_that_were_reverted_do_not_hide_a_summary(chat: Chat, dm: Source) -> None:
    first = chat.add_messages(dm(), "hello").session_id
    chat.run(dm(), "/new")
    second = chat.add_messages(dm(), *"abcdefgh").session_id
    compact(chat, second, kept_from=6, messages=4)
    chat.run(dm(), f"/resume {first}")
    chat.run(dm(), "/new")
    assert [chat.run(dm(), "/restore").session_id for _ in range(2)] == [first, second]
    assert "summary" in chat.run(dm(), "/restore").text
    assert chat.run(dm(), "/restore").session_id == first


def test_restore_removes_one_summary_at_a_time(chat: Chat, dm: Source) -> None:
    first = chat.add_messages(dm(), *"abcdefgh").session_id
    compact(chat, first, kept_from=4, messages=2)
    compact(chat, first, kept_from=6, messages=4)
    assert "the earlier summary of 2 messages" in chat.run(dm(), "/restore").text
    assert "sees all messages again" in chat.run(dm(), "/restore").text
    assert not is_compacted(chat, first)


# ---- /compress ---------------------------------------------------------------------------------------------


@pytest.mark.both_engines
def test_compress_queues_a_summary(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), *"abcdef")
    reply = chat.run(dm(), "/compress the prices")
    assert "“the prices”" in reply.text
    assert "/restore" in reply.text
    (turn,) = chat.list_open_turns(recorded.session_id)
    assert (turn.id, turn.kind) == (reply.turn_id, TurnKind.COMPACT)
    facts = chat.read(lambda tx: tx.fetch_one("SELECT facts FROM turn WHERE id = $1", turn.id))
    assert facts == ('{"focus": "the prices"}',)
    assert chat.load_texts(recorded.session_id) == list("abcdef")


def test_compress_needs_enough_messages(chat: Chat, dm: Source) -> None:
    assert "no messages here yet" in chat.expect_error(dm(), "/compress")
    recorded = chat.add_messages(dm(), *"abcde")
    assert "5 messages in this conversation, at least 6 needed" in chat.expect_error(dm(), "/compress")
    chat.store.append_to_transcript(recorded.session_id, "f")
    compact(chat, recorded.session_id, kept_from=4, messages=2)
    assert "4 messages since the last summary" in chat.expect_error(dm(), "/compress")


def test_the_focus_of_a_summary_has_a_maximum_length(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), *"abcdef")
    assert "500" in chat.expect_error(dm(), "/compress " + "x" * 501)
