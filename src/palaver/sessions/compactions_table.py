"""Compactions: summaries that replace the beginning of a conversation for the agent.

Each is an event in the log that points to the one before it, so undoing one brings that one back.

Always true: the summary in effect covers visible messages only; an undo or rewrite of one of them ends it
(`log_table.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.engines.base import fetch_value
from palaver.core.errors import InvalidInput, NothingToRestore
from palaver.core.text import make_storable
from palaver.sessions import log_table as events
from palaver.sessions.events import Compaction, EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.sessions.events import Event


def find_current(tx: Transaction, session_no: int) -> Compaction | None:
    """Return the compaction in effect, if there is one that can be read."""
    seq = fetch_value(tx, "SELECT compaction_seq FROM session WHERE no = $1", session_no)
    return None if seq is None else _load(tx, session_no, seq)[0]


def find_last_summary(tx: Transaction, session_no: int) -> Compaction | None:
    """Return the last compaction that left nothing out, so that a new summary covers what was left out since."""
    seq = fetch_value(tx, "SELECT compaction_seq FROM session WHERE no = $1", session_no)
    while seq is not None:
        compaction, previous_seq = _load(tx, session_no, seq)
        if compaction is not None and not compaction.omitted_count:
            return compaction
        seq = previous_seq
    return None


def load_view(tx: Transaction, session_no: int, compaction: Compaction | None, up_to: int) -> tuple[list[Event], bool]:
    """Return the messages that a turn which answers message `up_to` sees, and whether some were left out."""
    first_seq = compaction.first_kept_seq if compaction else 0
    log, is_truncated = events.load_context(tx, session_no, first_seq=first_seq, up_to=up_to)
    carried = [
        event
        for event in events.list_events_at(tx, session_no, compaction.carried_seqs if compaction else ())
        if not event.hidden and event.message is not None and (event.message.role != "user" or event.seq <= up_to)
    ]
    return [*carried, *log], is_truncated


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCompaction:
    """A compaction to store."""

    summary: str
    first_kept_seq: int
    last_replaced_seq: int  # of the messages that it replaces
    message_count: int
    carried_seqs: Sequence[int] = ()
    omitted_count: int = 0
    focus: str | None = None


def create(
    tx: Transaction, session_no: int, new: NewCompaction, now: int, person_id: PersonId | None = None
) -> Compaction:
    """Replace messages, and the compaction in effect so far."""
    previous_seq = _lock_current(tx, session_no)
    sql = "SELECT hidden_by FROM event WHERE session_no = $1 AND seq = $2"
    if (
        fetch_value(tx, sql, session_no, new.last_replaced_seq) is not None
    ):  # an undo or rewrite hides every message from some point on
        raise InvalidInput("The conversation changed while it was being summarized. Try again.")
    summary = make_storable(new.summary)
    facts: dict[str, object] = {
        "summary": summary,
        "first_kept_seq": new.first_kept_seq,
        "message_count": new.message_count,
        "previous_seq": previous_seq,
    }
    if new.carried_seqs:
        facts["carried_seqs"] = list(new.carried_seqs)
    if new.omitted_count:
        facts["omitted_count"] = new.omitted_count
    if new.focus:
        facts["focus"] = new.focus
    seq = events.append_event(tx, session_no, EventKind.COMPACTED, now, person_id, **facts)
    _set_current(tx, session_no, seq)
    return Compaction(
        seq=seq,
        summary=summary,
        first_kept_seq=new.first_kept_seq,
        message_count=new.message_count,
        carried_seqs=tuple(new.carried_seqs),
        omitted_count=new.omitted_count,
    )


def undo_last(tx: Transaction, session_no: int, now: int, person_id: PersonId | None = None) -> Compaction:
    """Undo the compaction in effect and return it; the one before it, if any, takes effect again."""
    seq = _lock_current(tx, session_no)
    if seq is None:
        raise NothingToRestore("This conversation has no summary: the agent already sees all of it.")
    compaction, previous_seq = _load(tx, session_no, seq)
    if compaction is None:
        raise NothingToRestore("The summary can't be read, so it isn't used: the agent already sees all messages.")
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
    seq: int | None = events.lock_session(tx, session_no, "compaction_seq")
    return seq


def _set_current(tx: Transaction, session_no: int, seq: int | None) -> None:
    """Let a compaction take effect. The size of the context is unknown until the next answer reports it."""
    tx.execute("UPDATE session SET compaction_seq = $2, last_prompt_tokens = 0 WHERE no = $1", session_no, seq)


def _load(tx: Transaction, session_no: int, seq: int) -> tuple[Compaction | None, int | None]:
    """Return a compaction, None if it cannot be read, and the seq of the one before it."""
    facts = events.load_facts(tx, session_no, seq)
    summary, first_kept_seq, count = (facts.get(name) for name in ("summary", "first_kept_seq", "message_count"))
    if not (isinstance(summary, str) and isinstance(first_kept_seq, int) and isinstance(count, int)):
        return None, None
    compaction = Compaction(
        seq=seq,
        summary=summary,
        first_kept_seq=first_kept_seq,
        message_count=count,
        carried_seqs=tuple(facts.get("carried_seqs", ())),
        omitted_count=facts.get("omitted_count", 0),
    )
    return compaction, facts.get("previous_seq")
