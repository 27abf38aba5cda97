"""What people have decided for one conversation alone: its model, what happens to messages while it is busy, and which
toolsets are switched off.

Every decision is written into the log of the session, with what held before, so that it can be told and taken back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import NoSuchSession
from palaver.domain.events import EventKind
from palaver.domain.turn import BusyPolicy
from palaver.storage import events

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Transaction


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The decisions; None is whatever the gateway's settings say."""

    model: str | None = None
    busy: BusyPolicy | None = None
    toolsets_off: tuple[str, ...] = ()  # sorted


def read(tx: Transaction, session_no: int) -> SessionSettings:
    """What holds in a session."""
    row = tx.one("SELECT chosen_model, busy_policy, toolsets_off FROM session WHERE no = $1", session_no)
    if row is None:
        raise NoSuchSession
    return SessionSettings(row[0], None if row[1] is None else BusyPolicy(row[1]), names_from(row[2]))


def names_from(column: str | None) -> tuple[str, ...]:
    """The toolsets that a column names."""
    return () if column is None else tuple(json.loads(column))


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


def switch_toolsets(
    tx: Transaction,
    session_no: int,
    switches: Mapping[str, bool] | None,
    now: int,
    person_id: PersonId | None = None,
) -> None:
    """Switch toolsets off and on, each by its name; what is not named stays. None: all that there are."""
    row = tx.one(f"SELECT toolsets_off FROM session WHERE no = $1 {tx.lock}", session_no)
    if row is None:
        raise NoSuchSession
    was = names_from(row[0])
    off = switched(was, switches)
    if was == off:
        return
    column = json.dumps(off) if off else None
    tx.run("UPDATE session SET toolsets_off = $2 WHERE no = $1", session_no, column)
    events.note(tx, session_no, EventKind.CHANGED, now, person_id, setting="toolsets", value=list(off), was=list(was))


def switched(off: tuple[str, ...], switches: Mapping[str, bool] | None) -> tuple[str, ...]:
    """What is off after some were switched."""
    if switches is None:
        return ()
    return tuple(sorted({name for name in {*off, *switches} if not switches.get(name, False)}))


def inherit(tx: Transaction, parent_no: int, copy_no: int, now: int, person_id: PersonId | None = None) -> None:
    """What was chosen for a conversation holds in its copy."""
    chosen = read(tx, parent_no)
    choose_model(tx, copy_no, chosen.model, now, person_id)
    choose_busy(tx, copy_no, chosen.busy, now, person_id)
    switch_toolsets(tx, copy_no, dict.fromkeys(chosen.toolsets_off, False), now, person_id)
