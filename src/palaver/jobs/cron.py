"""Cron expressions: five fields, checked and read. When the next time is, `jobs/schedule.py` finds out.

Fields are minute, hour, day of the month, month and day of the week, each `*`, a value, a range, a list or a step. Days
also know `L` (the last of the month) and `LW` (its last Monday to Friday), weekdays `5L` (the last Friday of the
month) and `MON#1` (its first Monday). If both days are set and neither starts with `*`, either one is enough.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.texts import Text, join_texts, name_text, say, say_count

if TYPE_CHECKING:
    from collections.abc import Sequence


LAST: Final = -1  # as a day: the last of the month; as the `nth` of a weekday: its last in the month
LAST_WEEKDAY: Final = -2  # as a day: the last Monday to Friday of the month
MAX_CRON_CHARS: Final = 200
MAX_LISTED_TIMES: Final = 6

WEEKDAYS: Final = tuple(
    name_text(f"day.{name.lower()}", name)
    for name in ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
)
MONTHS: Final = tuple(
    name_text(f"month_name.{name.lower()}", name)
    for name in (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    )
)
_MONTH_NAMES: Final = tuple(name[:3].upper() for name in MONTHS)
_WEEKDAY_NAMES: Final = tuple(name[:3].upper() for name in WEEKDAYS)
_ORDINALS: Final = {
    1: say("cron.first", "first"),
    2: say("cron.second", "second"),
    3: say("cron.third", "third"),
    4: say("cron.fourth", "fourth"),
    5: say("cron.fifth", "fifth"),
    LAST: say("cron.last", "last"),
}
_WORKDAYS: Final = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()  # of the values from `low` on


_MINUTE = _Field(say("cron.minute", "minute"), 0, 59)
_HOUR = _Field(say("cron.hour", "hour"), 0, 23)
_DAY = _Field(say("cron.day", "day of the month"), 1, 31)
_SPECIAL_DAYS: Final = {"L": LAST, "LW": LAST_WEEKDAY}
_MONTH = _Field(say("cron.month", "month"), 1, 12, _MONTH_NAMES)
_WEEKDAY = _Field(say("cron.day_of_week", "day of the week"), 0, 7, _WEEKDAY_NAMES)


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
    def needs_one_day_only(self) -> bool:
        """Whether both days are limited, and it is enough that one of them matches."""
        return not self.parts[2].startswith("*") and not self.parts[4].startswith("*")


def parse_cron(text: str) -> CronFields:
    """Read a cron expression; raise InvalidInput that says which field is wrong."""
    if len(text) > MAX_CRON_CHARS:
        raise InvalidInput.say("cron.too_long", "it is longer than {limit} characters", limit=str(MAX_CRON_CHARS))
    parts = text.upper().split()
    if len(parts) != 5:
        raise InvalidInput.say(
            "cron.five_fields",
            "a cron expression has five fields (minute hour day month weekday), this one {fields}",
            fields=len(parts),
        )
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
        days=_parse_field(_DAY, parts[2]),
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
    terms, special = text.split(","), _SPECIAL_DAYS if field is _DAY else {}
    values = {value for term in terms if term not in special for value in _parse_term(field, term)}
    return tuple(sorted(values | {special[term] for term in terms if term in special}))


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
    names: str = ""
    if field.names:
        names = say("cron.or_names", " or {first} to {last}", first=field.names[0], last=field.names[-1])
    message = say(
        "cron.bad_field",
        "the {field} {text} is not valid ({low} to {high}{names})",
        field=field.name,
        text=repr(text),
        low=field.low,
        high=field.high,
        names=names,
    )
    return InvalidInput(message)


# ---- in words ---------------------------------------------------------------------------------------------------


def describe_cron(fields: CronFields) -> Text:
    times, days = _describe_times(fields), _describe_days(fields)
    if times.startswith("every"):
        return days + ", " + times if days else times
    has_clause = fields.parts[2] != "*" and fields.parts[4] != "*"  # a comma ends it
    return (days or say("cron.every_day", "every day")) + (", " if has_clause else " ") + times


def join_words(words: Sequence[str]) -> Text:
    """Join words as in `a, b and c`."""
    listed = [join_texts(", ", words[:-1]), words[-1]] if len(words) > 1 else words
    return join_texts(say("text.and", " and "), listed)


# -- time of day --------------------------------------------------------------------------------------------


def _describe_times(fields: CronFields) -> Text:
    minutes, hours = fields.minutes, fields.hours
    if len(hours) == 24:
        return _describe_minutes(minutes)
    if len(minutes) * len(hours) <= MAX_LISTED_TIMES:
        times = join_words([_format_time(hour, minute) for hour in hours for minute in minutes])
        return say("cron.at", "at {times}", times=times)
    hour_step, start = _find_step(hours, 24), _format_time(hours[0], minutes[0])
    if len(minutes) == 1 and hour_step is not None and hours[0] < hour_step:
        return say("cron.every_hours", "every {hours} hours from {start}", hours=hour_step, start=start)
    if hours[-1] - hours[0] == len(hours) - 1:
        often, end = _describe_minutes(minutes, with_single=False), _format_time(hours[-1], minutes[-1])
        return say("cron.from_to", "{often} from {start} to {end}", often=often, start=start, end=end)
    hour_list = join_words([_format_time(hour, 0) for hour in hours])
    return say("cron.in_hours", "{often} in the hours of {hours}", often=_describe_minutes(minutes), hours=hour_list)


def _describe_minutes(minutes: Sequence[int], *, with_single: bool = True) -> Text:
    if len(minutes) == 1 and minutes[0] and with_single:
        return say("cron.at_minute", "every hour at minute {minute}", minute=minutes[0])
    if len(minutes) == 1:
        return say("cron.every_hour", "every hour")
    step = _find_step(minutes, 60)
    if step is None:
        return say("cron.at_minutes", "every hour at minutes {minutes}", minutes=join_words(list(map(str, minutes))))
    if step == 1:
        return say("cron.every_minute", "every minute")
    text = say("cron.every_minutes", "every {minutes} minutes", minutes=step)
    if minutes[0] and with_single:
        text += say("cron.from_minute", ", from minute {minute} on", minute=minutes[0])
    return text


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
    months = "" if fields.parts[3] == "*" else join_words([MONTHS[month - 1] for month in fields.months])
    if fields.parts[2] == fields.parts[4] == "*":
        return say("cron.every_day_in", "every day in {months}", months=months) if months else ""
    weekdays = _describe_weekdays(fields)
    if fields.parts[2] == "*":
        if fields.nth_weekdays:
            return _add_months(weekdays, months)
        return weekdays + _say_in(months)
    dates = _add_months(say("cron.on", "on {days}", days=_describe_dates(fields.days)), months)
    if fields.parts[4] == "*":
        return dates
    if fields.needs_one_day_only:
        return say("cron.and_also", "{dates}, and also {weekdays}", dates=dates, weekdays=weekdays + _say_in(months))
    weekdays = _describe_weekdays(fields, bare=True)
    return say("cron.only_if", "{dates}, but only if it is {weekdays}", dates=dates, weekdays=weekdays)


def _add_months(days: str, months: str) -> Text:
    if not months:
        return say("cron.of_every_month", "{days} of every month", days=days)
    return say("cron.of", "{days} of {months}", days=days, months=months)


def _say_in(months: str) -> str:
    return say("cron.in", " in {months}", months=months) if months else ""


def _describe_dates(days: Sequence[int]) -> Text:
    numbers = [say("cron.number", "{day}", day=day) for day in days if day > 0]
    words: list[str] = []
    if numbers:
        words = [say_count("cron.days", len(numbers), "day {days}", "days {days}", days=join_words(numbers))]
    words += [say("cron.last_day", "the last day")] if LAST in days else []
    words += [say("cron.last_workday", "the last weekday (Monday to Friday)")] if LAST_WEEKDAY in days else []
    return join_words(words)


def _describe_weekdays(fields: CronFields, *, bare: bool = False) -> str:
    """Say on which weekdays; `bare` is without the first word of it, `every` or `on`."""
    words: list[str] = []
    if fields.weekdays == _WORKDAYS:
        words = [say("cron.weekday", "weekday") if bare else say("cron.every_weekday", "every weekday")]
    elif fields.weekdays:
        monday_first = sorted(fields.weekdays, key=lambda weekday: (weekday - 1) % 7)
        names = join_words([WEEKDAYS[weekday] for weekday in monday_first])
        words = [names if bare else say("cron.every", "every {days}", days=names)]
    if fields.nth_weekdays:
        nth_weekdays = join_words(
            [
                say("cron.nth", "the {nth} {weekday}", nth=_ORDINALS[nth], weekday=WEEKDAYS[weekday])
                for weekday, nth in fields.nth_weekdays
            ]
        )
        is_bare = bare and not words
        words.append(nth_weekdays if is_bare else say("cron.on", "on {days}", days=nth_weekdays))
    return join_words(words)
