"""A session and a report have the estimate of all priced turns, once a provider has reported a cost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.operation.invariants import repair_session
from palaver.sessions import message_table as messages, table as sessions
from palaver.sessions.message import Message
from palaver.sessions.usage import CostStatus, TurnUsage, UsageTotals

if TYPE_CHECKING:
    from palaver import SessionStore

pytestmark = pytest.mark.both_engines
ESTIMATED = TurnUsage(model="m", input_tokens=1, cost="0.10")
REPORTED = TurnUsage(model="m", input_tokens=1, cost="0.30", cost_status=CostStatus.ACTUAL, estimated_cost="0.20")
REPORTED_ALONE = TurnUsage(model="m", input_tokens=1, cost="0.50", cost_status=CostStatus.ACTUAL)
UNKNOWN = TurnUsage(model="m", input_tokens=1)
CASES = [
    ([ESTIMATED, ESTIMATED], None, CostStatus.ESTIMATED),
    ([REPORTED], 200, CostStatus.ACTUAL),
    ([ESTIMATED, REPORTED], 300, CostStatus.ESTIMATED),
    ([REPORTED, ESTIMATED, UNKNOWN], 300, CostStatus.ESTIMATED),
    ([REPORTED, REPORTED_ALONE], 700, CostStatus.ACTUAL),
    ([REPORTED_ALONE, UNKNOWN], None, CostStatus.ACTUAL),
]


@pytest.mark.parametrize("appends", [False, True])
def test_the_estimate_is_summed_beside_the_cost(store: SessionStore, appends: bool) -> None:
    now = to_micros(store.clock.now())
    for number, (usages, estimate, status) in enumerate(CASES):
        source = SessionSource("telegram", str(number), user_id=str(number))
        session_id = store.record_user_message(source, "hello").session_id
        for index, usage in enumerate(usages):
            turn = replace(usage, turn_id=f"t{number}.{index}")
            if appends:
                answer = [Message("assistant", "hi")]
                append = partial(messages.append_messages, session_id=session_id, messages=answer, now=now, usage=turn)
                store.engine.run(Write(append))
            else:
                store.update_session(session_id, turn)
        view = store.seen_by(store.get_or_create_person(source).principal)
        totals = view.get(session_id).usage
        expected = None if estimate is None else estimate * 1_000_000
        assert (totals.estimated_nanos, totals.cost_status) == (expected, status), usages
        assert UsageTotals.from_dict(totals.to_dict()) == totals
        total = view.usage.report("model").total
        assert total.estimated_nanos == expected

        session_no = store.engine.run(Read(partial(sessions.get_no, session_id=session_id)))
        assert store.engine.run(Write(partial(repair_session, session_no=session_no))) == []  # it computes the same


def test_a_sum_of_calls_is_as_certain_as_its_least_certain_part() -> None:
    total = REPORTED.add(ESTIMATED)
    assert (str(total.cost), str(total.estimated_cost), total.cost_status) == ("0.40", "0.30", CostStatus.ESTIMATED)
    assert TurnUsage.from_dict(total.to_dict()) == total
    assert REPORTED.add(UNKNOWN).cost is None
    assert REPORTED.add(UNKNOWN).estimated_cost is None
    assert ESTIMATED.add(ESTIMATED).estimated_cost is None
