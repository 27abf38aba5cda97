from __future__ import annotations

import pytest

from palaver.agent.base import RetryPolicy

POLICY = RetryPolicy(max_tries=4, first_wait=1, max_wait=3, max_requested_wait=30)


@pytest.mark.parametrize(("failures", "min_wait", "max_wait"), [(1, 0.5, 1), (2, 1, 2), (3, 1.5, 3)])
def test_waits_double_up_to_a_limit_and_have_jitter(failures: int, min_wait: float, max_wait: float) -> None:
    assert POLICY.get_wait_seconds(failures, jitter=0) == min_wait
    assert POLICY.get_wait_seconds(failures, jitter=1) == max_wait
    wait = POLICY.get_wait_seconds(failures)
    assert wait is not None
    assert min_wait <= wait <= max_wait


def test_there_is_no_wait_after_the_last_try() -> None:
    assert POLICY.get_wait_seconds(4) is None


def test_a_wait_is_never_shorter_than_the_provider_requests() -> None:
    assert POLICY.get_wait_seconds(1, requested_wait=20) == 20
    assert POLICY.get_wait_seconds(1, requested_wait=0, jitter=1) == 1


def test_there_is_no_retry_if_the_provider_requests_a_long_wait() -> None:
    assert POLICY.get_wait_seconds(1, requested_wait=31) is None
