"""People and principals, and what a principal may do with a conversation.

Every read of a conversation carries a `Principal`. What that principal may do is decided here: a person may do
everything with their own conversations and a part of it in shared ones, and an owner may do everything. Whether a
conversation is visible at all is decided by storage, in the same query that finds it, so that a conversation of
another person looks exactly like one that does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import OwnerRequired

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from palaver.core.ids import JobId, PersonId


class Role(StrEnum):
    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"


ROLE_RANKS: Final = {Role.GUEST: 0, Role.MEMBER: 1, Role.OWNER: 2}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a request: a person, or a job on a person's behalf."""

    person_id: PersonId
    role: Role = Role.MEMBER
    job_id: JobId | None = None

    def to_dict(self) -> dict[str, str | None]:
        """Return the principal as JSON-ready data."""
        return {"person_id": self.person_id, "role": self.role.value, "job_id": self.job_id}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Principal:
        """Read what `to_dict` returned; keys that a newer version may have added are ignored."""
        return cls(data["person_id"], Role(data["role"]), data.get("job_id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A human with one or more linked platform accounts."""

    id: PersonId
    name: str
    role: Role
    created_at: datetime
    timezone: str | None = None  # an IANA name; None: the gateway's

    @property
    def principal(self) -> Principal:
        return Principal(self.id, self.role)


@dataclass(frozen=True, slots=True)
class NamedPerson:
    """A person as others see them: no account, no platform."""

    id: PersonId
    name: str


class Action(StrEnum):
    """What a principal can do with a conversation that they see."""

    READ = "read"
    RENAME = "rename"
    UNDO = "undo"
    FORK = "fork"
    ORGANIZE = "organize"  # pin, archive, move to a project
    DELETE = "delete"


_ALLOWED_IN_SHARED = frozenset({Action.READ, Action.RENAME, Action.UNDO, Action.FORK})


def check_action_allowed(principal: Principal, action: Action, *, shared: bool) -> None:
    """Raise OwnerRequired unless this principal may do this with a conversation that they see."""
    if principal.role is Role.OWNER or not shared or action in _ALLOWED_IN_SHARED:
        return
    raise OwnerRequired(f"Only an owner can {action} a conversation that several people share.", action=action)


def check_can_view_all(principal: Principal) -> None:
    """Raise OwnerRequired unless this principal may see the conversations of all people."""
    if principal.role is not Role.OWNER or principal.job_id is not None:
        raise OwnerRequired("Only an owner can view the conversations of other people.")


@dataclass(frozen=True, slots=True)
class Author:
    """A person as messages name them: by id, or by their own audience, to which their own sessions belong."""

    person_id: str
    audience_no: int
