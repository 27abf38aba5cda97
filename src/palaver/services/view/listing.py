"""Pages of the sessions in a scope, for the lists of a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.ids import PersonId
from palaver.domain.text import is_storable
from palaver.services.view.lookup import resolve_project_id
from palaver.storage import people, session_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.domain.session import Page, Session
    from palaver.services.view.scope import ViewScope
    from palaver.storage.engines.base import Transaction


def load_session_page(
    tx: Transaction,
    scope: ViewScope,
    *,
    state: str,
    limit: int,
    cursor: str | None,
    project: str | None = None,
    person: str | None = None,
    matches: Callable[[Session], bool] | None = None,
) -> Page[Session]:
    """Load a page of the sessions that have messages and meet every given condition, newest first.

    `matches` is a condition that no index covers: with it, and in a lane's scope, a page may be short or even empty and
    still have a cursor that continues the list.
    """
    session_filter = session_lists.SessionFilter(
        state=state, limit=limit, cursor=cursor, project_id=resolve_project_id(tx, scope, project)
    )
    audiences = scope.list_audiences(tx)
    if person is not None:
        audiences = _keep_audiences_of(tx, person, audiences)
    if matches is None and scope.lane_key is None:
        return session_lists.list_sessions(tx, session_filter, audiences)
    return session_lists.list_matching_sessions(
        tx,
        session_filter,
        audiences,
        lambda session: scope.is_in_lane(session) and (matches is None or matches(session)),
    )


def _keep_audiences_of(tx: Transaction, person: str, audiences: Sequence[int] | None) -> Sequence[int]:
    """Return those of the audiences (None: of all) that a person is a member of."""
    members = people.list_audiences(tx, PersonId(person)) if is_storable(person) else []
    return members if audiences is None else [no for no in audiences if no in set(members)]
