"""Names of things. Each has its own type, so that one will not pass for another.

A session id is the time of its birth in UTC and random hex: `20261115_081200_1a2b3c4d`. It sorts by age
and says nothing else. Ids come from here alone; what a platform sends never becomes one, nor a file path.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, NewType

from palaver.domain.errors import NoSuchSession

if TYPE_CHECKING:
    from datetime import datetime

SessionId = NewType("SessionId", str)
SessionKey = NewType("SessionKey", str)
PersonId = NewType("PersonId", str)
ProjectId = NewType("ProjectId", str)
TurnId = NewType("TurnId", str)
JobId = NewType("JobId", str)
DeliveryId = NewType("DeliveryId", str)
MemoryId = NewType("MemoryId", str)

SESSION_ID = re.compile(r"\d{8}_\d{6}_[0-9a-f]{8}")


def known_session_id(text: str) -> SessionId:
    """A session id from outside. What does not even look like one names no session."""
    if not isinstance(text, str) or SESSION_ID.fullmatch(text) is None:
        raise NoSuchSession(f"there is no session {text}", session_id=text)
    return SessionId(text)


def new_session_id(now: datetime) -> SessionId:
    """A fresh id for a session born at `now` (an aware datetime in UTC)."""
    return SessionId(f"{now:%Y%m%d_%H%M%S}_{secrets.token_hex(4)}")


def new_person_id() -> PersonId:
    """A fresh id for a person."""
    return PersonId(f"p_{secrets.token_hex(6)}")


def new_project_id() -> ProjectId:
    """A fresh id for a project."""
    return ProjectId(f"proj_{secrets.token_hex(4)}")


def new_turn_id() -> TurnId:
    """A fresh id for a turn."""
    return TurnId(f"t_{secrets.token_hex(8)}")


def new_delivery_id() -> DeliveryId:
    """A fresh id for a delivery; platforms that know such keys are given it, so that they take it once."""
    return DeliveryId(f"d_{secrets.token_hex(8)}")


def new_memory_id() -> MemoryId:
    """A fresh id for something remembered."""
    return MemoryId(f"m_{secrets.token_hex(4)}")
