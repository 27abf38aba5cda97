"""Searches for messages in a scope, and the people whom a principal may name in one.

Always true: a person outside of the conversations of a scope and a person who does not exist give the same answer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import InvalidInput, NotFound, SessionNotFound
from palaver.core.ids import SESSION_ID_PATTERN
from palaver.core.operation import ReadAfterWork, check_count
from palaver.core.text import is_storable
from palaver.core.texts import say
from palaver.people import access_table as audience_members
from palaver.people.model import Action, Author
from palaver.sessions import indexer, lanes_table as lanes, search_table as search
from palaver.sessions.model import SearchHits
from palaver.sessions.search_table import SearchConditions
from palaver.sessions.search_text import NO_FILTER, Query, SearchFilter, parse_query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.sessions.view.scope import SessionScope

MAX_HITS: Final = 200
MAX_LISTED_PEOPLE: Final = 200
MAX_SEARCH_WAIT_SECONDS: Final = 0.5  # for other writers, before a search goes on with what is indexed
_CURSOR = re.compile(rf"({SESSION_ID_PATTERN.pattern})\.([0-9]{{1,15}})")


def build_search(
    scope: SessionScope,
    text: str,
    *,
    limit: int,
    cursor: str | None,
    within: str | None = None,
    search_filter: SearchFilter = NO_FILTER,
    is_typing: bool = False,
    max_seconds: float | None = None,
) -> ReadAfterWork[search.IndexBatch, SearchHits]:
    """Build a search that first brings the index up to date: it finds everything that was stored before it began.

    If that takes longer than `max_seconds` (None: `MAX_CATCH_UP_SECONDS`), or nothing can be written (a full disk, a
    lock that another process holds), `is_indexing` of the result says that something may be missing.
    """
    check_count("limit", limit, maximum=MAX_HITS)
    last_hit = _parse_cursor(cursor)
    query = parse_query(text, is_typing=is_typing)
    if search_filter.without:
        excluded = parse_query(search_filter.without).terms
        query = Query((*query.terms, *(replace(term, excluded=True) for term in excluded)))

    def get_pending(tx: Transaction) -> search.PendingScope:
        return search.PendingScope(scope.list_audiences(tx), _find_session_no(tx, scope, within))

    def find(tx: Transaction, is_indexing: bool) -> SearchHits:
        before = None if last_hit is None else _find_event_no(tx, scope, *last_hit)
        project = search_filter.project
        conditions = SearchConditions(
            search_filter=search_filter,
            session_no=_find_session_no(tx, scope, within),
            project_no=None if project is None else scope.get_project(tx, project)[0],
            authors=_resolve_authors(tx, scope, search_filter.person),
        )
        audiences = scope.list_audiences(tx)
        hits = search.find_messages(tx, query, audiences, limit=limit, before=before, conditions=conditions)
        return SearchHits(hits, is_indexing=is_indexing)

    return ReadAfterWork(
        Read(lambda tx: search.collect_unindexed(tx, indexer.BATCH_EVENTS, scope=get_pending(tx))),
        lambda batch: Write(lambda tx: search.index_batch(tx, batch), max_wait_seconds=MAX_SEARCH_WAIT_SECONDS),
        Read(lambda tx: search.has_unindexed(tx, get_pending(tx))),
        lambda is_done: Read(lambda tx: find(tx, not is_done)),
        indexer.MAX_CATCH_UP_SECONDS if max_seconds is None else max_seconds,
    )


def _find_session_no(tx: Transaction, scope: SessionScope, within: str | None) -> int | None:
    """Return the number of the only session to search; None: all in the scope."""
    if within is not None:
        return scope.get_session_row(tx, within, Action.READ).no
    if scope.is_personal_lane_in_group:  # only what was said there, because others read the answer
        row = lanes.find_current_session(tx, scope.lane_key or "")
        return row.no if row else 0  # 0: no session has this number
    return None


def _parse_cursor(cursor: str | None) -> tuple[str, int] | None:
    """Return the session and the number of the message that a cursor names."""
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.", key="cursor")
    return match[1], int(match[2])


def _find_event_no(tx: Transaction, scope: SessionScope, session_id: str, seq: int) -> int:
    """Return the number of a message among all messages. It is internal: it would tell how many others there are."""
    try:
        event_no = search.find_event_no(tx, scope.get_session_row(tx, session_id, Action.READ).no, seq)
    except SessionNotFound:
        event_no = None
    if event_no is None:
        text = say("search.cursor_gone", "cursor: the last result of the page before was deleted. Search again.")
        raise InvalidInput(text, key="cursor")
    return event_no


def _resolve_authors(tx: Transaction, scope: SessionScope, person: str | None) -> Sequence[Author] | None:
    """Return all ids under which a person wrote, given by id or name; those of several people if a name is not unique.

    Raises NotFound if no person in the conversations of the scope has this id or name. None stays None.
    """
    if person is None:
        return None
    text = person.strip()
    found = audience_members.find_members(tx, scope.list_audiences(tx), text) if text and is_storable(text) else []
    if not found and scope.is_personal_lane_in_group:
        return []  # others read the answer: it must not tell whom the person knows elsewhere
    if not found:
        raise NotFound(
            say("find.no_person", "No person in your conversations is called {text}.", text=repr(text)), person=text
        )
    return audience_members.list_authors(tx, [member.id for member in found])
