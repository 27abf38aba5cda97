"""Every error Palaver raises on purpose, as one tree.

    PalaverError
    ├── ConfigError             a setting is wrong: names the place and what is allowed
    ├── InvalidInput            what was asked cannot be done as it was said
    │   ├── InvalidMessage
    │   ├── InvalidTitle
    │   │   └── TitleTaken
    │   ├── InvalidSource
    │   └── Ambiguous
    ├── NotFound                not there, or not yours: the two are one answer
    │   ├── NoSuchSession
    │   └── NoSuchProject
    ├── NotAllowed              it is there and you see it, but this is not yours to change
    ├── NothingToDo
    │   ├── NothingToUndo
    │   ├── NothingToRedo
    │   └── NothingToRestore
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


class PalaverError(Exception):
    """Something went wrong inside Palaver."""

    def __init__(self, message: str = "", **facts: object) -> None:
        super().__init__(message or inspect.getdoc(type(self)) or type(self).__name__)
        self.facts = facts


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


class InvalidSource(InvalidInput):
    """This does not say where a message came from."""


class Ambiguous(InvalidInput):
    """Several things match; say more of the one you mean."""


class NotFound(PalaverError):
    """There is no such thing here."""


class NoSuchSession(NotFound):
    """There is no such session."""


class NoSuchProject(NotFound):
    """There is no such project."""


class NotAllowed(PalaverError):
    """You may not do this."""


class NothingToDo(PalaverError):
    """There is nothing to do."""


class NothingToUndo(NothingToDo):
    """There is no turn left to undo."""


class NothingToRedo(NothingToDo):
    """There is nothing to redo: no turn was undone, or the conversation has moved on since."""


class NothingToRestore(NothingToDo):
    """There is no earlier conversation to restore here."""


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
