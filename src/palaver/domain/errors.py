"""Every error Palaver raises on purpose, as one tree.

    PalaverError
    ├── ConfigError             a setting is wrong: names the place and what is allowed
    ├── InvalidInput            what was asked cannot be done as it was said
    │   ├── InvalidMessage
    │   ├── InvalidTitle
    │   │   └── TitleTaken
    │   ├── InvalidSource
    │   ├── InvalidName
    │   │   └── NameTaken
    │   ├── WeakPassword
    │   ├── ProjectTaken
    │   ├── AlreadyRemembered
    │   ├── LimitReached        there are as many as there may be: says of what, and how many that is
    │   ├── StillAnswering      it cannot be done while the agent is at work
    │   ├── NotReachable        an answer cannot be sent to where the conversation takes place
    │   └── Ambiguous
    ├── NotFound                not there, or not yours: the two are one answer
    │   ├── NoSuchSession
    │   └── NoSuchProject
    ├── NotAllowed              it is there and you see it, but this is not yours to change
    │   ├── OwnerOnly
    │   ├── WrongPassword
    │   └── WrongPasskey
    ├── NotSignedIn             nobody knows who asks
    │   └── SignInRefused
    ├── TooManyAttempts
    ├── NothingToDo
    │   ├── NothingToUndo
    │   ├── NothingToRedo
    │   ├── NothingToRestore
    │   └── TooLittle           to be compressed
    ├── AgentError              the agent could not answer; what it said before is kept
    │   ├── AgentUnavailable    the provider is down, too slow or cut the line; tried again, then given up
    │   │   └── AgentBusy       the provider asks us to slow down
    │   ├── AgentRefused        the key, the model or the account is not accepted
    │   └── ContextOverflow     the conversation is longer than the model can take
    ├── DeliveryError           something could not be sent
    │   ├── SendLater           it was not sent, and may be tried again
    │   ├── SendRejected        it was not sent, and never will be
    │   ├── TargetGone          nobody is at that address any more
    │   └── SendUncertain       it may have arrived, or not
    ├── LeaseLost               somebody else has taken this turn over
    └── StoreError              the database could not do it; what was stored before stands
        ├── StoreBusy
        ├── StoreFull
        ├── StoreReadOnly
        ├── StoreDamaged
        ├── StoreUnavailable
        ├── StoreClosed
        └── SchemaTooNew

The docstring of a class is its message when none is given; facts are kept as fields, for logs and JSON.
Edges map these classes to exit codes and HTTP states, each in one place.
"""

from __future__ import annotations

import inspect
import re


class PalaverError(Exception):
    """Something went wrong inside Palaver."""

    def __init__(self, message: str = "", **facts: object) -> None:
        super().__init__(message or inspect.getdoc(type(self)) or type(self).__name__)
        self.facts = facts

    @property
    def code(self) -> str:
        """Its stable name for programs: `no_such_session`."""
        return re.sub(r"(?<=.)(?=[A-Z])", "_", type(self).__name__).lower()


class ConfigError(PalaverError):
    """The configuration has a mistake."""


class InvalidInput(PalaverError):
    """This cannot be done as it was asked."""


class InvalidMessage(InvalidInput):
    """This is not a message that a conversation can hold."""


class InvalidTitle(InvalidInput):
    """This cannot be a title."""


class TitleTaken(InvalidTitle):
    """You already have a conversation with this title."""


class ProjectTaken(InvalidInput):
    """You already have a project with this name."""


class AlreadyRemembered(InvalidInput):
    """The same thing is remembered already."""


class LimitReached(InvalidInput):
    """There are as many of these as there may be."""


class StillAnswering(InvalidInput):
    """The agent is still answering in this conversation; wait for it, or stop it first."""


class InvalidSource(InvalidInput):
    """This does not say where a message came from."""


class Ambiguous(InvalidInput):
    """Several things match; say more of the one you mean."""


class NotReachable(InvalidInput):
    """Nothing can be sent to where this conversation takes place."""


class NotFound(PalaverError):
    """There is no such thing here."""


class NoSuchSession(NotFound):
    """There is no such session."""


class NoSuchProject(NotFound):
    """There is no such project."""


class NotAllowed(PalaverError):
    """You may not do this."""


class OwnerOnly(NotAllowed):
    """Only the owner of this gateway may do this."""


class NothingToDo(PalaverError):
    """There is nothing to do."""


class NothingToUndo(NothingToDo):
    """There is no turn left to undo."""


class NothingToRedo(NothingToDo):
    """There is nothing to redo: no turn was undone, or the conversation has moved on since."""


class TooLittle(NothingToDo):
    """There is too little in this conversation to compress."""


class NothingToRestore(NothingToDo):
    """There is no earlier conversation to restore here."""


class NotSignedIn(PalaverError):
    """You are not signed in, or your sign-in has ended."""


class SignInRefused(NotSignedIn):
    """This does not let you in."""


class TooManyAttempts(PalaverError):
    """There were too many attempts; wait a little."""

    def __init__(self, message: str = "", *, retry_after: float = 1.0, **facts: object) -> None:
        super().__init__(message, retry_after=int(retry_after) + 1, **facts)
        self.retry_after = retry_after  # seconds


class InvalidName(InvalidInput):
    """This cannot be somebody's name."""


class NameTaken(InvalidName):
    """Somebody who can sign in has this name already."""


class WeakPassword(InvalidInput):
    """This password is too easy to guess."""


class WrongPassword(NotAllowed):
    """This is not your password."""


class WrongPasskey(NotAllowed):
    """This passkey could not be checked."""


class AgentError(PalaverError):
    """The agent could not answer."""


class AgentUnavailable(AgentError):
    """The model cannot be reached at the moment."""


class AgentBusy(AgentUnavailable):
    """The model's provider asks us to slow down."""

    def __init__(self, message: str = "", *, retry_after: float | None = None, **facts: object) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after  # seconds


class AgentRefused(AgentError):
    """The model's provider does not accept our key, our model or our account."""


class ContextOverflow(AgentError):
    """This conversation is longer than the model can take; /compress shortens it."""


class DeliveryError(PalaverError):
    """This could not be sent."""


class SendLater(DeliveryError):
    """It was not sent, and may be tried again."""

    def __init__(self, message: str = "", *, retry_after: float | None = None, **facts: object) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after  # seconds


class SendRejected(DeliveryError):
    """It was not sent, and trying again would not help."""


class TargetGone(SendRejected):
    """Nobody is at that address any more."""


class SendUncertain(DeliveryError):
    """It may have arrived, or not."""


class LeaseLost(PalaverError):
    """Somebody else has taken this turn over."""


class StoreError(PalaverError):
    """The database could not do this; what was stored before stands."""


class StoreBusy(StoreError):
    """Another process kept the database locked for too long; try again."""


class StoreFull(StoreError):
    """The disk is full: nothing was stored. Free some space and try again."""


class StoreReadOnly(StoreError):
    """The database cannot be written: check the permissions of the file and its folder."""


class StoreDamaged(StoreError):
    """The database file is damaged or is not a Palaver database."""


class StoreUnavailable(StoreError):
    """The database cannot be reached."""


class StoreClosed(StoreError):
    """This store has been closed."""


class SchemaTooNew(StoreError):
    """A newer Palaver wrote this database; upgrade Palaver to open it."""
