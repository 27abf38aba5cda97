"""Pages of the sessions in a scope, for the lists of a view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.text import is_storable
from palaver.core.timestamps import to_micros
from palaver.people import audience_table as audience_members, table as people
from palaver.sessions import session_lists
from palaver.sessions.search_text import parse_query, split_words
from palaver.sessions.view.lookup import resolve_project_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.page import Page
    from palaver.sessions.model import Session
    from palaver.sessions.view.scope import ViewScope


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCriteria:
    """Which sessions a list contains; None stands for no condition."""

    state: str = "active"  # active, archived, pinned or expired
    project: str | None = None  # id or name
    platform: str | None = None
    person: str | None = None  # a person who takes part: an id or, in the conversations of the scope, a name
    after: datetime | None = None  # last active at this moment or later
    before: datetime | None = None  # last active before this moment
    title: str | None = None  # beginnings of words in the title; `-word` must not occur
    text: str | None = None  # words in the title, the last line or the name of the place; `-word` must not occur


def load_session_page(
    tx: Transaction, scope: ViewScope, criteria: ListCriteria, *, limit: int, cursor: str | None
) -> Page[Session]:
    """Load a page of the sessions that have messages and meet the criteria, newest first.

    No index covers `title` and `text`: with one of them, and in a lane's scope, a page may be short or even empty and
    still have a cursor that continues the list.
    """
    platform = None if criteria.platform is None else criteria.platform.strip().lower()
    if platform is not None and not is_storable(platform):
        platform = ""  # no session has this platform
    session_filter = session_lists.SessionFilter(
        state=criteria.state,
        limit=limit,
        cursor=cursor,
        project_id=resolve_project_id(tx, scope, criteria.project),
        platform=platform,
        active_since=None if criteria.after is None else to_micros(criteria.after),
        active_before=None if criteria.before is None else to_micros(criteria.before),
    )
    audiences = scope.list_audiences(tx)
    if criteria.person is not None:
        audiences = _keep_audiences_of(tx, criteria.person, audiences)
    conditions = [
        matches
        for matches in (_build_text_condition(criteria.text), _build_title_condition(criteria.title))
        if matches is not None
    ]
    if not conditions and scope.lane_key is None:
        return session_lists.list_sessions(tx, session_filter, audiences)
    return session_lists.list_matching_sessions(
        tx,
        session_filter,
        audiences,
        lambda session: scope.is_in_lane(session) and all(matches(session) for matches in conditions),
    )


def _keep_audiences_of(tx: Transaction, person: str, audiences: Sequence[int] | None) -> Sequence[int]:
    """Return those of the audiences (None: of all) that a person is a member of."""
    found = audience_members.find_members(tx, audiences, person.strip()) if is_storable(person) else []
    members = {no for each in found for no in people.list_audiences(tx, each.id)}
    return sorted(members) if audiences is None else [no for no in audiences if no in members]


def _build_text_condition(text: str | None) -> Callable[[Session], bool] | None:
    """Build the condition that a text sets for a session; None if every session meets it."""
    words = (text or "").casefold().split()
    excluded = [word[1:] for word in words if word.startswith("-") and len(word) > 1]
    wanted = [word for word in words if not (word.startswith("-") and len(word) > 1)]
    if not words:
        return None

    def matches(session: Session) -> bool:
        origin = session.origin
        texts = (session.shown_title, session.preview, origin.chat_name, origin.user_name)
        searched = " ".join(text for text in texts if text).casefold()
        return all(word in searched for word in wanted) and not any(word in searched for word in excluded)

    return matches


def _build_title_condition(title: str | None) -> Callable[[Session], bool] | None:
    """Build the condition that a search for titles sets for a session; None if every session meets it."""
    terms = parse_query(title or "").terms
    if not terms:
        return None

    def matches(session: Session) -> bool:
        words = f" {' '.join(split_words(session.shown_title or ''))}"
        return all((f" {' '.join(term.words)}" in words) is not term.excluded for term in terms)

    return matches
