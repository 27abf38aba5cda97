"""People, and on whose behalf something is asked.

Every read of a conversation carries a `Principal`. What that principal may do is decided here, by a table:
a person does everything with a conversation of their own, works in one they share, and an owner who asks
for everything may act on everything. Whether a conversation is visible at all is decided by storage, in the
same query that finds it, so that what is not yours looks exactly like what does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from palaver.domain.errors import OwnerOnly

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.ids import JobId, PersonId


class Role(StrEnum):
    """What a person is to this gateway."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a person, or a job on a person's behalf."""

    person_id: PersonId
    role: Role = Role.MEMBER
    job_id: JobId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A human, known by one or more accounts."""

    id: PersonId
    name: str
    role: Role
    created_at: datetime

    @property
    def principal(self) -> Principal:
        """This person, asking."""
        return Principal(self.id, self.role)


class Action(StrEnum):
    """What can be asked of a conversation that is visible."""

    READ = "read"
    RENAME = "rename"
    UNDO = "undo"
    FORK = "fork"
    ORGANISE = "organise"  # pin, archive, move to a project
    DELETE = "delete"


_IN_SHARED = frozenset({Action.READ, Action.RENAME, Action.UNDO, Action.FORK})


def check_allowed(principal: Principal, action: Action, *, shared: bool) -> None:
    """Refuse an action on a visible conversation that this principal may not take."""
    if principal.role is Role.OWNER or not shared or action in _IN_SHARED:
        return
    raise OwnerOnly(
        f"only the owner of this gateway may {action} a conversation that several people share", action=action
    )


def check_sees_everything(principal: Principal) -> None:
    """Refuse the view of everybody's conversations to anyone but the owner."""
    if principal.role is not Role.OWNER or principal.job_id is not None:
        raise OwnerOnly("only the owner of this gateway may look at everybody's conversations")
