"""What becomes of a turn whose worker died."""

from __future__ import annotations

import pytest

from palaver.domain.turn import MOST_ATTEMPTS, Fate, StopRequest, TurnState, after_death


@pytest.mark.parametrize(
    ("acted", "attempt", "wish", "fate"),
    [
        (False, 1, None, Fate.AGAIN),
        (False, MOST_ATTEMPTS - 1, None, Fate.AGAIN),
        (False, MOST_ATTEMPTS, None, Fate.PARKED),
        (True, 1, None, Fate.INTERRUPTED),
        (True, MOST_ATTEMPTS, None, Fate.INTERRUPTED),
        (False, 1, StopRequest.STOP, Fate.INTERRUPTED),
        (False, MOST_ATTEMPTS, StopRequest.INTERRUPT, Fate.INTERRUPTED),
    ],
)
def test_the_fate_of_a_turn(acted: bool, attempt: int, wish: StopRequest | None, fate: Fate) -> None:
    assert after_death(acted=acted, attempt=attempt, wish=wish) is fate


def test_a_turn_that_waits_or_runs_has_not_ended() -> None:
    assert [state for state in TurnState if not state.ended] == [TurnState.QUEUED, TurnState.RUNNING]
