"""Slots: the times at which a job is to run. Cron follows the wall clock of the job's zone, intervals the time itself.

Around a change of the clocks, a time that occurs twice is used once, and one that is skipped moves to the end of the
gap; schedules of every hour or every few minutes run through both hours. Zones that move by half an hour
(Australia/Lord_Howe) can lose one run of `30 * * * *` on that day.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError

from palaver.core.errors import InvalidInput
from palaver.jobs.schedule import SCHEDULE_EXAMPLES, load_zone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.jobs.schedule import Schedule


def iterate_slots(schedule: Schedule, timezone: str, anchor: datetime, after: datetime) -> Iterator[datetime]:
    """Yield the slots that are strictly later than `after`, in order and in UTC; a one-shot has at most one."""
    if schedule.at is not None:
        if schedule.at > after:
            yield schedule.at
    elif schedule.every is not None:
        yield from _iterate_interval(schedule.every, anchor.astimezone(UTC), after)
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
        raise InvalidInput(
            f"schedule: {expression!r} is not valid: no such date occurs in the next 50 years. Examples:"
            f" {SCHEDULE_EXAMPLES}.",
            schedule=expression,
        )
    return slots


def get_period(schedule: Schedule, timezone: str, anchor: datetime, after: datetime) -> timedelta | None:
    """Return the time between the next two slots; None if there is at most one."""
    if schedule.every is not None:
        return schedule.every
    slots = list(islice(iterate_slots(schedule, timezone, anchor, after), 2))
    return slots[1] - slots[0] if len(slots) == 2 else None


def _iterate_interval(every: timedelta, anchor: datetime, after: datetime) -> Iterator[datetime]:
    slot = anchor + ((after - anchor) // every + 1) * every  # also before the anchor, if the clock was set back
    while True:
        yield slot
        slot += every


def _iterate_cron(expression: str, timezone: str, after: datetime) -> Iterator[datetime]:
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
