"""Compactions: summaries that replace the beginning of a conversation for the agent.

Each is an event in the log that points to the one before it, so undoing one brings that one back.

Always true: the summary in effect covers visible messages only; an undo or rewrite of one of them ends it
(`events.py`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from palaver.domain.compaction import Compaction
from palaver.domain.errors import InvalidInput, NothingToRestore, SessionNotFound
from palaver.domain.events import EventKind
from palaver.storage import events

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Transaction


def find_current(tx: Transaction, session_no: int) -> Compaction | None:
    """Return the compaction in effect, if there is one."""
    row = tx.fetch_one("SELECT compaction_seq FROM session WHERE no = $1", session_no)
    return None if row is None or row[0] is None else _load(tx, session_no, row[0])[0]


def create(
    tx: Transaction,
    session_no: int,
    summary: str,
    *,
    first_kept_seq: int,
    message_count: int,
    now: int,
    person_id: PersonId | None = None,
    focus: str | None = None,
) -> Compaction:
    """Replace the messages before `first_kept_seq`, and the summary in effect so far, with a new summary."""
    previous_seq = _lock_current(tx, session_no)
    row = tx.fetch_one("SELECT hidden_by FROM event WHERE session_no = $1 AND seq = $2", session_no, first_kept_seq)
    if row is not None and row[0] is not None:  # then summarized messages may be hidden too
        raise InvalidInput(
            "The conversation changed while it was being summarized. Try again.", first_kept_seq=first_kept_seq
        )
    facts = {
        "summary": summary,
        "first_kept_seq": first_kept_seq,
        "message_count": message_count,
        "previous_seq": previous_seq,
    }
    if focus:
        facts["focus"] = focus
    seq = events.append_event(tx, session_no, EventKind.COMPACTED, now, person_id, **facts)
    _set_current(tx, session_no, seq)
    return Compaction(seq=seq, summary=summary, first_kept_seq=first_kept_seq, message_count=message_count)


def undo_last(tx: Transaction, session_no: int, now: int, person_id: PersonId | None = None) -> Compaction:
    """Undo the compaction in effect and return it; the one before it, if any, takes effect again."""
    seq = _lock_current(tx, session_no)
    if seq is None:
        raise NothingToRestore("This conversation has no summary: the agent already sees all of it.")
    compaction, previous_seq = _load(tx, session_no, seq)
    events.append_event(
        tx,
        session_no,
        EventKind.COMPACTION_UNDONE,
        now,
        person_id,
        compaction_seq=seq,
        previous_seq=previous_seq,
    )
    _set_current(tx, session_no, previous_seq)
    return compaction


def _lock_current(tx: Transaction, session_no: int) -> int | None:
    """Return the seq of the compaction in effect, and keep others from changing it until this transaction ends."""
    row = tx.fetch_one(f"SELECT compaction_seq FROM session WHERE no = $1 {tx.for_update}", session_no)
    if row is None:
        raise SessionNotFound
    return None if row[0] is None else int(row[0])


def _set_current(tx: Transaction, session_no: int, seq: int | None) -> None:
    """Let a compaction take effect. The size of the context is unknown until the next answer reports it."""
    tx.execute("UPDATE session SET compaction_seq = $2, last_prompt_tokens = 0 WHERE no = $1", session_no, seq)


def _load(tx: Transaction, session_no: int, seq: int) -> tuple[Compaction, int | None]:
    """Return a compaction, and the seq of the one before it."""
    row = tx.fetch_one("SELECT body FROM event WHERE session_no = $1 AND seq = $2", session_no, seq)
    assert row is not None  # noqa: S101
    facts = json.loads(row[0])
    compaction = Compaction(
        seq=seq,
        summary=facts["summary"],
        first_kept_seq=facts["first_kept_seq"],
        message_count=facts["message_count"],
    )
    return compaction, facts["previous_seq"]
