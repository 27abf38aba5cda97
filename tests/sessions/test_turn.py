"""Which turns have ended, and what happens to a turn whose worker died."""

from __future__ import annotations

import pytest

from palaver.sessions.turn import MAX_TURN_CRASHES, CrashedTurnAction, StopRequest, TurnState, decide_crashed_turn


@pytest.mark.parametrize(
    ("had_side_effects", "crash_count", "stop_request", "action"),
    [
        (False, 1, None, CrashedTurnAction.RETRY),
        (False, MAX_TURN_CRASHES - 1, None, CrashedTurnAction.RETRY),
        (False, MAX_TURN_CRASHES, None, CrashedTurnAction.FAIL),
        (True, 1, None, CrashedTurnAction.INTERRUPT),
        (True, MAX_TURN_CRASHES, None, CrashedTurnAction.INTERRUPT),
        (False, 1, StopRequest.STOP, CrashedTurnAction.INTERRUPT),
        (False, MAX_TURN_CRASHES, StopRequest.INTERRUPT, CrashedTurnAction.INTERRUPT),
    ],
)
def test_a_crashed_turn_is_retried_unless_it_had_side_effects_was_stopped_or_crashed_too_often(
    had_side_effects: bool, crash_count: int, stop_request: StopRequest | None, action: CrashedTurnAction
) -> None:
    assert (
        decide_crashed_turn(had_side_effects=had_side_effects, crash_count=crash_count, stop_request=stop_request)
        is action
    )


def test_a_queued_or_running_turn_has_not_ended() -> None:
    assert [state for state in TurnState if not state.has_ended] == [TurnState.QUEUED, TurnState.RUNNING]
