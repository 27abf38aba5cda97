"""Ids. Each kind has its own type, so that the type checker catches a mix-up.

A session id is its creation time in UTC and random hex: `20261115_081200_1a2b3c4d`. It sorts by age and carries
no other information. Ids are created only here; text from a platform never becomes an id or a file path.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, NewType, TypeVar

from palaver.core.errors import SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Callable
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

T = TypeVar("T")

SESSION_ID_PATTERN = re.compile(r"\d{8}_\d{6}_[0-9a-f]{8}")


def parse_session_id(text: str) -> SessionId:
    """Return the id if it looks like one; raise SessionNotFound otherwise, because no session can have it."""
    if not isinstance(text, str) or SESSION_ID_PATTERN.fullmatch(text) is None:
        raise SessionNotFound.for_id(text)
    return SessionId(text)


def new_session_id(now: datetime) -> SessionId:
    """Return an id for a session that is created at `now` (an aware datetime in UTC)."""
    date, _, time = now.isoformat(timespec="seconds").partition("T")  # faster than `strftime`
    return SessionId(f"{date.replace('-', '')}_{time[:8].replace(':', '')}_{secrets.token_hex(4)}")


def _make_generator(kind: Callable[[str], T], prefix: str, byte_count: int) -> Callable[[], T]:
    return lambda: kind(f"{prefix}_{secrets.token_hex(byte_count)}")


new_person_id = _make_generator(PersonId, "p", 6)
new_project_id = _make_generator(ProjectId, "proj", 4)
new_turn_id = _make_generator(TurnId, "t", 8)
new_delivery_id = _make_generator(DeliveryId, "d", 8)  # also the idempotency key on platforms that support one
new_memory_id = _make_generator(MemoryId, "m", 4)
new_saved_prompt_id = _make_generator(SavedPromptId, "sp", 6)
new_job_id = _make_generator(JobId, "j", 4)
new_job_run_id = _make_generator(JobRunId, "r", 6)
new_model_call_id = _make_generator(ModelCallId, "c", 8)
