"""Every slash command by name, and how a text becomes a call of one."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

from palaver.accounts import commands as people_commands
from palaver.commands.command import (
    ANY,
    BadArguments,
    Command,
    CommandAction,
    CommandCall,
    CommandReply,
    CommandScopes,
    Scopes,
    read_action,
)
from palaver.commands.reply_text import format_code, shorten_text
from palaver.delivery import commands as place_commands
from palaver.jobs import commands as job_commands
from palaver.memory import commands as memory_commands
from palaver.money import commands as budget_commands
from palaver.people.model import DEFAULT_GUEST_COMMANDS, can_use_command
from palaver.turns.commands import (
    conversation as conversation_commands,
    history as history_commands,
    query as query_commands,
    settings as profile_commands,
    status as status_commands,
    versions as version_commands,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from palaver.commands.command import MessageCall
    from palaver.commands.context import CommandContext
    from palaver.people.model import Role

# A name, the bot it is meant for, if any, and the arguments. Paths and `//` are not commands.
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:@[\w.-]+)?(?:\s+(.*))?", re.DOTALL)


class Completion(NamedTuple):
    """What a terminal offers while a person types."""

    name: str  # with its slash
    usage: str
    summary: str


# ---- help, which needs to know all the others --------------------------------------------------------------


@read_action("help")
def list_commands(context: CommandContext) -> CommandReply:
    blocks = []
    for heading, commands in GROUPS:
        lines = [
            f"- {format_code(_format_usage(command))} – {command.summary}"
            for command in commands
            if _can_use(context, command)
        ]
        if lines:
            blocks.append(f"**{heading}**\n" + "\n".join(lines))
    blocks.append("Use `/help name` to learn more about a command.")
    data = {"commands": [command.name for command in _list_commands_for(context)]}
    return CommandReply(text="\n\n".join(blocks), data=data)


@read_action("help")
def explain_command(context: CommandContext, *, name: str) -> CommandReply:
    command = find_command(name)
    if command is None or not _can_use(context, command):
        raise BadArguments(_describe_unknown(context, name))
    lines = [
        f"{format_code(_format_usage(command))} – {command.summary}.",
        command.help,
        f"Example: {format_code(command.example)}",
    ]
    if command.aliases:
        lines.append("Also: " + ", ".join(format_code(f"/{alias}") for alias in command.aliases))
    return CommandReply(text="\n\n".join(lines), data={"command": command.name})


@read_action("help")
def explain_unknown_command(context: CommandContext, *, name: str) -> CommandReply:
    """Answer a text that looks like a command but is none; this is not an error."""
    return CommandReply(text=_describe_unknown(context, name), data={"unknown_command": name})


def _reject_arguments(_context: CommandContext, *, problem: str) -> CommandReply:
    raise BadArguments(problem)


def _describe_unknown(context: CommandContext, name: str) -> str:
    names = [each for command in _list_commands_for(context) for each in (command.name, *command.aliases)]
    similar = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean {format_code(f'/{similar[0]}')}? " if similar else ""
    return f"Unknown command {format_code(f'/{shorten_text(name, 32)}')}. {hint}Use /help to list all commands."


def _list_commands_for(context: CommandContext) -> list[Command]:
    return [command for command in COMMANDS if _can_use(context, command)]


def _can_use(context: CommandContext, command: Command) -> bool:
    return is_listed(command, context.principal.role, context.token_scopes, context.rules.guest_commands)


def _format_usage(command: Command) -> str:
    return f"/{command.name} {command.usage}".rstrip()


def _parse_help(text: str) -> CommandCall:
    return explain_command.call(name=text.removeprefix("/").lower()) if text else list_commands.call()


HELP = Command(
    name="help",
    scopes=CommandScopes(read=ANY),
    usage="[command]",
    summary="List the commands, or explain one",
    help="Without arguments, lists every command you can use. With a name, explains that command.",
    example="/help undo",
    aliases=("start",),
    parse=_parse_help,
)

GROUPS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    (
        "Conversations",
        (
            conversation_commands.NEW,
            conversation_commands.RESET,
            conversation_commands.RESUME,
            query_commands.SESSIONS,
            query_commands.SEARCH,
            conversation_commands.TITLE,
            conversation_commands.BRANCH,
            query_commands.EXPORT,
        ),
    ),
    (
        "Undo and restore",
        (
            history_commands.UNDO,
            history_commands.REDO,
            version_commands.RETRY,
            version_commands.VERSIONS,
            version_commands.VERSION,
            history_commands.RESTORE,
            history_commands.COMPRESS,
        ),
    ),
    (
        "While the agent is responding",
        (version_commands.STOP, version_commands.QUEUE, version_commands.STEER, profile_commands.BUSY),
    ),
    ("Jobs", (job_commands.JOBS,)),
    (
        "You and your accounts",
        (
            people_commands.WHOAMI,
            memory_commands.MEMORY,
            people_commands.LINK,
            people_commands.UNLINK,
            place_commands.HANDOFF,
            people_commands.PAIR,
            place_commands.SETHOME,
        ),
    ),
    (
        "Status and settings",
        (
            status_commands.STATUS,
            status_commands.USAGE,
            budget_commands.BUDGET,
            status_commands.WHY,
            place_commands.PLATFORMS,
            profile_commands.MODEL,
            profile_commands.PROFILE,
            profile_commands.PERSONALITY,
            profile_commands.WORKSPACE,
            profile_commands.TOOLS,
            HELP,
        ),
    ),
)
COMMANDS: tuple[Command, ...] = tuple(command for _, commands in GROUPS for command in commands)
_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


# ---- for the callers ---------------------------------------------------------------------------------------


def parse_command(text: str) -> CommandCall | MessageCall | None:
    """Parse a text that starts with a command; None if it is an ordinary message.

    An unknown name and bad arguments give a call too. It answers or raises when it runs, after the checks of who may
    run it.
    """
    match = _COMMAND.fullmatch(text)
    if match is None:
        return None
    name, arguments = match[1].lower(), (match[2] or "").strip()
    command = find_command(name)
    if command is None:
        return explain_unknown_command.call(name=name)
    try:
        return command.parse(arguments)
    except BadArguments as error:
        return CommandAction(command.name, _reject_arguments, reads=True).call(problem=str(error))


def find_command(name: str) -> Command | None:
    """Find a command by its name or an alias."""
    return _BY_NAME.get(name.lower())


def find_scopes(call: CommandCall | MessageCall) -> Scopes:
    """Return the scopes of one of which a token needs for a call."""
    scopes = _BY_NAME[call.command].scopes
    if isinstance(call, CommandCall) and call.action.function is _reject_arguments:
        return scopes.all
    if not isinstance(call, CommandCall) or call.action.runs_agent:
        return scopes.run
    return scopes.read if call.action.reads else scopes.write


def is_listed(
    command: Command,
    role: Role,
    token_scopes: frozenset[str] | None,
    guest_commands: Collection[str] = DEFAULT_GUEST_COMMANDS,
) -> bool:
    """Whether lists of commands have this one for a person with this role or, if there are scopes, for a token."""
    has_scope = token_scopes is None or not command.scopes.all.isdisjoint(token_scopes)
    return has_scope and can_use_command(role, command.name, guest_commands)


def list_completions() -> tuple[Completion, ...]:
    """List what a terminal offers, in the order of /help."""
    return tuple(Completion(f"/{command.name}", command.usage, command.summary) for command in COMMANDS)
