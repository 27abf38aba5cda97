"""What a slash command is, and what it is given.

A command runs inside the transaction that takes its message in: what it changes, its reply, and the fact that this
message has been dealt with are stored together or not at all, so a command that a platform brings twice is carried out
once. What takes long (a summary, another answer) is queued as a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from palaver.domain.errors import InvalidInput, NothingToDo
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from palaver.domain.gateway_config import GatewayConfig
    from palaver.domain.ids import PersonId, SessionId, SessionKey, TurnId
    from palaver.domain.person import Principal
    from palaver.domain.profile import TurnRules
    from palaver.domain.session import Session
    from palaver.domain.source import SessionSource
    from palaver.services.view import ViewWithin
    from palaver.storage.engines.base import Transaction
    from palaver.storage.session_rows import SessionRow


class Models(Protocol):
    """What a command may know of the agent."""

    @property
    def model(self) -> str:
        """The model used where a conversation has chosen none."""
        ...

    @property
    def description(self) -> str:
        """Which agent answers, and why."""
        ...

    def models(self) -> Sequence[str]:
        """What may be chosen."""
        ...

    def check_model(self, name: str) -> None:
        """Refuse what could never be used."""
        ...

    def tool_servers(self) -> Sequence[str]:
        """The servers it has tools from."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """A command, who gives it and where, and what it may use."""

    tx: Transaction
    now: datetime
    arguments: str  # what follows the name, stripped
    source: SessionSource
    principal: Principal
    view: ViewWithin  # what the asker may see; in a place that several people share, only what belongs to that place
    key: SessionKey  # the lane it was said in
    found: SessionRow | None  # the conversation it is about: the one the surface shows, or the one the lane is on
    config: GatewayConfig
    rules: TurnRules
    agent: Models
    address: str | None = None  # where an answer goes; None where it is read in the conversation
    reply_to: str | None = None  # the platform's id of the message

    @property
    def at(self) -> int:
        """The present moment as stored."""
        return to_micros(self.now)

    @property
    def person_id(self) -> PersonId:
        """Who asks."""
        return self.principal.person_id

    @property
    def here(self) -> SessionRow:
        """The conversation it is about, when there must be one."""
        if self.found is None:
            raise NothingToDo("nothing has been said here yet")
        return self.found

    @property
    def session(self) -> Session:
        """The same, as people know it."""
        return self.here.session


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a command answers: words for the person, facts for programs."""

    text: str  # Markdown
    session_id: SessionId | None = None  # the conversation that goes on from here; None: the same
    turn_id: TurnId | None = None  # a turn that was queued
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One slash command."""

    name: str
    summary: str  # one line for /help
    run: Callable[[CommandContext], Reply]
    usage: str = ""  # the arguments, as in `[title]`
    help: str = ""  # more than the summary, for `/help name`
    example: str = ""  # as somebody would type it
    aliases: tuple[str, ...] = ()
    searches: bool = False  # the index must have caught up before it runs


class BadArguments(InvalidInput):
    """These arguments do not fit the command."""
