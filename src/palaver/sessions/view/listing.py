"""Pages of the sessions in a scope, for the lists of a view.

Conversations as a list shows them, with unread and busy state: `view.summaries`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict, Unpack

from palaver.core.clock import to_micros
from palaver.core.errors import AmbiguousMatch, InvalidTitle, SessionNotFound
from palaver.core.operation import Page, R, read_operation
from palaver.core.text import is_storable
from palaver.core.texts import say
from palaver.core.titles import parse_title_slot
from palaver.people import access_table as audience_members, table as people
from palaver.people.model import Action
from palaver.sessions import activity_table as auto_titles, list_table as session_lists, table as sessions
from palaver.sessions.model import NO_PROJECT
from palaver.sessions.search_text import parse_query, split_words
from palaver.sessions.view.scope import ViewPart, ViewScope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.sessions.model import Session, SessionSummary


MIN_ID_PREFIX_CHARS = 4
_MAX_PREFIX_MATCHES = 5


def resolve_session(tx: Transaction, scope: ViewScope, text: str) -> Session:
    """Return the session in the scope that a text means; raises if none or several match.

    A title means the newest of its numbered line (`My Project`, `My Project #2`), unless it names a number.
    """
    audiences = scope.list_audiences(tx)
    session = _find_by_id_prefix(tx, scope, audiences, text) or _find_by_title(tx, scope, audiences, text)
    if session is None:
        raise SessionNotFound(say("find.none", "No conversation matches {text}.", text=repr(text)), text=text)
    return session


def _find_by_id_prefix(tx: Transaction, scope: ViewScope, audiences: Sequence[int] | None, text: str) -> Session | None:
    if len(text) < MIN_ID_PREFIX_CHARS or not is_storable(text):
        return None
    rows = sessions.list_by_id_prefix(tx, text, audiences, _MAX_PREFIX_MATCHES)
    matches = [row.session for row in rows if scope.is_in_lane(row.session)]
    exact = [session for session in matches if session.id == text]
    if exact or len(matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise _build_ambiguous_match(
            say("find.many", "Several conversations have an id that starts with {text}", text=repr(text)), matches
        )
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
            raise _build_ambiguous_match(
                say("find.many_people", "Several people have a conversation called {text}", text=repr(text)), matches
            )
        return matches[0] if matches else None
    return None


def _build_ambiguous_match(problem: str, matches: Sequence[Session]) -> AmbiguousMatch:
    ids = [session.id for session in matches]
    return AmbiguousMatch(f"{problem}: {', '.join(ids)}.", matches=ids)


class ListCriteria(TypedDict, total=False):
    """The conditions of a list of sessions; None stands for no condition."""

    state: str  # active, archived, pinned or expired
    project: str | None  # id or name; "none": only sessions in no project
    platform: str | None
    without_platforms: Sequence[str]
    profile: str | None  # its name; "default": only sessions that chose none
    person: str | None  # a person who takes part: an id or, in the conversations of the scope, a name
    after: datetime | None  # last active at this moment or later
    before: datetime | None  # last active before this moment
    title: str | None  # beginnings of words in the title; `-word` must not occur
    text: str | None  # words in the title, the last line or the name of the place; `-word` must not occur


def load_session_page(
    tx: Transaction, scope: ViewScope, limit: int, cursor: str | None, criteria: ListCriteria
) -> Page[Session]:
    """Load a page of the sessions that have messages and meet the criteria, newest first.

    No index covers `title`, `text`, `profile` and no project: with one of them, and in a lane's scope, a page may be
    short or even empty and still have a cursor that continues the list.
    """
    session_filter, audiences, matches = _find_page(tx, scope, limit, cursor, criteria)
    if matches is None:
        return session_lists.list_sessions(tx, session_filter, audiences)
    return session_lists.list_matching_sessions(tx, session_filter, audiences, matches)


def _find_page(
    tx: Transaction, scope: ViewScope, limit: int, cursor: str | None, criteria: ListCriteria
) -> tuple[session_lists.SessionFilter, Sequence[int] | None, Callable[[Session], bool] | None]:
    """Return where a page of the scope is found, and the condition that no index covers; None: there is none."""
    project, platform, person = criteria.get("project"), criteria.get("platform"), criteria.get("person")
    after, before = criteria.get("after"), criteria.get("before")
    profile, in_no_project = criteria.get("profile"), project == NO_PROJECT
    session_filter = session_lists.SessionFilter(
        state=criteria.get("state", "active"),
        limit=limit,
        cursor=cursor,
        project_id=None if project is None or in_no_project else scope.get_project(tx, project)[1].id,
        platform=None if platform is None else _clean_name(platform),
        without_platforms=sorted(set(map(_clean_name, criteria.get("without_platforms") or ()))),
        profile=None if profile is None else _clean_name(profile),
        active_since=None if after is None else to_micros(after),
        active_before=None if before is None else to_micros(before),
    )
    audiences = scope.list_audiences(tx)
    if person is not None:
        found = audience_members.find_members(tx, audiences, person.strip()) if is_storable(person) else []
        members = {no for each in found for no in people.list_audiences(tx, each.id)}
        audiences = sorted(members) if audiences is None else [no for no in audiences if no in members]
    built = (_build_text_condition(criteria.get("text")), _build_title_condition(criteria.get("title")))
    conditions = [matches for matches in built if matches is not None]
    if in_no_project:
        conditions.append(lambda session: session.project_id is None)
    if not conditions and profile is None and scope.lane_key is None:
        return session_filter, audiences, None
    return (
        session_filter,
        audiences,
        lambda session: scope.is_in_lane(session) and all(matches(session) for matches in conditions),
    )


def _clean_name(name: str) -> str:
    """Return the name of a platform or profile as it is stored; one that can't be stored becomes "", which none has."""
    return name.strip().lower() if is_storable(name) else ""


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


class SummaryOperations(ViewPart[R]):
    """Summaries for the principal: the read marks in them are theirs."""

    @read_operation
    def get(self, tx: Transaction, session_id: str) -> SessionSummary:
        session = self._scope.get_session_row(tx, session_id, Action.READ).session
        return session_lists.load_summaries(tx, [session], self._scope.person_id)[0]

    @read_operation
    def list(
        self, tx: Transaction, *, limit: int = 50, cursor: str | None = None, **criteria: Unpack[ListCriteria]
    ) -> Page[SessionSummary]:
        """List conversations with messages that meet every given condition, newest first.

        States: active, archived, pinned, expired. `after` and `before` limit when they were last active. The words of
        `title` are beginnings of words in it. The words of `text` are looked for in the title, the last line and the
        name of the place. `-word` must not occur there. With one of the two, with `profile`, or in no project, a page
        may be short or even empty and still have a cursor that continues the list.
        """
        session_filter, audiences, matches = _find_page(tx, self._scope, limit, cursor, criteria)
        if matches is None:
            return session_lists.list_summaries(tx, session_filter, audiences, self._scope.person_id)
        page = session_lists.list_matching_sessions(tx, session_filter, audiences, matches)
        return Page(session_lists.load_summaries(tx, page, self._scope.person_id), page.cursor)
