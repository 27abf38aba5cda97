"""Changing several things of a conversation at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from palaver.core.errors import NotAllowed
from palaver.people.model import Action
from palaver.sessions import (
    activity_table as session_activity,
    projects_table as projects,
    settings_table as session_settings,
    table as sessions,
)
from palaver.sessions.events import EventKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.core.engines.base import Transaction
    from palaver.people.model import Principal
    from palaver.sessions.model import Session
    from palaver.sessions.table import SessionRow
    from palaver.sessions.turn import BusyPolicy
    from palaver.sessions.view.scope import ViewScope

# Each setting, its name for people, and the slash command that changes it too: who may use that may change the setting.
_SETTINGS = (
    ("model", "model", "model"),
    ("profile", "profile", "profile"),
    ("personality", "personality", "personality"),
    ("workspace", "workspace", "workspace"),
    ("busy_policy", "busy policy", "busy"),
    ("toolsets", "tools", "tools"),
)
_TEXT_SETTINGS: tuple[session_settings.TextSetting, ...] = (
    *("model", "profile", "personality", "workspace", "busy_policy"),
)


class SessionChanges(TypedDict, total=False):
    """What to change in a conversation; a key that is missing changes nothing."""

    title: str | None
    pinned: bool
    archived: bool
    project: str | None
    model: str | None  # already checked by the agent
    profile: str | None  # already checked
    personality: str | None  # already checked
    workspace: str | None  # already checked
    busy_policy: BusyPolicy | None
    toolsets: Mapping[str, bool] | None  # which to turn on or off; None turns all of them on


def check_may_change_settings(principal: Principal, changes: SessionChanges) -> None:
    # Imported here: the lists of the terminal start faster without the commands.
    from palaver.people.model import can_use_command

    for setting, name, command in _SETTINGS:
        if setting in changes and not can_use_command(principal.role, command):
            raise NotAllowed(f"Guests can't change the {name} of a conversation.", setting=setting)


def apply_changes(tx: Transaction, scope: ViewScope, session_id: str, changes: SessionChanges, now: int) -> SessionRow:
    """Apply every change; raises, and so changes nothing, if the principal may not make one of them."""
    person_id = scope.person_id
    row = scope.get_session_row(tx, session_id, Action.READ)
    if "title" in changes:
        scope.get_session_row(tx, session_id, Action.RENAME)
        sessions.rename(tx, row, changes["title"], now, person_id)
    if changes.keys() & {"pinned", "archived", "project"}:
        _organize(tx, scope, scope.get_session_row(tx, session_id, Action.ORGANIZE), changes, now)
    for setting in _TEXT_SETTINGS:
        if setting in changes:
            session_settings.change(tx, row.no, setting, changes[setting], now, person_id)
    if "profile" in changes and row.session.last_human_at is not None:  # its reset policy counts from now
        session_activity.mark_active(tx, row.no, now)
    if "toolsets" in changes:
        session_settings.switch_toolsets(tx, row.no, changes["toolsets"], now, person_id)
    return sessions.get_by_no(tx, row.no)


def _organize(tx: Transaction, scope: ViewScope, row: SessionRow, changes: SessionChanges, now: int) -> None:
    if "pinned" in changes:
        kind = EventKind.PINNED if changes["pinned"] else EventKind.UNPINNED
        sessions.set_pinned_or_archived(tx, row, kind, now, scope.person_id)
    if "archived" in changes:
        kind = EventKind.ARCHIVED if changes["archived"] else EventKind.UNARCHIVED
        sessions.set_pinned_or_archived(tx, row, kind, now, scope.person_id)
    if "project" in changes:
        move_to_project(tx, scope, row, changes["project"], now)


def move_to_project(tx: Transaction, scope: ViewScope, row: SessionRow, project: str | None, now: int) -> Session:
    """Move a session into one of the person's projects, given by id or name; None takes it out of any."""
    if project is None:
        return sessions.move_to_project(tx, row, None, None, now, scope.person_id)
    project_no, target = projects.get_by_id_or_name(tx, scope.person_id, project)
    return sessions.move_to_project(tx, row, target.id, project_no, now, scope.person_id)
