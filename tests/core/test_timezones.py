"""Time zones are IANA names; another name is refused with the nearest ones."""

from __future__ import annotations

import pytest

from palaver.core.clock import check_timezone
from palaver.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "name"),
    [("Europe/Berlin", "Europe/Berlin"), ("UTC", "UTC"), (" america/new york ", "America/New_York")],
)
def test_an_iana_name_is_accepted_in_any_case(text: str, name: str) -> None:
    assert check_timezone(text) == name


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Europe/Berlni", "Did you mean Europe/Berlin"),
        ("Vienna", "Did you mean Europe/Vienna?"),
        ("localtime", "IANA"),
        ("right/Europe/Berlin", "Europe/Berlin"),
        ("../etc/passwd", "IANA"),
        ("+02:00", "IANA"),
        ("", "IANA"),
        ("x" * 10_000, "IANA"),
    ],
)
def test_another_name_is_refused_with_the_nearest_ones(text: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as error:
        check_timezone(text)
    assert hint in str(error.value)
    assert len(str(error.value)) < 300
