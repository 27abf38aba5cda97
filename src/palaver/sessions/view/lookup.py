"""Finds the session or project that a person means by a text: an id, the beginning of an id, a title, a name."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from palaver.core.errors import AmbiguousMatch, InvalidTitle, SessionNotFound
from palaver.core.text import is_storable
from palaver.core.titles import parse_title_slot
from palaver.sessions import auto_titles, projects_table as projects, table as sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import ProjectId
    from palaver.sessions.model import Session
    from palaver.sessions.view.scope import ViewScope

MIN_ID_PREFIX_CHARS = 4
_MAX_PREFIX_MATCHES = 5


def resolve_session(tx: Transaction, scope: ViewScope, text: str) -> Session:
    """Return the session in the scope that a text means; raises if none or several match.

    A title means the newest of its numbered line (`My Project`, `My Project #2`), unless it names a number.
    """
    audiences = scope.list_audiences(tx)
    session = _find_by_id_prefix(tx, scope, audiences, text) or _find_by_title(tx, scope, audiences, text)
    if session is None:
        raise SessionNotFound(f"No conversation matches {text!r}.", text=text)
    return session


def resolve_project_id(tx: Transaction, scope: ViewScope, project: str | None) -> ProjectId | None:
    """Return the id of one of the person's projects, given by id or name; None stays None."""
    if project is None:
        return None
    return projects.get_by_id_or_name(tx, scope.person_id, project)[1].id


def resolve_project_no(tx: Transaction, scope: ViewScope, project: str | None) -> int | None:
    """Return the number of one of the person's projects, given by id or name; None stays None."""
    return None if project is None else projects.get_by_id_or_name(tx, scope.person_id, project)[0]


def _find_by_id_prefix(tx: Transaction, scope: ViewScope, audiences: Sequence[int] | None, text: str) -> Session | None:
    if len(text) < MIN_ID_PREFIX_CHARS or not is_storable(text):
        return None
    rows = sessions.list_by_id_prefix(tx, text, audiences, _MAX_PREFIX_MATCHES)
    matches = [row.session for row in rows if scope.is_in_lane(row.session)]
    exact = [session for session in matches if session.id == text]
    if exact or len(matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise _build_ambiguous_match(f"Several conversations have an id that starts with {text!r}", matches)
    return None


def _find_by_title(tx: Transaction, scope: ViewScope, audiences: Sequence[int] | None, text: str) -> Session | None:
    with suppress(InvalidTitle):  # no session has a title that is not allowed
        slot = parse_title_slot(text)
        has_number = slot.number > 1 or text.endswith("#1")
        rows = sessions.list_by_title(tx, slot, audiences, exact=has_number)
        if not rows:
            nos = auto_titles.find_newest(tx, slot, audiences, exact=has_number)
            rows = [sessions.get_by_no(tx, no) for no in nos]
        matches = [row.session for row in rows if scope.is_in_lane(row.session)]
        if scope.everything and len(matches) > 1:
            raise _build_ambiguous_match(f"Several people have a conversation called {text!r}", matches)
        return matches[0] if matches else None
    return None


def _build_ambiguous_match(problem: str, matches: Sequence[Session]) -> AmbiguousMatch:
    ids = [session.id for session in matches]
    return AmbiguousMatch(f"{problem}: {', '.join(ids)}.", matches=ids)
