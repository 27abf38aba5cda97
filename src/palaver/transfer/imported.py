"""The values that readers make of another program's files and that the import writes, and the manifest of a reader.

A reader (`transfer/readers/`, or another package) turns the files of one program into these values; it knows nothing
of our tables. The import knows nothing of other programs' files.

Always true: `origin_id` names the same thing in every run over the same files, so that a second import recognizes it.
Nothing here holds a whole conversation in memory: `open_entries` reads the messages again each time it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from re import Pattern

    from palaver.core.source import Platform, SessionSource
    from palaver.sessions.message import Message
    from palaver.sessions.model import EndReason
    from palaver.sessions.usage import TurnUsage

ENTRY_POINT_GROUP: Final = "palaver.importers"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    message: Message
    at: datetime  # aware
    hidden: bool = False  # undone, or replaced by another version, in the program it comes from
    files: tuple[ImportedFile, ...] = ()  # stored as attachments and appended to the message's parts


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """A file of a message. One that cannot be stored is reported, and named in the text of its message."""

    name: str
    open_chunks: Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCompaction:
    """From here on the agent sees a summary instead of the messages before it."""

    summary: str
    at: datetime
    kept_count: int = 0  # how many of the messages right before it the agent still sees as they are


ImportedEntry = ImportedMessage | ImportedCompaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """One conversation. Entries come in the order in which people saw them."""

    origin_id: str  # unique among the conversations of one program
    open_entries: Callable[[], Iterator[ImportedEntry | ImportProblem]]
    created_at: datetime
    # Where it took place. None: with the person who imports it (as from ChatGPT), on the platform of the format.
    source: SessionSource | None = None
    title: str | None = None  # chosen by a person or made by a model there; numbered if the owner has it already
    auto_title: str | None = None  # as long as there is no other; several may have the same, such as the runs of a job
    active_at: datetime | None = None  # None: the time of the last message
    ended_at: datetime | None = None
    end_reason: EndReason | None = None
    is_current: bool = False  # the next message at its source continues it
    pinned: bool = False
    archived: bool = False
    project: ImportedProject | None = None
    parent_origin_id: str | None = None  # the conversation it was branched from
    model: str | None = None
    provider: str | None = None
    profile: str | None = None
    personality: str | None = None
    workspace: str | None = None
    usage: tuple[TurnUsage, ...] = ()  # one for each model, with a `turn_id` that is the same in every run
    folded: tuple[str, ...] = ()  # what was stored several times there and comes in once, and why; for the report


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedProject:
    name: str
    color: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAccount:
    """A person on a platform who was allowed to talk to the agent."""

    platform: str
    user_id: str
    name: str = ""
    is_owner: bool = False  # an administrator there; comes in as a member, and the report says so


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedHomeChannel:
    source: SessionSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMemory:
    origin_id: str
    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedJob:
    """A scheduled prompt. It comes in paused, so that it does not run both there and here."""

    origin_id: str
    name: str
    prompt: str
    schedule: str  # as `jobs/schedule.py` reads it
    timezone: str | None = None
    targets: tuple[str, ...] = ()  # as `sessions/targets.py` reads them
    runs_left: int | None = None
    origin: SessionSource | None = None
    model: str | None = None
    is_paused: bool = False  # there, too


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSetting:
    """A setting there that people would miss here. The operator is asked before one is applied."""

    name: str  # as it is called there
    shown: str = ""  # its value there; empty if it is not read
    is_default: bool = False  # no file there sets it
    key: str | None = None  # the setting here; None: there is none, and `meaning` says what that means
    value: object = None  # here
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProblem:
    """Something that could not be read. It is reported and left out; everything else comes in."""

    where: str  # a file, with a line or an id: `sessions/20260101_a.jsonl, line 7`
    what: str  # in words: what is wrong with it


ImportedItem = (
    ImportedConversation | ImportedAccount | ImportedHomeChannel | ImportedMemory | ImportedJob | ImportProblem
)


class InvalidImport(InvalidInput):
    """These files are not what the import expects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderManifest:
    """Describes a reader without loading it. A package offers it as an entry point of `ENTRY_POINT_GROUP`."""

    name: str  # of the format, as people type it: `open-webui`
    label: str  # of the program, as people read it: `Open WebUI`
    opener: str  # `module:function`: takes the path of the files and returns an `ImportReader`
    has_accounts: bool = False  # then the function takes as `account` which one of several to read
    default_path: str | None = None  # where the program keeps its files on this machine
    # Recognizes an uploaded file by its first megabyte; the first match in the order of the manifests wins. None: its
    # files cannot be uploaded on the page.
    pattern: Pattern[bytes] | None = None
    archive_member: str | None = None  # an uploaded zip file with this file is recognized by it, and only it is read


class ImportReader(Protocol):
    """Reads the files of one program, as the function that its manifest names has opened them."""

    @property
    def format(self) -> str:
        """The name of the format: `hermes`, `chatgpt`, …"""

    @property
    def platform(self) -> Platform:
        """The platform of conversations that have no source."""

    def count_conversations(self) -> int | None:
        """Return how many conversations there are, for a progress bar; None if only reading them all would tell."""

    def read_items(self) -> Iterator[ImportedItem]:
        """Read everything. Conversations come oldest first, so that a branch comes after its parent."""

    def close(self) -> None: ...


@runtime_checkable
class ReaderOfSettings(Protocol):
    """A reader of a program whose settings can be applied here. They apply before its items are read."""

    def read_settings(self) -> list[ImportedSetting]: ...


@runtime_checkable
class ReaderOfChats(Protocol):
    """A reader whose files name people on chat platforms: the operator is asked which accounts are theirs."""

    def list_chats(self) -> Iterator[SessionSource | ImportedAccount]:
        """Return where each conversation with messages took place, and who was allowed, without reading messages."""
