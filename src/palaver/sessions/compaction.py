"""A compaction: the agent sees a summary instead of the older messages. The messages themselves stay in the log.

If no summary could be made, the older messages leave the agent's view without one (`omitted_count`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Replaces the messages before `first_kept_seq` for the agent, except the carried ones."""

    seq: int  # of the compaction's own event in the log
    summary: str  # empty if messages were only left out
    first_kept_seq: int  # from here on the agent sees every message as it is
    message_count: int  # how many messages the agent no longer sees as they are
    carried_seqs: tuple[int, ...] = ()  # earlier messages that the agent still sees: their answers come later
    omitted_count: int = 0  # how many of them no summary covers

    def covers(self, seq: int) -> bool:
        """Whether the agent sees the summary instead of the message with this number."""
        return seq < self.first_kept_seq and seq not in self.carried_seqs
