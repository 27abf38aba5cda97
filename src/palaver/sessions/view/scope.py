"""Who asks, and which sessions they may see and change. Every operation finds sessions through a scope.

A `ViewScope` has the rules for one principal; a `TrustedScope` is that of the store, which trusts its caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from palaver.core.clock import Clock, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.errors import SessionBusy, SessionNotFound
from palaver.core.operation import Operations, R
from palaver.people import table as people
from palaver.people.model import Action, Principal, check_action_allowed, check_can_view_all
from palaver.sessions import projects_table as projects, table as sessions, turns_table as turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.sessions.model import Project, Session
    from palaver.sessions.table import SessionRow


P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class TrustedScope:
    """Everything in the store, without checks: for the gateway's own code and programs that use the library."""

    clock: Clock
    person_id: None = None
    lane_key: None = None
    is_personal_lane_in_group: bool = False

    def now(self) -> int:
        return to_micros(self.clock.now())

    def list_audiences(self, tx: Transaction) -> None:
        del tx  # all audiences

    def get_session_row(self, tx: Transaction, session_id: str, action: Action) -> SessionRow:
        del action  # all of them are allowed
        return sessions.get(tx, session_id)

    def lock_idle_session(self, tx: Transaction, session_id: str) -> int:
        return sessions.get(tx, session_id).no  # the caller knows whether the agent is answering

    def get_project(self, tx: Transaction, project: str) -> tuple[int, Project]:
        return projects.get_by_id(tx, project)

    def find_fork_audience(self, tx: Transaction, row: SessionRow) -> int:
        del tx
        return row.audience_no


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewScope:
    """A principal, and the sessions that they may see.

    Always true: a session outside the scope and a session that does not exist raise the same `SessionNotFound`;
    only an owner can have a scope with `everything`.
    """

    principal: Principal
    clock: Clock
    everything: bool = False  # all sessions of the store
    audience_no: int | None = None  # only sessions of this audience
    lane_key: str | None = None  # only sessions of this lane, because other people read the answers there

    def __post_init__(self) -> None:
        if self.everything:
            check_can_view_all(self.principal)

    @property
    def person_id(self) -> PersonId:
        """The person who does it, for the log."""
        return self.principal.person_id

    @property
    def is_personal_lane_in_group(self) -> bool:
        """Return whether the scope is one person's own lane in a place where other people read the answers."""
        return self.lane_key is not None and self.audience_no is None

    def now(self) -> int:
        return to_micros(self.clock.now())

    def list_audiences(self, tx: Transaction) -> Sequence[int] | None:
        """List the audiences whose sessions are in the scope; None means all of them."""
        return None if self.everything else self.list_own_audiences(tx)

    def list_own_audiences(self, tx: Transaction) -> Sequence[int]:
        """List the audiences in the scope that the principal is a member of, also where `everything` is set."""
        audiences = people.list_audiences(tx, self.person_id)
        return audiences if self.audience_no is None else [no for no in audiences if no == self.audience_no]

    def is_in_lane(self, session: Session) -> bool:
        return self.lane_key is None or session.key == self.lane_key

    def get_session_row(self, tx: Transaction, session_id: str, action: Action) -> SessionRow:
        """Load a session on which the principal may take this action; raises `NotAllowed` if they only may see it."""
        row = sessions.get_visible(tx, session_id, None if self.everything else self.person_id)
        if (self.audience_no is not None and row.audience_no != self.audience_no) or not self.is_in_lane(row.session):
            raise SessionNotFound.for_id(session_id)
        check_action_allowed(self.principal, action, shared=row.session.shared)
        return row

    def lock_idle_session(self, tx: Transaction, session_id: str) -> int:
        """Return the number of a session without open turns, and let no turn open until the transaction ends."""
        session_no = self.get_session_row(tx, session_id, Action.UNDO).no
        if turns.lock_and_load_open(tx, session_no).is_busy:
            raise SessionBusy
        return session_no

    def get_project(self, tx: Transaction, project: str) -> tuple[int, Project]:
        """Return the number of one of the person's projects, given by id or name, and the project."""
        return projects.get_by_id_or_name(tx, self.person_id, project)

    def find_fork_audience(self, tx: Transaction, row: SessionRow) -> int:
        """Return the audience of a fork that the principal makes for themselves."""
        if not row.session.shared:
            return row.audience_no
        person_row = people.find_by_id(tx, self.person_id)
        if person_row is None:
            raise SessionNotFound.for_id(row.session.id)
        return person_row.audience_no


SessionScope = TrustedScope | ViewScope


class ViewPart(Operations[R]):
    """Operations on one kind of thing, within the scope of the view that they are part of."""

    def __init__(self, runner: R, scope: ViewScope) -> None:
        super().__init__(runner)
        self._scope = scope

    def part(self, kind: Callable[[R, ViewScope], P]) -> P:
        """Return the operations of another room, such as memories, for the same principal."""
        return kind(self._runner, self._scope)
