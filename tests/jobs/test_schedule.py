"""Schedules: what people write, what is stored, and what it is called in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from palaver.core.errors import InvalidInput
from palaver.jobs.schedule import (
    MIN_INTERVAL,
    Schedule,
    describe_schedule,
    format_schedule,
    parse_schedule,
    read_schedule,
)

VIENNA = "Europe/Vienna"
NOW = datetime(2026, 11, 16, 18, 0, 30, 400_000, tzinfo=UTC)


def parse(text: str, *, timezone: str = VIENNA, now: datetime = NOW) -> Schedule:
    return parse_schedule(text, timezone=timezone, now=now)


# What is written, what is stored, what it is called.
SCHEDULES = [
    ("30m", "2026-11-16T18:30:30Z", "once, on Monday, November 16, 2026 at 19:30:30"),
    ("2h", "2026-11-16T20:00:30Z", "once, on Monday, November 16, 2026 at 21:00:30"),
    (" 1 Day ", "2026-11-17T18:00:30Z", "once, on Tuesday, November 17, 2026 at 19:00:30"),
    ("2026-12-24 18:00", "2026-12-24T17:00:00Z", "once, on Thursday, December 24, 2026 at 18:00"),
    ("2026-12-24T18:00", "2026-12-24T17:00:00Z", "once, on Thursday, December 24, 2026 at 18:00"),
    ("2026-12-24T17:00:00Z", "2026-12-24T17:00:00Z", "once, on Thursday, December 24, 2026 at 18:00"),
    ("every 30m", "every 30m", "every 30 minutes"),
    ("Every 2 hours", "every 2h", "every 2 hours"),
    ("every 60m", "every 1h", "every hour"),
    ("every 90m", "every 90m", "every 1 hour and 30 minutes"),
    ("every 1d", "every 1d", "every 24 hours"),
    ("every 48h", "every 2d", "every 2 days"),
    ("0 7 * * *", "0 7 * * *", "every day at 07:00"),
    ("0  7 * *  mon-fri", "0 7 * * MON-FRI", "every weekday at 07:00"),
    ("30 8 * * 1,4", "30 8 * * 1,4", "every Monday and Thursday at 08:30"),
    ("0 9 * * 6,7", "0 9 * * 6,7", "every Saturday and Sunday at 09:00"),
    ("0 8,12,18 * * *", "0 8,12,18 * * *", "every day at 08:00, 12:00 and 18:00"),
    ("*/15 * * * *", "*/15 * * * *", "every 15 minutes"),
    ("5/15 * * * *", "5/15 * * * *", "every 15 minutes, from minute 5 on"),
    ("0 * * * *", "0 * * * *", "every hour"),
    ("15 * * * *", "15 * * * *", "every hour at minute 15"),
    ("0 */2 * * *", "0 */2 * * *", "every 2 hours from 00:00"),
    ("*/30 9-17 * * 1-5", "*/30 9-17 * * 1-5", "every weekday, every 30 minutes from 09:00 to 17:30"),
    ("0 9-17 * * *", "0 9-17 * * *", "every hour from 09:00 to 17:00"),
    ("0 9 1 * *", "0 9 1 * *", "on day 1 of every month at 09:00"),
    ("0 9 1,15 1,7 *", "0 9 1,15 1,7 *", "on days 1 and 15 of January and July at 09:00"),
    ("0 9 L * *", "0 9 L * *", "on the last day of every month at 09:00"),
    ("0 9 LW * *", "0 9 LW * *", "on the last weekday (Monday to Friday) of every month at 09:00"),
    ("0 9 * * 5L", "0 9 * * 5L", "on the last Friday of every month at 09:00"),
    ("0 9 * * MON#1", "0 9 * * MON#1", "on the first Monday of every month at 09:00"),
    ("0 9 * 3 TUE", "0 9 * 3 TUE", "every Tuesday in March at 09:00"),
    ("0 9 * 3 *", "0 9 * 3 *", "every day in March at 09:00"),
    ("0 9 13 * FRI", "0 9 13 * FRI", "on day 13 of every month, and also every Friday, at 09:00"),
    ("0 9 */31 * MON", "0 9 */31 * MON", "on day 1 of every month, but only if it is Monday, at 09:00"),
    (
        "5,25 3,7,11,13 * * *",
        "5,25 3,7,11,13 * * *",
        "every hour at minutes 5 and 25 in the hours of 03:00, 07:00, 11:00 and 13:00",
    ),
]


@pytest.mark.parametrize(("text", "stored", "words"), SCHEDULES, ids=[text for text, _, _ in SCHEDULES])
def test_a_schedule_is_stored_in_one_form_and_described_in_words(text: str, stored: str, words: str) -> None:
    schedule = parse(text)
    assert format_schedule(schedule) == stored
    assert read_schedule(stored) == schedule
    assert parse(stored) == schedule
    assert describe_schedule(schedule, VIENNA) == f"{words} ({VIENNA})"


INVALID = [
    ("", "none of the known forms"),
    ("tomorrow", "none of the known forms"),
    ("daily at 7", "five fields"),
    ("@daily", "@daily"),
    ("0m", "this time has passed"),
    ("every 4m", "at least 5 minutes"),
    ("every 367d", "at most 366 days"),
    ("every Monday", '"every" is followed by a number'),
    ("every 0h", "at least 5 minutes"),
    ("0 0 7 * * *", "five fields (minute hour day month weekday), this one 6"),
    ("7 * * *", "five fields"),
    ("* * * * *", "at least 5 minutes apart"),
    ("*/4 * * * *", "at least 5 minutes apart"),
    ("58,1 * * * *", "at least 5 minutes apart"),
    ("0 25 * * *", "the hour '25' is not valid (0 to 23)"),
    ("60 7 * * *", "the minute '60'"),
    ("0 7 0 * *", "the day of the month '0'"),
    ("0 7 * 13 *", "the month '13' is not valid (1 to 12 or JAN to DEC)"),
    ("0 7 * * 8", "the day of the week '8'"),
    ("0 7 * * FRI-MON", "the day of the week 'FRI-MON'"),
    ("0 7 * * MON#6", "the day of the week 'MON#6'"),
    ("0 7 * * L", "the day of the week 'L'"),
    ("0 7 L/2 * *", "the day of the month"),
    ("0/0 7 * * *", "the minute '0/0'"),
    ("0 ٧ * * *", "the hour '٧'"),
    ("2026-12-24", "write the time as"),
    ("2026-12-24 18:00:00", "write the time as"),
    ("2026-12-24T18:00+01:00", "write the time as 2026-12-24 18:00; the time zone is Europe/Vienna"),
    ("2026-02-30 18:00", "there is no such day or time"),
    ("2026-11-16 18:59", "this time has passed"),
    ("2026-11-16T18:00:30Z", "this time has passed"),
    ("2099-01-01 00:00", "more than ten years ahead"),
    ("999999d", "more than ten years ahead"),
    ("0001-01-01 00:00", "there is no such day or time"),  # in UTC, it is before the first day of the calendar
]


@pytest.mark.parametrize(("text", "problem"), INVALID, ids=[text or "empty" for text, _ in INVALID])
def test_an_error_names_the_text_the_problem_and_examples(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse(text)
    assert repr(text) in str(raised.value)
    assert problem in str(raised.value)
    assert '"every 2h"' in str(raised.value)


def test_a_time_that_has_passed_can_still_be_read_from_the_database() -> None:
    assert read_schedule("2020-01-01T10:00:00Z") == Schedule(at=datetime(2020, 1, 1, 10, tzinfo=UTC))


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Mars/Olympus"):
        parse("0 7 * * *", timezone="Mars/Olympus")


@pytest.mark.parametrize(
    ("timezone", "wall_time", "moment"),
    [
        ("Europe/Berlin", "2026-03-29 02:30", "2026-03-29T01:00:00Z"),  # skipped: 03:00 summer time
        ("America/New_York", "2026-03-08 02:00", "2026-03-08T07:00:00Z"),
        ("America/Santiago", "2026-09-06 00:15", "2026-09-06T04:00:00Z"),  # 01:00
        ("Australia/Lord_Howe", "2026-10-04 02:10", "2026-10-03T15:30:00Z"),  # 02:30
        ("Europe/Berlin", "2026-10-25 02:30", "2026-10-25T00:30:00Z"),  # twice: the first
        ("America/New_York", "2026-11-01 01:59", "2026-11-01T05:59:00Z"),
    ],
)
def test_a_time_that_the_clocks_skip_is_the_end_of_the_gap_and_a_repeated_one_the_first(
    timezone: str, wall_time: str, moment: str
) -> None:
    schedule = parse(wall_time, timezone=timezone, now=datetime(2026, 1, 1, tzinfo=UTC))
    assert format_schedule(schedule) == moment


def test_long_texts_are_refused_and_shortened_in_the_error() -> None:
    with pytest.raises(InvalidInput) as raised:
        parse("0 7 * * " + "1," * 10_000 + "1")
    assert len(str(raised.value)) < 500


@given(st.text(max_size=30) | st.from_regex(r"(every )?[0-9*/,\-LW#MON ]{1,25}[mhd]?", fullmatch=True))
def test_whatever_is_written_is_read_or_refused_in_words(text: str) -> None:
    try:
        schedule = parse(text)
    except InvalidInput:
        return
    assert read_schedule(format_schedule(schedule)) == schedule
    assert describe_schedule(schedule, VIENNA).endswith(f"({VIENNA})")
    if schedule.every is not None:
        assert schedule.every >= MIN_INTERVAL
    if schedule.at is not None:
        assert schedule.at - NOW < timedelta(days=4000)
