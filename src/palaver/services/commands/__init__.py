"""Slash commands: defined once, for every surface."""

from palaver.services.commands.registry import (
    COMMANDS,
    Completion,
    Parsed,
    busy_policy,
    completions,
    find,
    is_message,
    parse,
    run,
    searches,
)

__all__ = [
    "COMMANDS",
    "Completion",
    "Parsed",
    "busy_policy",
    "completions",
    "find",
    "is_message",
    "parse",
    "run",
    "searches",
]
