"""Finds a slash command by name, turns a text into a call of one, and explains all of them (`/help`).

The registry gets the list of commands: `inbox/registry.py` has it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from palaver.commands.command import (
    ADMIN,
    ANY,
    EVERYTHING,
    BadArguments,
    Command,
    CommandAction,
    CommandCall,
    CommandReply,
    CommandScopes,
    MessageCall,
    Scopes,
    check_scopes,
)
from palaver.commands.reply_text import quote_command, shorten_text
from palaver.core.errors import InvalidInput
from palaver.core.texts import chat_language, join_texts, say, translate
from palaver.people.model import DEFAULT_GUEST_COMMANDS, Role, can_use_command

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from palaver.commands.context import CommandContext

    Groups = Sequence[tuple[str, Sequence[Command]]]  # each with its heading in /help

# A name, the bot it is meant for, if any, and the arguments. Paths and `//` are not commands.
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:@[\w.-]+)?(?:\s+(.*))?", re.DOTALL)


_START = "start"  # what a platform sends when a person opens the chat, with a word of its own behind it


class Completion(NamedTuple):
    """A command that a terminal offers while a person types."""

    name: str  # with its slash
    usage: str
    summary: str


class CommandRegistry:
    """All commands, with `/help` as the last one."""

    def __init__(self, groups: Groups) -> None:
        self.list_commands = CommandAction("help", self._list_commands, reads=True)
        self.explain_command = CommandAction("help", self._explain_command, reads=True)
        self.greet = CommandAction("help", _greet, reads=True)
        self.explain_unknown_command = CommandAction("help", self._explain_unknown_command, reads=True)
        help_command = Command(
            name="help",
            scopes=CommandScopes(read=ANY),
            usage="[command]",
            summary="List the commands, or explain one",
            help="Without arguments, lists every command you can use. With a name, explains that command.",
            example="/help undo",
            aliases=(_START,),
            parse=lambda text: (
                self.explain_command.call(name=text.removeprefix("/").lower()) if text else self.list_commands.call()
            ),
        )
        *others, (heading, last) = groups
        self._groups: Groups = (*others, (heading, (*last, help_command)))
        self.commands = tuple(command for _, commands in self._groups for command in commands)
        self._by_name = {name: command for command in self.commands for name in (command.name, *command.aliases)}

    def find(self, name: str) -> Command | None:
        """Find a command by its name or an alias."""
        return self._by_name.get(name.lower())

    def makes_file(self, text: str) -> bool:
        """Return whether a text is a command that makes a file for its reply; it alone is parsed."""
        match = _COMMAND.fullmatch(text)
        command = None if match is None else self.find(match[1])
        if command is None or not command.makes_file:
            return False
        call = self.parse(text)
        return isinstance(call, CommandCall) and call.action.function is not _reject_arguments

    def parse(self, text: str) -> CommandCall | MessageCall | None:
        """Parse a text that starts with a command; None if it is an ordinary message.

        An unknown name and bad arguments give a call too. It answers or raises when it runs, after the checks of who
        may run it.
        """
        match = _COMMAND.fullmatch(text)
        if match is None:
            return None
        name, arguments = match[1].lower(), (match[2] or "").strip()
        command = self.find(name)
        if command is None:
            return self.explain_unknown_command.call(name=name)
        if name == _START:
            return self.greet.call()
        try:
            return command.parse(arguments)
        except InvalidInput as error:
            return CommandAction(command.name, _reject_arguments, reads=True).call(problem=error.text)

    def check_call_scopes(self, call: CommandCall | MessageCall, token_scopes: frozenset[str] | None) -> None:
        """Raise `NotAllowed` if a token asks that has no scope for this."""
        check_scopes(call.command, self._find_scopes(call), token_scopes)
        if isinstance(call, CommandCall) and call.arguments.get(EVERYTHING):
            check_scopes(call.command, ADMIN, token_scopes)  # what belongs to other people is for owners

    def _find_scopes(self, call: CommandCall | MessageCall) -> Scopes:
        scopes = self._by_name[call.command].scopes
        if not isinstance(call, CommandCall) or call.action.runs_agent:
            return scopes.run
        if call.action.function is _reject_arguments:
            return scopes.all
        return scopes.read if call.action.reads else scopes.write

    def list_completions(self) -> tuple[Completion, ...]:
        """List what a terminal offers, in the order of /help."""
        return tuple(
            Completion(
                name=f"/{command.name}",
                usage=translate(command.usage, chat_language.name),
                summary=translate(command.summary, chat_language.name),
            )
            for command in self.commands
        )

    # -- help ----------------------------------------------------------------------------------------------

    def _list_commands(self, context: CommandContext) -> CommandReply:
        blocks: list[str] = []
        for heading, commands in self._groups:
            lines = [
                "- " + quote_command(_format_usage(command)) + " – " + command.summary
                for command in commands
                if _can_use(context, command)
            ]
            if lines:
                blocks.append("**" + heading + "**\n" + join_texts("\n", lines))
        blocks.append(say("help.more", "Use `/help name` to learn more about a command."))
        data = {"commands": [command.name for command in self._list_commands_for(context)]}
        return CommandReply(text=join_texts("\n\n", blocks), data=data)

    def _explain_command(self, context: CommandContext, *, name: str) -> CommandReply:
        command = self.find(name)
        if command is None or not _can_use(context, command):
            raise BadArguments(self._describe_unknown(context, name))
        lines = [
            quote_command(_format_usage(command)) + " – " + command.summary + ".",
            command.help,
            say("help.example", "Example: {command}", command=quote_command(command.example[1:])),
        ]
        if command.aliases:
            aliases = join_texts(", ", map(quote_command, command.aliases))
            lines.append(say("help.aliases", "Also: {aliases}", aliases=aliases))
        return CommandReply(text=join_texts("\n\n", lines), data={"command": command.name})

    def _explain_unknown_command(self, context: CommandContext, *, name: str) -> CommandReply:
        """Answer a text that looks like a command but is none; this is not an error."""
        return CommandReply(text=self._describe_unknown(context, name), data={"unknown_command": name})

    def _describe_unknown(self, context: CommandContext, name: str) -> str:
        from difflib import get_close_matches

        names = [each for command in self._list_commands_for(context) for each in (command.name, *command.aliases)]
        similar = get_close_matches(name, names, 1)
        typed, hint = quote_command(shorten_text(name, 32)), ""
        if similar:
            hint = say("help.similar", "Did you mean {command}? ", command=quote_command(similar[0]))
        return say(
            "help.unknown", "Unknown command {command}. {hint}Use /help to list all commands.", command=typed, hint=hint
        )

    def _list_commands_for(self, context: CommandContext) -> list[Command]:
        return [command for command in self.commands if _can_use(context, command)]


def is_listed(
    command: Command,
    role: Role,
    token_scopes: frozenset[str] | None,
    guest_commands: Collection[str] = DEFAULT_GUEST_COMMANDS,
) -> bool:
    """Return whether lists of commands have this one for a person with this role or, with scopes, for a token."""
    has_scope = token_scopes is None or not command.scopes.all.isdisjoint(token_scopes)
    return has_scope and can_use_command(role, command.name, guest_commands)


def _can_use(context: CommandContext, command: Command) -> bool:
    return is_listed(command, context.principal.role, context.token_scopes, context.rules.guest_commands)


def _format_usage(command: Command) -> str:
    return f"{command.name} " + command.usage if command.usage else command.name


def _greet(_context: CommandContext) -> CommandReply:
    return CommandReply(text=say("help.welcome", "Hello! Write me a message to start. Use /help to list all commands."))


def _reject_arguments(_context: CommandContext, *, problem: str) -> CommandReply:
    raise BadArguments(problem)
