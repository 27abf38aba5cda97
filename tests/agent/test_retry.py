from __future__ import annotations

import pytest

from palaver.agent.retry import Retry

RETRY = Retry(tries=4, first=1, longest=3, patience=30)


@pytest.mark.parametrize(("failures", "least", "most"), [(1, 0.5, 1), (2, 1, 2), (3, 1.5, 3)])
def test_waits_double_up_to_a_limit_and_are_spread_out(failures: int, least: float, most: float) -> None:
    assert RETRY.wait(failures, jitter=0) == least
    assert RETRY.wait(failures, jitter=1) == most
    found = RETRY.wait(failures)
    assert found is not None
    assert least <= found <= most


def test_after_the_last_try_there_is_no_other() -> None:
    assert RETRY.wait(4) is None


def test_what_a_provider_asks_for_is_never_cut_short() -> None:
    assert RETRY.wait(1, asked=20) == 20
    assert RETRY.wait(1, asked=0, jitter=1) == 1


def test_a_provider_that_asks_for_too_much_is_not_waited_for() -> None:
    assert RETRY.wait(1, asked=31) is None
