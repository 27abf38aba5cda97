"""Slash commands, defined once for every surface.

`parse_command` turns a text into a call; `CommandRunner` runs a call in a transaction. The inbox does both.
"""

from palaver.services.commands.registry import COMMANDS, find_command, list_completions, parse_command

__all__ = ["COMMANDS", "find_command", "list_completions", "parse_command"]
