"""Buttons run the command that the person who pressed could have typed, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.engines.base import Write
from palaver.sessions.inbound import ButtonPressed, Outcome
from support.inbox import answer, list_notices, list_rows, make_dm, make_group, make_inbox, say

if TYPE_CHECKING:
    from palaver import SessionSource, SessionStore
    from palaver.sessions.inbound import Receipt


def press(data: str, source: SessionSource | None = None, press_id: str = "p1") -> ButtonPressed:
    return ButtonPressed(source=source or make_dm(), message_id="100", data=data, press_id=press_id)


def run_turn(store: SessionStore, receipt: Receipt) -> None:
    start = "UPDATE turn SET state = 'running', lease_owner = 'test', lease_until = 1 WHERE id = $1"
    store.engine.run(Write(lambda tx: tx.execute(start, receipt.turn_id)))


def list_stops(store: SessionStore) -> list[str | None]:
    return [stop for (stop,) in list_rows(store, "SELECT stop_request FROM turn ORDER BY no")]


@pytest.mark.both_engines
async def test_stop(store: SessionStore) -> None:
    inbox = make_inbox(store)
    question = await say(inbox, make_dm(), "hi", "1")
    run_turn(store, question)
    receipt = await inbox.accept(press(f"stop:{question.turn_id}"))
    assert receipt.outcome is Outcome.COMMAND
    assert receipt.reply is not None
    assert receipt.reply.startswith("Stopping.")
    assert list_stops(store) == ["stop"]
    assert list_notices(store) == []  # the adapter shows the reply
    again = await inbox.accept(press(f"stop:{question.turn_id}"))
    assert (again.outcome, again.reply) == (Outcome.DUPLICATE, receipt.reply)


async def test_an_old_stop_button_does_not_stop_the_next_answer(store: SessionStore) -> None:
    inbox = make_inbox(store)
    first = await say(inbox, make_dm(), "hi", "1")
    answer(store, first)
    second = await say(inbox, make_dm(), "more", "2")
    run_turn(store, second)
    receipt = await inbox.accept(press(f"stop:{first.turn_id}"))
    assert (receipt.outcome, receipt.reply) == (Outcome.REJECTED, "This answer is already complete.")
    assert list_stops(store) == [None, None]


@pytest.mark.both_engines
@pytest.mark.parametrize("kind", ["retry", "rerun"])
async def test_retry_asks_the_last_message_again_once(store: SessionStore, kind: str) -> None:
    inbox = make_inbox(store)
    question = await say(inbox, make_dm(), "hi", "1")
    answer(store, question)
    data = f"retry:{question.turn_id}" if kind == "retry" else f"rerun:{question.session_id}:{question.seq}"
    receipt = await inbox.accept(press(data))
    assert receipt.outcome is Outcome.COMMAND
    assert list_rows(store, "SELECT id, address, reply_to FROM turn WHERE state = 'queued'") == [
        (receipt.turn_id, "telegram::ada", None)
    ]
    assert (await inbox.accept(press(data))).outcome is Outcome.DUPLICATE
    other = await inbox.accept(press(data, press_id="p2"))
    assert other.outcome is Outcome.REJECTED
    assert len(list_rows(store, "SELECT id FROM turn")) == 2


async def test_buttons_of_earlier_messages_do_nothing(store: SessionStore) -> None:
    inbox = make_inbox(store)
    first = await say(inbox, make_dm(), "hi", "1")
    answer(store, first)
    answer(store, await say(inbox, make_dm(), "more", "2"))
    for number, data in enumerate((f"retry:{first.turn_id}", f"rerun:{first.session_id}:{first.seq}")):
        receipt = await inbox.accept(press(data, press_id=str(number)))
        assert receipt.outcome is Outcome.REJECTED
        assert "continued" in (receipt.reply or "")


@pytest.mark.parametrize("source", [make_dm("eve"), make_group("eve"), make_group("ada")], ids=["dm", "group", "shown"])
async def test_people_cannot_press_a_button_of_another_conversation(store: SessionStore, source: SessionSource) -> None:
    """Also not the person themselves, from a group where everybody would read what their conversation is about."""
    inbox = make_inbox(store)
    for who in ("ada", "eve"):
        store.get_or_create_person(make_dm(who))
    question = await say(inbox, make_dm(), "hi", "1")
    run_turn(store, question)
    for data in (f"stop:{question.turn_id}", f"rerun:{question.session_id}:{question.seq}"):
        receipt = await inbox.accept(press(data, source, press_id=data))
        assert receipt.outcome is Outcome.REJECTED
        assert receipt.reply
    assert list_stops(store) == [None]


async def test_a_stranger_is_refused(store: SessionStore) -> None:
    question = await say(make_inbox(store), make_dm(), "hi", "1")
    run_turn(store, question)
    closed = make_inbox(store, open_platforms=frozenset())
    receipt = await closed.accept(press(f"stop:{question.turn_id}", make_dm("eve")))
    assert (receipt.outcome, receipt.reply) == (Outcome.REJECTED, "You don't have access to this agent.")
    assert list_stops(store) == [None]


@pytest.mark.parametrize("data", ["", "stop", "stop:", "nonsense:1", "rerun:x", "rerun:x:y", "rerun::1", "rerun:a:1:2"])
async def test_unknown_buttons_are_refused(store: SessionStore, data: str) -> None:
    store.get_or_create_person(make_dm())
    assert (await make_inbox(store).accept(press(data))).outcome is Outcome.REJECTED
