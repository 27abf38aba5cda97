"""Every error that Palaver raises on purpose, as one tree: a class, then all that are below it.

The docstring of a class is its message when none is given; `facts` holds the details for logs and JSON. The
command line and the web API map these classes to exit codes and HTTP statuses, each in one place.
"""

from __future__ import annotations

import inspect
import re
from typing import Self

from palaver.core.texts import name_text, say


class PalaverError(Exception):
    """Something went wrong inside Palaver."""

    def __init__(self, message: str = "", **facts: object) -> None:
        super().__init__(message or self.describe_class())
        self.facts = facts

    @classmethod
    def say(cls, code: str, english: str, /, **gaps: object) -> Self:
        """Make an error with a text that can be translated."""
        return cls(say(code, english, **gaps))

    @property
    def text(self) -> str:
        """The message as it was said: unlike `str(error)`, it can be translated."""
        message: str = self.args[0]
        return message

    @classmethod
    def describe_class(cls) -> str:
        """Return the message of an error that is raised without one."""
        return name_text(f"error.{_format_code(cls)}", inspect.getdoc(cls) or cls.__name__)

    @property
    def code(self) -> str:
        """A stable identifier for programs, such as `session_not_found`."""
        return _format_code(type(self))


def _format_code(error_class: type) -> str:
    return re.sub(r"(?<=.)(?=[A-Z])", "_", error_class.__name__).lower()


class ConfigError(PalaverError):  # names the key and what is allowed
    """The configuration is not valid."""


class PortInUse(ConfigError):
    """The port is already in use."""


class InvalidInput(PalaverError):
    """This request is not valid."""


class ChangeTooLarge(InvalidInput):
    """Too many messages follow to change all of them at once. Branch the conversation instead."""


class InvalidMessage(InvalidInput):
    """This message is not valid."""


class InvalidTitle(InvalidInput):
    """This title is not valid."""


class TitleTaken(InvalidTitle):
    """You already have a conversation with this title."""


class InvalidSource(InvalidInput):
    """The source of a message is not valid."""


class InvalidName(InvalidInput):
    """This name is not valid."""


class NameTaken(InvalidName):
    """This name is already taken."""


class WeakPassword(InvalidInput):
    """This password is too easy to guess."""


class ProjectNameTaken(InvalidInput):
    """You already have a project with this name."""


class PromptNameTaken(InvalidInput):
    """You already have a saved prompt with this name."""


class DuplicateMemory(InvalidInput):
    """This is already remembered."""


class JobNameTaken(InvalidInput):
    """You already have a job with this name."""


class JobRunning(InvalidInput):
    """The job is already running. Wait until it has ended."""


class LimitReached(InvalidInput):  # says which limit, and how many are allowed
    """The limit is reached. Remove something first."""


class SessionBusy(InvalidInput):
    """The agent is still answering in this conversation. Wait for it to finish, or stop it first."""


class CommandUnavailable(InvalidInput):
    """Commands don't work in a temporary conversation: nothing is stored that they could change."""


class InvalidSettings(InvalidInput):
    """These settings are not valid. Nothing was changed."""


class ChatNotReachable(InvalidInput):
    """Messages can't be sent to the chat where this conversation takes place."""


class AmbiguousMatch(InvalidInput):
    """Several items match. Be more specific."""


class NotFound(PalaverError):  # also what is not yours: both give the same error
    """Not found. It may have been deleted, or you don't have access."""


class SessionNotFound(NotFound):
    """Conversation not found. It may have been deleted, or you don't have access."""

    @classmethod
    def for_id(cls, session_id: str) -> Self:
        """Build the error for an id. It is the same everywhere, so it does not tell a hidden session from none."""
        message = say(
            "error.session_not_found_by_id",
            "Conversation {id} not found. It may have been deleted, or you don't have access.",
            id=session_id,
        )
        return cls(message, session_id=session_id)


class ProjectNotFound(NotFound):
    """Project not found. It may have been deleted, or you don't have access."""


class JobNotFound(NotFound):
    """Job not found. It may have been deleted, or you don't have access."""


class ChangeNotFound(NotFound):
    """This change of settings is not in the history."""


class NotAllowed(PalaverError):  # you can see it, but you may not change it
    """You don't have permission to do this."""


class OwnerRequired(NotAllowed):
    """Only an owner of this gateway can do this."""


class WrongPassword(NotAllowed):
    """Wrong password."""


class WrongPasskey(NotAllowed):
    """The passkey could not be verified. Try again."""


class NotSignedIn(PalaverError):
    """You are not signed in, or your sign-in has expired."""


class SignInFailed(NotSignedIn):
    """Sign-in failed."""


class TooManyAttempts(PalaverError):
    """Too many attempts. Wait a little and try again."""

    def __init__(self, message: str = "", *, retry_after: float = 1.0, **facts: object) -> None:
        super().__init__(message, retry_after=int(retry_after) + 1, **facts)
        self.retry_after = retry_after  # seconds


class SettingsChanged(PalaverError):
    """The settings were changed meanwhile. Look at them again, then make your change."""


class NothingToDo(PalaverError):
    """There is nothing to do."""


class NothingToUndo(NothingToDo):
    """There is nothing to undo."""


class NothingToRedo(NothingToDo):
    """There is nothing to redo: nothing was undone, or the conversation has continued since."""


class NothingToRestore(NothingToDo):
    """There is no earlier conversation to restore."""


class NothingToCompact(NothingToDo):
    """This conversation is too short to compact."""


class AgentError(PalaverError):  # the text that it produced before is kept
    """The agent could not answer."""


class AgentUnavailable(AgentError):  # it is down, too slow, or dropped the connection, also after retries
    """The model can't be reached right now."""


class AgentRateLimited(AgentUnavailable):
    """The model's provider has reached its rate limit."""

    def __init__(self, message: str = "", *, retry_after: float | None = None, **facts: object) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after  # seconds


class AgentRejected(AgentError):
    """The model's provider rejected the key, the model or the account."""


class BudgetExceeded(AgentError):
    """A budget is used up."""


class SpeechUnavailable(AgentError):
    """No speech engine is set up here. An owner can set one up: see speech.* in the settings."""


class ContextOverflow(AgentError):
    """This conversation is too long for the model. Shorten it with /compress."""


class DeliveryError(PalaverError):
    """The message could not be sent."""


class SendRetryable(DeliveryError):  # a retry may help
    """The message was not sent. It will be retried."""

    def __init__(
        self, message: str = "", *, retry_after: float | None = None, whole_account: bool = False, **facts: object
    ) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after  # seconds
        self.whole_account = whole_account  # the platform asks the account to wait, not only for this chat


class PushFailed(DeliveryError):
    """The push service of the browser did not take the notification."""


class ChatMovedAway(DeliveryError):  # not sent
    """The chat has moved to another address."""

    def __init__(self, message: str = "", *, new_chat_id: str, **facts: object) -> None:
        super().__init__(message, new_chat_id=new_chat_id, **facts)
        self.new_chat_id = new_chat_id


class SendRejected(DeliveryError):  # a retry would not help
    """The platform rejected the message."""


class TargetUnreachable(SendRejected):
    """The chat no longer exists, or the bot is no longer in it."""


class SendUncertain(DeliveryError):  # the platform did not confirm: it may have arrived or not
    """We don't know if this was delivered."""


class PlatformError(PalaverError):
    """An account on a platform does not work."""


class AccountRefused(PlatformError):  # or something is not set up: connecting again does not help
    """The platform refuses this account."""


class ConnectionLost(PlatformError):  # connecting again may help
    """The platform can't be reached right now."""


class AccountNotConnected(PlatformError):  # the sender tries again later
    """This account isn't connected right now. Try again later."""

    retry_after = 30.0  # seconds


class AccountNotRunning(PlatformError):
    """No server is running this account. Start one with `palaver serve`."""


class BackupError(PalaverError):
    """The backup could not be made."""


class BackupDamaged(BackupError):
    """This backup is damaged or incomplete, so it was not restored."""


class BackupStopped(BackupError):  # the process is ending
    """The backup was stopped before it was complete. Nothing is left of it."""


class MigrationFailed(PalaverError):
    """The store could not be moved to the other database. The source is unchanged."""


class LeaseLost(PalaverError):
    """Another worker or process has taken over."""


class StoreError(PalaverError):
    """The database operation failed. Everything stored before is safe."""


class StoreBusy(StoreError):
    """The database was locked by another process for too long. Try again."""

    retry_after: float = 5.0  # seconds


class StoreFull(StoreError):
    """The disk is full, so nothing was stored. Free some space and try again."""


class StoreReadOnly(StoreError):
    """The database is read-only. Check the permissions of the file and its folder."""


class StoreDamaged(StoreError):
    """The database file is damaged, or it is not a Palaver database."""


class StoreUnavailable(StoreError):
    """The database can't be reached."""

    retry_after: float = 5.0  # seconds


class StoreFileLost(StoreUnavailable):
    """The server's database file was removed, renamed or replaced while in use, so nothing can be stored or read."""


class StoreClosed(StoreError):
    """This store is closed."""


class AttachmentsUnavailable(StoreError):
    """Files can't be stored or opened right now. Ask the operator of this server to check its attachments folder."""


class SchemaTooNew(StoreError):
    """This database was written by a newer version of Palaver. Upgrade Palaver to open it."""


class SchemaTooOld(StoreError):
    """This database was made by an early preview of Palaver. It can't be upgraded."""


class UpgradeRequired(StoreError):  # a person decides when it is upgraded
    """This database was written by an older version of Palaver. Upgrade it first."""
