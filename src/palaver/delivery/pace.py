"""Limits how fast an account sends: to one chat, and altogether. Kept in memory by the process that runs the account.

Sends and edits share it. An edit of a growing message also leaves room for one send, so that answers do not wait for
previews of other answers. A draft, which is no message, waits for the messages of its chat, but does not hold them up.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from palaver.core.recent_entries import RecentEntries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from palaver.delivery.model import Capabilities, Pace
    from palaver.sessions.delivery import AccountKey

MAX_REMEMBERED_CHATS = 10_000  # of one account: those that were used last


class _Bucket:
    """Counts by one number: when everything that was sent so far would have been sent at the steady pace."""

    __slots__ = ("_pace", "_sent_until")

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._sent_until = -math.inf

    def compute_wait(self, now: float, *, spare: int = 0) -> float:
        """Return the seconds until one more may be sent, such that `spare` further ones could be sent at once."""
        burst = max(1, self._pace.burst - spare)
        return max(0.0, self._sent_until - (burst - 1) * self._pace.seconds - now)

    def take(self, now: float) -> None:
        self._sent_until = max(self._sent_until, now) + self._pace.seconds


class Pacer:
    """The pace of one account."""

    def __init__(self, capabilities: Capabilities, get_time: Callable[[], float] = time.monotonic) -> None:
        self._capabilities = capabilities
        self._get_time = get_time
        self._account = _Bucket(capabilities.pace_per_account) if capabilities.pace_per_account else None
        self._chats: RecentEntries[str, _Bucket] = RecentEntries(MAX_REMEMBERED_CHATS)
        self._edits: RecentEntries[str, _Bucket] = RecentEntries(MAX_REMEMBERED_CHATS)
        self._drafts: RecentEntries[str, _Bucket] = RecentEntries(MAX_REMEMBERED_CHATS)
        self._paused_until = -math.inf

    def pause(self, seconds: float) -> None:
        """Send nothing for a while, because the platform has asked the account to wait."""
        self._paused_until = max(self._paused_until, self._get_time() + seconds)

    @property
    def pause_seconds(self) -> float:
        """The time for which the account must not send anything."""
        return max(0.0, self._paused_until - self._get_time())

    def compute_wait(self, chat_id: str) -> float:
        """Return the seconds until a message may be sent to a chat; 0 if it may be sent now."""
        now = self._get_time()
        return max(0.0, self._paused_until - now, *(each.compute_wait(now) for each in self._list_buckets(chat_id)))

    def take(self, chat_id: str) -> None:
        """Count a message that is sent to a chat."""
        now = self._get_time()
        for bucket in self._list_buckets(chat_id):
            bucket.take(now)

    def compute_edit_wait(self, chat_id: str, *, is_draft: bool = False) -> float:
        """Return the seconds until the growing message in a chat may be edited, or a draft shown there."""
        now = self._get_time()
        account_wait = self._account.compute_wait(now, spare=1) if self._account else 0.0
        own_wait = self._find_edits(chat_id, is_draft=is_draft).compute_wait(now)
        return max(self.compute_wait(chat_id), own_wait, account_wait)

    def take_edit(self, chat_id: str, *, is_draft: bool = False) -> None:
        """Count an edit of the growing message in a chat, or a draft."""
        now = self._get_time()
        if not is_draft:
            self.take(chat_id)
        elif self._account:
            self._account.take(now)
        self._find_edits(chat_id, is_draft=is_draft).take(now)

    def _list_buckets(self, chat_id: str) -> Iterator[_Bucket]:
        """Yield what limits messages to a chat."""
        if self._account:
            yield self._account
        if pace := self._capabilities.pace_per_chat:
            yield _find_bucket(self._chats, chat_id, pace)

    def _find_edits(self, chat_id: str, *, is_draft: bool) -> _Bucket:
        if is_draft:
            return _find_bucket(self._drafts, chat_id, self._capabilities.draft_pace)
        return _find_bucket(self._edits, chat_id, self._capabilities.edit_pace)


def _find_bucket(buckets: RecentEntries[str, _Bucket], chat_id: str, pace: Pace) -> _Bucket:
    bucket = buckets.get(chat_id) or _Bucket(pace)
    buckets.remember(chat_id, bucket)
    return bucket


class Pacers:
    def __init__(self) -> None:
        self._pacers: dict[AccountKey, Pacer] = {}

    def get(self, account: AccountKey, capabilities: Capabilities) -> Pacer:
        if account not in self._pacers:
            self._pacers[account] = Pacer(capabilities)
        return self._pacers[account]
