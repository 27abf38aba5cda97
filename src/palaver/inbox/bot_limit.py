"""The loop guard: two programs that answer each other would never stop.

Messages of our own accounts never get here: adapters drop them. Messages of other programs are answered only where the
operator allows it, and even then only a few in a minute.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.config.agent_rules import TurnRules
    from palaver.core.source import SessionSource
    from palaver.sessions.delivery import AccountKey

MAX_ANSWERS_PER_MINUTE: Final = 6  # to programs, for each account
_WINDOW_SECONDS: Final = 60.0


class BotLimit:
    """Counts how often programs were answered lately, for each account in this process."""

    def __init__(self, rules: TurnRules, get_seconds: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._get_seconds = get_seconds
        self._answer_times: dict[AccountKey, deque[float]] = {}

    def use_rules(self, rules: TurnRules) -> None:
        """Apply other rules from the next message on."""
        self._rules = rules

    def allows_answer(self, source: SessionSource) -> bool:
        """Whether the message of a program may be answered now; if so, it counts as answered."""
        if source.platform not in self._rules.bot_platforms:
            return False
        now = self._get_seconds()
        times = self._answer_times.setdefault((source.platform, source.account), deque())
        while times and times[0] <= now - _WINDOW_SECONDS:
            times.popleft()
        if len(times) >= MAX_ANSWERS_PER_MINUTE:
            return False
        times.append(now)
        return True
