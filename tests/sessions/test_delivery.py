"""Addresses as text, and the delay before a retry."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from palaver.core.errors import InvalidInput
from palaver.core.source import Platform
from palaver.sessions.delivery import FIRST_RETRY_DELAY, MAX_RETRY_DELAY, Address, compute_retry_delay

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(ids, st.none() | ids, st.text(st.characters(exclude_categories=["Cs"])))
def test_an_address_survives_conversion_to_text(chat: str, thread: str | None, account: str) -> None:
    address = Address(Platform.MATRIX, chat, thread, account)
    assert Address.from_text(str(address)) == address


@pytest.mark.parametrize("text", ["", "telegram", "telegram:ada", "telegram::", "a:b:c:d:e"])
def test_invalid_text_is_not_an_address(text: str) -> None:
    with pytest.raises(InvalidInput, match="address"):
        Address.from_text(text)


def test_retry_delays_double_up_to_a_maximum_with_jitter() -> None:
    assert compute_retry_delay(1, jitter=1) == FIRST_RETRY_DELAY
    assert compute_retry_delay(1, jitter=0) == FIRST_RETRY_DELAY / 2
    assert compute_retry_delay(4, jitter=1) == FIRST_RETRY_DELAY * 8
    assert compute_retry_delay(5000, jitter=1) == MAX_RETRY_DELAY


def test_a_delay_is_never_shorter_than_the_platform_asks() -> None:
    assert compute_retry_delay(1, retry_after=timedelta(hours=1)) == timedelta(hours=1)
    assert compute_retry_delay(9, retry_after=timedelta(seconds=1), jitter=1) > timedelta(minutes=1)
