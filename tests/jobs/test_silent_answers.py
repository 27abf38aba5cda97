"""Answers of runs that are kept and not sent."""

from __future__ import annotations

import pytest

from palaver.jobs.run_end import is_silent


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[SILENT]", True),
        ("  [SILENT]\n", True),
        ("[SILENT].", True),
        ("[SILENT] All quiet.", False),
        ("All quiet. [SILENT]", False),
        ("[silent]", False),
        ("SILENT", False),
        ("", False),
    ],
)
def test_only_the_exact_word_is_silent(text: str, expected: bool) -> None:
    assert is_silent(text) is expected
