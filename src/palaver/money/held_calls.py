"""Calls to models that were allowed: they are ended once, with what they have used."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Write
from palaver.core.errors import StoreError
from palaver.money import call_records, calls_table as model_calls, overview, windows_table as budget_windows
from palaver.money.warnings import is_nearly_used, issue_warning, load_reader
from palaver.money.windows_table import WindowChange
from palaver.sessions.turn import JOB_RUN_KEY

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from palaver.agent.base import ModelCall, Notice
    from palaver.config.budget_rules import TokenPrice
    from palaver.core.engines.base import Transaction
    from palaver.money.calls_table import CallRow
    from palaver.money.hold import Hold
    from palaver.money.meter import BudgetMeter, Budgets
    from palaver.money.windows_table import WindowId
    from palaver.sessions.usage import TurnUsage

log = logging.getLogger(__name__)


class FreeCall:
    """A call that costs nothing and that no limit concerns: only its tokens are counted, in one write at its end."""

    is_recorded = False

    def __init__(self, budgets: Budgets, max_tokens: int | None, windows: tuple[WindowId, ...]) -> None:
        self.max_tokens = max_tokens
        self._budgets = budgets
        self._windows = windows

    async def settle(self, usage: TurnUsage | None, *, streamed_tokens: int = 0) -> None:
        """Count the tokens of the call, as far as they are known."""
        tokens = streamed_tokens if usage is None else usage.input_tokens + usage.output_tokens
        if tokens:
            ending = asyncio.create_task(self._store(tokens), name="palaver-call-end")
            await self._budgets.finish_ending(ending)

    async def _store(self, tokens: int) -> None:
        try:
            await self._budgets.engine.arun(Write(lambda tx: budget_windows.add_used_tokens(tx, self._windows, tokens)))
        except StoreError as error:
            log.warning("model_call_not_counted", extra={"error": str(error)})

    async def release(self) -> None:
        """Do nothing: nothing was held."""


class MeteredCall:
    """A call for which something is held. It is ended once; ending it again does nothing."""

    is_recorded = True

    def __init__(self, meter: BudgetMeter, call_id: str, call: ModelCall, hold: Hold) -> None:
        self.max_tokens = hold.max_tokens
        self._meter = meter
        self._id = call_id
        self._call = call
        self._hold = hold
        self._has_ended = False

    async def settle(self, usage: TurnUsage | None, *, streamed_tokens: int = 0) -> None:
        """Count what the call has used. Without usage: what was streamed (estimated), or else all that was held."""
        used = self._estimate_usage(streamed_tokens) if usage is None else _add_cost(usage, self._call.price)
        await self._end(lambda tx, now: self._settle(tx, used, now))

    async def release(self) -> None:
        """Count nothing: the provider has refused the call before it sent the first byte."""
        await self._end(self._release)

    def _estimate_usage(self, streamed_tokens: int) -> TurnUsage:
        call, hold = self._call, self._hold
        output_tokens = streamed_tokens or hold.output_tokens
        nanos = None if call.price is None else call.price.compute_nanos(hold.input_tokens, output_tokens)
        return call_records.make_estimated_usage(call.model, call.provider, hold.input_tokens, output_tokens, nanos)

    async def _end(self, end: Callable[[Transaction, datetime], list[Notice]]) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        crash_point("call.before_settle")
        ending = asyncio.create_task(self._store_end(end), name=f"palaver-call-end-{self._id}")
        await self._meter.budgets.finish_ending(ending)
        crash_point("call.settled")

    async def _store_end(self, end: Callable[[Transaction, datetime], list[Notice]]) -> None:
        """Store how the call ended. What cannot be stored stays held, until its turn ends or is recovered."""
        budgets = self._meter.budgets
        now = budgets.clock.now()
        try:
            warnings = await budgets.engine.arun(Write(lambda tx: end(tx, now)))
        except StoreError as error:
            log.warning("model_call_not_settled", extra={"call": self._id, "error": str(error)})
            return
        for notice in warnings:
            if self._meter.on_notice is not None:
                self._meter.on_notice(notice)

    def _settle(self, tx: Transaction, used: TurnUsage, now: datetime) -> list[Notice]:
        row = model_calls.set_usage(tx, self._id, used)
        if row is None:  # another process has counted it, because it took this one for dead
            return []
        settlement = call_records.make_settlement(row, used)
        budget_windows.change_windows(tx, dict.fromkeys(row.windows, settlement))
        return self._issue_warnings(tx, row, now) if self._hold.has_limits and self._meter.on_notice else []

    def _release(self, tx: Transaction, now: datetime) -> list[Notice]:
        row = model_calls.delete_unused(tx, self._id)
        if row is not None:
            change = WindowChange(held_nanos=-(row.held_nanos or 0), held_tokens=-row.held_tokens)
            budget_windows.change_windows(tx, dict.fromkeys(row.windows, change))
        return []

    def _issue_warnings(self, tx: Transaction, row: CallRow, now: datetime) -> list[Notice]:
        """Mark the windows in which most of a limit is used now, tell owners, and return what the turn says of it."""
        budgets, work = self._meter.budgets, self._meter.work
        starts = set(budgets.get_window_starts(now).values())
        current = {window.key: window for window in row.windows if window.starts_at in starts}
        subjects = dict.fromkeys((key.scope, key.subject) for key in current)
        nearly_used = [
            status
            for status in overview.load_statuses(tx, subjects, budgets.rules, now)
            if status.key in current and is_nearly_used(status) and budget_windows.mark_warned(tx, current[status.key])
        ]
        reader = load_reader(tx, work.session_no, work.person_id) if nearly_used else None
        notices = [
            issue_warning(tx, budgets.config, status, reader, now, is_attended=JOB_RUN_KEY not in work.facts)
            for status in nearly_used
            if reader is not None
        ]
        return [notice for notice in notices if notice is not None]


def _add_cost(usage: TurnUsage, price: TokenPrice | None) -> TurnUsage:
    """Return the usage with its cost at list price, if the provider's name of the model is not in the price list."""
    if usage.cost is not None or price is None:
        return usage
    nanos = price.compute_nanos(usage.input_tokens, usage.output_tokens)
    estimate = call_records.make_estimated_usage(
        usage.model or "", usage.provider, usage.input_tokens, usage.output_tokens, nanos
    )
    return replace(usage, cost=estimate.cost, cost_status=estimate.cost_status, cost_source=estimate.cost_source)
