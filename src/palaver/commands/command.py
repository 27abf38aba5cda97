"""A slash command: its description for people, its typed actions, and a call of one of them.

    "/undo 3"  --Command.parse-->  undo_turns.call(turns=3)  --Inbox-->  CommandReply

A chat message is parsed once. The API and the page know what they want and build the call themselves. Both go through
the inbox, which checks the permission, runs the action in a transaction and stores the receipt.

Always true: an action with `reads=True` runs in a read transaction, where the database refuses every write.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, NotAllowed
from palaver.core.source import Platform
from palaver.core.text import make_storable
from palaver.core.texts import Text, name_text, say
from palaver.people.model import ALL_SCOPES, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.commands.context import CommandContext
    from palaver.core.ids import SessionId, TurnId
    from palaver.sessions.inbound import ExportRequest, Inbound, SettingsRequest
    from palaver.sessions.turn import BusyPolicy


Scopes = frozenset[Scope]  # one of them is enough

READ: Final[Scopes] = frozenset({Scope.READ})
WRITE: Final[Scopes] = frozenset({Scope.WRITE})
CHAT: Final[Scopes] = frozenset({Scope.CHAT})
ADMIN: Final[Scopes] = frozenset({Scope.ADMIN})
TALK: Final[Scopes] = CHAT | WRITE  # both let a program send messages to the agent
ANY: Final[Scopes] = ALL_SCOPES
NO_SCOPE: Final[Scopes] = frozenset()
EVERYTHING: Final = "everything"  # the argument with which an owner asks for what belongs to other people
# The secret of a webhook is a token, too: its program talks to the agent, and has nothing to do with administration.
WEBHOOK_SCOPES: Final = READ | WRITE | CHAT
P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandScopes:
    """The scopes of one of which a token needs to read, to change something, or to make the agent work."""

    read: Scopes = NO_SCOPE
    write: Scopes = NO_SCOPE
    run: Scopes = NO_SCOPE

    @property
    def all(self) -> Scopes:
        return self.read | self.write | self.run


NO_TOKEN: Final = CommandScopes()
READ_AND_WRITE: Final = CommandScopes(read=READ, write=WRITE)


def find_token_scopes(inbound: Inbound) -> frozenset[str] | None:
    """Return the scopes of the token that sends a message; None if a person sends it."""
    if inbound.source.platform == Platform.WEBHOOK:
        return WEBHOOK_SCOPES
    return None if inbound.signed_in is None else inbound.signed_in.token_scopes


def check_scopes(command: str, needed: Scopes, token_scopes: frozenset[str] | None) -> None:
    """Raise `NotAllowed` unless a person asks, or a token that has one of the needed scopes."""
    if token_scopes is None or needed & token_scopes:
        return
    if not needed:
        raise NotAllowed(
            say(
                "token.not_allowed",
                "API tokens can't do this with /{command}. Use it on the page or in a chat, where you are signed in"
                " yourself.",
                command=command,
            ),
            command=command,
        )
    scope = next(each for each in Scope if each in needed)
    raise NotAllowed(
        say(
            "token.lacks_scope",
            "This token lacks the scope {scope}, which /{command} needs here. Create a token that has it, on the page"
            " under Settings, API tokens.",
            scope=scope,
            command=command,
        ),
        command=command,
        scope=scope.value,
    )


class BadArguments(InvalidInput):
    """These arguments don't fit the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReply:
    """The result of a command: a text for the person, data for programs."""

    text: str  # Markdown
    session_id: SessionId | None = None  # the session to continue in, if the command changed it
    turn_id: TurnId | None = None  # a turn that the command queued or stopped
    data: dict[str, Any] = field(default_factory=dict)
    export: ExportRequest | None = None  # a file to make and to send with the text
    settings: SettingsRequest | None = None  # a change to make before the text is true


@dataclass(frozen=True, slots=True)
class CommandAction(Generic[P]):
    """One thing that a slash command does: a function with typed, named arguments."""

    command: str  # the name of the slash command whose permission it needs
    function: Callable[Concatenate[CommandContext, P], CommandReply]
    reads: bool = False  # it changes nothing
    searches: bool = False  # the search index must be up to date before it runs
    uses_prices: bool = False  # the prices of the agent's models must be loaded before it runs
    runs_agent: bool = False  # it makes the agent work, at once or later
    changes_many_events: bool = False  # it may hide, show or copy a large part of a conversation

    def call(self, *args: P.args, **kwargs: P.kwargs) -> CommandCall:
        """Build a call. Actions take named arguments only, so `args` is empty."""
        return CommandCall(self, kwargs)


@dataclass(frozen=True, slots=True)
class CommandCall:
    """An action with the arguments to run it with."""

    action: CommandAction[Any]
    arguments: Mapping[str, Any]

    @property
    def command(self) -> str:
        return self.action.command

    def run(self, context: CommandContext) -> CommandReply:
        """Run the action in the transaction of the context. It raises if it can't be done; then roll back."""
        arguments = {
            name: make_storable(value) if isinstance(value, str) else value for name, value in self.arguments.items()
        }
        return self.action.function(context, **arguments)


@dataclass(frozen=True, slots=True)
class MessageCall:
    """A message for the agent that was sent by a slash command: `/queue text`, `/steer text`."""

    command: str
    text: str
    busy: BusyPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A slash command as people know it."""

    name: str
    scopes: CommandScopes  # that an API token needs for it
    summary: str  # one line for /help
    parse: Callable[[str], CommandCall | MessageCall]  # takes what follows the name; raises BadArguments
    help: str  # more than the summary, for `/help name`
    example: str
    usage: str = ""  # the arguments, as in `[title]`
    aliases: tuple[str, ...] = ()
    makes_file: bool = False  # it takes longer than others: a file is made for its reply

    def __post_init__(self) -> None:
        for field_name in ("summary", "help", "usage"):
            text = getattr(self, field_name)
            if not isinstance(text, Text):
                object.__setattr__(self, field_name, name_text(f"command.{self.name}.{field_name}", text))


def write_action(
    command: str, **flags: bool
) -> Callable[[Callable[Concatenate[CommandContext, P], CommandReply]], CommandAction[P]]:
    """Declare a function as an action that may change the database; the flags are those of `CommandAction`."""
    return lambda function: CommandAction(command, function, **flags)


def read_action(
    command: str, **flags: bool
) -> Callable[[Callable[Concatenate[CommandContext, P], CommandReply]], CommandAction[P]]:
    """Declare a function as an action that only reads."""
    return write_action(command, reads=True, **flags)


def parse_no_arguments(action: CommandAction[[]]) -> Callable[[str], CommandCall]:
    """Build the parser of a command that takes no arguments."""

    def parse(text: str) -> CommandCall:
        if text:
            raise BadArguments.say(
                "command.no_arguments", "`/{command}` doesn't take arguments.", command=action.command
            )
        return action.call()

    return parse


def parse_choice(
    show: CommandAction[[]], choose: Callable[[str | None], CommandCall], reset_word: str
) -> Callable[[str], CommandCall]:
    """Build the parser of a command that shows a value, resets it (None) with this word, or sets it to a text."""

    def parse(text: str) -> CommandCall:
        if not text:
            return show.call()
        return choose(None if text.lower() == reset_word else text)

    return parse


def parse_number(text: str, *, minimum: int, maximum: int) -> int | None:
    """Parse a whole number within these limits; None if the text isn't one."""
    if not (text.isdecimal() and len(text) <= len(str(maximum))):
        return None
    number = int(text)
    return number if minimum <= number <= maximum else None
