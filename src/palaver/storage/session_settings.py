"""Settings of one session: its model, its busy policy, and the toolsets that are disabled.

Every change is recorded in the session's log with the previous value, so that people can see and revert it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import SessionNotFound
from palaver.domain.events import EventKind
from palaver.domain.turn import BusyPolicy
from palaver.storage import events

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Transaction


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What was set for one session; None means that the gateway's settings apply."""

    model: str | None = None
    busy_policy: BusyPolicy | None = None
    disabled_toolsets: tuple[str, ...] = ()  # sorted


def load(tx: Transaction, session_no: int) -> SessionSettings:
    row = tx.fetch_one("SELECT chosen_model, busy_policy, disabled_toolsets FROM session WHERE no = $1", session_no)
    if row is None:
        raise SessionNotFound
    return SessionSettings(row[0], None if row[1] is None else BusyPolicy(row[1]), parse_toolset_names(row[2]))


def parse_toolset_names(column: str | None) -> tuple[str, ...]:
    """Read the names in a `disabled_toolsets` column."""
    return () if column is None else tuple(json.loads(column))


def set_model(tx: Transaction, session_no: int, model: str | None, now: int, person_id: PersonId | None = None) -> None:
    previous = load(tx, session_no).model
    if previous == model:
        return
    tx.execute("UPDATE session SET chosen_model = $2 WHERE no = $1", session_no, model)
    events.append_event(
        tx, session_no, EventKind.SETTING_CHANGED, now, person_id, setting="model", value=model, previous=previous
    )


def set_busy_policy(
    tx: Transaction, session_no: int, policy: BusyPolicy | None, now: int, person_id: PersonId | None = None
) -> None:
    previous = load(tx, session_no).busy_policy
    if previous == policy:
        return
    tx.execute("UPDATE session SET busy_policy = $2 WHERE no = $1", session_no, policy and policy.value)
    events.append_event(
        tx,
        session_no,
        EventKind.SETTING_CHANGED,
        now,
        person_id,
        setting="busy_policy",
        value=policy and policy.value,
        previous=previous and previous.value,
    )


def switch_toolsets(
    tx: Transaction,
    session_no: int,
    switches: Mapping[str, bool] | None,
    now: int,
    person_id: PersonId | None = None,
) -> None:
    """Enable (True) and disable (False) toolsets by name; the others stay as they are. None enables all."""
    row = tx.fetch_one(f"SELECT disabled_toolsets FROM session WHERE no = $1 {tx.for_update}", session_no)
    if row is None:
        raise SessionNotFound
    previous = parse_toolset_names(row[0])
    disabled = apply_switches(previous, switches)
    if previous == disabled:
        return
    column = json.dumps(disabled) if disabled else None
    tx.execute("UPDATE session SET disabled_toolsets = $2 WHERE no = $1", session_no, column)
    events.append_event(
        tx,
        session_no,
        EventKind.SETTING_CHANGED,
        now,
        person_id,
        setting="toolsets",
        value=list(disabled),
        previous=list(previous),
    )


def apply_switches(disabled: tuple[str, ...], switches: Mapping[str, bool] | None) -> tuple[str, ...]:
    """Return the disabled toolsets after some were switched."""
    if switches is None:
        return ()
    return tuple(sorted({name for name in {*disabled, *switches} if not switches.get(name, False)}))


def copy_settings(tx: Transaction, parent_no: int, fork_no: int, now: int, person_id: PersonId | None = None) -> None:
    """Give a fork the settings of its original."""
    settings = load(tx, parent_no)
    set_model(tx, fork_no, settings.model, now, person_id)
    set_busy_policy(tx, fork_no, settings.busy_policy, now, person_id)
    switch_toolsets(tx, fork_no, dict.fromkeys(settings.disabled_toolsets, False), now, person_id)
