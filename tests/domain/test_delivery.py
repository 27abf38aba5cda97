"""Addresses, and how long to wait before trying again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.domain.delivery import FIRST_DELAY, LONGEST_DELAY, Address, delay_before
from palaver.domain.errors import InvalidInput
from palaver.domain.source import Platform

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(ids, st.none() | ids, st.text(st.characters(exclude_categories=["Cs"])))
def test_an_address_survives_being_written_down(chat: str, thread: str | None, account: str) -> None:
    address = Address(Platform.MATRIX, chat, thread, account)
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize("text", ["", "telegram", "telegram:ada", "telegram::", "a:b:c:d:e"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="address"):
        Address.parse(text)


def test_waits_double_and_are_spread_out() -> None:
    assert delay_before(1, jitter=1) == FIRST_DELAY
    assert delay_before(1, jitter=0) == FIRST_DELAY / 2
    assert delay_before(4, jitter=1) == FIRST_DELAY * 8
    assert delay_before(5000, jitter=1) == LONGEST_DELAY


def test_the_platform_may_ask_for_more_patience() -> None:
    assert delay_before(1, retry_after=timedelta(hours=1)) == timedelta(hours=1)
    assert delay_before(9, retry_after=timedelta(seconds=1), jitter=1) > timedelta(minutes=1)
