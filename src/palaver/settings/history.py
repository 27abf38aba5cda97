"""The history of settings as people may see it: secrets are masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palaver.core.timestamps import from_micros
from palaver.settings.stored_values import is_sealed, read_shown

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.ids import PersonId
    from palaver.settings.table import ChangeRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSetting:
    """One key of a change; None: it was, or is, not set. Of a secret, only that it is set."""

    key: str
    before: Any
    after: Any
    is_secret: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """What was changed together, by whom and when."""

    number: int
    changed_at: datetime
    person_id: PersonId | None
    person_name: str | None
    origin: str  # page or terminal
    undoes: int | None  # the number of the change that this one has undone
    items: tuple[ChangedSetting, ...]


def make_change(row: ChangeRow) -> SettingsChange:
    return SettingsChange(
        number=row.no,
        changed_at=from_micros(row.changed_at),
        person_id=row.person_id,
        person_name=row.person_name,
        origin=row.origin,
        undoes=row.undoes,
        items=tuple(
            ChangedSetting(
                key=item.key,
                before=read_shown(item.before),
                after=read_shown(item.after),
                is_secret=is_sealed(item.before) or is_sealed(item.after),
            )
            for item in row.items
        ),
    )
