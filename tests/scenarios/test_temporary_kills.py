"""`kill -9` during an answer of a temporary conversation: the money that was held is settled, and no text is stored."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore
from palaver.config.agent_rules import TurnRules
from palaver.money.meter import Budgets
from scenarios.kill_cases import build_cases
from scenarios.store_harness import find_inconsistencies, wait_for_disconnect
from scenarios.temporary_process import SECRET
from support.metered_work import count_calls, make_rules, read_recorded, read_windows
from support.store_content import dump_tables

if TYPE_CHECKING:
    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("temporary_process.py")

# The tokens that are recorded after the recovery: none; all that was held, with the margin of the hold; or those used.
RECORDED = {"call.before_hold": [], "call.held": [112], "call.before_settle": [112], "call.settled": [5]}


@pytest.mark.parametrize(
    ("store_url", "point"),
    build_cases(
        [(point,) for point in RECORDED],
        {*(("sqlite", point) for point in RECORDED), ("postgres", "call.held"), ("postgres", "call.settled")},
    ),
    indirect=["store_url"],
)
def test_what_a_killed_process_held_is_settled(launcher: WarmLauncher, store_url: str, point: str) -> None:
    killed = launcher.run_script(SCRIPT, store_url, point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    wait_for_disconnect(store_url)
    with SessionStore.open(store_url) as store:
        budgets = Budgets(store, lambda: TurnRules(budgets=make_rules(), timeout_minutes=10))
        assert asyncio.run(budgets.recover_calls()) == len(RECORDED[point])
        assert [tokens for tokens, _ in read_recorded(store)] == RECORDED[point]
        assert count_calls(store) == 0
        assert {window[3] for window in read_windows(store).values()} <= {0}, "nothing is held"
        assert SECRET not in repr(dump_tables(store))
    assert find_inconsistencies(store_url) == []
