"""Every error that Palaver raises on purpose, as one tree.

    PalaverError
    ├── ConfigError               a setting is wrong: names the key and what is allowed
    │   └── PortInUse
    ├── InvalidInput              the request is not valid
    │   ├── InvalidMessage
    │   ├── InvalidTitle
    │   │   └── TitleTaken
    │   ├── InvalidSource
    │   ├── InvalidName
    │   │   └── NameTaken
    │   ├── WeakPassword
    │   ├── ProjectNameTaken
    │   ├── DuplicateMemory
    │   ├── JobNameTaken
    │   ├── JobRunning            the last run of the job has not ended
    │   ├── LimitReached          says which limit, and how many are allowed
    │   ├── SessionBusy           not possible while the agent is answering
    │   ├── CommandUnavailable    commands don't work in a temporary conversation
    │   ├── InvalidSettings       settings that are not valid, or can't be changed here; nothing was changed
    │   ├── ChatNotReachable      an answer cannot be sent to the chat where the conversation takes place
    │   └── AmbiguousMatch
    ├── NotFound                  does not exist, or is not yours: both give the same error
    │   ├── SessionNotFound
    │   ├── ProjectNotFound
    │   ├── JobNotFound
    │   └── ChangeNotFound        a change of settings that is not in the history
    ├── NotAllowed                you can see it, but you may not change it
    │   ├── OwnerRequired
    │   ├── WrongPassword
    │   └── WrongPasskey
    ├── NotSignedIn
    │   └── SignInFailed
    ├── TooManyAttempts
    ├── SettingsChanged           the settings were changed meanwhile
    ├── NothingToDo
    │   ├── NothingToUndo
    │   ├── NothingToRedo
    │   ├── NothingToRestore
    │   └── NothingToCompact
    ├── AgentError                the agent could not answer; the text it produced before is kept
    │   ├── AgentUnavailable      the provider is down, too slow, or dropped the connection, also after retries
    │   │   └── AgentRateLimited
    │   ├── AgentRejected         the provider rejects the key, the model or the account
    │   ├── BudgetExceeded        a limit on tokens or money does not allow the call
    │   ├── SpeechUnavailable     no engine for speech is set up
    │   └── ContextOverflow       the conversation is longer than the model's context
    ├── DeliveryError             a message could not be sent
    │   ├── SendRetryable         not sent; a retry may help
    │   ├── PushFailed            the push service of a browser refused a notification
    │   ├── ChatMovedAway         not sent; the chat has another address now
    │   ├── SendRejected          not sent; a retry would not help
    │   │   └── TargetUnreachable the chat no longer exists, or the bot was removed from it
    │   └── SendUncertain         the platform did not confirm: it may have arrived or not
    ├── PlatformError             an account on a platform does not work
    │   ├── AccountRefused        the platform refuses it, or something is not set up: connecting again does not help
    │   ├── ConnectionLost        it can't be reached at the moment: connecting again may help
    │   ├── AccountNotConnected   it can't receive at the moment: the sender tries again later
    │   └── AccountNotRunning     no process runs it, so it can't be connected or tested
    ├── BackupError               a backup or a restore cannot be made
    │   ├── BackupDamaged         a backup that cannot be restored, because it is incomplete or has changed
    │   └── BackupStopped         the process is ending
    ├── MigrationFailed           a store could not be moved to another database
    ├── LeaseLost                 another worker has taken over this turn
    └── StoreError                the database failed; everything committed before is safe
        ├── StoreBusy
        ├── StoreFull
        ├── StoreReadOnly
        ├── StoreDamaged
        ├── StoreUnavailable
        │   └── StoreFileLost     the file of the database was removed, renamed or replaced while in use
        ├── StoreClosed
        ├── AttachmentsUnavailable   the folder for files cannot be used
        ├── SchemaTooNew
        ├── SchemaTooOld          made by an early preview: no version can upgrade it
        └── UpgradeRequired       its schema is older: a person decides when it is upgraded

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


class ConfigError(PalaverError):
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


class LimitReached(InvalidInput):
    """The limit is reached. Remove something first."""


class SessionBusy(InvalidInput):
    """The agent is still answering in this conversation. Wait for it to finish, or stop it first."""


class CommandUnavailable(InvalidInput):
    """Commands don't work in a temporary conversation: nothing is stored that they could change."""


class InvalidSource(InvalidInput):
    """The source of a message is not valid."""


class AmbiguousMatch(InvalidInput):
    """Several items match. Be more specific."""


class InvalidSettings(InvalidInput):
    """These settings are not valid. Nothing was changed."""


class SettingsChanged(PalaverError):
    """The settings were changed meanwhile. Look at them again, then make your change."""


class ChatNotReachable(InvalidInput):
    """Messages can't be sent to the chat where this conversation takes place."""


class NotFound(PalaverError):
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


class NotAllowed(PalaverError):
    """You don't have permission to do this."""


class OwnerRequired(NotAllowed):
    """Only an owner of this gateway can do this."""


class NothingToDo(PalaverError):
    """There is nothing to do."""


class NothingToUndo(NothingToDo):
    """There is nothing to undo."""


class NothingToRedo(NothingToDo):
    """There is nothing to redo: nothing was undone, or the conversation has continued since."""


class NothingToCompact(NothingToDo):
    """This conversation is too short to compact."""


class NothingToRestore(NothingToDo):
    """There is no earlier conversation to restore."""


class NotSignedIn(PalaverError):
    """You are not signed in, or your sign-in has expired."""


class SignInFailed(NotSignedIn):
    """Sign-in failed."""


class TooManyAttempts(PalaverError):
    """Too many attempts. Wait a little and try again."""

    def __init__(self, message: str = "", *, retry_after: float = 1.0, **facts: object) -> None:
        super().__init__(message, retry_after=int(retry_after) + 1, **facts)
        self.retry_after = retry_after  # seconds


class InvalidName(InvalidInput):
    """This name is not valid."""


class NameTaken(InvalidName):
    """This name is already taken."""


class WeakPassword(InvalidInput):
    """This password is too easy to guess."""


class WrongPassword(NotAllowed):
    """Wrong password."""


class WrongPasskey(NotAllowed):
    """The passkey could not be verified. Try again."""


class AgentError(PalaverError):
    """The agent could not answer."""


class AgentUnavailable(AgentError):
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


class SendRetryable(DeliveryError):
    """The message was not sent. It will be retried."""

    def __init__(
        self, message: str = "", *, retry_after: float | None = None, whole_account: bool = False, **facts: object
    ) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after  # seconds
        self.whole_account = whole_account  # the platform asks the account to wait, not only for this chat


class PushFailed(DeliveryError):
    """The push service of the browser did not take the notification."""


class ChatMovedAway(DeliveryError):
    """The chat has moved to another address."""

    def __init__(self, message: str = "", *, new_chat_id: str, **facts: object) -> None:
        super().__init__(message, new_chat_id=new_chat_id, **facts)
        self.new_chat_id = new_chat_id


class SendRejected(DeliveryError):
    """The platform rejected the message."""


class TargetUnreachable(SendRejected):
    """The chat no longer exists, or the bot is no longer in it."""


class SendUncertain(DeliveryError):
    """We don't know if this was delivered."""


class PlatformError(PalaverError):
    """An account on a platform does not work."""


class AccountRefused(PlatformError):
    """The platform refuses this account."""


class ConnectionLost(PlatformError):
    """The platform can't be reached right now."""


class AccountNotConnected(PlatformError):
    """This account isn't connected right now. Try again later."""

    retry_after = 30.0  # seconds


class AccountNotRunning(PlatformError):
    """No server is running this account. Start one with `palaver serve`."""


class BackupError(PalaverError):
    """The backup could not be made."""


class BackupDamaged(BackupError):
    """This backup is damaged or incomplete, so it was not restored."""


class BackupStopped(BackupError):
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


class UpgradeRequired(StoreError):
    """This database was written by an older version of Palaver. Upgrade it first."""
