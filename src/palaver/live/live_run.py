"""A turn that runs in this process, as followers read it from memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from palaver.sessions.draft import Draft

if TYPE_CHECKING:
    from palaver.agent.base import Notice
    from palaver.core.ids import TurnId


@dataclass(slots=True)
class LiveRun:
    turn_no: int
    turn_id: TurnId
    session_no: int
    attempt: int
    draft: Draft = field(default_factory=Draft)
    notices: list[Notice] = field(default_factory=list)
