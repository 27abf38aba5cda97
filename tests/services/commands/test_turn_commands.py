"""Stopping the agent, and what waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.domain.turn import StopRequest, TurnState
from palaver.storage import turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource

    Source = Callable[..., SessionSource]


def running_and_two_waiting(chat: Chat, source: SessionSource) -> str:
    said = chat.say(source, "first")
    chat.wait(said.session_id, seq=said.seq)
    chat.work()
    for text in ("second", "third"):
        said = chat.say(source, text)
        chat.wait(said.session_id, seq=said.seq)
    return said.session_id


def wishes(chat: Chat, session_id: str) -> list[str | None]:
    no = chat.number(session_id)
    return [
        row[0] for row in chat.read(lambda tx: tx.all("SELECT wish FROM turn WHERE session_no = $1 ORDER BY no", no))
    ]


def test_stop_ends_what_runs_and_leaves_what_waits(chat: Chat, dm: Source) -> None:
    session_id = running_and_two_waiting(chat, dm())
    reply = chat(dm(), "/stop")
    assert reply.text.startswith("Stopping")
    assert "2 messages" in reply.text
    assert reply.turn_id == chat.open_turns(session_id)[0].id
    assert wishes(chat, session_id) == [StopRequest.STOP, None, None]


def test_stop_all_drops_what_waits_too(chat: Chat, dm: Source) -> None:
    session_id = running_and_two_waiting(chat, dm())
    reply = chat(dm(), "/stop ALL")
    assert "Dropped: 2 waiting messages" in reply.text
    (left,) = chat.open_turns(session_id)
    assert left.state is TurnState.RUNNING
    assert chat.texts(session_id) == ["first", "second", "third"]


def test_nothing_to_stop_is_said_to_be_so(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "hello", "hi")
    assert chat(dm(), "/stop").text == "Nothing is running here."
    chat.wait(said.session_id)
    assert "1 message, answered next" in chat(dm(), "/stop").text
    assert chat.open_turns(said.session_id)


@pytest.mark.parametrize("command", ["/stop everything", "/stop 1"])
def test_stop_takes_only_all(chat: Chat, dm: Source, command: str) -> None:
    running_and_two_waiting(chat, dm())
    assert "`/stop all`" in chat.refused(dm(), command)


@pytest.mark.parametrize("command", ["/stop", "/queue"])
def test_where_nothing_was_said_nothing_runs(chat: Chat, dm: Source, command: str) -> None:
    assert "nothing has been said" in chat.refused(dm(), command)


def test_stop_does_not_reach_into_other_conversations(chat: Chat, dm: Source) -> None:
    session_id = running_and_two_waiting(chat, dm("bob"))
    chat.say(dm("ada"), "hello")
    assert chat(dm("ada"), "/stop all").text == "Nothing is running here."
    assert wishes(chat, session_id) == [None, None, None]
    assert len(chat.open_turns(session_id)) == 3


def test_queue_shows_what_waits_in_order(chat: Chat, dm: Source) -> None:
    session_id = running_and_two_waiting(chat, dm())
    reply = chat(dm(), "/queue")
    assert "1. “second”, just now\n2. “third”, just now" in reply.text
    assert reply.facts["waiting"] == [turn.id for turn in chat.open_turns(session_id)[1:]]


def test_a_summary_that_waits_is_called_one(chat: Chat, dm: Source) -> None:
    chat.say(dm(), *"abcdef")
    chat(dm(), "/compress")
    assert "1. a summary, asked for just now" in chat(dm(), "/queue").text


def test_queue_clear_drops_what_waits_and_not_what_runs(chat: Chat, dm: Source) -> None:
    session_id = running_and_two_waiting(chat, dm())
    assert "Dropped: 2 waiting messages" in chat(dm(), "/queue clear").text
    assert [turn.state for turn in chat.open_turns(session_id)] == [TurnState.RUNNING]
    assert chat(dm(), "/queue clear").text == "Nothing was waiting here."
    assert "Nothing waits here" in chat(dm(), "/queue").text
    no = chat.number(session_id)
    dropped = [turn for _, turn in chat.read(lambda tx: turns.newer(tx, no, 0)) if turn.state is TurnState.INTERRUPTED]
    assert len(dropped) == 2
    assert all(turn.error for turn in dropped)


def test_steer_needs_a_text(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    assert "`/steer text`" in chat.refused(dm(), "/steer")
