"""Access: who sends a message, and whether the agent may answer them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.inbound import PLATFORMS_WITHOUT_DELIVERY
from palaver.domain.person import Role
from palaver.domain.source import ChatType
from palaver.storage import people

if TYPE_CHECKING:
    from palaver.domain.person import Person
    from palaver.domain.profile import TurnRules
    from palaver.domain.source import SessionSource
    from palaver.storage.engines.base import Transaction

UNKNOWN_SENDER_REPLY = (
    "I don't know you yet, so I can't answer. Ask the owner of this gateway to give you access."
    " Your account here is {account}."
)


@dataclass(frozen=True, slots=True)
class Speaker:
    """The sender of a message, and whether the agent may answer them."""

    person: Person | None  # None where the platform does not tell people apart
    refusal: str | None = None  # the reply to a sender without access; empty for no reply

    @property
    def can_speak(self) -> bool:
        return self.refusal is None


def identify_speaker(tx: Transaction, source: SessionSource, rules: TurnRules, now: int) -> Speaker:
    """Find out who speaks from a source. A new account becomes a guest; guests may speak only on open platforms."""
    row = people.find_or_add_by_source(tx, source, now)
    return _check_speaker(row.person if row else None, source, rules)


def find_speaker(tx: Transaction, source: SessionSource, rules: TurnRules) -> Speaker | None:
    """Find out who speaks from a source without storing anything; None if the account is new."""
    row = people.find_by_source(tx, source)
    if row is None and people.find_account(source) is not None:
        return None
    return _check_speaker(row.person if row else None, source, rules)


def _check_speaker(person: Person | None, source: SessionSource, rules: TurnRules) -> Speaker:
    is_member = person is not None and person.role is not Role.GUEST
    if is_member or source.platform in PLATFORMS_WITHOUT_DELIVERY or source.platform in rules.open_platforms:
        return Speaker(person)
    if source.chat_type is not ChatType.DM:
        return Speaker(person, "")  # replying to every stranger in a group would be spam
    account = people.find_account(source)
    return Speaker(person, UNKNOWN_SENDER_REPLY.format(account=":".join(account) if account else "unknown"))
