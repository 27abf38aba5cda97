"""Declares what happens to the rows of a table that belong to a person.

Each table module ends with `PERSON_DATA`: one `PersonColumn` for each of its columns that names a person, their
audience or the address of their direct messages, and with an `ExportedTable` if its rows are part of an export.
`accounts/person_tables.py` collects the columns. Linking, unlinking, erasing, exporting and restoring derive their work
from these declarations; what no declaration can say is done by a function of theirs, which the declaration names.

Always true: every column that names a person is declared (a test compares the declarations with the schema).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from palaver.core.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.core.columns import Columns


class ErasureStep(StrEnum):
    """The steps of an erasure that work in batches, in the order in which they are done."""

    JOBS = "jobs"
    SESSIONS = "sessions"  # those that only this person sees
    SHARED = "shared"  # what they wrote in conversations of others
    MEMORIES = "memories"
    SHARES = "shares"  # of earlier versions: an erasure may have been interrupted at it
    ATTACHMENTS = "attachments"
    PROJECTS = "projects"
    READ_MARKS = "read_marks"
    GROUP_MESSAGES = "group_messages"
    RECEIPTS = "receipts"
    IMPORTS = "imports"  # the records of what was imported for them, or under their accounts
    DELIVERIES = "deliveries"
    USAGE = "usage"
    SEARCH_INDEX = "search_index"  # what the index of SQLite still holds of deleted messages
    PERSON = "person"

    @property
    def next(self) -> ErasureStep:
        steps = list(ErasureStep)
        return steps[min(steps.index(self) + 1, len(steps) - 1)]


class EraseAt(Enum):
    """The moment at which rows are erased that need no step of their own."""

    START = auto()  # deleted in the first transaction, which takes all access away
    START_CLEARED = auto()  # in the first transaction, the column becomes NULL
    END = auto()  # deleted in the last transaction
    CASCADE = auto()  # with the person or their account, by a foreign key


# ---- linking -----------------------------------------------------------------------------------------------


class Moved(NamedTuple):
    """Linking gives the rows to the survivor, and marks them; unlinking returns what is marked."""

    # The SQL expression that names the row in its mark. Where a row can be replaced by another with the same key, it
    # has the time when the row was set, too.
    key: str = "id"
    unless: str = ""  # a row that stays, because the survivor ($1) has one with the same key
    has_unique_names: bool = False  # a row whose name is taken at the survivor gets a number
    follows_session: bool = False  # unlinking also returns what was made since for conversations that return


class Follows(NamedTuple):
    """While rows are open, they belong to the person who has their conversation."""

    is_open: str


class Stays(NamedTuple):
    """Linking leaves the rows, or a function of `accounts/merge_table.py` does what is said here."""

    reason: str


STAYS_WITH_ACCOUNT: Final = Stays("belongs to the account, and a person with an account is never linked to another")


@dataclass(frozen=True, slots=True)
class PersonColumn:
    """A column that names a person (`audience_no`: the audience, `address`: the direct messages of one)."""

    table: str
    column: str = "person_id"
    _: KW_ONLY
    only: str = "1 = 1"  # the rows in which it names one
    merge: Moved | Follows | Stays
    erase: EraseAt | ErasureStep
    erase_only: str = "1 = 1"  # the rows that are erased; others go with their conversation
    batch_key: str = ""  # erased in batches by this key; empty: the step has a function of its own
    count: str = ""  # the kind under which an erasure counts the rows
    belonging: str = ""  # the kind under which people are told what they share by linking
    belonging_only: str = "1 = 1"

    @property
    def mark(self) -> str:
        """The name of the marks: two columns of one table are marked apart."""
        return self.table if self.column in {"person_id", "owner"} else f"{self.table}.{self.column}"


# ---- exporting ---------------------------------------------------------------------------------------------


class FieldKind(Enum):
    TEXT = auto()
    TRANSLATABLE = auto()  # stored with its code and facts; a record has it in English
    NUMBER = auto()
    FLAG = auto()  # 0 or 1 in the column
    TIME = auto()  # microseconds since 1970 in the column
    JSON = auto()  # written without spaces
    SPACED_JSON = auto()  # written with a space after `,` and `:`


@dataclass(frozen=True, slots=True)
class Field:
    """A column, which has the same name in a record."""

    name: str
    kind: FieldKind = FieldKind.TEXT
    is_required: bool = False
    choices: type[StrEnum] | None = None  # the only values that an import takes


def make_fields(
    names: str, kind: FieldKind = FieldKind.TEXT, choices: type[StrEnum] | None = None
) -> tuple[Field, ...]:
    """Make the fields of these columns; `!` behind a name: a record must have it."""
    return tuple(Field(name.removesuffix("!"), kind, name.endswith("!"), choices) for name in names.split())


def derive_fields(columns: Columns[Any], **choices: type[StrEnum]) -> tuple[Field, ...]:
    """Return the columns of a table as its room declares them, with the values that an import takes."""
    return tuple(
        Field(each.name, FieldKind[each.kind.upper()], each.is_required, choices.get(each.name))
        for each in columns.columns
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTable:
    """The rows of a table in an export of Palaver's own format: each is a record of the type that the table is called.

    The SQL expressions call the table `t`.
    """

    table: str
    fields: tuple[Field, ...]
    # What a record says of other rows: its key, and the SQL expression of the value. A session is named by id. The
    # value of `audience` is a number of the store, for which a file has numbers of its own.
    references: Mapping[str, str] = field(default_factory=dict)
    needs_audience: bool = False  # a row is exported only with its audience
    order: tuple[str, ...] = ("no",)  # in which rows are read, page after page; no two rows have the same values
    only: str = "1 = 1"  # the rows that are exported
    key: str = "id"  # an import leaves a row as it is that is here with the same value
    unique: tuple[str, ...] = ()  # or with the same values in these columns
    report_kind: str = ""  # under which an import counts what it adds
