"""Clocks, times as columns and JSON hold them, time zones, and pauses between pieces of work.

The clock is passed in: rules never read the system time themselves.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final, Protocol

from palaver.core.errors import InvalidInput
from palaver.core.texts import join_texts, say

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # columns hold the microseconds since then
_MICROSECOND = timedelta(microseconds=1)
BEGINNING_OF_TIME = -(2**62)  # before every stored time

_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", re.ASCII)
_MAX_NAME_CHARS: Final = 64
_MAX_SUGGESTIONS: Final = 3
# Names that the database of a machine may have besides the IANA names.
_OTHER_NAMES: Final = frozenset({"localtime", "posixrules", "Factory"})
_OTHER_FOLDERS: Final = ("posix/", "right/")

PAUSE_RATIO: Final = 2.0
MAX_PAUSE_SECONDS: Final = 1.0  # also after work that had to wait for a slow disk or a lock
MIN_COPY_PAUSE_SECONDS: Final = 0.1  # after a copy of a conversation: it is soon made, but the disk has to write it


class Clock(Protocol):
    """Anything that tells the time."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def to_micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return an aware datetime in UTC."""
    return _EPOCH + micros * _MICROSECOND


def from_micros_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + micros * _MICROSECOND


def format_time(moment: datetime) -> str:
    """Format a time for JSON: in ISO 8601 and UTC, always of the same length, so that times sort as text."""
    in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)  # as nearly all are
    return in_utc.isoformat(timespec="microseconds")


def format_micros(micros: int) -> str:
    """Format a stored time as `format_time` does."""
    return (_EPOCH + micros * _MICROSECOND).isoformat(timespec="microseconds")


def format_optional_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)


def check_timezone(name: str) -> str:
    """Return the IANA name of a time zone as it is written; raise InvalidInput with the nearest names for another."""
    name = name.strip()
    if _is_zone(name):
        return name
    by_folded_name = _list_by_folded_name()
    folded = name.casefold().replace(" ", "_")
    if folded in by_folded_name:
        return by_folded_name[folded]
    similar = _find_similar(folded, by_folded_name) if len(name) <= _MAX_NAME_CHARS else []
    names = join_texts(say("text.or", " or "), similar)
    hint = (
        say("timezone.similar", "Did you mean {names}?", names=names)
        if similar
        else say("timezone.iana", "Use an IANA name such as Europe/Berlin or UTC.")
    )
    shown = name[:_MAX_NAME_CHARS]
    text = say("timezone.unknown", "timezone: {name} is not a time zone. {hint}", name=repr(shown), hint=hint)
    raise InvalidInput(text, timezone=shown, suggestions=similar)


def _is_zone(name: str) -> bool:
    if len(name) > _MAX_NAME_CHARS or not _ZONE_NAME.fullmatch(name):
        return False
    if name in _OTHER_NAMES or name.startswith(_OTHER_FOLDERS):
        return False
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # the library needs no time zones

    try:
        return ZoneInfo(name).key == name
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return False


@cache
def _list_by_folded_name() -> dict[str, str]:
    from zoneinfo import available_timezones

    return {name.casefold(): name for name in sorted(available_timezones() - _OTHER_NAMES)}


def _find_similar(folded: str, by_folded_name: dict[str, str]) -> list[str]:
    """Find zones of a city of this name, then zones and cities whose names differ from it by a typo."""
    import difflib  # the library needs no time zones

    by_city: dict[str, str] = {}
    for key, name in by_folded_name.items():
        by_city.setdefault(key.rpartition("/")[2], name)
    city = folded.rpartition("/")[2]
    found = [by_city[city]] if city in by_city else []
    found += [by_folded_name[key] for key in difflib.get_close_matches(folded, by_folded_name, _MAX_SUGGESTIONS, 0.7)]
    found += [by_city[key] for key in difflib.get_close_matches(city, by_city, _MAX_SUGGESTIONS, 0.7)]
    return list(dict.fromkeys(found))[:_MAX_SUGGESTIONS]


def compute_pause(work_seconds: float, min_seconds: float = 0) -> float:
    """Return how long to pause after a piece of work that took so long."""
    return max(min(work_seconds * PAUSE_RATIO, MAX_PAUSE_SECONDS), min_seconds)
