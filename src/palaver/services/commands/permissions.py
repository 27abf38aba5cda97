"""Who may use which command: one table."""

from __future__ import annotations

from palaver.domain.person import Role

# Everybody else may use everything.
FOR_GUESTS = frozenset(
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


def allows(role: Role, name: str) -> bool:
    """Whether somebody with this role may use the command of this name."""
    return role is not Role.GUEST or name in FOR_GUESTS
