"""Work whose calls to models are metered, and what the budgets say of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from palaver.agent.base import ModelCall
from palaver.config.budget_rules import (
    BudgetKey,
    BudgetLimit,
    BudgetPeriod,
    BudgetRules,
    BudgetScope,
    BudgetUnit,
    TokenPrice,
)
from palaver.core.background import create_lease_owner
from palaver.core.engines.base import Read
from palaver.money import calls_table as model_calls
from palaver.sessions.usage import TurnUsage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver import SessionSource, SessionStore
    from palaver.core.ids import PersonId, TurnId

NANO_PER_TOKEN = TokenPrice(
    input_usd=Decimal("0.001"), output_usd=Decimal("0.001")
)  # so both units are the same number


@dataclass(frozen=True, kw_only=True)
class FakeWork:
    session_no: int
    audience_no: int
    person_id: PersonId | None
    platform: str = "telegram"
    owner: str = field(default_factory=create_lease_owner)
    turn_id: TurnId | None = None
    attempt: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)


def make_work(store: SessionStore, source: SessionSource, **fields: Any) -> FakeWork:
    """Make work in a person's conversation."""
    session = store.get_or_create_session(source).session
    person = store.get_or_create_person(source)
    row = store.engine.run(
        Read(lambda tx: tx.fetch_one("SELECT no, audience_no FROM session WHERE id = $1", session.id))
    )
    assert row is not None
    return FakeWork(session_no=row[0], audience_no=row[1], person_id=fields.pop("person_id", person.id), **fields)


def make_call(input_tokens: int = 100, max_tokens: int | None = 1000, **fields: Any) -> ModelCall:
    fields.setdefault("price", NANO_PER_TOKEN)
    return ModelCall(model="openai:m", provider="openai", input_tokens=input_tokens, max_tokens=max_tokens, **fields)


def make_usage(input_tokens: int, output_tokens: int, *, nanos: int | None = -1) -> TurnUsage:
    """Make usage; without `nanos`, each token costs one."""
    nanos = input_tokens + output_tokens if nanos == -1 else nanos
    cost = None if nanos is None else Decimal(nanos) / 1_000_000_000
    return TurnUsage(model="m", provider="openai", input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)


def make_rules(**limits: int) -> BudgetRules:
    """Make rules from names such as `all_day_tokens` or `person_month_usd`."""
    made = []
    for name, amount in limits.items():
        scope, period, unit = name.split("_")
        key = BudgetKey(BudgetScope(scope), "", BudgetPeriod(period))
        made.append(BudgetLimit(key=key, unit=BudgetUnit(unit), amount=amount))
    return BudgetRules(limits=tuple(made))


def read_windows(store: SessionStore) -> dict[tuple[str, str, str], tuple[int, ...]]:
    """Return used and held nano-dollars, used and held tokens, and unpriced calls, by scope, subject and period."""
    rows = store.engine.run(
        Read(
            lambda tx: tx.fetch_all(
                "SELECT scope, subject, period, used_nanos, held_nanos, used_tokens, held_tokens, unpriced_calls"
                " FROM budget_window"
            )
        )
    )
    return {tuple(row[:3]): tuple(map(int, row[3:])) for row in rows}


def count_calls(store: SessionStore) -> int:
    """Count the calls whose usage is not recorded yet."""
    found = store.engine.run(Read(lambda tx: model_calls.list_orphan_call_ids(tx, 2**62)))
    return len(found)


def read_recorded(store: SessionStore) -> list[tuple[int, int | None]]:
    """Return the tokens and the nano-dollars of all recorded usage."""
    rows = store.engine.run(
        Read(lambda tx: tx.fetch_all("SELECT input_tokens + output_tokens, cost_nanos FROM usage ORDER BY created_at"))
    )
    return [(int(tokens), nanos) for tokens, nanos in rows]
