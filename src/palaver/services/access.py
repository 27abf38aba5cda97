"""Who may speak to the agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.inbound import FOLLOWING
from palaver.domain.person import Role
from palaver.domain.source import ChatType
from palaver.storage import people

if TYPE_CHECKING:
    from palaver.domain.person import Person
    from palaver.domain.profile import TurnRules
    from palaver.domain.source import SessionSource
    from palaver.storage.engines.base import Transaction

UNKNOWN = (
    "I do not know you yet, so I may not answer. Ask the owner of this gateway to let you in;"
    " your account here is {account}."
)


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whoever speaks, and whether they may."""

    person: Person | None  # None where nobody can be told apart
    refusal: str | None = None  # why not; empty when nothing is to be said about it

    @property
    def may_speak(self) -> bool:
        """Whether the agent may listen."""
        return self.refusal is None


def speaker(tx: Transaction, source: SessionSource, rules: TurnRules, now: int) -> Speaker:
    """Who speaks from a source. A stranger is written down as a guest, and guests speak only where everybody may."""
    resident = people.find_or_add(tx, source, now)
    person = resident.person if resident else None
    known = person is not None and person.role is not Role.GUEST
    if known or source.platform in FOLLOWING or source.platform in rules.open_to_all:
        return Speaker(person)
    if source.chat_type is not ChatType.DM:
        return Speaker(person, "")  # a gateway that answers every stranger in a group is a nuisance
    account = people.account_of(source)
    return Speaker(person, UNKNOWN.format(account=":".join(account) if account else "not known"))
