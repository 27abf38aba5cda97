"""Collects what every table module declares about the rows of a person: `PERSON_DATA`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.delivery import previews_table, table as delivery_table
from palaver.jobs import table as jobs_table
from palaver.media import table as media_table
from palaver.memory import learning_table, table as memory_table
from palaver.money import table as money_table, windows_table
from palaver.people import access_table, account_table, pairing_table, sign_in_table, table as people_table
from palaver.people.person_data import EraseAt, ErasureStep, Follows, Moved, PersonColumn
from palaver.prompts import table as prompts_table
from palaver.sessions import (
    deletion_table,
    hidden_ranges,
    home_channels,
    log_table,
    projects_table,
    shares_table,
    turns_table,
    usage_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


def _list_columns(*tables: ModuleType) -> Iterator[PersonColumn]:
    return (column for table in tables for column in table.PERSON_DATA)


# The tables of rooms above this one.
_SETTING_DATA: Final = (
    PersonColumn("setting", "set_by", merge=Moved("key || ':' || set_at"), erase=EraseAt.CASCADE),
    PersonColumn("setting_change", merge=Moved("CAST(no AS TEXT)"), erase=EraseAt.CASCADE),
)
IMPORTED_ITEM_OWNER: Final = PersonColumn(
    "imported_item",
    "owner",
    only="owner <> ''",
    merge=Moved(
        "format || ':' || kind || ':' || origin_id",
        unless="SELECT 1 FROM imported_item theirs WHERE theirs.owner = $1 AND theirs.format = imported_item.format"
        " AND theirs.kind = imported_item.kind AND theirs.origin_id = imported_item.origin_id",
    ),
    erase=ErasureStep.IMPORTS,
    batch_key="format, kind, owner, origin_id",
)
# Linking moves in this order, and unlinking returns in the opposite one.
PERSON_DATA: Final[tuple[PersonColumn, ...]] = (
    *_list_columns(people_table, account_table, sign_in_table, pairing_table, media_table, shares_table),
    *_list_columns(projects_table, jobs_table, prompts_table, access_table, home_channels),
    *_SETTING_DATA,
    *_list_columns(money_table, windows_table),
    IMPORTED_ITEM_OWNER,
    *_list_columns(turns_table, learning_table, memory_table, hidden_ranges, log_table, usage_table),
    *_list_columns(deletion_table, delivery_table, previews_table),
)
# Columns that are called `owner` as well, but name a process.
PROCESS_COLUMNS: Final = frozenset({"model_call.owner", "named_lease.owner", "preview.owner"})


def list_moved() -> Iterator[tuple[PersonColumn, Moved]]:
    return ((each, each.merge) for each in PERSON_DATA if isinstance(each.merge, Moved))


def list_following() -> list[tuple[str, str]]:
    """List the tables whose rows follow their conversation, with the condition for those that do."""
    return [
        (each.table, each.merge.is_open if isinstance(each.merge, Follows) else "1 = 1")
        for each in PERSON_DATA
        if isinstance(each.merge, Follows) or (isinstance(each.merge, Moved) and each.merge.follows_session)
    ]
