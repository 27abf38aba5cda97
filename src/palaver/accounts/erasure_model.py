"""Erasing a person: whom it concerns, in which steps it is done, and the report of what went.

A person is erased everywhere. What belongs to them alone is deleted. In conversations that others share with them,
their messages, and the agent's answers to these, become entries of kind `erased`, so that the log keeps its numbers.
What was spent stays in the totals of the usage reports, without anything that leads to the person.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class ErasureStep(StrEnum):
    """What is being erased; the order in which it is done."""

    JOBS = "jobs"
    SESSIONS = "sessions"  # those that only this person sees
    SHARED = "shared"  # what they wrote in conversations of others
    MEMORIES = "memories"
    SHARES = "shares"
    ATTACHMENTS = "attachments"
    PROJECTS = "projects"
    READ_MARKS = "read_marks"
    GROUP_MESSAGES = "group_messages"
    RECEIPTS = "receipts"
    IMPORTS = "imports"  # the records of what was imported for them, or under their accounts
    DELIVERIES = "deliveries"
    USAGE = "usage"
    SEARCH_INDEX = "search_index"  # what the index of SQLite still holds of deleted messages
    PERSON = "person"

    @property
    def next(self) -> ErasureStep:
        steps = list(ErasureStep)
        return steps[min(steps.index(self) + 1, len(steps) - 1)]


# The kinds that a report counts, with their names for people: one, several.
COUNT_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "conversations": ("conversation", "conversations"),
    "messages": ("message in them", "messages in them"),
    "shared_conversations": ("conversation shared with others", "conversations shared with others"),
    "shared_messages": ("message in those", "messages in those"),
    "quotes": ("quote in messages of others", "quotes in messages of others"),
    "summaries": ("summary that may quote them", "summaries that may quote them"),
    "memories": ("memory", "memories"),
    "files": ("file", "files"),
    "file_bytes": ("byte of files", "bytes of files"),
    "shares": ("shared link", "shared links"),
    "projects": ("project", "projects"),
    "jobs": ("job", "jobs"),
    "job_runs": ("run of jobs", "runs of jobs"),
    "accounts": ("chat account", "chat accounts"),
    "sign_ins": ("sign-in", "sign-ins"),
    "tokens": ("API token", "API tokens"),
    "passkeys": ("passkey", "passkeys"),
    "deliveries": ("message sent to chats", "messages sent to chats"),
    "group_messages": ("message in groups", "messages in groups"),
    "receipts": ("receipt of received messages", "receipts of received messages"),
    "read_marks": ("read mark", "read marks"),
    "home_channels": ("home channel", "home channels"),
    "usage_rows": ("usage record made anonymous", "usage records made anonymous"),
}


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """How much was erased, or would be, of each kind."""

    counts: Mapping[str, int] = field(default_factory=dict)
    ended_at: datetime | None = None  # None: it is not done yet

    def add(self, **counts: int) -> ErasureReport:
        """Return the report with more counted."""
        added = {kind: self.counts.get(kind, 0) + count for kind, count in counts.items() if count}
        return replace(self, counts={**self.counts, **added})

    def to_dict(self) -> dict[str, int]:
        """Return the number of every kind, also if it is zero."""
        return {kind: self.counts.get(kind, 0) for kind in COUNT_WORDS}

    def to_lines(self) -> list[str]:
        """Return a line for each kind of which there was something."""
        lines = []
        for kind, (one, several) in COUNT_WORDS.items():
            count = self.counts.get(kind, 0)
            if count:
                lines.append(f"{count:,} {one if count == 1 else several}")
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedPerson:
    """Everything by which what belongs to a person is found; stored only until the erasure has ended."""

    person_ids: tuple[str, ...]  # their own first, then those that were linked to it
    audiences: tuple[int, ...]  # of which they are the only member
    names: tuple[str, ...]
    accounts: tuple[tuple[str, str], ...]  # platform and id, every id that the platform has for them
    addresses: tuple[str, ...] = ()  # of their direct messages
    folders: tuple[str, ...] = ()  # with the files of their jobs
    pending_hashes: tuple[str, ...] = ()  # of files whose rows are deleted and whose bytes may still be there
    has_found_shared: bool = False  # the search through the logs of others has found something in this round

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ErasedPerson:
        texts = ("person_ids", "names", "addresses", "folders", "pending_hashes")
        return cls(
            **{name: tuple(data[name]) for name in texts},
            audiences=tuple(data["audiences"]),
            accounts=tuple((platform, account) for platform, account in data["accounts"]),
            has_found_shared=bool(data["has_found_shared"]),
        )

    @property
    def account_ids(self) -> frozenset[str]:
        return frozenset(account for _, account in self.accounts)


def check_typed_name(typed: str, name: str) -> None:
    """Raise InvalidInput unless the name that was typed to confirm is the person's."""
    if typed.strip().casefold() != name.strip().casefold():
        raise InvalidInput(f"name: type the person's name, {name!r}, to confirm.", key="name")
