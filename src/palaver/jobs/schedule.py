"""Schedules of jobs: how people write them, how they are stored, and what they are called in words.

    30m · 2h · 1d                once, after this time
    every 30m · every 2h         again and again; measured in hours that pass, whatever the clocks do
    0 7 * * MON-FRI              cron: minute, hour, day, month, weekday; by the wall clock of the job's time zone
    2026-12-24 18:00             once, by the wall clock of the job's time zone

Always true: `read_schedule(format_schedule(schedule))` is that schedule again.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from palaver.core.clock import check_timezone
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.text import shorten
from palaver.core.texts import Text, say, say_count
from palaver.jobs.cron import MONTHS, WEEKDAYS, CronFields, describe_cron, find_smallest_gap, join_words, parse_cron

if TYPE_CHECKING:
    from collections.abc import Iterator


MIN_INTERVAL: Final = timedelta(minutes=5)
MAX_INTERVAL: Final = timedelta(days=366)
MAX_ONCE_AHEAD: Final = timedelta(days=10 * 366)
SCHEDULE_EXAMPLES: Final = say(
    "schedule.examples",
    '"30m" (once, in 30 minutes), "every 2h", "0 7 * * MON-FRI" (cron: weekdays at 07:00), "2026-12-24 18:00"',
)

_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_DURATION = re.compile(r"(\d{1,6}) ?(m|min|mins|minutes?|h|hours?|d|days?)", re.ASCII)
_WALL_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)", re.ASCII)
_STORED_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_LOOKS_LIKE_TIME = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NO_SUCH_TIME = say("schedule.no_such_time", "there is no such day or time")
_UNKNOWN_FORM = say("schedule.unknown_form", "it is none of the known forms")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times of a job. Exactly one of the three is set."""

    at: datetime | None = None  # once; aware and in UTC, in whole seconds
    every: timedelta | None = None
    cron: CronFields | None = None

    @property
    def is_once(self) -> bool:
        return self.at is not None


# -- reading and writing ------------------------------------------------------------------------------------


def parse_schedule(text: str, *, timezone: str, now: datetime) -> Schedule:
    """Read what a person or the agent wrote; raise InvalidInput that says what is wrong, with examples."""
    clean = " ".join(text.split())
    zone = load_zone(timezone)
    if clean[:6].lower() == "every ":
        return Schedule(every=_parse_interval(text, clean[6:]))
    if duration := _DURATION.fullmatch(clean.lower()):
        return Schedule(at=_check_future(text, _truncate(now) + _read_duration(duration), now))
    if _STORED_TIME.fullmatch(clean):
        return Schedule(at=_check_future(text, _read_stored_time(text, clean), now))
    if _LOOKS_LIKE_TIME.match(clean):
        return Schedule(at=_check_future(text, _parse_wall_time(text, clean, zone), now))
    if clean.startswith("@"):
        raise _make_error(
            text, say("schedule.no_names", "names such as @daily are not supported; write the five fields of cron")
        )
    try:
        fields = parse_cron(clean)
    except InvalidInput as error:
        raise _make_error(text, error.text if " " in clean else _UNKNOWN_FORM) from None
    if timedelta(minutes=find_smallest_gap(fields)) < MIN_INTERVAL:
        problem = say(
            "schedule.too_often", "runs must be at least {duration} apart", duration=_format_duration(MIN_INTERVAL)
        )
        raise _make_error(text, problem)
    return Schedule(cron=fields)


def read_schedule(text: str) -> Schedule:
    """Read what `format_schedule` wrote, whether or not its time has passed."""
    if _STORED_TIME.fullmatch(text):
        return Schedule(at=_read_stored_time(text, text))
    if text.startswith("every ") and (duration := _DURATION.fullmatch(text[6:])):
        return Schedule(every=_read_duration(duration))
    return Schedule(cron=parse_cron(text))


def format_schedule(schedule: Schedule) -> str:
    """Write a schedule as it is stored."""
    if schedule.at is not None:
        return f"{schedule.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if schedule.every is not None:
        unit = next(unit for unit in ("d", "h", "m") if not schedule.every % _UNITS[unit])
        return f"every {schedule.every // _UNITS[unit]}{unit}"
    assert schedule.cron is not None  # noqa: S101
    return schedule.cron.expression


def load_zone(timezone: str) -> ZoneInfo:
    """Return the time zone of an IANA name; raise InvalidInput for anything else."""
    return ZoneInfo(check_timezone(timezone))


def _parse_interval(text: str, interval: str) -> timedelta:
    duration = _DURATION.fullmatch(interval.lower())
    if duration is None:
        problem = say(
            "schedule.bad_interval", '"every" is followed by a number and m, h or d; other times are written in cron'
        )
        raise _make_error(text, problem)
    every = _read_duration(duration)
    if not MIN_INTERVAL <= every <= MAX_INTERVAL:
        problem = say(
            "schedule.interval_limits",
            "runs must be at least {shortest} and at most {longest} apart",
            shortest=_format_duration(MIN_INTERVAL),
            longest=_format_duration(MAX_INTERVAL),
        )
        raise _make_error(text, problem)
    return every


def _read_duration(match: re.Match[str]) -> timedelta:
    return int(match[1]) * _UNITS[match[2][0]]


def _parse_wall_time(text: str, clean: str, zone: ZoneInfo) -> datetime:
    match = _WALL_TIME.fullmatch(clean)
    if match is None:
        problem = say(
            "schedule.bad_time", "write the time as 2026-12-24 18:00; the time zone is {timezone}", timezone=zone.key
        )
        raise _make_error(text, problem)
    try:
        wall_time = datetime.fromisoformat(f"{match[1]}T{match[2]}")
        return resolve_wall_time(wall_time, zone)
    except (OverflowError, ValueError):  # in UTC, the first and the last day of the calendar may be outside of it
        raise _make_error(text, _NO_SUCH_TIME) from None


def resolve_wall_time(wall_time: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment at which the clocks of a zone show a time: the first of two, the end of a gap if it is skipped.

    The time is naive, the result in UTC.
    """
    late = wall_time.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if late.astimezone(zone).replace(tzinfo=None, fold=0) == wall_time:
        return late
    # Skipped: the offset from before the gap puts it after the gap's end, the one from after it before that end.
    early = wall_time.replace(tzinfo=zone, fold=1).astimezone(UTC)
    offset = late.astimezone(zone).utcoffset()
    while late - early > timedelta(seconds=1):
        middle = early + (late - early) // 2
        if middle.astimezone(zone).utcoffset() == offset:
            late = middle
        else:
            early = middle
    return _truncate(late)


def _read_stored_time(text: str, clean: str) -> datetime:
    try:
        return datetime.strptime(clean, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise _make_error(text, _NO_SUCH_TIME) from None


def _check_future(text: str, at: datetime, now: datetime) -> datetime:
    if at <= now:
        raise _make_error(text, say("schedule.past", "this time has passed"))
    if at - now > MAX_ONCE_AHEAD:
        raise _make_error(text, say("schedule.too_late", "this is more than ten years ahead"))
    return at


def _truncate(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)


def _make_error(text: str, problem: str) -> InvalidInput:
    shown = shorten(text, 80)
    explained = say(
        "schedule.invalid",
        "schedule: {schedule} is not valid: {problem}. Examples: {examples}.",
        schedule=repr(shown),
        problem=problem,
        examples=SCHEDULE_EXAMPLES,
    )
    return InvalidInput(explained, schedule=shown)


# -- in words -----------------------------------------------------------------------------------------------


def describe_schedule(schedule: Schedule, timezone: str) -> Text:
    """Say when a job runs: `every weekday at 07:00 (Europe/Vienna)`."""
    if schedule.at is not None:
        local = schedule.at.astimezone(load_zone(timezone))
        clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
        words = say(
            "schedule.once",
            "once, on {weekday}, {month} {day}, {year} at {time}",
            weekday=WEEKDAYS[local.isoweekday() % 7],
            month=MONTHS[local.month - 1],
            day=local.day,
            year=str(local.year),
            time=clock,
        )
    elif schedule.every is not None:
        words = _describe_interval(schedule.every)
    else:
        assert schedule.cron is not None  # noqa: S101
        words = describe_cron(schedule.cron)
    return words + f" ({timezone})"


def _describe_interval(every: timedelta) -> Text:
    singles = {
        timedelta(days=1): say("schedule.daily", "every 24 hours"),  # "every day" would be at the same time of the day
        timedelta(hours=1): say("cron.every_hour", "every hour"),
        timedelta(minutes=1): say("cron.every_minute", "every minute"),
    }
    return singles.get(every) or say("schedule.every", "every {duration}", duration=_format_duration(every))


def _format_duration(duration: timedelta) -> Text:
    minutes = duration // timedelta(minutes=1)
    days, hours, minutes = minutes // 1440, minutes % 1440 // 60, minutes % 60
    parts: list[str] = []
    parts += [say_count("schedule.days", days, "{count} day", "{count} days")] if days else []
    parts += [say_count("schedule.hours", hours, "{count} hour", "{count} hours")] if hours else []
    parts += [say_count("schedule.minutes", minutes, "{count} minute", "{count} minutes")] if minutes else []
    return join_words(parts)


# ---- slots ------------------------------------------------------------------------------------------------------
# Slots: the times at which a job is to run. Cron follows the wall clock of the job's zone, intervals the time itself.
#
# Around a change of the clocks, a time that occurs twice is used once, and one that is skipped moves to the end of the
# gap; schedules of every hour or every few minutes run through both hours. Zones that move by half an hour
# (Australia/Lord_Howe) can lose one run of `30 * * * *` on that day.


def iterate_slots(schedule: Schedule, timezone: str, anchor: datetime, after: datetime) -> Iterator[datetime]:
    """Yield the slots that are strictly later than `after`, in order and in UTC; a one-shot has at most one."""
    if schedule.at is not None:
        if schedule.at > after:
            yield schedule.at
    elif schedule.every is not None:
        start, every = anchor.astimezone(UTC), schedule.every
        slot = start + ((after - start) // every + 1) * every  # also before the anchor, if the clock was set back
        while True:
            yield slot
            slot += every
    else:
        assert schedule.cron is not None  # noqa: S101
        yield from _iterate_cron(schedule.cron.expression, timezone, after)


def list_next_slots(
    schedule: Schedule, timezone: str, anchor: datetime, after: datetime, count: int = 3
) -> list[datetime]:
    """List the next slots after a moment; raise InvalidInput if a cron expression has none, as on February 30."""
    slots = list(islice(iterate_slots(schedule, timezone, anchor, after), count))
    if not slots and schedule.cron is not None and count:
        expression = schedule.cron.expression
        text = say(
            "schedule.no_date",
            "schedule: {schedule} is not valid: no such date occurs in the next 50 years. Examples: {examples}.",
            schedule=repr(expression),
            examples=SCHEDULE_EXAMPLES,
        )
        raise InvalidInput(text, schedule=expression)
    return slots


def get_period(schedule: Schedule, timezone: str, anchor: datetime, after: datetime) -> timedelta | None:
    """Return the time between the next two slots; None if there is at most one."""
    if schedule.every is not None:
        return schedule.every
    slots = list(islice(iterate_slots(schedule, timezone, anchor, after), 2))
    return slots[1] - slots[0] if len(slots) == 2 else None


def _iterate_cron(expression: str, timezone: str, after: datetime) -> Iterator[datetime]:
    from cronsim import CronSim, CronSimError  # few servers have such jobs

    latest = after.astimezone(UTC)
    try:
        # Without a zone, or with UTC instead of the job's zone, CronSim knows nothing of changes of the clocks.
        simulation = CronSim(expression, after.astimezone(load_zone(timezone)))
    except CronSimError:  # the domain has checked the fields: no month has such a day
        return
    for local in simulation:
        slot = local.astimezone(UTC)
        if slot > latest:  # within the second of two equal hours, CronSim begins with times of the first
            yield slot
            latest = slot
