"""`palaver platforms`: the accounts on chat platforms, whether they are connected, and what is wrong.

It reads the database, so it works beside a running server and on any machine that uses the same database.
"""

from __future__ import annotations

import click

from palaver.cli.options import json_option
from palaver.cli.platforms.connection_commands import connect, test
from palaver.cli.platforms.link_command import link
from palaver.cli.platforms.list_commands import list_platforms, show


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def platforms(ctx: click.Context) -> None:
    """Show the accounts on chat platforms, and connect, test and link them.

    Without a command, lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_platforms)


platforms.add_command(list_platforms)
platforms.add_command(show)
platforms.add_command(connect)
platforms.add_command(test)
platforms.add_command(link)
