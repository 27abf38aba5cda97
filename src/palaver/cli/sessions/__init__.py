"""`palaver sessions`: list, read, search, export and change conversations."""

from __future__ import annotations

import click

from palaver.cli.sessions.change_commands import (
    archive,
    delete,
    export,
    move,
    pin,
    prune,
    redo,
    rename,
    unarchive,
    undo,
    unpin,
)
from palaver.cli.sessions.list_command import list_sessions, search, show


@click.group()
def sessions() -> None:
    """List, read, search and organize conversations.

    SESSION is an id, the beginning of an id (at least 4 characters), or a title. The title of a numbered series
    ("Trip", "Trip #2", "Trip #3") means the newest conversation of the series.

    As the owner you see everybody's conversations. --mine limits a command to those you take part in.
    """


for command in (
    *(list_sessions, show, search, export, rename, pin, unpin),
    *(archive, unarchive, move, undo, redo, delete, prune),
):
    sessions.add_command(command)
