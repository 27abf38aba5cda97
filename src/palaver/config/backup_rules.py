"""When a server makes backups by itself, and how many of them are kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupRules:
    every_hours: int = 24  # 0: never
    keep: int = 3
