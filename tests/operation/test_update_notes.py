"""What is new in the running version."""

from __future__ import annotations

from palaver.operation.metrics import find_section, load_update_notes

CHANGELOG = """# Changelog

## Unreleased

- Not yet

## [1.1.0] - 2026-11-01

### Added

- Search chips

## 1.0.0

- First
"""


def test_the_section_of_the_version_is_found() -> None:
    assert find_section(CHANGELOG, "1.1.0") == "### Added\n\n- Search chips"
    assert find_section(CHANGELOG, "1.0.0") == "- First"


def test_a_version_without_a_section_shows_what_is_not_released() -> None:
    assert find_section(CHANGELOG, "2.0.0") == "- Not yet"
    assert find_section("", "1.0.0") == ""


def test_this_version_has_notes() -> None:
    assert load_update_notes().startswith("### ")
