"""Warnings that most of a budget is used: who is told, where, and with which amounts.

Always true: a window is marked as warned in the transaction that queues the messages about it, so people are told
once. Amounts are told only where no other person reads them, and those of a budget of several people only to owners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.agent.base import Notice
from palaver.config.budget_rules import WARNING_PERCENT, BudgetUnit, format_amount
from palaver.core.clock import to_micros
from palaver.core.source import ChatType
from palaver.delivery.notices import notify_person
from palaver.money.texts import SHARED_SCOPES, format_reset_time, list_amounts, name_budget
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.turn import NoticeCode
from palaver.sessions.usage_table import NO_SESSION_NO

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.config.budget_rules import BudgetScope, BudgetStatus
    from palaver.core.engines.base import Row, Transaction
    from palaver.core.ids import PersonId
    from palaver.sessions.gateway_config import GatewayConfig

MAX_NOTIFIED_OWNERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReader:
    """For whom a turn runs, and whether they alone read what it says."""

    person_id: PersonId | None
    is_owner: bool
    is_private: bool

    def can_see_amounts(self, scope: BudgetScope) -> bool:
        return self.is_private and (self.is_owner or scope not in SHARED_SCOPES)


def load_reader(tx: Transaction, session_no: int, person_id: PersonId | None) -> TurnReader:
    row = people.find_by_id(tx, person_id) if person_id is not None else None
    session: Row | None = (0, ChatType.DM)  # a temporary conversation
    if session_no != NO_SESSION_NO:
        session = tx.fetch_one("SELECT shared, chat_type FROM session WHERE no = $1", session_no)
    return TurnReader(
        person_id=person_id,
        is_owner=row is not None and row.person.role is Role.OWNER,
        is_private=session is not None and not session[0] and session[1] == ChatType.DM,
    )


def is_nearly_used(status: BudgetStatus) -> bool:
    return _find_nearly_used_unit(status) is not None


def issue_warning(
    tx: Transaction,
    config: GatewayConfig,
    status: BudgetStatus,
    reader: TurnReader,
    now: datetime,
    *,
    is_attended: bool,
) -> Notice | None:
    """Queue the messages about a budget that is nearly used up; return the notice for the turn, if it gets one.

    Owners are told of a budget of several people. A turn that no person watches, such as a job's, tells its person in a
    chat.
    """
    is_shared = status.key.scope in SHARED_SCOPES
    if is_shared:
        for owner_id in _list_owner_ids(tx):
            if owner_id != reader.person_id or not (is_attended and reader.is_private):
                notify_person(tx, config, owner_id, make_warning(status).text, to_micros(now))
        if not (reader.is_owner and reader.is_private):
            return None
    notice = make_warning(status, can_see_amounts=reader.can_see_amounts(status.key.scope))
    if not is_attended and not is_shared and reader.person_id is not None:
        notify_person(tx, config, reader.person_id, make_warning(status).text, to_micros(now))
    return notice


def make_warning(status: BudgetStatus, *, can_see_amounts: bool = True) -> Notice:
    """Make the notice that most of a budget is used."""
    unit = _find_nearly_used_unit(status) or BudgetUnit.USD
    used, limit = next((used, limit or 0) for each, used, _held, limit in list_amounts(status) if each is unit)
    percent = min(100 * used // limit, 100) if limit else 100
    facts: dict[str, object] = {
        "scope": status.key.scope.value,
        "subject": status.subject_name,
        "period": status.key.period.value,
        "unit": unit.value,
        "percent": percent,
        "resets_at": status.resets_at.isoformat(),
        "timezone": status.timezone,
    }
    amounts = ""
    if can_see_amounts:
        facts |= {"used": used, "limit": limit}
        amounts = f" ({format_amount(unit, used)} of {format_amount(unit, limit)})"
    name = name_budget(status.key.scope, status.key.period, status.subject_name)
    reset = format_reset_time(status.resets_at, status.timezone)
    text = f"{name[0].upper()}{name[1:]} is {percent}% used{amounts}. It resets at {reset}."
    return Notice(text, NoticeCode.BUDGET_NEARLY_USED, facts)


def _find_nearly_used_unit(status: BudgetStatus) -> BudgetUnit | None:
    """Return the unit whose limit is used the most, if that is nearly all of it."""
    shares = {
        unit: 100 * used // limit if limit else 100
        for unit, used, _held, limit in list_amounts(status)
        if limit is not None
    }
    unit = max(shares, key=lambda each: shares[each], default=None)
    return unit if unit is not None and shares[unit] >= WARNING_PERCENT else None


def _list_owner_ids(tx: Transaction) -> list[PersonId]:
    rows = tx.fetch_all(
        "SELECT id FROM person WHERE role = $1 AND merged_into IS NULL ORDER BY created_at, id LIMIT $2",
        Role.OWNER.value,
        MAX_NOTIFIED_OWNERS,
    )
    return [found for (found,) in rows]
