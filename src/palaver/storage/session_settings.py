"""What people have decided for one conversation alone: its model, and what happens to messages while it is busy.

Every decision is written into the log of the session, with what held before, so that it can be told and taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import NoSuchSession
from palaver.domain.events import EventKind
from palaver.domain.turn import BusyPolicy
from palaver.storage import events

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId
    from palaver.storage.engine import Transaction


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The decisions; None is whatever the gateway's settings say."""

    model: str | None = None
    busy: BusyPolicy | None = None


def read(tx: Transaction, session_no: int) -> SessionSettings:
    """What holds in a session."""
    row = tx.one("SELECT chosen_model, busy_policy FROM session WHERE no = $1", session_no)
    if row is None:
        raise NoSuchSession
    return SessionSettings(row[0], None if row[1] is None else BusyPolicy(row[1]))


def choose_model(
    tx: Transaction, session_no: int, model: str | None, now: int, person_id: PersonId | None = None
) -> None:
    """Let another model answer here; None is the gateway's own choice."""
    was = read(tx, session_no).model
    if was == model:
        return
    tx.run("UPDATE session SET chosen_model = $2 WHERE no = $1", session_no, model)
    events.note(tx, session_no, EventKind.CHANGED, now, person_id, setting="model", value=model, was=was)


def choose_busy(
    tx: Transaction, session_no: int, busy: BusyPolicy | None, now: int, person_id: PersonId | None = None
) -> None:
    """Let messages that arrive during an answer be treated otherwise; None is what the gateway's settings say."""
    was = read(tx, session_no).busy
    if was == busy:
        return
    tx.run("UPDATE session SET busy_policy = $2 WHERE no = $1", session_no, busy and busy.value)
    events.note(
        tx,
        session_no,
        EventKind.CHANGED,
        now,
        person_id,
        setting="busy",
        value=busy and busy.value,
        was=was and was.value,
    )
