"""The reset policy: when a conversation restarts automatically.

Owns `ResetPolicy`, the valid values of its fields, the rule that applies it (`find_reset_reason`), and the
sentence that explains a reset to a person. The store carries out a reset; `gateway_config` says which policy
applies where.

Always true: elapsed time is measured between instants, never between local clock times, so a change to or from
daylight saving time neither resets a conversation nor keeps it from a reset; a conversation with running
background work is never reset; and a conversation that is due for a reset stays due until a person writes.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, assert_never

from palaver.core.dataclass import dataclass
from palaver.core.errors import ConfigError
from palaver.core.texts import Text, say, say_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from zoneinfo import ZoneInfo

MAX_BACKGROUND_AGE: Final = timedelta(hours=24)  # older background work is abandoned and does not prevent a reset
MAX_IDLE_MINUTES: Final = 100 * 365 * 24 * 60  # a hundred years; for longer, use the mode `none`


class ResetMode(StrEnum):
    NONE = "none"  # nothing: only a person resets a conversation
    IDLE = "idle"  # no message for a while
    DAILY = "daily"  # a certain hour of the day
    BOTH = "both"  # whichever of the two comes first


class ResetReason(StrEnum):
    IDLE = "idle"
    DAILY = "daily"


@dataclass(frozen=True, kw_only=True)
class ResetPolicy:
    """The rule by which conversations are reset; creating one with an invalid value raises ConfigError."""

    mode: ResetMode = ResetMode.NONE
    idle_minutes: int = 1440
    at_hour: int = 4  # local time in `timezone`
    timezone: str = "UTC"  # an IANA name
    notify: bool = True  # tell the person

    def __post_init__(self) -> None:
        for field in fields(self):
            check_field(field.name, getattr(self, field.name))
        object.__setattr__(self, "mode", ResetMode(self.mode))

    @property
    def clock(self) -> str:
        """The local time of the daily reset: `04:00`."""
        return f"{self.at_hour:02}:00"

    @property
    def zone(self) -> ZoneInfo:
        from zoneinfo import ZoneInfo  # most programs that use the library need no time zones

        return ZoneInfo(self.timezone)

    def to_dict(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"mode": self.mode.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ResetPolicy:
        """Read what `to_dict` returned; keys that a newer version may have added are ignored."""
        return cls(**{each.name: data[each.name] for each in fields(cls) if each.name in data})


@dataclass(frozen=True)
class FieldRule:
    """The valid values of a field: a test, and a description of what it accepts."""

    accepts: Callable[[object], bool]
    allowed: str


def check_field(key: str, value: object) -> None:
    """Raise ConfigError, with the key, the value and what is allowed, when the value is not valid for that field."""
    rule = FIELD_RULES[key]
    if not rule.accepts(value):
        raise ConfigError(
            f"{key}: {value!r} is not allowed ({rule.allowed})", key=key, value=value, allowed=rule.allowed
        )


def find_reset_reason(
    policy: ResetPolicy, *, last_activity: datetime, now: datetime, busy_since: datetime | None = None
) -> ResetReason | None:
    """Return why a conversation is due for a reset at `now`; None when it continues.

    `last_activity` is the time of the last message from a human. `busy_since` is when the oldest running background
    work started, if any: work younger than MAX_BACKGROUND_AGE prevents the reset. All times must be aware.
    """
    if policy.mode is ResetMode.NONE:
        return None
    last_activity, now = _to_utc("last_activity", last_activity), _to_utc("now", now)
    if busy_since is not None and now - _to_utc("busy_since", busy_since) < MAX_BACKGROUND_AGE:
        return None
    idle_time = timedelta(minutes=policy.idle_minutes)
    is_idle = policy.mode is not ResetMode.DAILY and now - last_activity > idle_time
    is_past_hour = policy.mode is not ResetMode.IDLE and last_activity < find_latest_daily_reset(policy, now)
    if is_idle and is_past_hour:  # what came first, so that the reason does not depend on when this is asked
        is_idle = last_activity + idle_time < find_next_daily_reset(policy, last_activity)
    if is_idle:
        return ResetReason.IDLE
    return ResetReason.DAILY if is_past_hour else None


def compute_reset_cutoff(policy: ResetPolicy, now: datetime) -> datetime | None:
    """Return the oldest last activity with which a conversation is not reset at `now`; None when there is no limit.

    This is the rule of `find_reset_reason` without background work, in a form that a database can apply.
    """
    if policy.mode is ResetMode.NONE:
        return None
    idle = _to_utc("now", now) - timedelta(minutes=policy.idle_minutes)
    if policy.mode is ResetMode.IDLE:
        return idle
    boundary = find_latest_daily_reset(policy, now)
    return boundary if policy.mode is ResetMode.DAILY else max(idle, boundary)


def find_latest_daily_reset(policy: ResetPolicy, now: datetime) -> datetime:
    """Return the latest instant up to `now`, in UTC, at which the policy's hour began in its time zone."""
    zone, now = policy.zone, _to_utc("now", now)
    today = now.astimezone(zone).date()
    # A clock set back across midnight has passed tomorrow's hour already; a gap delays yesterday's.
    latest_first = (_find_hour(today + timedelta(days=offset), policy.at_hour, zone) for offset in (1, 0, -1, -2))
    return next(instant for instant in latest_first if instant <= now)


def find_next_daily_reset(policy: ResetPolicy, after: datetime) -> datetime:
    """Return the first instant after `after`, in UTC, at which the policy's hour begins in its time zone."""
    zone, after = policy.zone, _to_utc("after", after)
    today = after.astimezone(zone).date()
    earliest_first = (_find_hour(today + timedelta(days=offset), policy.at_hour, zone) for offset in (-1, 0, 1, 2))
    return next(instant for instant in earliest_first if instant > after)


def compute_reset_time(policy: ResetPolicy, last_activity: datetime) -> datetime | None:
    """Return the instant, in UTC, up to which a conversation is not reset without a message; None when it never is."""
    if policy.mode is ResetMode.NONE:
        return None
    idle = _to_utc("last_activity", last_activity) + timedelta(minutes=policy.idle_minutes)
    if policy.mode is ResetMode.IDLE:
        return idle
    boundary = find_next_daily_reset(policy, last_activity)
    return boundary if policy.mode is ResetMode.DAILY else min(idle, boundary)


def explain_reset(
    reason: ResetReason, policy: ResetPolicy, profile: str | None = None, kept_profile: str | None = None
) -> Text:
    """Return the sentence that tells a person why their conversation was reset.

    `profile` is the profile of the old conversation, if the policy is that of the profile; `kept_profile` is the one
    that the new conversation has taken over.
    """
    old, where = say("reset.this", "This conversation"), say("reset.here", "here")
    if profile is not None:
        old = say("reset.this_profile", "The conversation with the profile “{profile}”", profile=profile)
        where = say("reset.here_profile", "with the profile “{profile}”", profile=profile)
    match reason:
        case ResetReason.IDLE if policy.mode not in {ResetMode.IDLE, ResetMode.BOTH}:  # it has changed since
            why = say("reset.was_idle", "{old} was idle for a while", old=old)
        case ResetReason.IDLE:
            time = format_minutes(policy.idle_minutes)
            why = say("reset.was_idle_for", "{old} was idle for more than {time}", old=old, time=time)
        case ResetReason.DAILY if policy.mode not in {ResetMode.DAILY, ResetMode.BOTH}:
            why = say("reset.was_daily", "Conversations {where} restarted every day", where=where)
        case ResetReason.DAILY:
            why = say(
                "reset.is_daily",
                "Conversations {where} restart every day at {time} ({timezone})",
                where=where,
                time=policy.clock,
                timezone=policy.timezone,
            )
        case _:
            assert_never(reason)
    kept: str = ""
    if kept_profile is not None and kept_profile == profile:
        kept = say("reset.kept", " with the same profile")
    elif kept_profile is not None:
        kept = say("reset.kept_profile", " with the same profile, “{profile}”", profile=kept_profile)
    return say(
        "reset.explained",
        "{why}, so a new one was started{kept}. Use /restore to go back to the old one.",
        why=why,
        kept=kept,
    )


def _to_utc(name: str, moment: datetime) -> datetime:
    """Return the moment in UTC, because Python compares two times in the same zone by their local clock time."""
    if moment.utcoffset() is None:
        raise ValueError(f"{name} needs a time zone: {moment.isoformat()} is ambiguous")
    return moment.astimezone(UTC)


def _find_hour(day: date, hour: int, zone: ZoneInfo) -> datetime:
    """Return the instant in UTC at which `hour` begins in `zone` on `day`.

    If the hour occurs twice that day, it is the first; if it is skipped, it is the end of the gap.
    """
    local_time = datetime.combine(day, time(hour))
    late = local_time.replace(tzinfo=zone).astimezone(UTC)
    if _to_local(late, zone) == local_time:
        return late
    # Skipped: with the offset from before the gap, the hour is at or after the gap's end; with the offset from
    # after the gap, it is before it. The end is the first second with a later local time.
    early = local_time.replace(tzinfo=zone, fold=1).astimezone(UTC)
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        if _to_local(middle, zone) > local_time:
            late = middle
        else:
            early = middle
    return late


def _to_local(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time in `zone` at an instant, without time zone."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def format_minutes(minutes: int) -> Text:
    """Format minutes in the largest unit that divides them; one day is written as 24 hours."""
    if minutes % 1440 == 0 and minutes > 1440:
        return count_days(minutes // 1440)
    return count_hours(minutes // 60) if minutes % 60 == 0 else count_minutes(minutes)


def count_days(number: int) -> Text:
    return say_count("time.days", number, "{count} day", "{count} days")


def count_hours(number: int) -> Text:
    return say_count("time.hours", number, "{count} hour", "{count} hours")


def count_minutes(number: int) -> Text:
    return say_count("time.minutes", number, "{count} minute", "{count} minutes")


def _is_timezone(value: object) -> bool:
    if not isinstance(value, str):
        return False
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown; not a name; a folder or unreadable
        return False
    return True


def _is_between(low: int, high: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


FIELD_RULES: Mapping[str, FieldRule] = MappingProxyType(
    {
        "mode": FieldRule(
            lambda value: value in tuple(ResetMode), say("allowed.none_idle_daily_both", "none, idle, daily or both")
        ),
        "idle_minutes": FieldRule(
            _is_between(1, MAX_IDLE_MINUTES), f"a whole number of minutes, 1 to {MAX_IDLE_MINUTES}"
        ),
        "at_hour": FieldRule(_is_between(0, 23), say("allowed.hour", "0 to 23")),
        "timezone": FieldRule(
            _is_timezone, say("allowed.iana_name_europe_berlin", "an IANA name such as Europe/Berlin or UTC")
        ),
        "notify": FieldRule(lambda value: isinstance(value, bool), say("allowed.true_false", "true or false")),
    }
)
