"""The open turns of a person who loses access: the queued ones end, with the reason in the log; a running one stops.

What is queued later, or by a message that is being stored at this moment, is refused when it is claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.sessions import log_table as events
from palaver.sessions.delivery import Address
from palaver.sessions.events import EventKind
from palaver.sessions.turn import InterruptReason, StopRequest
from palaver.sessions.turn_leases import CLAIM_LOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId


def list_guests_with_open_turns(tx: Transaction) -> list[PersonId]:
    rows = tx.fetch_all(
        "SELECT DISTINCT p.id FROM turn t JOIN person p ON p.id = t.person_id"
        " WHERE t.state IN ('queued', 'running') AND p.role = 'guest' ORDER BY p.id"
    )
    return [person_id for (person_id,) in rows]


def end_open_turns(
    tx: Transaction,
    person_id: PersonId,
    ended_by: PersonId,
    now: int,
    *,
    is_concerned: Callable[[Address | None], bool] | None = None,
) -> None:
    """End a person's queued turns and stop the running one: all, or those whose answers go to a concerned address.

    `ended_by` is the person who takes the access away.
    """
    tx.lock_name(CLAIM_LOCK)  # so that none is claimed meanwhile: each is queued, or runs and can be stopped
    rows = tx.fetch_all(
        "SELECT no, id, session_no, state, input_seq, address FROM turn"
        " WHERE person_id = $1 AND state IN ('queued', 'running') ORDER BY no",
        person_id,
    )
    for no, turn_id, session_no, state, input_seq, address in rows:
        if is_concerned is not None and not is_concerned(Address.from_text(address) if address else None):
            continue
        if state == "running":
            tx.execute(
                "UPDATE turn SET stop_request = $2, stopped_by = $3 WHERE no = $1 AND state = 'running'",
                no,
                StopRequest.STOP.value,
                ended_by,
            )
            continue
        reason = InterruptReason.ACCESS_ENDED
        ended = tx.execute(
            "UPDATE turn SET state = 'interrupted', ended_at = $2, error = $3 WHERE no = $1 AND state = 'queued'",
            no,
            now,
            reason.explain(),
        )
        if ended:
            facts = {"turn": turn_id, "input_seq": input_seq, "reason": reason.value}
            events.append_event(tx, session_no, EventKind.TURN_INTERRUPTED, now, person_id, **facts)
