"""When a conversation starts afresh: the fields of a policy, the rule, and the clocks it must survive."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.domain.errors import ConfigError
from palaver.domain.policy import (
    BACKGROUND_MAX_AGE,
    FIELD_RULES,
    MAX_IDLE_MINUTES,
    ResetMode,
    ResetPolicy,
    ResetReason,
    due,
    explain,
    horizon,
    latest_boundary,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
TICK = timedelta(microseconds=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# ---- the fields --------------------------------------------------------------------------------------------


def test_by_default_nothing_is_ever_reset() -> None:
    policy = ResetPolicy()
    assert (policy.mode, policy.idle_minutes, policy.at_hour, policy.timezone, policy.notify) == (
        ResetMode.NONE,
        1440,
        4,
        "UTC",
        True,
    )
    assert due(policy, last_activity=utc("1990-01-01"), now=NOON) is None


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("at_hour", 24, "0 to 23"),
        ("at_hour", -1, "0 to 23"),
        ("at_hour", True, "0 to 23"),
        ("at_hour", 4.0, "0 to 23"),
        ("at_hour", "4", "0 to 23"),
        ("at_hour", None, "0 to 23"),
        ("idle_minutes", 0, "1 to"),
        ("idle_minutes", -5, "1 to"),
        ("idle_minutes", 1.5, "1 to"),
        ("idle_minutes", True, "1 to"),
        ("idle_minutes", MAX_IDLE_MINUTES + 1, "1 to"),
        ("mode", "weekly", "none, idle, daily or both"),
        ("mode", None, "none, idle, daily or both"),
        ("mode", ["idle"], "none, idle, daily or both"),
        ("timezone", "Europe/Atlantis", "IANA"),
        ("timezone", "Europe", "IANA"),
        ("timezone", "", "IANA"),
        ("timezone", "../../etc/passwd", "IANA"),
        ("timezone", "/etc/localtime", "IANA"),
        ("timezone", "nul\0", "IANA"),
        ("timezone", "zone.tab", "IANA"),
        ("timezone", 1, "IANA"),
        ("notify", "yes", "true or false"),
        ("notify", 1, "true or false"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_by_name(key: str, value: object, allowed: str) -> None:
    fields: dict[str, Any] = {key: value}
    with pytest.raises(ConfigError) as caught:
        ResetPolicy(**fields)
    message = str(caught.value)
    assert message.startswith(f"{key}: ")
    assert repr(value) in message
    assert allowed in message
    assert caught.value.facts == {"key": key, "value": value, "allowed": FIELD_RULES[key].allowed}


@pytest.mark.parametrize("mode", list(ResetMode))
def test_a_mode_may_be_given_as_its_name(mode: ResetMode) -> None:
    named: Any = mode.value
    assert ResetPolicy(mode=named).mode is mode
    assert ResetPolicy(mode=named) == ResetPolicy(mode=mode)
    assert hash(ResetPolicy(mode=named)) == hash(ResetPolicy(mode=mode))


@pytest.mark.parametrize(
    "fields", [{"at_hour": 0}, {"at_hour": 23}, {"idle_minutes": 1}, {"idle_minutes": MAX_IDLE_MINUTES}]
)
def test_the_outermost_values_are_allowed(fields: dict[str, Any]) -> None:
    policy = ResetPolicy(mode=ResetMode.BOTH, **fields)
    assert due(policy, last_activity=NOON, now=NOON) is None


# ---- idle --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("silence", "reason"),
    [
        (timedelta(0), None),
        (29 * MINUTE, None),
        (30 * MINUTE - TICK, None),
        (30 * MINUTE, None),
        (30 * MINUTE + TICK, ResetReason.IDLE),
        (31 * MINUTE, ResetReason.IDLE),
        (timedelta(days=4000), ResetReason.IDLE),
    ],
)
def test_idle_means_strictly_longer_than_allowed(silence: timedelta, reason: ResetReason | None) -> None:
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=30)
    assert due(policy, last_activity=NOON - silence, now=NOON) is reason


def test_idle_time_is_elapsed_time_also_when_the_clock_is_set_back_meanwhile() -> None:
    """From 02:50 in summer time to 02:10 in winter time only twenty minutes pass; from 01:50 it is eighty."""
    berlin = ZoneInfo("Europe/Berlin")
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    now = datetime(2026, 10, 25, 2, 10, tzinfo=berlin, fold=1)
    assert due(policy, last_activity=datetime(2026, 10, 25, 2, 50, tzinfo=berlin), now=now) is None
    assert due(policy, last_activity=datetime(2026, 10, 25, 1, 50, tzinfo=berlin), now=now) == "idle"


def test_idle_time_is_elapsed_time_also_when_the_clock_is_set_forward_meanwhile() -> None:
    """Between 01:50 and 03:10 on that morning the clock face says eighty minutes, but twenty pass."""
    berlin = ZoneInfo("Europe/Berlin")
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    last = datetime(2026, 3, 29, 1, 50, tzinfo=berlin)
    assert due(policy, last_activity=last, now=datetime(2026, 3, 29, 3, 10, tzinfo=berlin)) is None


# ---- daily -------------------------------------------------------------------------------------------------

BOUNDARIES = [
    # zone, at_hour, now, the latest boundary (both in UTC)
    # an ordinary day: before the hour, on it, after it
    ("UTC", 4, "2026-11-15T03:59:59.999999", "2026-11-14T04:00"),
    ("UTC", 4, "2026-11-15T04:00", "2026-11-15T04:00"),
    ("UTC", 4, "2026-11-15T23:00", "2026-11-15T04:00"),
    ("UTC", 0, "2026-11-15T00:00", "2026-11-15T00:00"),
    ("UTC", 0, "2026-11-14T23:59:59", "2026-11-14T00:00"),
    ("UTC", 23, "2026-11-15T22:59:59", "2026-11-14T23:00"),
    ("UTC", 23, "2026-11-15T23:00", "2026-11-15T23:00"),
    ("UTC", 23, "2026-01-01T00:00", "2025-12-31T23:00"),
    # far from Greenwich the local day is another day
    ("Pacific/Kiritimati", 4, "2026-11-14T14:00", "2026-11-14T14:00"),
    ("Pacific/Kiritimati", 4, "2026-11-14T13:59", "2026-11-13T14:00"),
    ("Pacific/Pago_Pago", 23, "2026-11-15T09:59", "2026-11-14T10:00"),
    ("Pacific/Pago_Pago", 23, "2026-11-15T10:00", "2026-11-15T10:00"),
    ("Asia/Kolkata", 4, "2026-11-14T22:30", "2026-11-14T22:30"),
    # Berlin, 29 March 2026: 02:00 to 03:00 is skipped at 01:00 UTC
    ("Europe/Berlin", 4, "2026-03-29T01:59", "2026-03-28T03:00"),
    ("Europe/Berlin", 4, "2026-03-29T02:00", "2026-03-29T02:00"),
    ("Europe/Berlin", 2, "2026-03-29T00:59:59", "2026-03-28T01:00"),
    ("Europe/Berlin", 2, "2026-03-29T01:00", "2026-03-29T01:00"),
    ("Europe/Berlin", 2, "2026-03-29T12:00", "2026-03-29T01:00"),
    ("Europe/Berlin", 2, "2026-03-30T00:00", "2026-03-30T00:00"),
    ("Europe/Berlin", 3, "2026-03-29T01:00", "2026-03-29T01:00"),
    ("Europe/Berlin", 0, "2026-03-29T12:00", "2026-03-28T23:00"),
    ("Europe/Berlin", 23, "2026-03-29T21:00", "2026-03-29T21:00"),
    # Berlin, 25 October 2026: 02:00 to 03:00 comes twice, from 00:00 and from 01:00 UTC
    ("Europe/Berlin", 2, "2026-10-24T23:59", "2026-10-24T00:00"),
    ("Europe/Berlin", 2, "2026-10-25T00:00", "2026-10-25T00:00"),
    ("Europe/Berlin", 2, "2026-10-25T01:00", "2026-10-25T00:00"),
    ("Europe/Berlin", 2, "2026-10-25T01:30", "2026-10-25T00:00"),
    ("Europe/Berlin", 4, "2026-10-25T02:59", "2026-10-24T02:00"),
    ("Europe/Berlin", 4, "2026-10-25T03:00", "2026-10-25T03:00"),
    ("Europe/Berlin", 0, "2026-10-25T12:00", "2026-10-24T22:00"),
    ("Europe/Berlin", 23, "2026-10-25T22:00", "2026-10-25T22:00"),
    # New York, 8 March 2026: 02:00 to 03:00 is skipped at 07:00 UTC
    ("America/New_York", 2, "2026-03-08T06:59:59", "2026-03-07T07:00"),
    ("America/New_York", 2, "2026-03-08T07:00", "2026-03-08T07:00"),
    ("America/New_York", 4, "2026-03-08T08:00", "2026-03-08T08:00"),
    ("America/New_York", 23, "2026-03-09T03:00", "2026-03-09T03:00"),
    # New York, 1 November 2026: 01:00 to 02:00 comes twice, from 05:00 and from 06:00 UTC
    ("America/New_York", 1, "2026-11-01T05:00", "2026-11-01T05:00"),
    ("America/New_York", 1, "2026-11-01T06:30", "2026-11-01T05:00"),
    ("America/New_York", 0, "2026-11-01T06:30", "2026-11-01T04:00"),
    ("America/New_York", 4, "2026-11-01T08:59", "2026-10-31T08:00"),
    ("America/New_York", 4, "2026-11-01T09:00", "2026-11-01T09:00"),
    # Lord Howe changes by half an hour: 4 October 2026 02:00 to 02:30 is skipped at 15:30 UTC the day before
    ("Australia/Lord_Howe", 2, "2026-10-03T15:29:59", "2026-10-02T15:30"),
    ("Australia/Lord_Howe", 2, "2026-10-03T15:30", "2026-10-03T15:30"),
    ("Australia/Lord_Howe", 2, "2026-10-04T15:00", "2026-10-04T15:00"),
    # and on 5 April 2026 half past one comes twice, but one o'clock and two o'clock only once
    ("Australia/Lord_Howe", 1, "2026-04-04T15:15", "2026-04-04T14:00"),
    ("Australia/Lord_Howe", 2, "2026-04-04T15:29", "2026-04-03T15:00"),
    ("Australia/Lord_Howe", 2, "2026-04-04T15:30", "2026-04-04T15:30"),
    # Cairo skips midnight itself; Havana has it twice
    ("Africa/Cairo", 0, "2026-04-23T21:59", "2026-04-22T22:00"),
    ("Africa/Cairo", 0, "2026-04-23T22:00", "2026-04-23T22:00"),
    ("America/Havana", 0, "2026-11-01T04:00", "2026-11-01T04:00"),
    ("America/Havana", 0, "2026-11-01T05:30", "2026-11-01T04:00"),
    # São Paulo went from midnight back to 23:00 of the day before
    ("America/Sao_Paulo", 23, "2018-02-18T02:30", "2018-02-18T01:00"),
    # St. John's went from one minute past midnight back to 23:01 of the day before, and forward to 01:01
    ("America/St_Johns", 0, "2010-11-07T02:31", "2010-11-07T02:30"),
    ("America/St_Johns", 0, "2010-11-07T03:15", "2010-11-07T02:30"),
    ("America/St_Johns", 1, "2010-03-14T03:30", "2010-03-13T04:30"),
    ("America/St_Johns", 1, "2010-03-14T03:31", "2010-03-14T03:31"),
    # Samoa had no 30 December 2011 at all
    ("Pacific/Apia", 4, "2011-12-30T09:59", "2011-12-29T14:00"),
    ("Pacific/Apia", 4, "2011-12-30T10:00", "2011-12-30T10:00"),
    ("Pacific/Apia", 4, "2011-12-30T14:00", "2011-12-30T14:00"),
]


@pytest.mark.parametrize(("zone", "hour", "now", "boundary"), BOUNDARIES)
def test_the_daily_boundary_follows_the_local_clock(zone: str, hour: int, now: str, boundary: str) -> None:
    policy = ResetPolicy(mode=ResetMode.DAILY, at_hour=hour, timezone=zone)
    present, struck = utc(now), utc(boundary)
    assert latest_boundary(policy, present) == struck
    assert due(policy, last_activity=struck - TICK, now=present) is ResetReason.DAILY
    assert due(policy, last_activity=struck, now=present) is None
    assert due(policy, last_activity=present, now=present) is None


def test_the_zone_in_which_the_times_are_given_does_not_matter() -> None:
    policy = ResetPolicy(mode=ResetMode.DAILY, at_hour=4, timezone="Europe/Berlin")
    tokyo, new_york = ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")
    last, now = utc("2026-11-15T02:59"), utc("2026-11-15T03:00")
    assert due(policy, last_activity=last.astimezone(tokyo), now=now.astimezone(new_york)) == "daily"
    assert due(policy, last_activity=now.astimezone(tokyo), now=now.astimezone(new_york)) is None


# ---- both --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ("2026-11-15T11:59", None),
        ("2026-11-15T04:00", None),
        ("2026-11-15T03:59", ResetReason.DAILY),
        ("2026-11-15T02:00", ResetReason.DAILY),
        ("2026-11-15T01:59", ResetReason.IDLE),
    ],
)
def test_with_both_the_idle_rule_is_asked_first(last: str, reason: ResetReason | None) -> None:
    policy = ResetPolicy(mode=ResetMode.BOTH, idle_minutes=600)
    assert due(policy, last_activity=utc(last), now=NOON) is reason


@pytest.mark.parametrize("mode", list(ResetMode))
@pytest.mark.parametrize("ahead", [TICK, MINUTE, timedelta(days=400)])
def test_a_clock_that_was_set_back_resets_nothing(mode: ResetMode, ahead: timedelta) -> None:
    assert due(ResetPolicy(mode=mode, idle_minutes=1), last_activity=NOON + ahead, now=NOON) is None


# ---- background work ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [ResetMode.IDLE, ResetMode.DAILY, ResetMode.BOTH])
@pytest.mark.parametrize(
    ("age", "kept"),
    [
        (timedelta(0), True),
        (timedelta(hours=23, minutes=59), True),
        (BACKGROUND_MAX_AGE - TICK, True),
        (BACKGROUND_MAX_AGE, False),
        (timedelta(days=3), False),
        (-MINUTE, True),
    ],
)
def test_running_work_keeps_a_conversation_until_it_is_forgotten(mode: ResetMode, age: timedelta, kept: bool) -> None:
    reason = due(ResetPolicy(mode=mode), last_activity=NOON - timedelta(days=9), now=NOON, busy_since=NOON - age)
    assert (reason is None) is kept


# ---- times without a zone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["last_activity", "now", "busy_since"])
def test_a_time_without_a_zone_is_refused(name: str) -> None:
    times = {"last_activity": NOON, "now": NOON, "busy_since": NOON}
    times[name] = NOON.replace(tzinfo=None)
    with pytest.raises(ValueError, match=f"^{name} needs a time zone"):
        due(ResetPolicy(mode=ResetMode.BOTH), **times)


# ---- what holds for all of them ----------------------------------------------------------------------------

policies = st.builds(
    ResetPolicy,
    mode=st.sampled_from(ResetMode),
    idle_minutes=st.integers(1, 100_000),
    at_hour=st.integers(0, 23),
    timezone=st.sampled_from(
        [
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "America/St_Johns",
            "America/Havana",
            "Australia/Lord_Howe",
            "Africa/Cairo",
            "Pacific/Apia",
            "Asia/Kathmandu",
        ]
    ),
)
moments = st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
zones = st.timezone_keys(allow_prefix=False)


@given(policies, moments, st.timedeltas(timedelta(0), timedelta(days=3)), st.timedeltas(timedelta(0)))
def test_what_is_due_stays_due(policy: ResetPolicy, last: datetime, wait: timedelta, longer: timedelta) -> None:
    later = min(last + wait + min(longer, timedelta(days=3)), utc("2036-01-01"))
    if due(policy, last_activity=last, now=last + wait) is not None:
        assert due(policy, last_activity=last, now=later) is not None


@given(policies, moments)
def test_the_hour_struck_within_the_last_day_or_two(policy: ResetPolicy, now: datetime) -> None:
    struck = latest_boundary(policy, now)
    assert timedelta(0) <= now - struck < timedelta(hours=26)


@given(policies, moments)
def test_a_boundary_is_its_own_latest_boundary(policy: ResetPolicy, now: datetime) -> None:
    struck = latest_boundary(policy, now)
    assert latest_boundary(policy, struck) == struck
    assert latest_boundary(policy, struck - SECOND) < struck


@given(policies, zones, zones, moments, st.timedeltas(timedelta(days=-2), timedelta(days=90)))
def test_a_conversation_goes_on_exactly_when_its_last_activity_is_not_before_the_horizon(
    policy: ResetPolicy, of_the_policy: str, of_the_clock: str, now: datetime, silence: timedelta
) -> None:
    policy, clock = replace(policy, timezone=of_the_policy), ZoneInfo(of_the_clock)
    oldest = horizon(policy, now.astimezone(clock))
    edge = () if oldest is None else (oldest - TICK, oldest, oldest + TICK)
    for last in (now - silence, *edge):
        reason = due(policy, last_activity=last.astimezone(clock), now=now.astimezone(clock))
        assert (reason is None) is (oldest is None or last >= oldest)


# ---- what a person is told ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "fields", "sentence"),
    [
        (
            ResetReason.IDLE,
            {},
            "This conversation was idle for more than 24 hours, so a new one began. /restore brings the old one back.",
        ),
        (
            ResetReason.DAILY,
            {"at_hour": 4, "timezone": "Europe/Berlin"},
            "Conversations here start afresh every day at 04:00 (Europe/Berlin), so a new one began. "
            "/restore brings the old one back.",
        ),
    ],
)
def test_a_person_reads_why(reason: ResetReason, fields: dict[str, Any], sentence: str) -> None:
    assert explain(reason, ResetPolicy(mode=ResetMode.BOTH, **fields)) == sentence


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (1, "1 minute"),
        (45, "45 minutes"),
        (60, "1 hour"),
        (90, "90 minutes"),
        (120, "2 hours"),
        (1440, "24 hours"),
        (1500, "25 hours"),
        (2880, "2 days"),
        (10_080, "7 days"),
    ],
)
def test_the_time_is_told_in_the_unit_that_fits(minutes: int, words: str) -> None:
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=minutes)
    assert f"more than {words}, so" in explain(ResetReason.IDLE, policy)
