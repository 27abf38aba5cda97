"""The reset policy: its fields, when it resets a conversation, and changes of the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from palaver.core.errors import ConfigError
from palaver.sessions.policy import (
    FIELD_RULES,
    MAX_BACKGROUND_AGE,
    MAX_IDLE_MINUTES,
    ResetMode,
    ResetPolicy,
    ResetReason,
    compute_reset_cutoff,
    compute_reset_time,
    explain_reset,
    find_latest_daily_reset,
    find_reset_reason,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
TICK = timedelta(microseconds=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# ---- the fields --------------------------------------------------------------------------------------------


def test_by_default_nothing_is_reset() -> None:
    policy = ResetPolicy()
    assert (policy.mode, policy.idle_minutes, policy.at_hour, policy.timezone, policy.notify) == (
        ResetMode.NONE,
        1440,
        4,
        "UTC",
        True,
    )
    assert find_reset_reason(policy, last_activity=utc("1990-01-01"), now=NOON) is None


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
def test_an_invalid_value_is_rejected_with_its_key(key: str, value: object, allowed: str) -> None:
    fields: dict[str, Any] = {key: value}
    with pytest.raises(ConfigError) as caught:
        ResetPolicy(**fields)
    message = str(caught.value)
    assert message.startswith(f"{key}: ")
    assert repr(value) in message
    assert allowed in message
    assert caught.value.facts == {"key": key, "value": value, "allowed": FIELD_RULES[key].allowed}


@pytest.mark.parametrize("mode", list(ResetMode))
def test_a_mode_can_be_given_as_text(mode: ResetMode) -> None:
    text: Any = mode.value
    assert ResetPolicy(mode=text).mode is mode
    assert ResetPolicy(mode=text) == ResetPolicy(mode=mode)
    assert hash(ResetPolicy(mode=text)) == hash(ResetPolicy(mode=mode))


@pytest.mark.parametrize(
    "fields", [{"at_hour": 0}, {"at_hour": 23}, {"idle_minutes": 1}, {"idle_minutes": MAX_IDLE_MINUTES}]
)
def test_the_minimum_and_maximum_values_are_allowed(fields: dict[str, Any]) -> None:
    policy = ResetPolicy(mode=ResetMode.BOTH, **fields)
    assert find_reset_reason(policy, last_activity=NOON, now=NOON) is None


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
def test_a_conversation_is_idle_after_strictly_more_than_the_idle_time(
    silence: timedelta, reason: ResetReason | None
) -> None:
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=30)
    assert find_reset_reason(policy, last_activity=NOON - silence, now=NOON) is reason


def test_idle_time_is_elapsed_time_when_the_clock_is_set_back() -> None:
    """From 02:50 before the change to 02:10 after it only twenty minutes pass; from 01:50 it is eighty."""
    berlin = ZoneInfo("Europe/Berlin")
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    now = datetime(2026, 10, 25, 2, 10, tzinfo=berlin, fold=1)
    assert find_reset_reason(policy, last_activity=datetime(2026, 10, 25, 2, 50, tzinfo=berlin), now=now) is None
    assert find_reset_reason(policy, last_activity=datetime(2026, 10, 25, 1, 50, tzinfo=berlin), now=now) == "idle"


def test_idle_time_is_elapsed_time_when_the_clock_is_set_forward() -> None:
    """From 01:50 to 03:10 the local time advances by eighty minutes, but only twenty pass."""
    berlin = ZoneInfo("Europe/Berlin")
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    last = datetime(2026, 3, 29, 1, 50, tzinfo=berlin)
    assert find_reset_reason(policy, last_activity=last, now=datetime(2026, 3, 29, 3, 10, tzinfo=berlin)) is None


# ---- daily -------------------------------------------------------------------------------------------------

DAILY_RESETS = [
    # zone, at_hour, now, the latest reset (both in UTC)
    # an ordinary day: before the hour, on it, after it
    ("UTC", 4, "2026-11-15T03:59:59.999999", "2026-11-14T04:00"),
    ("UTC", 4, "2026-11-15T04:00", "2026-11-15T04:00"),
    ("UTC", 4, "2026-11-15T23:00", "2026-11-15T04:00"),
    ("UTC", 0, "2026-11-15T00:00", "2026-11-15T00:00"),
    ("UTC", 0, "2026-11-14T23:59:59", "2026-11-14T00:00"),
    ("UTC", 23, "2026-11-15T22:59:59", "2026-11-14T23:00"),
    ("UTC", 23, "2026-11-15T23:00", "2026-11-15T23:00"),
    ("UTC", 23, "2026-01-01T00:00", "2025-12-31T23:00"),
    # far from Greenwich the local date differs
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
    # Berlin, 25 October 2026: 02:00 to 03:00 occurs twice, from 00:00 and from 01:00 UTC
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
    # New York, 1 November 2026: 01:00 to 02:00 occurs twice, from 05:00 and from 06:00 UTC
    ("America/New_York", 1, "2026-11-01T05:00", "2026-11-01T05:00"),
    ("America/New_York", 1, "2026-11-01T06:30", "2026-11-01T05:00"),
    ("America/New_York", 0, "2026-11-01T06:30", "2026-11-01T04:00"),
    ("America/New_York", 4, "2026-11-01T08:59", "2026-10-31T08:00"),
    ("America/New_York", 4, "2026-11-01T09:00", "2026-11-01T09:00"),
    # Lord Howe changes by half an hour: 4 October 2026 02:00 to 02:30 is skipped at 15:30 UTC the day before
    ("Australia/Lord_Howe", 2, "2026-10-03T15:29:59", "2026-10-02T15:30"),
    ("Australia/Lord_Howe", 2, "2026-10-03T15:30", "2026-10-03T15:30"),
    ("Australia/Lord_Howe", 2, "2026-10-04T15:00", "2026-10-04T15:00"),
    # on 5 April 2026 01:30 occurs twice there, but 01:00 and 02:00 only once
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


@pytest.mark.parametrize(("zone", "hour", "now", "latest_reset"), DAILY_RESETS)
def test_the_daily_reset_follows_the_local_clock(zone: str, hour: int, now: str, latest_reset: str) -> None:
    policy = ResetPolicy(mode=ResetMode.DAILY, at_hour=hour, timezone=zone)
    present, reset_at = utc(now), utc(latest_reset)
    assert find_latest_daily_reset(policy, present) == reset_at
    assert find_reset_reason(policy, last_activity=reset_at - TICK, now=present) is ResetReason.DAILY
    assert find_reset_reason(policy, last_activity=reset_at, now=present) is None
    assert find_reset_reason(policy, last_activity=present, now=present) is None


def test_the_time_zone_of_the_given_times_does_not_matter() -> None:
    policy = ResetPolicy(mode=ResetMode.DAILY, at_hour=4, timezone="Europe/Berlin")
    tokyo, new_york = ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")
    last, now = utc("2026-11-15T02:59"), utc("2026-11-15T03:00")
    assert find_reset_reason(policy, last_activity=last.astimezone(tokyo), now=now.astimezone(new_york)) == "daily"
    assert find_reset_reason(policy, last_activity=now.astimezone(tokyo), now=now.astimezone(new_york)) is None


# ---- both --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ("2026-11-15T11:59", None),
        ("2026-11-15T04:00", None),
        ("2026-11-15T03:59", ResetReason.DAILY),
        ("2026-11-15T01:59", ResetReason.DAILY),  # idle since 11:59, too
        ("2026-11-14T18:00", ResetReason.DAILY),
        ("2026-11-14T17:59", ResetReason.IDLE),
        ("2026-11-14T03:00", ResetReason.DAILY),
    ],
)
def test_with_both_the_reason_is_what_came_first(last: str, reason: ResetReason | None) -> None:
    policy = ResetPolicy(mode=ResetMode.BOTH, idle_minutes=600)
    assert find_reset_reason(policy, last_activity=utc(last), now=NOON) is reason


@pytest.mark.parametrize("mode", list(ResetMode))
@pytest.mark.parametrize("ahead", [TICK, MINUTE, timedelta(days=400)])
def test_an_activity_in_the_future_does_not_reset(mode: ResetMode, ahead: timedelta) -> None:
    assert find_reset_reason(ResetPolicy(mode=mode, idle_minutes=1), last_activity=NOON + ahead, now=NOON) is None


# ---- background work ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [ResetMode.IDLE, ResetMode.DAILY, ResetMode.BOTH])
@pytest.mark.parametrize(
    ("age", "prevents_reset"),
    [
        (timedelta(0), True),
        (timedelta(hours=23, minutes=59), True),
        (MAX_BACKGROUND_AGE - TICK, True),
        (MAX_BACKGROUND_AGE, False),
        (timedelta(days=3), False),
        (-MINUTE, True),
    ],
)
def test_recent_background_work_prevents_a_reset(mode: ResetMode, age: timedelta, prevents_reset: bool) -> None:
    reason = find_reset_reason(
        ResetPolicy(mode=mode), last_activity=NOON - timedelta(days=9), now=NOON, busy_since=NOON - age
    )
    assert (reason is None) is prevents_reset


# ---- times without a zone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["last_activity", "now", "busy_since"])
def test_a_time_without_a_time_zone_is_rejected(name: str) -> None:
    times = {"last_activity": NOON, "now": NOON, "busy_since": NOON}
    times[name] = NOON.replace(tzinfo=None)
    with pytest.raises(ValueError, match=f"^{name} needs a time zone"):
        find_reset_reason(ResetPolicy(mode=ResetMode.BOTH), **times)


# ---- properties of all policies ----------------------------------------------------------------------------

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
def test_a_conversation_that_is_due_stays_due(
    policy: ResetPolicy, last: datetime, wait: timedelta, longer: timedelta
) -> None:
    later = min(last + wait + min(longer, timedelta(days=3)), utc("2036-01-01"))
    if find_reset_reason(policy, last_activity=last, now=last + wait) is not None:
        assert find_reset_reason(policy, last_activity=last, now=later) is not None


@given(policies, moments)
def test_the_latest_daily_reset_is_at_most_26_hours_ago(policy: ResetPolicy, now: datetime) -> None:
    latest = find_latest_daily_reset(policy, now)
    assert timedelta(0) <= now - latest < timedelta(hours=26)


@given(policies, moments)
def test_at_the_time_of_a_daily_reset_that_reset_is_the_latest(policy: ResetPolicy, now: datetime) -> None:
    latest = find_latest_daily_reset(policy, now)
    assert find_latest_daily_reset(policy, latest) == latest
    assert find_latest_daily_reset(policy, latest - SECOND) < latest


@given(policies, zones, zones, moments, st.timedeltas(timedelta(days=-2), timedelta(days=90)))
def test_a_conversation_is_reset_exactly_if_its_last_activity_is_before_the_cutoff(
    policy: ResetPolicy, policy_zone: str, clock_zone: str, now: datetime, silence: timedelta
) -> None:
    policy, clock = replace(policy, timezone=policy_zone), ZoneInfo(clock_zone)
    cutoff = compute_reset_cutoff(policy, now.astimezone(clock))
    around_cutoff = () if cutoff is None else (cutoff - TICK, cutoff, cutoff + TICK)
    for last in (now - silence, *around_cutoff):
        reason = find_reset_reason(policy, last_activity=last.astimezone(clock), now=now.astimezone(clock))
        assert (reason is None) is (cutoff is None or last >= cutoff)


@given(policies, zones, moments, st.timedeltas(timedelta(0), timedelta(days=40)))
def test_the_reason_of_a_reset_and_its_time_do_not_depend_on_when_it_is_noticed(
    policy: ResetPolicy, zone: str, last: datetime, wait: timedelta
) -> None:
    policy = replace(policy, timezone=zone)
    due = compute_reset_time(policy, last)
    if due is None:
        assert policy.mode is ResetMode.NONE
        return
    assert find_reset_reason(policy, last_activity=last, now=due - TICK) is None
    reason = find_reset_reason(policy, last_activity=last, now=due + TICK)
    assert reason is not None
    assert find_reset_reason(policy, last_activity=last, now=due + TICK + wait) is reason


# ---- the explanation for people ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "fields", "sentence"),
    [
        (
            ResetReason.IDLE,
            {},
            "This conversation was idle for more than 24 hours, so a new one was started. "
            "Use /restore to go back to the old one.",
        ),
        (
            ResetReason.DAILY,
            {"at_hour": 4, "timezone": "Europe/Berlin"},
            "Conversations here restart every day at 04:00 (Europe/Berlin), so a new one was started. "
            "Use /restore to go back to the old one.",
        ),
    ],
)
def test_the_reason_of_a_reset_is_explained(reason: ResetReason, fields: dict[str, Any], sentence: str) -> None:
    assert explain_reset(reason, ResetPolicy(mode=ResetMode.BOTH, **fields)) == sentence


@pytest.mark.parametrize(
    ("reason", "mode", "start"),
    [
        (ResetReason.IDLE, ResetMode.DAILY, "This conversation was idle for a while, so"),
        (ResetReason.IDLE, ResetMode.NONE, "This conversation was idle for a while, so"),
        (ResetReason.DAILY, ResetMode.IDLE, "Conversations here restarted every day, so"),
    ],
)
def test_the_reason_of_a_policy_that_has_changed_names_no_time(
    reason: ResetReason, mode: ResetMode, start: str
) -> None:
    assert explain_reset(reason, ResetPolicy(mode=mode)).startswith(start)


@pytest.mark.parametrize(
    ("minutes", "duration"),
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
def test_the_idle_time_is_shown_in_the_unit_that_fits(minutes: int, duration: str) -> None:
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=minutes)
    assert f"more than {duration}, so" in explain_reset(ResetReason.IDLE, policy)
