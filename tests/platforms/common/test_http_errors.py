"""How long a platform asks to wait is read from what it sends, whatever that is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palaver.platforms.common.failures import parse_retry_after

NOW = datetime(2026, 11, 15, 8, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        (" 120 ", 120.0),
        ("Sun, 15 Nov 2026 08:12:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 08:12:30", 30.0),
        ("Sun, 15 Nov 2026 08:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("٣", None),
    ],
)
def test_a_wait_is_a_number_or_a_date(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds
