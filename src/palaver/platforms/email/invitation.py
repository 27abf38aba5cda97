"""Turns the calendar part of a mail into one line, as mail programs show an invitation. Pure, and takes linear time."""

from __future__ import annotations

import re
from typing import Final

from palaver.platforms.email.headers import clean_line

MAX_VALUE_CHARS: Final = 300

_FOLD = re.compile(r"\n[ \t]")
_LINE = re.compile(r"([A-Z-]{1,30})((?:;[^:\"]{0,200})?)(?:;[A-Z-]{1,30}=\"[^\"]{0,200}\")?:(.*)", re.IGNORECASE)
_TIME_ZONE = re.compile(r";TZID=([^;:]{1,60})", re.IGNORECASE)
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?")
_ESCAPED = re.compile(r"\\(.)")


def read_invitation(calendar: str) -> str:
    """Return what is invited to, when and where; empty if the calendar has no event."""
    fields: dict[str, str] = {}
    depth = 0  # of the event, and of what is in it, such as an alarm
    for line in _FOLD.sub("", calendar).split("\n"):
        upper = line[:20].strip().upper()
        if upper == "BEGIN:VEVENT" or (depth and upper.startswith("BEGIN:")):
            depth += 1
        elif depth and upper.startswith("END:"):
            depth -= 1
            if not depth:
                break
        elif (depth == 1 or upper.startswith("METHOD:")) and (match := _LINE.match(line)) is not None:
            name, parameters, value = match.groups()
            is_time = name.upper() in {"DTSTART", "DTEND"}
            fields.setdefault(name.upper(), _format_time(parameters, value) if is_time else _clean(value))
    if "DTSTART" not in fields:
        return ""
    kind = "Canceled invitation" if fields.get("METHOD", "").upper() == "CANCEL" else "Invitation"
    times = " – ".join(fields[name] for name in ("DTSTART", "DTEND") if fields.get(name))
    repetition = f"repeated: {fields['RRULE']}" if "RRULE" in fields else ""
    details = [fields.get("SUMMARY", ""), times, repetition, fields.get("LOCATION", "")]
    return f"[{kind}: {'; '.join(filter(None, details))}]"


def _format_time(parameters: str, value: str) -> str:
    match = _TIME.match(value)
    if match is None:
        return _clean(value)
    year, month, day, hour, minute, is_utc = match.groups()
    date = f"{year}-{month}-{day}"
    if hour is None:
        return date
    zone = _TIME_ZONE.search(parameters)
    name = "UTC" if is_utc else _clean(zone[1]) if zone else ""
    return f"{date} {hour}:{minute} {name}".rstrip()


def _clean(value: str) -> str:
    text = _ESCAPED.sub(lambda match: " " if match[1] in "nN" else match[1], value[: 2 * MAX_VALUE_CHARS])
    return clean_line(text)[:MAX_VALUE_CHARS]
