"""Compactions: which summary stands for the beginning of a conversation.

Each is an event in the log that remembers the one before it, so that taking one back brings that one back. Always true:
a summary that holds stands for visible messages only; an undo or a rewrite of one of them ends it (`events.py`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from palaver.domain.compaction import Compaction
from palaver.domain.errors import InvalidInput, NoSuchSession, NothingToRestore
from palaver.domain.events import EventKind
from palaver.storage import events

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Transaction


def current(tx: Transaction, session_no: int) -> Compaction | None:
    """The compaction that holds, if any."""
    row = tx.one("SELECT compaction_seq FROM session WHERE no = $1", session_no)
    return None if row is None or row[0] is None else _read(tx, session_no, row[0])[0]


def compact(
    tx: Transaction,
    session_no: int,
    summary: str,
    *,
    kept_from: int,
    messages: int,
    now: int,
    person_id: PersonId | None = None,
    focus: str | None = None,
) -> Compaction:
    """Let a summary stand for the messages before `kept_from`, in place of the summary that did so before."""
    previous = _locked(tx, session_no)
    row = tx.one("SELECT hidden_by FROM event WHERE session_no = $1 AND seq = $2", session_no, kept_from)
    if row is not None and row[0] is not None:  # then what was summarised may be hidden too
        raise InvalidInput("the conversation was changed while it was being summarised; try again", kept_from=kept_from)
    facts = {"summary": summary, "kept_from": kept_from, "messages": messages, "previous": previous}
    if focus:
        facts["focus"] = focus
    seq = events.note(tx, session_no, EventKind.COMPACTED, now, person_id, **facts)
    _hold(tx, session_no, seq)
    return Compaction(seq=seq, summary=summary, kept_from=kept_from, messages=messages)


def expand(tx: Transaction, session_no: int, now: int, person_id: PersonId | None = None) -> Compaction:
    """Take the last compaction back, and return it; the one before it holds again, if there was one."""
    seq = _locked(tx, session_no)
    if seq is None:
        raise NothingToRestore("this conversation is not summarised: the agent sees it as it is")
    taken, previous = _read(tx, session_no, seq)
    events.note(tx, session_no, EventKind.EXPANDED, now, person_id, compaction=seq, previous=previous)
    _hold(tx, session_no, previous)
    return taken


def _locked(tx: Transaction, session_no: int) -> int | None:
    """The number of the compaction that holds; nobody else changes it before this transaction ends."""
    row = tx.one(f"SELECT compaction_seq FROM session WHERE no = $1 {tx.lock}", session_no)
    if row is None:
        raise NoSuchSession
    return None if row[0] is None else int(row[0])


def _hold(tx: Transaction, session_no: int, seq: int | None) -> None:
    """Let a compaction hold; how full the context is with it, the next answer will tell."""
    tx.run("UPDATE session SET compaction_seq = $2, last_prompt_tokens = 0 WHERE no = $1", session_no, seq)


def _read(tx: Transaction, session_no: int, seq: int) -> tuple[Compaction, int | None]:
    """A compaction, and the number of the one before it."""
    row = tx.one("SELECT body FROM event WHERE session_no = $1 AND seq = $2", session_no, seq)
    assert row is not None  # noqa: S101
    facts = json.loads(row[0])
    compaction = Compaction(seq=seq, summary=facts["summary"], kept_from=facts["kept_from"], messages=facts["messages"])
    return compaction, facts["previous"]
