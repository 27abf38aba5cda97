"""`palaver chat`, also `palaver` without a command: chat with the agent in the terminal.

The way the chat looks depends on the terminal: a full screen, a terminal that can only show lines, a pipe, or a
script that sends one message (`-m`). This module only parses the command line and loads nothing else.
"""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path

import click

from palaver.cli.options import json_option, load_cli_settings
from palaver.cli.output import has_escape_codes, wants_json
from palaver.core.dataclass import dataclass


class StartMode(Enum):
    """The conversation that the chat starts in."""

    RECENT = "recent"  # the current one if it is not old, otherwise a new one
    LAST = "last"
    NEW = "new"
    NAMED = "named"  # the one given with --resume


class ChatMode(Enum):
    """The kind of chat: how it is shown, and the source of its messages."""

    SCREEN = "screen"  # a terminal with escape codes
    LINES = "lines"  # a terminal that can only show lines
    PIPE = "pipe"  # lines from another program
    ONE_SHOT = "one_shot"  # one message from the command line


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    mode: ChatMode
    start: StartMode = StartMode.RECENT
    resume: str = ""  # title, id or number of a conversation
    profile: str | None = None  # to choose in that conversation; "default" resets it
    personality: str | None = None
    workspace: str | None = None
    message: str | None = None
    files: tuple[Path, ...] = ()  # for the first message
    as_json: bool = False
    quiet: bool = False
    is_temporary: bool = False  # in the memory of this process only


@click.command()
@click.option("-m", "--message", metavar="TEXT", help="Send one message and print the answer; - reads from stdin.")
@click.option(
    "--file",
    "files",
    metavar="PATH",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Attach a file to the first message; can be given several times.",
)
@click.option("--continue", "last", is_flag=True, help="Continue the last conversation, however old it is.")
@click.option("--new", is_flag=True, help="Start a new conversation.")
@click.option(
    "--resume",
    metavar="[TITLE|ID]",
    is_flag=False,
    flag_value="",
    help="Continue a conversation by title or id; without a value, list recent conversations.",
)
@click.option("--temporary", is_flag=True, help="Start a conversation that isn't saved and is gone when you quit.")
@click.option("--profile", metavar="NAME", help="Choose a profile for the conversation, or default.")
@click.option("--personality", metavar="NAME", help="Choose a personality, or default for none.")
@click.option("--workspace", metavar="TEXT", help="Tell the agent a folder or topic, or default for none.")
@click.option("--quiet", is_flag=True, help="Print only the answers, without tool calls and notices.")
@json_option
def chat(
    message: str | None,
    files: tuple[Path, ...],
    last: bool,
    new: bool,
    resume: str | None,
    temporary: bool,
    profile: str | None,
    personality: str | None,
    workspace: str | None,
    quiet: bool,
) -> None:
    """Chat with the agent.

    In a terminal: Enter sends, Alt-Enter adds a line, Ctrl-C stops an answer, Ctrl-D quits, /help lists commands.
    In a pipe, every line is a message.

    By default the chat continues your last conversation if it was active in the last 12 hours.
    """
    if sum((last, new, resume is not None)) > 1:
        raise click.UsageError("Use only one of --continue, --new and --resume.")
    if temporary and (last or new or resume is not None or workspace is not None or files):
        raise click.UsageError("--temporary can't be used with --continue, --new, --resume, --workspace or --file.")
    mode = ChatMode.ONE_SHOT if message is not None else _detect_mode()
    if wants_json() and mode is not ChatMode.ONE_SHOT:
        raise click.UsageError("--json needs -m.")
    if quiet and mode in {ChatMode.SCREEN, ChatMode.LINES}:
        raise click.UsageError("--quiet needs -m or input from a pipe.")
    if resume == "" and mode in {ChatMode.ONE_SHOT, ChatMode.PIPE}:
        raise click.UsageError("--resume needs the title or id of a conversation here.")
    if workspace is not None and workspace != "default" and Path(workspace).is_dir():
        workspace = str(Path(workspace).resolve())  # a folder of this machine
    start = StartMode.LAST if last else StartMode.NEW if new else StartMode.NAMED if resume else StartMode.RECENT
    options = ChatOptions(
        mode=mode,
        start=start,
        resume=resume or "",
        profile=profile,
        personality=personality,
        workspace=workspace,
        message=sys.stdin.read() if message == "-" else message,
        files=files,
        as_json=wants_json(),
        quiet=quiet,
        is_temporary=temporary,
    )
    settings = load_cli_settings()
    from palaver.cli.chat.chat_runner import run_chat

    first_messages = ("/resume",) if resume == "" else ()
    click.get_current_context().exit(run_chat(settings, options, first_messages))


def _detect_mode() -> ChatMode:
    if sys.stdin is None or not sys.stdin.isatty():
        return ChatMode.PIPE
    return ChatMode.SCREEN if has_escape_codes() else ChatMode.LINES
