"""The default time zone is the machine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config import load_settings
from palaver.config.environment import find_machine_timezone

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("variable", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":Asia/Tokyo", "Asia/Tokyo"),
        ("/usr/share/zoneinfo/America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
        ("", "UTC"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "UTC"),
        ("../../etc/passwd", "UTC"),
        ("Atlantis/Capital", "UTC"),
        ("with\0nul", "UTC"),
    ],
)
def test_the_variable_tz_comes_first(tmp_path: Path, variable: str, zone: str) -> None:
    (tmp_path / "timezone").write_text("Asia/Kolkata\n")
    assert find_machine_timezone({"TZ": variable}, tmp_path) == zone


@pytest.mark.parametrize(
    ("link", "text", "zone"),
    [
        ("/usr/share/zoneinfo/Europe/Berlin", None, "Europe/Berlin"),
        ("../usr/share/zoneinfo/Asia/Tokyo", "Europe/Berlin\n", "Asia/Tokyo"),
        ("/var/db/timezone/zoneinfo/America/New_York", None, "America/New_York"),
        ("/usr/share/elsewhere", "Europe/Berlin\n", "Europe/Berlin"),
        (None, "Europe/Berlin\n", "Europe/Berlin"),
        (None, "nonsense\n", "UTC"),
        (None, None, "UTC"),
    ],
)
def test_the_settings_of_the_system(tmp_path: Path, link: str | None, text: str | None, zone: str) -> None:
    if link is not None:
        (tmp_path / "localtime").symlink_to(link)
    if text is not None:
        (tmp_path / "timezone").write_text(text)
    assert find_machine_timezone({}, tmp_path) == zone


def test_a_localtime_that_is_a_file_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "localtime").write_bytes(b"TZif2")
    (tmp_path / "timezone").write_bytes(b"\xff\xfe")
    assert find_machine_timezone({}, tmp_path) == "UTC"


def test_it_is_the_default_of_reset_policies(tmp_path: Path) -> None:
    settings = load_settings({"TZ": "Europe/Berlin"}, tmp_path)
    assert settings.gateway.default_reset_policy.timezone == "Europe/Berlin"
    (tmp_path / "config.yaml").write_text("timezone: Asia/Tokyo\n")
    settings = load_settings({"TZ": "Europe/Berlin"}, tmp_path)
    assert settings.gateway.default_reset_policy.timezone == "Asia/Tokyo"
