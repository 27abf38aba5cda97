"""The health of a platform, for the operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.source import Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformHealth:
    """Whether a platform is set up and connected, and its deliveries of the last 24 hours."""

    platform: Platform
    configured: bool  # the operator has set it up
    connected: bool  # this process receives and sends there
    pending: int = 0  # deliveries that are not sent yet
    uncertain: int = 0
    failed: int = 0
    last_error: str | None = None  # of the latest uncertain or failed delivery
    last_error_at: datetime | None = None
