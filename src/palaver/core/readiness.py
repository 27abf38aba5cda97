"""What keeps a server from serving everything, for monitoring and for `palaver doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ReadinessCode = Literal[
    "database_slow", "database_locked", "disk_full", "disk_nearly_full", "too_many_connections", "turns_waiting"
]


@dataclass(frozen=True, slots=True)
class ReadinessProblem:
    """One problem of a running server; everybody can read it."""

    code: ReadinessCode
    message: str
    is_blocking: bool  # messages can't be stored, so the server is not ready
