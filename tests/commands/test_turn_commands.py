"""Stopping the agent, and the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.sessions import turns_table as turns
from palaver.sessions.turn import StopRequest, TurnState

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource

    Source = Callable[..., SessionSource]


def start_one_turn_and_queue_two(chat: Chat, source: SessionSource) -> str:
    """Return the id of a conversation with a running turn and two queued ones."""
    recorded = chat.add_messages(source, "first")
    chat.queue_turn(recorded.session_id, seq=recorded.seq)
    chat.claim_turns()
    for text in ("second", "third"):
        recorded = chat.add_messages(source, text)
        chat.queue_turn(recorded.session_id, seq=recorded.seq)
    return recorded.session_id


def list_stop_requests(chat: Chat, session_id: str) -> list[str | None]:
    no = chat.get_session_no(session_id)
    sql = "SELECT stop_request FROM turn WHERE session_no = $1 ORDER BY no"
    return [request for (request,) in chat.read(lambda tx: tx.fetch_all(sql, no))]


def test_stop_stops_the_running_turn_and_keeps_the_queue(chat: Chat, dm: Source) -> None:
    session_id = start_one_turn_and_queue_two(chat, dm())
    reply = chat.run(dm(), "/stop")
    assert reply.text.startswith("Stopping")
    assert "2 messages" in reply.text
    assert reply.turn_id == chat.list_open_turns(session_id)[0].id
    assert list_stop_requests(chat, session_id) == [StopRequest.STOP, None, None]


def test_stop_all_clears_the_queue_too(chat: Chat, dm: Source) -> None:
    session_id = start_one_turn_and_queue_two(chat, dm())
    reply = chat.run(dm(), "/stop ALL")
    assert "Cleared 2 queued messages." in reply.text
    (left,) = chat.list_open_turns(session_id)
    assert left.state is TurnState.RUNNING
    assert chat.load_texts(session_id) == ["first", "second", "third"]


def test_stop_says_if_nothing_is_running(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "hello", "hi")
    assert chat.run(dm(), "/stop").text == "Nothing is running here."
    chat.queue_turn(recorded.session_id)
    assert "1 message still queued, to be answered next." in chat.run(dm(), "/stop").text
    assert chat.list_open_turns(recorded.session_id)


@pytest.mark.parametrize("command", ["/stop everything", "/stop 1"])
def test_stop_takes_only_all(chat: Chat, dm: Source, command: str) -> None:
    start_one_turn_and_queue_two(chat, dm())
    assert "`/stop all`" in chat.expect_error(dm(), command)


@pytest.mark.parametrize("command", ["/stop", "/queue"])
def test_stop_and_queue_need_a_conversation(chat: Chat, dm: Source, command: str) -> None:
    assert "no messages here yet" in chat.expect_error(dm(), command)


def test_stop_leaves_other_conversations_alone(chat: Chat, dm: Source) -> None:
    session_id = start_one_turn_and_queue_two(chat, dm("bob"))
    chat.add_messages(dm("ada"), "hello")
    assert chat.run(dm("ada"), "/stop all").text == "Nothing is running here."
    assert list_stop_requests(chat, session_id) == [None, None, None]
    assert len(chat.list_open_turns(session_id)) == 3


def test_queue_lists_queued_messages_in_order(chat: Chat, dm: Source) -> None:
    session_id = start_one_turn_and_queue_two(chat, dm())
    reply = chat.run(dm(), "/queue")
    assert "1. “second”, just now\n2. “third”, just now" in reply.text
    assert reply.data["queued_turn_ids"] == [turn.id for turn in chat.list_open_turns(session_id)[1:]]


def test_queue_lists_a_queued_summary(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), *"abcdef")
    chat.run(dm(), "/compress")
    assert "1. a summary, requested just now" in chat.run(dm(), "/queue").text


def test_queue_clear_keeps_the_running_turn(chat: Chat, dm: Source) -> None:
    session_id = start_one_turn_and_queue_two(chat, dm())
    assert "Cleared 2 queued messages." in chat.run(dm(), "/queue clear").text
    assert [turn.state for turn in chat.list_open_turns(session_id)] == [TurnState.RUNNING]
    assert chat.run(dm(), "/queue clear").text == "The queue is already empty."
    assert "The queue is empty" in chat.run(dm(), "/queue").text
    no = chat.get_session_no(session_id)
    dropped = [
        turn for _, turn in chat.read(lambda tx: turns.list_after(tx, no, 0)) if turn.state is TurnState.INTERRUPTED
    ]
    assert len(dropped) == 2
    assert all(turn.error for turn in dropped)


def test_steer_needs_a_text(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    assert "`/steer text`" in chat.expect_error(dm(), "/steer")
