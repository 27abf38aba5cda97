"""When a conversation starts afresh by itself: the reset policy and the rule that applies it.

Owns `ResetPolicy`, what each of its fields may hold, the rule `due`, and the sentence that tells a person
about a reset. What a reset does to a session is the business of the store; which policy holds where is the
business of `gateway`.

Always true: elapsed time is measured between instants, never between clock faces, so a change to or from
summer time neither resets a conversation nor saves one; a conversation with running background work is never
reset; and one that is due stays due until somebody speaks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from palaver.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BACKGROUND_MAX_AGE: Final = timedelta(hours=24)  # older background work was forgotten and pins nothing
MAX_IDLE_MINUTES: Final = 100 * 365 * 24 * 60  # a hundred years: longer is spelled `none`


class ResetMode(StrEnum):
    """What makes a conversation start afresh."""

    NONE = "none"  # nothing but a person's word
    IDLE = "idle"  # nobody spoke for a while
    DAILY = "daily"  # a certain hour has passed
    BOTH = "both"  # whichever of the two comes first


class ResetReason(StrEnum):
    """Why a conversation started afresh."""

    IDLE = "idle"
    DAILY = "daily"


@dataclass(frozen=True, kw_only=True)
class ResetPolicy:
    """When conversations start afresh; made only of values that are allowed."""

    mode: ResetMode = ResetMode.NONE
    idle_minutes: int = 1440
    at_hour: int = 4  # on the wall clock of `timezone`
    timezone: str = "UTC"  # an IANA name
    notify: bool = True  # tell the person

    def __post_init__(self) -> None:
        for field in fields(self):
            check_field(field.name, getattr(self, field.name))
        object.__setattr__(self, "mode", ResetMode(self.mode))

    @property
    def zone(self) -> ZoneInfo:
        """The time zone whose clock `at_hour` is read from."""
        return ZoneInfo(self.timezone)


@dataclass(frozen=True)
class FieldRule:
    """What one field may hold: a test, and the same thing in words."""

    holds: Callable[[object], bool]
    allowed: str


def check_field(key: str, value: object) -> None:
    """Raise ConfigError, naming key, value and what is allowed, unless that field may hold the value."""
    rule = FIELD_RULES[key]
    if not rule.holds(value):
        raise ConfigError(
            f"{key}: {value!r} is not allowed ({rule.allowed})", key=key, value=value, allowed=rule.allowed
        )


def due(
    policy: ResetPolicy, *, last_activity: datetime, now: datetime, busy_since: datetime | None = None
) -> ResetReason | None:
    """Why a conversation that was last spoken in at `last_activity` starts afresh now; None when it goes on.

    Only what a human did counts as activity. `busy_since` is when its oldest background work began, if any
    is running: younger than BACKGROUND_MAX_AGE it keeps the conversation. All times must be aware.
    """
    if policy.mode is ResetMode.NONE:
        return None
    last_activity, now = _instant("last_activity", last_activity), _instant("now", now)
    if busy_since is not None and now - _instant("busy_since", busy_since) < BACKGROUND_MAX_AGE:
        return None
    if policy.mode is not ResetMode.DAILY and now - last_activity > timedelta(minutes=policy.idle_minutes):
        return ResetReason.IDLE
    if policy.mode is not ResetMode.IDLE and last_activity < latest_boundary(policy, now):
        return ResetReason.DAILY
    return None


def horizon(policy: ResetPolicy, now: datetime) -> datetime | None:
    """The oldest last activity with which a conversation still goes on at `now`; None when any will do.

    The same rule as `due` without background work, turned around, so that a database can apply it.
    """
    if policy.mode is ResetMode.NONE:
        return None
    idle = _instant("now", now) - timedelta(minutes=policy.idle_minutes)
    if policy.mode is ResetMode.IDLE:
        return idle
    boundary = latest_boundary(policy, now)
    return boundary if policy.mode is ResetMode.DAILY else max(idle, boundary)


def latest_boundary(policy: ResetPolicy, now: datetime) -> datetime:
    """The last instant at or before `now`, in UTC, at which the policy's hour struck in its time zone."""
    zone, now = policy.zone, _instant("now", now)
    today = now.astimezone(zone).date()
    # A clock set back across midnight has struck tomorrow's hour already; a gap delays yesterday's.
    latest_first = (_strike(today + timedelta(days=offset), policy.at_hour, zone) for offset in (1, 0, -1, -2))
    return next(instant for instant in latest_first if instant <= now)


def explain(reason: ResetReason, policy: ResetPolicy) -> str:
    """The sentence a person reads when their conversation was reset."""
    match reason:
        case ResetReason.IDLE:
            why = f"This conversation was idle for more than {_duration(policy.idle_minutes)}"
        case ResetReason.DAILY:
            why = f"Conversations here start afresh every day at {policy.at_hour:02}:00 ({policy.timezone})"
        case _:
            assert_never(reason)
    return f"{why}, so a new one began. /restore brings the old one back."


# ---- time --------------------------------------------------------------------------------------------------


def _instant(name: str, moment: datetime) -> datetime:
    """The moment in UTC, because two times of one zone are compared by their clock faces."""
    if moment.utcoffset() is None:
        raise ValueError(f"{name} needs a time zone: {moment.isoformat()} could be any of many instants")
    return moment.astimezone(UTC)


def _strike(day: date, hour: int, zone: ZoneInfo) -> datetime:
    """The instant in UTC at which `hour` strikes in `zone` on `day`.

    Of an hour that comes twice that day, the first; for an hour that is skipped, the end of the gap.
    """
    face = datetime.combine(day, time(hour))
    late = face.replace(tzinfo=zone).astimezone(UTC)
    if _face(late, zone) == face:
        return late
    # Skipped: read with the offset from before the gap the hour lies at or after its end, and with the
    # offset from after the gap it lies before it. The end is the first second that shows a later face.
    early = face.replace(tzinfo=zone, fold=1).astimezone(UTC)
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        if _face(middle, zone) > face:
            late = middle
        else:
            early = middle
    return late


def _face(instant: datetime, zone: ZoneInfo) -> datetime:
    """What the clocks in `zone` show at an instant."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def _duration(minutes: int) -> str:
    """Minutes in the largest unit that divides them; a single day is 24 hours, as people say of waiting."""
    if minutes % 1440 == 0 and minutes > 1440:
        return f"{minutes // 1440} days"
    number, unit = (minutes // 60, "hour") if minutes % 60 == 0 else (minutes, "minute")
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


# ---- what the fields may hold ------------------------------------------------------------------------------


def _is_zone(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # not there; not a name; a folder or unreadable
        return False
    return True


def _is_between(low: int, high: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


FIELD_RULES: Mapping[str, FieldRule] = MappingProxyType(
    {
        "mode": FieldRule(lambda value: value in tuple(ResetMode), "none, idle, daily or both"),
        "idle_minutes": FieldRule(
            _is_between(1, MAX_IDLE_MINUTES), f"a whole number of minutes, 1 to {MAX_IDLE_MINUTES}"
        ),
        "at_hour": FieldRule(_is_between(0, 23), "0 to 23"),
        "timezone": FieldRule(_is_zone, "an IANA name such as Europe/Berlin or UTC"),
        "notify": FieldRule(lambda value: isinstance(value, bool), "true or false"),
    }
)
