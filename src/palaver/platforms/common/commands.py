"""Whether a text is one of our commands: in a group it is for us then, so that people can type what our texts name."""

from __future__ import annotations

from palaver.inbox.registry import find_command


def names_command(text: str) -> bool:
    """Return whether a text begins with one of our commands, after a sign such as a slash."""
    name = text[1:33].split(maxsplit=1)
    return bool(name) and not text[1].isspace() and find_command(name[0]) is not None
