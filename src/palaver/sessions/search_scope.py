"""The scope words of the search index: who may see a message, and the facts about it that searches filter by.

Besides its text, every indexed message carries its audience (`a`), session (`s`), platform (`p`), role (`r`), author
(`u`, or `o` for the person whose own session it is), and the year (`y`) and month (`m`) of its time in UTC. None of
them ever changes. So a filtered search reads only the messages that match, newest first, and its cost does not depend
on how many others there are. A range of dates looks up whole years and months; the time of each message then decides at
both ends of the range. A project and the archive, which can change, are looked up as their sessions, or checked for
each match if they have more than `MAX_LISTED_SESSIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.statements import build_placeholders
from palaver.core.timestamps import from_micros
from palaver.sessions.search_filter import ArchivedFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.people.model import Author

MAX_LISTED_SESSIONS = 100  # that are looked up one by one
FIRST_YEAR, LAST_YEAR = 1970, 2100  # of a range without a beginning or end
_ARCHIVED_NUMBERS = {ArchivedFilter.BOTH: 0, ArchivedFilter.ONLY: 1, ArchivedFilter.WITHOUT: 2}
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
    authors: Sequence[Author] | None = None  # one of them wrote it
    archived: ArchivedFilter = ArchivedFilter.BOTH  # whether its session is

    @property
    def exact_params(self) -> tuple[int, int, int, int]:
        """The parameters of `build_exact_condition`."""
        return (
            _NEVER if self.after is None else self.after,
            _FOREVER if self.before is None else self.before,
            self.project_no or 0,
            _ARCHIVED_NUMBERS[self.archived],
        )


def build_exact_condition(first: int) -> str:
    """Build the condition for what the index only narrows down; its parameters begin at `first`."""
    return (
        f"e.created_at >= ${first} AND e.created_at < ${first + 1}"
        f" AND (${first + 2} = 0 OR s.project_no = ${first + 2})"
        f" AND (${first + 3} = 0 OR ${first + 3} = CASE WHEN s.archived_at IS NULL THEN 2 ELSE 1 END)"
    )


def build_session_scope(audience_no: int, session_no: int, platform: str) -> tuple[str, ...]:
    """Return the scope words that all messages of a session have."""
    return (f"a{audience_no}", f"s{session_no}", _name_platform(platform))


def build_message_scope(
    role: str | None, created_at: int, person_id: str | None, own_audience_no: int | None
) -> tuple[str, ...]:
    """Return the scope words that a message has besides those of its session.

    `own_audience_no` is the audience of a session that is one person's own: there, messages do not name their author.
    """
    moment = from_micros(created_at)
    scope = (f"r{role or ''}", f"y{moment:%Y}", f"m{moment:%Y%m}")
    if person_id is not None:
        return (*scope, _name_person(person_id))
    return (*scope, f"o{own_audience_no}") if role == "user" and own_audience_no is not None else scope


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
    if conditions.authors is not None:
        by_id = [_name_person(author.person_id) for author in conditions.authors]
        groups.append([*by_id, *(f"o{author.audience_no}" for author in conditions.authors)])
    if conditions.after is not None or conditions.before is not None:
        groups.append(list(_iter_periods(conditions.after, conditions.before)))
    if conditions.project_no is not None:
        groups += _list_session_words(tx, "project_no = $1", conditions.project_no)
    if conditions.archived is ArchivedFilter.ONLY:
        is_archived = "active_at IS NOT NULL AND archived_at IS NOT NULL"
        if audiences is None:
            groups += _list_session_words(tx, is_archived)
        else:
            some = build_placeholders(len(audiences)) if audiences else "NULL"
            groups += _list_session_words(tx, f"{is_archived} AND audience_no IN ({some})", *audiences)
    return groups


def _list_session_words(tx: Transaction, condition: str, *params: int) -> list[list[str]]:
    """Return the group of the sessions that meet a condition; no group if there are too many."""
    sql = f"SELECT no FROM session WHERE {condition} LIMIT ${len(params) + 1}"
    rows = tx.fetch_all(sql, *params, MAX_LISTED_SESSIONS + 1)
    return [[f"s{no}" for (no,) in rows]] if len(rows) <= MAX_LISTED_SESSIONS else []


def _name_platform(platform: str) -> str:
    return "p" + _encode(platform)


def _name_person(person_id: str) -> str:
    return "u" + _encode(person_id)


def _encode(name: str) -> str:
    return name.encode("utf-8", "replace").hex()  # it may contain `-` and `_`, which split words


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
