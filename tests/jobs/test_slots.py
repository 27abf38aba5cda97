"""Slots of schedules over changes of the clocks, month ends and leap days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given, strategies as st

from palaver.core.errors import InvalidInput
from palaver.jobs.cron import LAST, LAST_WEEKDAY, parse_cron
from palaver.jobs.schedule import (
    MIN_INTERVAL,
    Schedule,
    get_period,
    iterate_slots,
    list_next_slots,
    load_zone,
    parse_schedule,
    read_schedule,
)

NEW_YORK, BERLIN, SANTIAGO = "America/New_York", "Europe/Berlin", "America/Santiago"
LORD_HOWE = "Australia/Lord_Howe"

# Zone, schedule, the moment after which slots are listed, and the slots by the wall clock of the zone.
CHANGES_OF_CLOCKS = [
    # Clocks go forward: a time that is skipped moves to the end of the gap, others are as always.
    (NEW_YORK, "30 2 * * *", "2026-03-07T12:00-05:00", ["08 03:00-0400", "09 02:30-0400"]),
    (NEW_YORK, "30 1 * * *", "2026-03-07T12:00-05:00", ["08 01:30-0500", "09 01:30-0400"]),
    (NEW_YORK, "0 7 * * *", "2026-03-07T12:00-05:00", ["08 07:00-0400", "09 07:00-0400"]),
    (NEW_YORK, "0 2,3 * * *", "2026-03-07T12:00-05:00", ["08 03:00-0400", "09 02:00-0400"]),
    (NEW_YORK, "0 */2 * * *", "2026-03-07T23:00-05:00", ["08 00:00-0500", "08 04:00-0400", "08 06:00-0400"]),
    (BERLIN, "30 2 * * *", "2026-03-28T12:00+01:00", ["29 03:00+0200", "30 02:30+0200"]),
    (BERLIN, "30 * * * *", "2026-03-29T00:45+01:00", ["29 01:30+0100", "29 03:30+0200"]),
    (SANTIAGO, "0 0 * * *", "2026-09-04T12:00-04:00", ["05 00:00-0400", "06 01:00-0300", "07 00:00-0300"]),
    (SANTIAGO, "0 * * * SUN", "2026-09-05T22:30-04:00", ["06 01:00-0300", "06 02:00-0300"]),
    # Clocks go back: a time that occurs twice is used once, and schedules of every hour run through both.
    (NEW_YORK, "30 1 * * *", "2026-10-31T12:00-04:00", ["01 01:30-0400", "02 01:30-0500"]),
    (NEW_YORK, "0 7 * * *", "2026-10-31T12:00-04:00", ["01 07:00-0500", "02 07:00-0500"]),
    (BERLIN, "30 2 * * *", "2026-10-24T12:00+02:00", ["25 02:30+0200", "26 02:30+0100"]),
    (BERLIN, "30 * * * *", "2026-10-25T01:45+02:00", ["25 02:30+0200", "25 02:30+0100", "25 03:30+0100"]),
    (BERLIN, "*/15 * * * *", "2026-10-25T02:40+02:00", ["25 02:45+0200", "25 02:00+0100", "25 02:15+0100"]),
    (BERLIN, "0 */2 * * *", "2026-10-25T01:00+02:00", ["25 02:00+0200", "25 02:00+0100", "25 04:00+0100"]),
    (SANTIAGO, "30 23 * * *", "2026-04-03T12:00-03:00", ["03 23:30-0300", "04 23:30-0300", "05 23:30-0400"]),
    (SANTIAGO, "0 * * * *", "2026-04-04T22:30-03:00", ["04 23:00-0300", "04 23:00-0400", "05 00:00-0400"]),
    # From within the second of two equal hours, nothing of the first is listed.
    (BERLIN, "30 2 * * *", "2026-10-25T02:10+01:00", ["26 02:30+0100", "27 02:30+0100"]),
    (NEW_YORK, "15,45 1 * * *", "2026-11-01T01:20-05:00", ["02 01:15-0500", "02 01:45-0500"]),
    # The known exception: where clocks move by half an hour, these lose the run at 02:30 or 02:00 of that day.
    (LORD_HOWE, "30 * * * *", "2026-10-04T01:00+10:30", ["04 01:30+1030", "04 03:30+1100"]),
    (LORD_HOWE, "0 */2 * * *", "2026-04-04T23:40+11:00", ["05 00:00+1100", "05 04:00+1030"]),
    (LORD_HOWE, "30 7 * * *", "2026-04-04T23:40+11:00", ["05 07:30+1030", "06 07:30+1030"]),
]


@pytest.mark.parametrize(("timezone", "cron", "after", "expected"), CHANGES_OF_CLOCKS)
def test_cron_follows_the_wall_clock_when_the_clocks_change(
    timezone: str, cron: str, after: str, expected: list[str]
) -> None:
    start = datetime.fromisoformat(after)
    slots = list_next_slots(read_schedule(cron), timezone, start, start, len(expected))
    assert [f"{slot.astimezone(load_zone(timezone)):%d %H:%M%z}" for slot in slots] == expected
    # Asking again from each slot, as the scheduler does, gives the same slots as going on.
    steps = [start]
    for _ in expected:
        steps += list_next_slots(read_schedule(cron), timezone, start, steps[-1], 1)
    assert steps[1:] == slots


@pytest.mark.parametrize(("zone", "cron", "after", "expected"), CHANGES_OF_CLOCKS)
def test_slots_are_the_same_wherever_the_list_begins(zone: str, cron: str, after: str, expected: list[str]) -> None:
    schedule, start = read_schedule(cron), datetime.fromisoformat(after)
    slots = list_next_slots(schedule, zone, start, start, len(expected))
    for number, slot in enumerate(slots):
        right_before = slot - timedelta(microseconds=1)
        assert list_next_slots(schedule, zone, start, right_before, len(slots) - number) == slots[number:]


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("0 0 29 2 *", "2026-01-01", ["2028-02-29", "2032-02-29"]),
        ("0 0 29 2 *", "2096-03-01", ["2104-02-29", "2108-02-29"]),  # 2100 is no leap year
        ("0 0 31 * *", "2026-01-31", ["2026-03-31", "2026-05-31"]),
        ("0 0 L * *", "2028-02-01", ["2028-02-29", "2028-03-31"]),
        ("0 0 L 2 *", "2026-01-01", ["2026-02-28", "2027-02-28"]),
        ("0 0 LW * *", "2026-01-01", ["2026-01-30", "2026-02-27"]),
        ("0 0 * * 5L", "2026-01-01", ["2026-01-30", "2026-02-27"]),
        ("0 0 * * MON#5", "2026-01-01", ["2026-03-30", "2026-06-29"]),
        ("0 0 * 2 MON#5", "2026-01-01", ["2044-02-29"]),
        ("0 0 13 * FRI", "2026-11-07", ["2026-11-13", "2026-11-20"]),  # either is enough
    ],
)
def test_month_ends_and_leap_days(cron: str, after: str, expected: list[str]) -> None:
    start = datetime.fromisoformat(f"{after}T00:00+00:00")
    slots = list_next_slots(read_schedule(cron), "UTC", start, start, len(expected))
    assert [f"{slot:%Y-%m-%d}" for slot in slots] == expected


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 31 2 */2"])
def test_a_date_that_never_comes_is_refused(cron: str) -> None:
    now = datetime(2026, 11, 16, tzinfo=UTC)
    schedule = parse_schedule(cron, timezone=BERLIN, now=now)
    with pytest.raises(InvalidInput, match="no such date occurs"):
        list_next_slots(schedule, BERLIN, now, now)
    assert get_period(schedule, BERLIN, now, now) is None


def test_intervals_are_measured_in_time_that_passes() -> None:
    schedule = read_schedule("every 2h")
    anchor = datetime.fromisoformat("2026-10-25T00:30+02:00")  # Berlin's clocks go back in this night
    slots = list_next_slots(schedule, BERLIN, anchor, anchor, 3)
    assert [f"{slot.astimezone(load_zone(BERLIN)):%H:%M%z}" for slot in slots] == [
        "02:30+0200",
        "03:30+0100",
        "05:30+0100",
    ]
    late = anchor + timedelta(hours=7, minutes=59)
    assert list_next_slots(schedule, BERLIN, anchor, late, 1) == [anchor + timedelta(hours=8)]
    assert list_next_slots(schedule, BERLIN, anchor, anchor - timedelta(hours=3), 1) == [anchor - timedelta(hours=2)]
    assert get_period(schedule, BERLIN, anchor, anchor) == timedelta(hours=2)


def test_a_one_shot_has_one_slot() -> None:
    at = datetime(2026, 12, 24, 17, tzinfo=UTC)
    assert list_next_slots(Schedule(at=at), BERLIN, at, at - timedelta(days=1)) == [at]
    assert list_next_slots(Schedule(at=at), BERLIN, at, at) == []
    assert get_period(Schedule(at=at), BERLIN, at, at - timedelta(days=1)) is None


def make_field(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    terms = st.one_of(
        st.just("*"),
        numbers.map(str),
        st.tuples(numbers, numbers).map(lambda pair: f"{min(pair)}-{max(pair)}"),
        st.integers(1, high).map(lambda step: f"*/{step}"),
        st.tuples(numbers, st.integers(1, high)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
    )
    return st.lists(terms, min_size=1, max_size=3).map(",".join)


cron_expressions = st.tuples(
    make_field(0, 59),
    make_field(0, 23),
    make_field(1, 31) | st.sampled_from(["L", "LW", "15,L"]),
    make_field(1, 12) | st.sampled_from(["JAN", "MAR-MAY"]),
    make_field(0, 7) | st.sampled_from(["MON#1", "5L", "SAT,SUN", "0#5,MON"]),
).map(" ".join)


@given(cron_expressions)
def test_the_fields_are_read_as_cronsim_reads_them(cron: str) -> None:
    fields = parse_cron(cron)
    try:
        simulation = CronSim(cron, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError:  # no month has such a day
        assert min(fields.days) > 29
        return
    days = {CronSim.LAST: LAST, CronSim.LAST_WEEKDAY: LAST_WEEKDAY}
    plain = {value % 7 for value in simulation.weekdays if isinstance(value, int)}
    nth = {(value[0] % 7, days.get(value[1], value[1])) for value in simulation.weekdays if isinstance(value, tuple)}
    assert set(fields.minutes) == simulation.minutes
    assert set(fields.hours) == simulation.hours
    assert set(fields.days) == {days.get(day, day) for day in simulation.days}
    assert set(fields.months) == simulation.months
    assert (set(fields.weekdays), set(fields.nth_weekdays)) == (plain, nth)
    assert fields.needs_one_day_only != simulation.day_and


@given(
    cron_expressions,
    st.sampled_from([NEW_YORK, BERLIN, SANTIAGO, LORD_HOWE, "UTC"]),
    st.timedeltas(timedelta(0), timedelta(days=365)),
)
def test_slots_are_later_than_asked_and_in_order(cron: str, timezone: str, since: timedelta) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC) + since
    slots = [start, *islice(iterate_slots(read_schedule(cron), timezone, start, start), 5)]
    assert all(earlier < later for earlier, later in pairwise(slots))
    try:
        parse_schedule(cron, timezone=timezone, now=start)
    except InvalidInput:
        return
    is_close = any(later - earlier < MIN_INTERVAL for earlier, later in pairwise(slots[1:]))
    assert not is_close or timezone != "UTC"  # elsewhere, the end of a gap can be close to another slot
