"""The rows of erasures: how far each has come, and afterwards how much was erased.

Always true: a row names the person only until the erasure has ended; after that it has nothing but numbers.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, field, fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import from_micros_or_none
from palaver.core.columns import insert_row, update_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, fetch_value
from palaver.core.errors import InvalidInput
from palaver.core.old_rows import declare_old_rows
from palaver.core.texts import say
from palaver.people.person_data import ErasureStep

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


# The kinds that a report counts, with their names for people: one, several.
COUNT_LABELS: Final[Mapping[str, tuple[str, str]]] = {
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
    """Counts of what was erased, or would be, by kind."""

    counts: Mapping[str, int] = field(default_factory=dict)
    ended_at: datetime | None = None  # None: it is not done yet

    def add(self, **counts: int) -> ErasureReport:
        added = {kind: self.counts.get(kind, 0) + count for kind, count in counts.items() if count}
        return replace(self, counts={**self.counts, **added})

    def to_dict(self) -> dict[str, int]:
        """Return the number of every kind, also if it is zero."""
        return {kind: self.counts.get(kind, 0) for kind in COUNT_LABELS}

    def to_lines(self) -> list[str]:
        """Return a line for each kind of which there was something."""
        numbers = self.to_dict()
        return [
            f"{numbers[kind]:,} {one if numbers[kind] == 1 else several}"
            for kind, (one, several) in COUNT_LABELS.items()
            if numbers[kind]
        ]


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

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ErasedPerson:
        """Read what `asdict` returned, from JSON."""
        values: dict[str, Any] = {each.name: data[each.name] for each in fields(cls)}
        values["accounts"] = map(tuple, data["accounts"])
        values |= {name: tuple(value) for name, value in values.items() if not isinstance(value, bool)}
        return cls(**values)

    @property
    def account_ids(self) -> frozenset[str]:
        return frozenset(account for _, account in self.accounts)


def check_typed_name(typed: str, name: str) -> None:
    """Raise InvalidInput unless the name that was typed to confirm is the person's."""
    if typed.strip().casefold() != name.strip().casefold():
        message = say("people.name_not_confirmed", "name: type the person's name, {name}, to confirm.", name=repr(name))
        raise InvalidInput(message, key="name")


_COLUMNS = "id, facts, step, position, session_no, session_seq, counts"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRow:
    """An erasure that has not ended, and how far it has come."""

    id: str
    person: ErasedPerson
    step: ErasureStep = ErasureStep.JOBS
    position: int = 0
    session_no: int | None = None  # the shared conversation that is being worked on
    session_seq: int = 0
    report: ErasureReport = field(default_factory=ErasureReport)

    def count(self, **counts: int) -> ErasureRow:
        return replace(self, report=self.report.add(**counts))

    def go_on(self) -> ErasureRow:
        """Return the row at the beginning of the next step."""
        return replace(self, step=self.step.next, position=0, session_no=None, session_seq=0)


def add(tx: Transaction, person: ErasedPerson, report: ErasureReport, now: int) -> ErasureRow:
    row = ErasureRow(id=f"e_{secrets.token_hex(6)}", person=person, report=report)
    values = {"id": row.id, "person_id": person.person_ids[0], "started_at": now}
    insert_row(tx, "erasure", values | _encode_progress(row))
    return row


def find_of_person(tx: Transaction, person_id: str) -> ErasureRow | None:
    """Return the erasure of a person that has begun and not ended."""
    row = tx.fetch_one(f"SELECT {_COLUMNS} FROM erasure WHERE person_id = $1", person_id)
    return None if row is None else _make_row(row)


def lock_open(tx: Transaction, erasure_id: str) -> ErasureRow | None:
    """Return an erasure that has not ended, and keep others from working on it until this transaction ends."""
    return find_open(tx, erasure_id, tx.for_update)


def find_open(tx: Transaction, erasure_id: str, lock: str = "") -> ErasureRow | None:
    row = tx.fetch_one(f"SELECT {_COLUMNS} FROM erasure WHERE id = $1 AND ended_at IS NULL {lock}", erasure_id)
    return None if row is None else _make_row(row)


def list_open(tx: Transaction) -> list[str]:
    """List the ids of the erasures that have not ended, the oldest first."""
    return [erasure_id for (erasure_id,) in tx.fetch_all("SELECT id FROM erasure WHERE ended_at IS NULL ORDER BY no")]


def load_last_no(tx: Transaction) -> int:
    """Return the number of the newest erasure; 0 if there is none."""
    return int(fetch_value(tx, "SELECT MAX(no) FROM erasure") or 0)


def save(tx: Transaction, row: ErasureRow) -> None:
    """Store how far an erasure has come."""
    update_row(tx, "erasure", "id", row.id, _encode_progress(row))


def end(tx: Transaction, row: ErasureRow, now: int) -> None:
    """Record that everything is erased, and forget whom it concerned."""
    forgotten = {"person_id": None, "facts": None, "session_no": None, "session_seq": 0}
    ended = {"counts": json.dumps(row.report.to_dict()), "ended_at": now}
    update_row(tx, "erasure", "id", row.id, forgotten | ended)


def _encode_progress(row: ErasureRow) -> dict[str, object]:
    facts, counts = json.dumps(asdict(row.person)), json.dumps(row.report.to_dict())
    progress = {"position": row.position, "session_no": row.session_no, "session_seq": row.session_seq}
    return {"facts": facts, "step": row.step.value, "counts": counts, **progress}


def load_report(tx: Transaction, erasure_id: str) -> ErasureReport | None:
    """Return the report of an erasure, which may not have ended."""
    row = tx.fetch_one("SELECT counts, ended_at FROM erasure WHERE id = $1", erasure_id)
    return None if row is None else ErasureReport(json.loads(row[0]), from_micros_or_none(row[1]))


def _make_row(row: Row) -> ErasureRow:
    erasure_id, facts, step, position, session_no, session_seq, counts = row
    return ErasureRow(
        id=erasure_id,
        person=ErasedPerson.from_dict(json.loads(facts)),
        step=ErasureStep(step),
        position=int(position),
        session_no=session_no,
        session_seq=int(session_seq),
        report=ErasureReport(json.loads(counts)),
    )


MAX_REPORT_AGE: Final = timedelta(days=400)  # only numbers
OLD_ROWS: Final = {
    "erasure_reports": declare_old_rows("erasure", "ended_at", MAX_REPORT_AGE, only="ended_at IS NOT NULL")
}
