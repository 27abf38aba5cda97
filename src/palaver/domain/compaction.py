"""A compaction: the agent sees a summary instead of the older messages. The messages themselves stay in the log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A summary that replaces every message before `first_kept_seq` for the agent."""

    seq: int  # of the compaction's own event in the log
    summary: str
    first_kept_seq: int  # the first message that the agent still sees as it is
    message_count: int  # how many messages the summary replaces
