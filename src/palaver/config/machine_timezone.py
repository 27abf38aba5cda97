"""Finds the time zone that this machine is set to, by its IANA name."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

_UTC = "UTC"
_DATABASE_FOLDER = "zoneinfo/"  # the names of zones are paths in a folder of this name


def find_machine_timezone(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """Return the zone named by TZ, /etc/localtime or /etc/timezone; UTC if none of them names one."""
    candidates = [environ["TZ"].strip().removeprefix(":")] if "TZ" in environ else _read_system_settings(etc)
    names = (candidate.rpartition(_DATABASE_FOLDER)[2] for candidate in candidates)
    zone = next((name for name in names if _is_zone(name)), _UTC)
    return zone.removeprefix("Etc/") if zone == f"Etc/{_UTC}" else zone


def _read_system_settings(etc: Path) -> list[str]:
    settings: list[str] = []
    with contextlib.suppress(OSError):  # not there, or not a link
        settings.append(str((etc / "localtime").readlink()))
    with contextlib.suppress(OSError, ValueError):
        settings.append((etc / "timezone").read_text(encoding="utf-8").strip())
    return settings


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, ZoneInfoNotFoundError):  # an unknown name, or no name at all
        return False
    return True
