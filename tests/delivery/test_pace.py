"""The pace of an account: per chat, altogether, for edits, and pauses that the platform asks for."""

from __future__ import annotations

import pytest

from palaver.delivery import pace
from palaver.delivery.model import Capabilities, Pace
from palaver.delivery.pace import Pacer
from palaver.platforms.telegram.manifest import CAPABILITIES as TELEGRAM


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def test_without_limits_nothing_waits_except_edits(time: Time) -> None:
    pacer = Pacer(Capabilities(), time)
    for _ in range(100):
        assert pacer.compute_wait("a") == 0
        pacer.take("a")
    pacer.take_edit("a")
    assert (pacer.compute_wait("a"), pacer.compute_edit_wait("a"), pacer.compute_edit_wait("b")) == (0, 1.5, 0)


def test_a_chat_that_waits_does_not_delay_another(time: Time) -> None:
    pacer = Pacer(Capabilities(pace_per_chat=Pace(2.0)), time)
    pacer.take("a")
    assert (pacer.compute_wait("a"), pacer.compute_wait("b")) == (2.0, 0)
    time.now += 1.5
    assert pacer.compute_wait("a") == 0.5
    time.now += 0.5
    assert pacer.compute_wait("a") == 0


def test_a_burst_is_used_up_and_comes_back_one_by_one(time: Time) -> None:
    pacer = Pacer(Capabilities(pace_per_account=Pace(5.0, burst=3)), time)
    for chat in ("a", "b", "c"):
        assert pacer.compute_wait(chat) == 0
        pacer.take(chat)
    assert pacer.compute_wait("d") == 5.0
    time.now += 5
    assert pacer.compute_wait("d") == 0
    pacer.take("d")
    assert pacer.compute_wait("d") == 5.0
    time.now += 1000
    assert [_take(pacer, "a") for _ in range(4)] == [0, 0, 0, 5.0]


def test_an_edit_leaves_room_for_a_message(time: Time) -> None:
    pacer = Pacer(Capabilities(pace_per_account=Pace(5.0, burst=3), edit_pace=Pace(0.0)), time)
    assert pacer.compute_edit_wait("a") == 0
    pacer.take_edit("a")
    assert pacer.compute_edit_wait("a") == 0
    pacer.take_edit("a")
    assert (pacer.compute_edit_wait("a"), pacer.compute_wait("a")) == (5.0, 0)


def test_drafts_grow_each_second_and_hold_up_no_message(time: Time) -> None:
    pacer = Pacer(TELEGRAM, time)
    for _ in range(60):
        assert pacer.compute_edit_wait("a", is_draft=True) == 0
        pacer.take_edit("a", is_draft=True)
        assert (pacer.compute_edit_wait("a", is_draft=True), pacer.compute_wait("a")) == (1.0, 0)
        assert pacer.compute_edit_wait("b", is_draft=True) == 0
        time.now += 1
    pacer.take("a")
    assert pacer.compute_edit_wait("a", is_draft=True) == 1.0, "a draft waits for the messages of its chat"
    for number in range(28):
        pacer.take_edit(f"chat {number}", is_draft=True)
    assert 0 < pacer.compute_edit_wait("z", is_draft=True) < 0.1, "all chats share the pace of the account"
    assert pacer.compute_wait("z") == 0, "the last place is kept for a message"


def test_a_pause_holds_for_all_chats(time: Time) -> None:
    pacer = Pacer(Capabilities(), time)
    pacer.pause(30)
    pacer.pause(10)
    assert (pacer.pause_seconds, pacer.compute_wait("a"), pacer.compute_edit_wait("b")) == (30, 30, 30)
    time.now += 31
    assert (pacer.pause_seconds, pacer.compute_wait("a")) == (0, 0)


def test_memory_is_bounded(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_REMEMBERED_CHATS", 3)
    pacer = Pacer(Capabilities(pace_per_chat=Pace(100.0)), time)
    for chat in "abcd":
        pacer.take(chat)
    assert [pacer.compute_wait(chat) for chat in "bcd"] == [100, 100, 100]
    assert pacer.compute_wait("a") == 0


def _take(pacer: Pacer, chat_id: str) -> float:
    wait = pacer.compute_wait(chat_id)
    pacer.take(chat_id)
    return wait
