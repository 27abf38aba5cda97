"""Every slash command by name, who may use it, and what counts as a command at all.

Always true: a command that is carried out has passed `run`, so nobody uses one that their role does not allow.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from palaver.domain.errors import NotAllowed
from palaver.domain.text import storable
from palaver.domain.turn import BusyPolicy
from palaver.services.commands import (
    conversation_commands,
    history_commands,
    query_commands,
    setting_commands,
    turn_commands,
)
from palaver.services.commands.base import BadArguments, Command, Reply
from palaver.services.commands.permissions import allows
from palaver.services.commands.reply_text import code, plain

if TYPE_CHECKING:
    from palaver.domain.person import Principal, Role
    from palaver.services.commands.base import CommandContext

# A name, perhaps the bot it is meant for, and what follows. A path or `//` is no command.
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:@[\w.-]+)?(?:\s+(.*))?", re.DOTALL)


class Parsed(NamedTuple):
    """A text that is a command."""

    name: str  # as it was typed, in small letters
    arguments: str


class Completion(NamedTuple):
    """What a terminal offers while somebody types."""

    name: str  # with its slash
    usage: str
    summary: str


# ---- help, which must know all the others ------------------------------------------------------------------


def _help(asked: CommandContext) -> Reply:
    role = asked.principal.role
    if asked.arguments:
        return _help_about(asked.arguments.removeprefix("/").lower(), role)
    blocks = []
    for heading, commands in GROUPS:
        lines = [f"- {code(_typed(each))} – {each.summary}" for each in commands if allows(role, each.name)]
        if lines:
            blocks.append(f"**{heading}**\n" + "\n".join(lines))
    blocks.append("`/help name` says more about one of them.")
    return Reply(text="\n\n".join(blocks), facts={"commands": [each.name for each in _for(role)]})


def _help_about(name: str, role: Role) -> Reply:
    command = find(name)
    if command is None or not allows(role, command.name):
        raise BadArguments(_no_such(name, role))
    lines = [f"{code(_typed(command))} – {command.summary}.", command.help, f"For example: {code(command.example)}"]
    if command.aliases:
        lines.append("Also: " + ", ".join(code(f"/{alias}") for alias in command.aliases))
    return Reply(text="\n\n".join(lines), facts={"command": command.name})


def _typed(command: Command) -> str:
    return f"/{command.name} {command.usage}".rstrip()


HELP = Command(
    name="help",
    usage="[command]",
    summary="what can be done here",
    help="Alone it lists every command; with the name of one it says more about it.",
    example="/help undo",
    aliases=("start",),
    run=_help,
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
        "Taking back",
        (
            history_commands.UNDO,
            history_commands.REDO,
            history_commands.RETRY,
            history_commands.RESTORE,
            history_commands.COMPRESS,
        ),
    ),
    ("While the agent works", (turn_commands.STOP, turn_commands.QUEUE, turn_commands.STEER, setting_commands.BUSY)),
    (
        "Looking",
        (
            query_commands.STATUS,
            query_commands.USAGE,
            query_commands.WHY,
            setting_commands.MODEL,
            setting_commands.TOOLS,
            HELP,
        ),
    ),
)
COMMANDS: tuple[Command, ...] = tuple(command for _, commands in GROUPS for command in commands)
_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}

# Commands that are messages when a text follows them, and what happens to those while the agent is busy.
_MESSAGES = {turn_commands.QUEUE.name: BusyPolicy.QUEUE, turn_commands.STEER.name: BusyPolicy.STEER}


# ---- for whoever takes messages in -------------------------------------------------------------------------


def parse(text: str) -> Parsed | None:
    """The command that a text is; None when it is an ordinary message."""
    match = _COMMAND.fullmatch(text)
    return None if match is None else Parsed(match[1].lower(), (match[2] or "").strip())


def find(name: str) -> Command | None:
    """A command by its name or another name it goes by."""
    return _BY_NAME.get(name.lower())


def searches(parsed: Parsed) -> bool:
    """Whether the search index must have caught up before this runs."""
    command = find(parsed.name)
    return command is not None and command.searches


def is_message(parsed: Parsed) -> bool:
    """Whether this is a message to the agent, in the words that follow the name: `/queue text`, `/steer text`."""
    return busy_policy(parsed) is not None


def busy_policy(parsed: Parsed) -> BusyPolicy | None:
    """What such a message asks for while the agent is busy; None when this is not one."""
    if not parsed.arguments or (
        parsed.name == turn_commands.QUEUE.name and parsed.arguments.lower() == turn_commands.CLEAR
    ):
        return None
    return _MESSAGES.get(parsed.name)


def run(parsed: Parsed, asked: CommandContext) -> Reply:
    """Carry a command out, as part of the asker's transaction.

    What cannot be done is raised, with a text for the person; the transaction must then be rolled back. A name that
    is no command is answered, not raised: nothing was wrong with the store.
    """
    command = find(parsed.name)
    role = asked.principal.role
    if command is None:
        return Reply(text=_no_such(parsed.name, role), facts={"unknown": parsed.name})
    check_may(asked.principal, command)
    return command.run(replace(asked, arguments=storable(parsed.arguments)))


def check_may(principal: Principal, command: Command) -> None:
    """Refuse a command that this principal's role does not allow."""
    if not allows(principal.role, command.name):
        raise NotAllowed(
            f"As a guest you may not use /{command.name}; /help lists what you may use.", command=command.name
        )


def completions() -> tuple[Completion, ...]:
    """What a terminal offers, in the order of /help."""
    return tuple(Completion(f"/{each.name}", each.usage, each.summary) for each in COMMANDS)


def _for(role: Role) -> list[Command]:
    return [command for command in COMMANDS if allows(role, command.name)]


def _no_such(name: str, role: Role) -> str:
    known = [other for command in _for(role) for other in (command.name, *command.aliases)]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean {code(f'/{near[0]}')}? " if near else ""
    return f"There is no command {code(f'/{plain(name, 32)}')}. {hint}/help lists them all."
