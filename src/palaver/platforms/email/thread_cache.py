"""Remembers the subjects and references of threads that were active lately, so that answering needs no search."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

MAX_ENTRIES = 2000


@dataclass(frozen=True, slots=True)
class ThreadState:
    """What an answer needs of the last mail in a thread."""

    message_id: str  # of that mail
    subject: str
    references: tuple[str, ...] = ()  # the mails before it


class ThreadCache:
    """The last mail of each thread, and mails by their ids."""

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[str, ...], ThreadState] = OrderedDict()

    def remember(self, chat_id: str, thread_id: str, state: ThreadState) -> None:
        for key in ((chat_id, thread_id), (chat_id, "", state.message_id)):
            self._states[key] = state
            self._states.move_to_end(key)
        while len(self._states) > MAX_ENTRIES:
            self._states.popitem(last=False)

    def find(self, chat_id: str, thread_id: str, message_id: str | None = None) -> ThreadState | None:
        """Return a mail of a chat or, without an id, the last one of its thread."""
        return self._states.get((chat_id, "", message_id) if message_id else (chat_id, thread_id))
