"""Who may use which command: one table for owners, one for guests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.errors import ConfigError, NotAllowed, OwnerRequired
from palaver.people.model import Role

if TYPE_CHECKING:
    from collections.abc import Collection

    from palaver.people.model import Principal


# The slash commands of guests, unless the operator has chosen others. Members may use all but those of owners.
DEFAULT_GUEST_COMMANDS: Final = frozenset(
    {
        *("new", "reset", "resume", "sessions", "search", "title", "undo", "redo", "restore", "retry", "stop"),
        *("versions", "version", "status", "usage", "why", "link", "unlink", "whoami", "help"),
    }
)

OWNER_COMMANDS = frozenset({"pair", "sethome"})


def can_use_command(role: Role, command: str, guest_commands: Collection[str] = DEFAULT_GUEST_COMMANDS) -> bool:
    """Whether people with this role may use a command. `guest_commands` are those that the operator gives guests."""
    if command in OWNER_COMMANDS:
        return role is Role.OWNER
    return role is not Role.GUEST or command in guest_commands


def check_permission(
    principal: Principal, command: str, guest_commands: Collection[str] = DEFAULT_GUEST_COMMANDS
) -> None:
    """Raise `NotAllowed` if the principal's role may not use the command."""
    if can_use_command(principal.role, command, guest_commands):
        return
    if principal.role is Role.MEMBER:
        raise OwnerRequired(f"Only an owner can use /{command}. Use /help to see your commands.", command=command)
    raise NotAllowed(f"Guests can't use /{command}. Use /help to see your commands.", command=command)


def check_guest_commands(guest_commands: Collection[str], known: Collection[str]) -> None:
    """Raise `ConfigError` if the operator gives guests a command that does not exist or that is for owners."""
    wrong = sorted({*guest_commands} - {*known} | ({*guest_commands} & OWNER_COMMANDS))
    if wrong:
        allowed = ", ".join(sorted({*known} - OWNER_COMMANDS))
        raise ConfigError(
            f"people.guest_commands: {', '.join(wrong)} is not allowed ({allowed})", key="people.guest_commands"
        )
