"""Settings of one session: model, profile, personality, workspace, busy policy, and the toolsets that are disabled.

Every change is recorded in the session's log with the previous value, so that people can see and revert it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, get_args

from palaver.core.columns import Columns, update_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Transaction, fetch_value
from palaver.core.errors import SessionNotFound
from palaver.sessions import log_table as events
from palaver.sessions.events import EventKind
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.core.ids import PersonId, SessionKey
    from palaver.sessions.gateway_config import GatewayConfig

TextSetting = Literal["model", "profile", "personality", "workspace", "busy_policy"]
TEXT_SETTINGS: tuple[TextSetting, ...] = get_args(TextSetting)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """The settings of one session; None means that the gateway's settings apply."""

    model: str | None = None
    profile: str | None = None  # its name; config.yaml may no longer have it
    personality: str | None = None  # its name; config.yaml may no longer have it
    workspace: str | None = None
    busy_policy: BusyPolicy | None = None
    disabled_toolsets: tuple[str, ...] = ()  # sorted


_SETTINGS = Columns(SessionSettings, types={BusyPolicy}, model="chosen_model")
_SELECT = f"SELECT {_SETTINGS.format_select()} FROM session WHERE no = $1"


def load(tx: Transaction, session_no: int) -> SessionSettings:
    row = tx.fetch_one(_SELECT, session_no)
    if row is None:
        raise SessionNotFound
    return _SETTINGS.decode(row)


def find_profile(tx: Transaction, session: int | SessionKey) -> str | None:
    """Return the name of the profile that a session has chosen, by its number or by a lane that is on it; None if it
    has chosen none.
    """
    number = "$1" if isinstance(session, int) else "(SELECT session_no FROM lane WHERE key = $1)"
    return fetch_value(tx, f"SELECT profile FROM session WHERE no = {number}", session)


def find_reset_profile(tx: Transaction, config: GatewayConfig, session: int | SessionKey) -> str | None:
    """Return the profile by which the reset policy of a session is found; None if no profile has a policy."""
    return find_profile(tx, session) if config.reset_by_profile else None


def change(
    tx: Transaction,
    session_no: int,
    setting: TextSetting,
    value: str | None,
    now: int,
    person_id: PersonId | None = None,
) -> None:
    """Set a setting; None resets it. The caller has checked the value."""
    column = "chosen_model" if setting == "model" else setting
    text = None if value is None else str(value)  # an enum as plain text
    previous = events.lock_session(tx, session_no, column)
    if previous == text:
        return
    update_row(tx, "session", "no", session_no, {column: text})
    facts = {"setting": setting, "value": text, "previous": previous}
    events.append_event(tx, session_no, EventKind.SETTING_CHANGED, now, person_id, **facts)


def switch_toolsets(
    tx: Transaction,
    session_no: int,
    switches: Mapping[str, bool] | None,
    now: int,
    person_id: PersonId | None = None,
) -> None:
    """Enable (True) and disable (False) toolsets by name; the others stay as they are. None enables all."""
    previous = tuple(json.loads(events.lock_session(tx, session_no, "disabled_toolsets") or "[]"))
    disabled = apply_switches(previous, switches)
    if previous == disabled:
        return
    column = json.dumps(disabled) if disabled else None
    update_row(tx, "session", "no", session_no, {"disabled_toolsets": column})
    facts = {"setting": "toolsets", "value": list(disabled), "previous": list(previous)}
    events.append_event(tx, session_no, EventKind.SETTING_CHANGED, now, person_id, **facts)


def apply_switches(disabled: tuple[str, ...], switches: Mapping[str, bool] | None) -> tuple[str, ...]:
    if switches is None:
        return ()
    return tuple(sorted({name for name in {*disabled, *switches} if not switches.get(name, False)}))


def copy_settings(tx: Transaction, parent_no: int, fork_no: int, now: int, person_id: PersonId | None = None) -> None:
    settings = load(tx, parent_no)
    for setting in TEXT_SETTINGS:
        change(tx, fork_no, setting, getattr(settings, setting), now, person_id)
    switch_toolsets(tx, fork_no, dict.fromkeys(settings.disabled_toolsets, False), now, person_id)
