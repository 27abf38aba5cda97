from __future__ import annotations

import pytest

from palaver.core.clock import MAX_PAUSE_SECONDS, compute_pause


@pytest.mark.parametrize(
    ("work", "minimum", "pause"),
    [(0.0, 0, 0.0), (0.01, 0, 0.02), (0.01, 0.1, 0.1), (0.2, 0.1, 0.4), (3600.0, 0, MAX_PAUSE_SECONDS)],
)
def test_costly_work_takes_at_most_a_third_of_the_time_and_never_stops_for_long(
    work: float, minimum: float, pause: float
) -> None:
    assert compute_pause(work, minimum) == pytest.approx(pause)
