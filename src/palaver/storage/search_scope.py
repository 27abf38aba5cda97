"""The scope words of the search index: who may see a message, and the facts about it that searches filter by.

Besides its text, every indexed message carries its audience (`a`), session (`s`), platform (`p`) and role (`r`), and
the year (`y`) and month (`m`) of its time in UTC. None of them ever changes. So a filtered search reads only the
messages that match, newest first, and its cost does not depend on how many others there are. A range of dates looks up
whole years and months; the time of each message then decides at both ends of the range. A project, which can change, is
looked up as its sessions, or checked for each match if it has more than `MAX_PROJECT_SESSIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from palaver.storage.engines.base import Transaction

MAX_PROJECT_SESSIONS = 100  # that are looked up one by one
FIRST_YEAR, LAST_YEAR = 1970, 2100  # of a range without a beginning or end
_NEVER, _FOREVER = -(2**62), 2**62
_MAX_MICROS = 200 * 366 * 86_400 * 1_000_000  # after the last year, and before the last one that Python knows


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConditions:
    """What a message must have, besides the words, to be found; None stands for no condition."""

    session_no: int | None = None
    platform: str | None = None
    role: str | None = None
    after: int | None = None  # at this moment or later
    before: int | None = None  # before this moment
    project_no: int | None = None

    @property
    def exact_params(self) -> tuple[int, int, int]:
        """The parameters of `build_exact_condition`."""
        return (
            _NEVER if self.after is None else self.after,
            _FOREVER if self.before is None else self.before,
            self.project_no or 0,
        )


def build_exact_condition(first: int) -> str:
    """Build the condition for what the index only narrows down; its parameters begin at `first`."""
    return (
        f"e.created_at >= ${first} AND e.created_at < ${first + 1}"
        f" AND (${first + 2} = 0 OR s.project_no = ${first + 2})"
    )


def build_session_scope(audience_no: int, session_no: int, platform: str) -> tuple[str, ...]:
    """Return the scope words that all messages of a session have."""
    return (f"a{audience_no}", f"s{session_no}", _name_platform(platform))


def build_message_scope(role: str | None, created_at: int) -> tuple[str, ...]:
    """Return the scope words that a message has besides those of its session."""
    moment = from_micros(created_at)
    return (f"r{role or ''}", f"y{moment:%Y}", f"m{moment:%Y%m}")


def list_required_scopes(
    tx: Transaction, audiences: Sequence[int] | None, conditions: SearchConditions
) -> list[list[str]]:
    """Return groups of scope words: a message must have one word of each group. An empty group matches nothing."""
    groups = []
    if audiences is not None:
        groups.append([f"a{no}" for no in audiences])
    if conditions.session_no is not None:
        groups.append([f"s{conditions.session_no}"])
    if conditions.platform is not None:
        groups.append([_name_platform(conditions.platform)])
    if conditions.role is not None:
        groups.append([f"r{conditions.role}"])
    if conditions.after is not None or conditions.before is not None:
        groups.append(list(_iter_periods(conditions.after, conditions.before)))
    if conditions.project_no is not None:
        rows = tx.fetch_all(
            "SELECT no FROM session WHERE project_no = $1 LIMIT $2", conditions.project_no, MAX_PROJECT_SESSIONS + 1
        )
        if len(rows) <= MAX_PROJECT_SESSIONS:
            groups.append([f"s{no}" for (no,) in rows])
    return groups


def _name_platform(platform: str) -> str:
    return "p" + platform.encode("utf-8", "replace").hex()  # the name may contain `-` and `_`, which split words


def _iter_periods(after: int | None, before: int | None) -> Iterator[str]:
    """Yield the years and months that cover a range of time: years where all of a year is in it."""
    if before is not None and before <= 0:  # before 1970
        return
    first = (FIRST_YEAR, 1) if after is None or after <= 0 else _get_month(after)
    end = (LAST_YEAR + 1, 1) if before is None else _get_next_month(before - 1)  # exclusive
    month = first
    while month < min(end, (LAST_YEAR + 1, 1)):
        year = month[0]
        if month[1] == 1 and (year + 1, 1) <= end:
            yield f"y{year:04}"
            month = (year + 1, 1)
        else:
            yield f"m{year:04}{month[1]:02}"
            month = (year, month[1] + 1) if month[1] < 12 else (year + 1, 1)


def _get_month(micros: int) -> tuple[int, int]:
    moment = from_micros(min(micros, _MAX_MICROS))
    return moment.year, moment.month


def _get_next_month(micros: int) -> tuple[int, int]:
    year, month = _get_month(micros)
    return (year, month + 1) if month < 12 else (year + 1, 1)
