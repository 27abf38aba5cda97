"""Who may use which command: one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import NotAllowed
from palaver.domain.person import Role

if TYPE_CHECKING:
    from palaver.domain.person import Principal

# Owners and members may use every command.
GUEST_COMMANDS = frozenset(
    {
        "new",
        "reset",
        "resume",
        "sessions",
        "search",
        "title",
        "undo",
        "redo",
        "restore",
        "retry",
        "stop",
        "status",
        "usage",
        "why",
        "help",
    }
)


def can_use_command(role: Role, command: str) -> bool:
    return role is not Role.GUEST or command in GUEST_COMMANDS


def check_permission(principal: Principal, command: str) -> None:
    """Raise `NotAllowed` if the principal's role may not use the command."""
    if not can_use_command(principal.role, command):
        raise NotAllowed(f"Guests can't use /{command}. Use /help to see your commands.", command=command)
