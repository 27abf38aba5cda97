"""Says in words when a cron expression applies: `every weekday at 07:00`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from palaver.jobs.cron import LAST, LAST_WEEKDAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.jobs.cron import CronFields

MAX_LISTED_TIMES: Final = 6

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
