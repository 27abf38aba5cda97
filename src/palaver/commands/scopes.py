"""Which scopes an API token needs for a slash command: the same as for the routes that do the same.

Each command declares its scopes. People who are signed in with a browser, and people in chats, need none.

Always true: what declares no scope is refused to every token. That is what could give a program a way to sign in or to
act as the person after its token was revoked: codes that link accounts, and linking itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.errors import NotAllowed
from palaver.core.source import Platform
from palaver.people.account import ALL_SCOPES, Scope

if TYPE_CHECKING:
    from palaver.sessions.inbound import Inbound

Scopes = frozenset[Scope]  # one of them is enough

READ: Final[Scopes] = frozenset({Scope.READ})
WRITE: Final[Scopes] = frozenset({Scope.WRITE})
CHAT: Final[Scopes] = frozenset({Scope.CHAT})
ADMIN: Final[Scopes] = frozenset({Scope.ADMIN})
TALK: Final[Scopes] = CHAT | WRITE  # both let a program send messages to the agent
ANY: Final[Scopes] = ALL_SCOPES
NO_SCOPE: Final[Scopes] = frozenset()
# The secret of a webhook is a token, too: its program talks to the agent, and has nothing to do with administration.
WEBHOOK_SCOPES: Final = READ | WRITE | CHAT


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
            f"API tokens can't do this with /{command}. Use it on the page or in a chat, where you are signed in"
            " yourself.",
            command=command,
        )
    scope = next(each for each in Scope if each in needed)
    raise NotAllowed(
        f"This token lacks the scope {scope}, which /{command} needs here. Create a token that has it, on the page"
        " under Settings, API tokens.",
        command=command,
        scope=scope.value,
    )
