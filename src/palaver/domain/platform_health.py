"""How a platform is doing, for whoever runs the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.source import Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformHealth:
    """One platform; what went wrong is of the last day."""

    platform: Platform
    connected: bool  # this process receives and sends there
    waiting: int = 0  # deliveries that are on their way
    uncertain: int = 0
    failed: int = 0
    trouble: str | None = None  # the last of these, in words
    trouble_at: datetime | None = None
