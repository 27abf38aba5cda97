"""Cron expressions: five fields, checked and read. When the next time is, `jobs/schedule.py` finds out.

Fields are minute, hour, day of the month, month and day of the week, each `*`, a value, a range, a list or a step. Days
also know `L` (the last of the month) and `LW` (its last Monday to Friday), weekdays `5L` (the last Friday of the
month) and `MON#1` (its first Monday). If both days are set and neither starts with `*`, either one is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from palaver.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence


LAST: Final = -1  # as a day: the last of the month; as the `nth` of a weekday: its last in the month
LAST_WEEKDAY: Final = -2  # as a day: the last Monday to Friday of the month
MAX_CRON_CHARS: Final = 200
MAX_LISTED_TIMES: Final = 6

_MONTH_NAMES: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAY_NAMES: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()  # of the values from `low` on


_MINUTE = _Field("minute", 0, 59)
_HOUR = _Field("hour", 0, 23)
_DAY = _Field("day of the month", 1, 31)
_MONTH = _Field("month", 1, 12, _MONTH_NAMES)
_WEEKDAY = _Field("day of the week", 0, 7, _WEEKDAY_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class CronFields:
    """The times of a cron expression, field by field."""

    expression: str  # in capital letters, with single spaces
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]  # with LAST and LAST_WEEKDAY
    months: tuple[int, ...]
    weekdays: tuple[int, ...]  # 0 is Sunday
    nth_weekdays: tuple[tuple[int, int], ...]  # (weekday, which of the month)

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.expression.split(" "))

    @property
    def is_every_day(self) -> bool:
        """Whether neither day is limited."""
        return self.parts[2] == "*" and self.parts[4] == "*"

    @property
    def needs_one_day_only(self) -> bool:
        """Whether both days are limited, and it is enough that one of them matches."""
        return not self.parts[2].startswith("*") and not self.parts[4].startswith("*")


def parse_cron(text: str) -> CronFields:
    """Read a cron expression; raise InvalidInput that says which field is wrong."""
    if len(text) > MAX_CRON_CHARS:
        raise InvalidInput(f"it is longer than {MAX_CRON_CHARS} characters")
    parts = text.upper().split()
    if len(parts) != 5:
        raise InvalidInput(f"a cron expression has five fields (minute hour day month weekday), this one {len(parts)}")
    weekdays: set[int] = set()
    nth_weekdays: set[tuple[int, int]] = set()
    for term in parts[4].split(","):
        nth = _parse_nth_weekday(term)
        if nth is None:
            weekdays.update(value % 7 for value in _parse_term(_WEEKDAY, term))
        else:
            nth_weekdays.add(nth)
    return CronFields(
        expression=" ".join(parts),
        minutes=_parse_field(_MINUTE, parts[0]),
        hours=_parse_field(_HOUR, parts[1]),
        days=_parse_days(parts[2]),
        months=_parse_field(_MONTH, parts[3]),
        weekdays=tuple(sorted(weekdays)),
        nth_weekdays=tuple(sorted(nth_weekdays)),
    )


def find_smallest_gap(fields: CronFields) -> int:
    """Return the smallest number of minutes between two times on one day or around midnight; 1440 if there is one."""
    gaps = [later - earlier for earlier, later in pairwise(fields.minutes)]
    next_hours = {(hour + 1) % 24 for hour in fields.hours}
    if next_hours & set(fields.hours):
        gaps.append(60 - fields.minutes[-1] + fields.minutes[0])
    elif len(fields.hours) > 1:
        gaps.append(60)
    return min(gaps, default=24 * 60)


def _parse_field(field: _Field, text: str) -> tuple[int, ...]:
    return tuple(sorted({value for term in text.split(",") for value in _parse_term(field, term)}))


def _parse_days(text: str) -> tuple[int, ...]:
    days: set[int] = set()
    for term in text.split(","):
        match term:
            case "L":
                days.add(LAST)
            case "LW":
                days.add(LAST_WEEKDAY)
            case _:
                days.update(_parse_term(_DAY, term))
    return tuple(sorted(days))


def _parse_nth_weekday(term: str) -> tuple[int, int] | None:
    """Read `5L` and `MON#1`; None if the term is neither."""
    if term.endswith("L"):
        if not _is_number(term[:-1]):
            raise _make_error(_WEEKDAY, term)
        return _parse_value(_WEEKDAY, term[:-1]) % 7, LAST
    if "#" in term:
        weekday, _, nth = term.partition("#")
        if not _is_number(nth) or not 1 <= int(nth) <= 5:
            raise _make_error(_WEEKDAY, term)
        return _parse_value(_WEEKDAY, weekday) % 7, int(nth)
    return None


def _parse_term(field: _Field, term: str) -> range:
    """Read `*`, a value or a range, each with or without a step."""
    values, slash, step_text = term.partition("/")
    if slash and (not _is_number(step_text) or int(step_text) == 0):
        raise _make_error(field, term)
    step = int(step_text) if slash else 1
    if values == "*":
        return range(field.low, field.high + 1, step)
    first_text, dash, last_text = values.partition("-")
    first = _parse_value(field, first_text)
    if dash:
        last = _parse_value(field, last_text)
    else:
        last = field.high if slash else first
    if last < first:
        raise _make_error(field, term)
    return range(first, last + 1, step)


def _parse_value(field: _Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    if not _is_number(text) or not field.low <= int(text) <= field.high:
        raise _make_error(field, text)
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _make_error(field: _Field, text: str) -> InvalidInput:
    names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
    return InvalidInput(f"the {field.name} {text!r} is not valid ({field.low} to {field.high}{names})")


# ---- in words ---------------------------------------------------------------------------------------------------


_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_ORDINALS: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}
_WORKDAYS: Final = (1, 2, 3, 4, 5)


def describe_cron(fields: CronFields) -> str:
    times = _describe_times(fields)
    days = _describe_days(fields)
    if times.startswith("every"):
        return f"{days.removesuffix(',')}, {times}" if days else times
    return f"{days or 'every day'} {times}"


def join_words(words: Sequence[str]) -> str:
    """Join words as in `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# -- time of day --------------------------------------------------------------------------------------------


def _describe_times(fields: CronFields) -> str:
    minutes, hours = fields.minutes, fields.hours
    if len(hours) == 24:
        return _describe_minutes(minutes)
    if len(minutes) * len(hours) <= MAX_LISTED_TIMES:
        return f"at {join_words([_format_time(hour, minute) for hour in hours for minute in minutes])}"
    hour_step = _find_step(hours, 24)
    if len(minutes) == 1 and hour_step is not None and hours[0] < hour_step:
        return f"every {hour_step} hours from {_format_time(hours[0], minutes[0])}"
    if hours[-1] - hours[0] == len(hours) - 1:
        span = f"from {_format_time(hours[0], minutes[0])} to {_format_time(hours[-1], minutes[-1])}"
        return f"{_describe_minutes(minutes, with_single=False)} {span}"
    hour_list = join_words([_format_time(hour, 0) for hour in hours])
    return f"{_describe_minutes(minutes)} in the hours of {hour_list}"


def _describe_minutes(minutes: Sequence[int], *, with_single: bool = True) -> str:
    if len(minutes) == 1:
        return f"every hour at minute {minutes[0]}" if minutes[0] and with_single else "every hour"
    step = _find_step(minutes, 60)
    if step is not None:
        start = f", from minute {minutes[0]} on" if minutes[0] and with_single else ""
        return "every minute" if step == 1 else f"every {step} minutes{start}"
    return f"every hour at minutes {join_words([str(minute) for minute in minutes])}"


def _find_step(values: Sequence[int], cycle: int) -> int | None:
    """Return the distance between all values, if it is the same also from the last to the first of the next cycle."""
    step = cycle // len(values)
    is_even = step * len(values) == cycle and all(later - earlier == step for earlier, later in pairwise(values))
    return step if is_even and len(values) > 1 else None


def _format_time(hour: int, minute: int) -> str:
    return f"{hour:02d}:{minute:02d}"


# -- days ---------------------------------------------------------------------------------------------------


def _describe_days(fields: CronFields) -> str:
    """Say on which days; empty: on all."""
    months = "" if fields.parts[3] == "*" else join_words([_MONTHS[month - 1] for month in fields.months])
    if fields.is_every_day:
        return f"every day in {months}" if months else ""
    dates = "" if fields.parts[2] == "*" else _describe_dates(fields.days)
    weekdays = _describe_weekdays(fields)
    month_words = f" in {months}" if months else ""
    if not dates:
        return f"{weekdays} of {months or 'every month'}" if fields.nth_weekdays else f"{weekdays}{month_words}"
    dates = f"on {dates} of {months or 'every month'}"
    if not weekdays:
        return dates
    if fields.needs_one_day_only:
        return f"{dates}, and also {weekdays}{month_words},"
    return f"{dates}, but only if it is {weekdays.removeprefix('every ').removeprefix('on ')},"


def _describe_dates(days: Sequence[int]) -> str:
    numbers = [str(day) for day in days if day > 0]
    words = [f"{'day' if len(numbers) == 1 else 'days'} {join_words(numbers)}"] if numbers else []
    words += ["the last day"] if LAST in days else []
    words += ["the last weekday (Monday to Friday)"] if LAST_WEEKDAY in days else []
    return join_words(words)


def _describe_weekdays(fields: CronFields) -> str:
    if fields.parts[4] == "*":
        return ""
    nth_weekdays = [f"the {_ORDINALS[nth]} {_WEEKDAYS[weekday]}" for weekday, nth in fields.nth_weekdays]
    words = [f"on {join_words(nth_weekdays)}"] if nth_weekdays else []
    if fields.weekdays == _WORKDAYS:
        words.insert(0, "every weekday")
    elif fields.weekdays:
        monday_first = sorted(fields.weekdays, key=lambda weekday: (weekday - 1) % 7)
        words.insert(0, f"every {join_words([_WEEKDAYS[weekday] for weekday in monday_first])}")
    return join_words(words)
