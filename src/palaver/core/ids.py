"""Ids. Each kind has its own type, so that the type checker catches a mix-up.

A session id is its creation time in UTC and random hex: `20261115_081200_1a2b3c4d`. It sorts by age and carries
no other information. Ids are created only here; text from a platform never becomes an id or a file path.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, NewType

from palaver.core.errors import SessionNotFound

if TYPE_CHECKING:
    from datetime import datetime

SessionId = NewType("SessionId", str)
SessionKey = NewType("SessionKey", str)
PersonId = NewType("PersonId", str)
ProjectId = NewType("ProjectId", str)
TurnId = NewType("TurnId", str)
JobId = NewType("JobId", str)
JobRunId = NewType("JobRunId", str)
DeliveryId = NewType("DeliveryId", str)
ModelCallId = NewType("ModelCallId", str)
MemoryId = NewType("MemoryId", str)
SavedPromptId = NewType("SavedPromptId", str)

SESSION_ID_PATTERN = re.compile(r"\d{8}_\d{6}_[0-9a-f]{8}")


def parse_session_id(text: str) -> SessionId:
    """Return the id if it looks like one; raise SessionNotFound otherwise, because no session can have it."""
    if not isinstance(text, str) or SESSION_ID_PATTERN.fullmatch(text) is None:
        raise SessionNotFound.for_id(text)
    return SessionId(text)


def new_session_id(now: datetime) -> SessionId:
    """Return an id for a session that is created at `now` (an aware datetime in UTC)."""
    return SessionId(f"{now:%Y%m%d_%H%M%S}_{secrets.token_hex(4)}")


def new_person_id() -> PersonId:
    return PersonId(f"p_{secrets.token_hex(6)}")


def new_project_id() -> ProjectId:
    return ProjectId(f"proj_{secrets.token_hex(4)}")


def new_turn_id() -> TurnId:
    return TurnId(f"t_{secrets.token_hex(8)}")


def new_delivery_id() -> DeliveryId:
    """Return an id for a delivery; it is also the idempotency key on platforms that support one."""
    return DeliveryId(f"d_{secrets.token_hex(8)}")


def new_memory_id() -> MemoryId:
    return MemoryId(f"m_{secrets.token_hex(4)}")


def new_saved_prompt_id() -> SavedPromptId:
    return SavedPromptId(f"sp_{secrets.token_hex(6)}")


def new_job_id() -> JobId:
    return JobId(f"j_{secrets.token_hex(4)}")


def new_job_run_id() -> JobRunId:
    return JobRunId(f"r_{secrets.token_hex(6)}")


def new_model_call_id() -> ModelCallId:
    return ModelCallId(f"c_{secrets.token_hex(8)}")
