"""What follows from the outcome of one part of a delivery."""

from __future__ import annotations

import pytest

from palaver.core.errors import (
    ChatMovedAway,
    DeliveryError,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.ids import new_delivery_id
from palaver.sessions.delivery import (
    DeliveryState as State,
    NextStep,
    decide_part_outcome,
    format_part_key,
    parse_part_key,
)

MOVED = ChatMovedAway(new_chat_id="-100")


@pytest.mark.parametrize(
    ("error", "is_edit", "is_resolvable", "is_last_attempt", "state", "next_step"),
    [
        (None, False, False, False, State.SENT, NextStep.CONTINUE),
        (None, True, False, True, State.SENT, NextStep.CONTINUE),
        (SendRetryable(), False, False, False, State.PENDING, NextStep.RETRY),
        (SendRetryable(), True, True, True, State.FAILED, NextStep.FAIL),
        (SendRejected(), False, True, False, State.FAILED, NextStep.FAIL),
        (SendRejected(), True, False, False, State.PENDING, NextStep.SEND_AS_NEW),
        (SendRejected(), True, False, True, State.PENDING, NextStep.SEND_AS_NEW),
        (TargetUnreachable(), False, False, False, State.FAILED, NextStep.FAIL),
        (TargetUnreachable(), True, False, False, State.FAILED, NextStep.FAIL),
        (MOVED, False, False, False, State.PENDING, NextStep.MOVE),
        (MOVED, True, False, False, State.PENDING, NextStep.MOVE),
        (MOVED, False, False, True, State.FAILED, NextStep.FAIL),
        (SendUncertain(), False, False, False, State.UNCERTAIN, NextStep.CONTINUE),
        (SendUncertain(), False, True, False, State.PENDING, NextStep.RETRY),
        (SendUncertain(), False, True, True, State.UNCERTAIN, NextStep.CONTINUE),
        (SendUncertain(), True, False, False, State.PENDING, NextStep.RETRY),
        (SendUncertain(), True, False, True, State.UNCERTAIN, NextStep.CONTINUE),
    ],
)
def test_the_outcome_of_a_part_decides_its_state_and_the_next_step(
    error: DeliveryError | None,
    is_edit: bool,
    is_resolvable: bool,
    is_last_attempt: bool,
    state: State,
    next_step: NextStep,
) -> None:
    assert decide_part_outcome(
        error, is_edit=is_edit, is_resolvable=is_resolvable, is_last_attempt=is_last_attempt
    ) == (state, next_step)


def test_the_key_of_a_part_is_short_and_leads_back_to_it() -> None:
    delivery_id = new_delivery_id()
    key = format_part_key(delivery_id, 100)
    assert len(key) <= 25
    assert parse_part_key(key) == (delivery_id, 100)


@pytest.mark.parametrize("key", ["", "d_1", "d_1.", "d_1.x", "d_1.²", "t_1.p", "1.1", "d_1.1234567", "d_1.-1"])
def test_other_keys_are_not_keys_of_parts(key: str) -> None:
    assert parse_part_key(key) is None
