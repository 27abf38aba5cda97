"""A compaction: what came before a place in the log is put before the agent as a summary. Nothing is taken away."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A summary that stands for everything before `kept_from`."""

    seq: int  # of its own event in the log
    summary: str
    kept_from: int  # the first message that is kept whole
    messages: int  # how many the summary stands for
