"""The rows of erasures: how far each has come, and afterwards how much was erased.

Always true: a row names the person only until the erasure has ended; after that it has nothing but numbers.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from palaver.accounts.erasure_model import ErasedPerson, ErasureReport, ErasureStep
from palaver.core.timestamps import from_micros_or_none

if TYPE_CHECKING:
    from palaver.core.engines.base import Row, Transaction

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
    tx.execute(
        "INSERT INTO erasure (id, person_id, facts, step, counts, started_at) VALUES ($1, $2, $3, $4, $5, $6)",
        row.id,
        person.person_ids[0],
        json.dumps(person.to_dict()),
        row.step.value,
        json.dumps(report.to_dict()),
        now,
    )
    return row


def find_of_person(tx: Transaction, person_id: str) -> ErasureRow | None:
    """Return the erasure of a person that has begun and not ended."""
    row = tx.fetch_one(f"SELECT {_COLUMNS} FROM erasure WHERE person_id = $1", person_id)
    return None if row is None else _make_row(row)


def lock_open(tx: Transaction, erasure_id: str) -> ErasureRow | None:
    """Return an erasure that has not ended, and keep others from working on it until this transaction ends."""
    row = tx.fetch_one(f"SELECT {_COLUMNS} FROM erasure WHERE id = $1 AND ended_at IS NULL {tx.for_update}", erasure_id)
    return None if row is None else _make_row(row)


def find_open(tx: Transaction, erasure_id: str) -> ErasureRow | None:
    row = tx.fetch_one(f"SELECT {_COLUMNS} FROM erasure WHERE id = $1 AND ended_at IS NULL", erasure_id)
    return None if row is None else _make_row(row)


def list_open(tx: Transaction) -> list[str]:
    """List the ids of the erasures that have not ended, the oldest first."""
    return [row[0] for row in tx.fetch_all("SELECT id FROM erasure WHERE ended_at IS NULL ORDER BY no")]


def load_last_no(tx: Transaction) -> int:
    """Return the number of the newest erasure; 0 if there is none."""
    row = tx.fetch_one("SELECT MAX(no) FROM erasure")
    return int(row[0] or 0) if row else 0


def save(tx: Transaction, row: ErasureRow) -> None:
    """Store how far an erasure has come."""
    tx.execute(
        "UPDATE erasure SET facts = $2, step = $3, position = $4, session_no = $5, session_seq = $6, counts = $7"
        " WHERE id = $1",
        row.id,
        json.dumps(row.person.to_dict()),
        row.step.value,
        row.position,
        row.session_no,
        row.session_seq,
        json.dumps(row.report.to_dict()),
    )


def end(tx: Transaction, row: ErasureRow, now: int) -> None:
    """Record that everything is erased, and forget whom it concerned."""
    tx.execute(
        "UPDATE erasure SET person_id = NULL, facts = NULL, session_no = NULL, session_seq = 0, counts = $2,"
        " ended_at = $3 WHERE id = $1",
        row.id,
        json.dumps(row.report.to_dict()),
        now,
    )


def load_report(tx: Transaction, erasure_id: str) -> ErasureReport | None:
    """Return the report of an erasure, which may not have ended."""
    row = tx.fetch_one("SELECT counts, ended_at FROM erasure WHERE id = $1", erasure_id)
    return None if row is None else ErasureReport(json.loads(row[0]), from_micros_or_none(row[1]))


def has_ended_before(tx: Transaction, before: int) -> bool:
    return (
        tx.fetch_one("SELECT 1 FROM erasure WHERE ended_at IS NOT NULL AND ended_at < $1 LIMIT 1", before) is not None
    )


def delete_ended_before(tx: Transaction, before: int, limit: int) -> int:
    """Delete the oldest reports, at most `limit`; return how many."""
    return tx.execute(
        "DELETE FROM erasure WHERE no IN (SELECT no FROM erasure WHERE ended_at IS NOT NULL AND ended_at < $1"
        " ORDER BY ended_at LIMIT $2)",
        before,
        limit,
    )


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
