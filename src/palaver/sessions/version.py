"""Versions of an exchange: a message was edited or its answer regenerated, and the other version is kept.

Always true: of the versions of a message one is chosen, and only that one, with everything that followed it, is part of
the conversation. The others are hidden in the same log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_VERSIONS: Final = 200  # of one message


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionInfo:
    """Which version of a message is shown, and how many there are."""

    group: int  # the number of the first version's message in the log
    number: int  # of the chosen version, from 1
    count: int
    has_edits: bool  # the message itself differs between versions, not only its answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One of the versions of a message."""

    number: int
    seq: int  # of its message in the log
    is_chosen: bool
    question: str
    answer: str  # empty if there is none
