"""Filters of searches and lists: platform, role, person, date, project, archive and words to leave out.

People type them like this:

    lisbon -porto platform:telegram person:Ada after:2026-01-01 project:"Night trains" archived:without

Always true: a filter only takes matches away. Who may see a message is decided elsewhere, and always applies as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from palaver.core.errors import InvalidInput
from palaver.sessions.message import MESSAGE_ROLES

if TYPE_CHECKING:
    from datetime import tzinfo

FILTER_ROLES: Final = ("user", "assistant", "tool")
_FIRST_YEAR, _LAST_YEAR = 1970, 2100
_KEYS: Final = ("platform", "role", "after", "before", "project", "person", "archived")
_FILTER = re.compile(rf"(?<!\S)({'|'.join(_KEYS)}):(?:\"([^\"]*)\"|(\S+))", re.IGNORECASE)


class ArchivedFilter(StrEnum):
    """Which conversations to search: archived ones, the others, or both."""

    ONLY = "only"
    WITHOUT = "without"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which messages or conversations to include; None includes all."""

    platform: str | None = None
    role: str | None = None  # of the message
    after: datetime | None = None  # at this moment or later
    before: datetime | None = None  # before this moment
    project: str | None = None  # one of the person's projects, by id or name
    without: str | None = None  # none of these words occurs
    person: str | None = None  # who wrote the message: a person who takes part in a visible conversation, by id or name
    archived: ArchivedFilter = ArchivedFilter.BOTH

    def __post_init__(self) -> None:
        if self.platform is not None:
            object.__setattr__(self, "platform", self.platform.strip().lower())
        if self.role is not None and self.role not in MESSAGE_ROLES:
            raise InvalidInput(f"role: {self.role!r} is not allowed. Use one of {', '.join(FILTER_ROLES)}.", key="role")
        for moment in (self.after, self.before):
            if moment is not None and moment.utcoffset() is None:
                raise InvalidInput(f"{moment.isoformat()} has no time zone, so it is ambiguous.")


NO_FILTER: Final = SearchFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterText:
    """What a person typed, split into words and filters; days are days of a calendar, in no time zone yet."""

    words: str
    platform: str | None = None
    role: str | None = None
    after: date | None = None
    before: date | None = None
    project: str | None = None
    person: str | None = None
    archived: ArchivedFilter | None = None  # None: not said

    def to_filter(self, zone: tzinfo) -> SearchFilter:
        """Return the filter, with days that begin at midnight in a time zone."""
        return SearchFilter(
            platform=self.platform,
            role=self.role,
            after=None if self.after is None else start_of_day(self.after, zone),
            before=None if self.before is None else start_of_day(self.before, zone),
            project=self.project,
            person=self.person,
            archived=self.archived or ArchivedFilter.BOTH,
        )


def parse_filter_text(text: str) -> FilterText:
    """Split what a person typed into words and filters; raises `InvalidInput` for a filter with an invalid value."""
    found: dict[str, str] = {}
    for match in _FILTER.finditer(text):
        found[match[1].lower()] = match[3] if match[2] is None else match[2]
    role = found.get("role")
    if role is not None and role.lower() not in FILTER_ROLES:
        raise InvalidInput(f"role: {role!r} is not allowed. Use one of {', '.join(FILTER_ROLES)}.", key="role")
    return FilterText(
        words=" ".join(_FILTER.sub(" ", text).split()),
        platform=found.get("platform"),
        role=role and role.lower(),
        after=_parse_day("after", found.get("after")),
        before=_parse_day("before", found.get("before")),
        project=found.get("project"),
        person=found.get("person"),
        archived=None if (archived := found.get("archived")) is None else parse_archived(archived),
    )


def parse_archived(text: str) -> ArchivedFilter:
    try:
        return ArchivedFilter(text.lower())
    except ValueError:
        names = ", ".join(ArchivedFilter)
        raise InvalidInput(f"archived: {text!r} is not allowed. Use one of {names}.", key="archived") from None


def start_of_day(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def _parse_day(key: str, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or not _FIRST_YEAR <= day.year <= _LAST_YEAR:
        raise InvalidInput(f"{key}: {text!r} is not a date. Write it as 2026-01-31.", key=key)
    return day
