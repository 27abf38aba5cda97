"""Converts between datetimes and the microseconds since 1970 that columns hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
BEGINNING_OF_TIME = -(2**62)  # before every stored time


def to_micros(moment: datetime) -> int:
    """Convert an aware datetime."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def from_micros_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)
