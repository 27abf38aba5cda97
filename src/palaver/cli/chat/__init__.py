"""`palaver chat`, which is also `palaver` without a command: talking with the agent in the terminal.

How the talk is shown depends on who is there: a person at a terminal, a person at one that can show lines only, a
pipe, or a script that says one thing (`-m`). This module is the command line alone and loads nothing else.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import Enum

import click

from palaver.cli.options import as_json_option, settings_of


class Start(Enum):
    """Which conversation the talk begins in."""

    RECENT = "recent"  # the current one if it is not old, otherwise a new one
    LAST = "last"
    NEW = "new"
    RESUMED = "resumed"  # the one that is named


class Way(Enum):
    """How the talk is shown and where the words come from."""

    SCREEN = "screen"  # a terminal
    LINES = "lines"  # a terminal that knows lines only
    PIPE = "pipe"  # whatever another program writes, line by line
    ONCE = "once"  # one message from the command line


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line asks for."""

    way: Way
    start: Start = Start.RECENT
    resume: str = ""  # title, id or number of a conversation
    message: str | None = None
    as_json: bool = False
    quiet: bool = False


@click.command()
@click.option("-m", "--message", metavar="TEXT", help="Say this, print the answer, and leave; - reads standard input.")
@click.option("--continue", "last", is_flag=True, help="Go on with the last conversation, however old it is.")
@click.option("--new", is_flag=True, help="Begin a new conversation.")
@click.option(
    "--resume",
    metavar="[TITLE|ID]",
    is_flag=False,
    flag_value="",
    help="Go back to a conversation; without its name, list those there are.",
)
@click.option("--quiet", is_flag=True, help="Print the answers alone: no tools, no notices.")
@as_json_option
@click.pass_context
def chat(
    ctx: click.Context,
    message: str | None,
    last: bool,
    new: bool,
    resume: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Talk with the agent.

    At a terminal it is a conversation: Enter sends, Alt-Enter begins a line, Ctrl-C stops an answer, Ctrl-D leaves,
    /help lists what else can be done. In a pipe every line is a message. A conversation goes on for 12 hours
    unless you say otherwise.
    """
    if sum((last, new, resume is not None)) > 1:
        raise click.UsageError("--continue, --new and --resume contradict each other; choose one")
    way = Way.ONCE if message is not None else _way()
    if as_json and way is not Way.ONCE:
        raise click.UsageError("--json goes with -m")
    if quiet and way in {Way.SCREEN, Way.LINES}:
        raise click.UsageError("--quiet goes with -m, or with lines from a pipe")
    if resume == "" and way in {Way.ONCE, Way.PIPE}:
        raise click.UsageError("--resume needs the title or the id of a conversation here")
    start = Start.LAST if last else Start.NEW if new else Start.RESUMED if resume else Start.RECENT
    wanted = Wanted(
        way=way,
        start=start,
        resume=resume or "",
        message=sys.stdin.read() if message == "-" else message,
        as_json=as_json,
        quiet=quiet,
    )
    settings = settings_of(ctx)
    from palaver.cli.chat.chat_runner import run

    offered = ("/resume",) if resume == "" else ()
    ctx.exit(run(settings, wanted, offered))


def _way() -> Way:
    if sys.stdin is None or not sys.stdin.isatty():
        return Way.PIPE
    shows = sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in {"", "dumb"}
    return Way.SCREEN if shows else Way.LINES
