"""The meter of the calls to models: holds what a call may cost in all its budgets, and settles it with what it used.

    hold ──▶ model_call row, held in all windows ──▶ settle: used instead of held; the row keeps the usage until the
                         │                                   turn's end records it
                         └──▶ release: nothing was used; the row is deleted

Always true: a hold is one transaction over all windows of a call, so two processes cannot pass a limit together. What
a process leaves behind when it dies is settled at what was held (`recover_calls`).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from palaver.agent.base import HeldCall, ModelCall, Notice
from palaver.config.budget_rules import (
    BudgetPeriod,
    BudgetRules,
    BudgetScope,
    BudgetUnit,
    CallPurpose,
    TokenPrice,
    WindowState,
    get_window_bounds,
)
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import BudgetExceeded, PalaverError, StoreError
from palaver.core.ids import PersonId, TurnId, new_model_call_id
from palaver.core.texts import say
from palaver.money import (
    calls_table as model_calls,
    service as overview,
    table as budget_limits,
    windows_table as budget_windows,
)
from palaver.money.hold import Hold, HoldRefused, plan_hold
from palaver.money.table import WindowTotals
from palaver.money.texts import find_nearly_used, issue_warning, load_reader, make_refusal
from palaver.money.windows_table import WindowId
from palaver.sessions.turn import JOB_RUN_KEY, NoticeCode
from palaver.sessions.usage_table import NO_SESSION_NO, UsageSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.config.agent_rules import TurnRules
    from palaver.money.calls_table import CallRow
    from palaver.sessions.store import SessionStore
    from palaver.sessions.usage import TurnUsage

    _Day = tuple[str, tuple[datetime, datetime], Mapping[BudgetPeriod, int]]  # time zone, bounds, starts of windows

END_TIMEOUT_SECONDS = 10.0  # for storing how a call ended; the rest goes on without waiting for it
ORPHAN_MARGIN = timedelta(minutes=5)  # a call that is older than a turn may be, and this, is over
_NEVER = datetime.min.replace(tzinfo=UTC)
PROFILE_KEY = "profile"  # the fact that names the profile of work without a session

# Without a number: it would tell what is left of a budget that several people share.
LIMITED_NOTICE = Notice(
    say("budget.little_left", "Little of the budget is left, so answers have to be shorter."), NoticeCode.ANSWER_LIMITED
)

log = logging.getLogger(__name__)


class MeteredWork(UsageSource, Protocol):
    """The work that calls are made for; a `TurnLease` is one."""

    @property
    def owner(self) -> str: ...
    @property
    def turn_id(self) -> TurnId | None: ...
    @property
    def attempt(self) -> int: ...
    @property
    def person_id(self) -> PersonId | None: ...
    @property
    def facts(self) -> Mapping[str, Any]: ...


@dataclass(slots=True)
class RunCalls:
    """What the calls of one run leave for the transaction that ends its turn."""

    free_tokens: int = 0  # of calls for which nothing was held
    may_be_held: bool = False  # something was held for a call, or just is


class Budgets:
    """Makes meters, and settles what dead processes have left behind."""

    def __init__(self, store: SessionStore, get_rules: Callable[[], TurnRules]) -> None:
        """`get_rules` returns the rules that apply now; the next call goes by them, also that of a running turn."""
        self.store = store
        self.engine = store.engine
        self.clock = store.clock
        self._get_rules = get_rules
        self._longest_timeout = timedelta(0)
        self.refused_calls = dict.fromkeys(BudgetScope, 0)  # of this process, by the limit that refused them
        self._day: _Day = "", (_NEVER, _NEVER), {}  # the last one that was asked for
        self._endings: set[asyncio.Task[None]] = set()  # kept, because a task without a reference may be dropped

    @property
    def rules(self) -> BudgetRules:
        return self._get_rules().budgets

    def make_meter(
        self,
        work: MeteredWork,
        purpose: CallPurpose,
        *,
        on_notice: Callable[[Notice], None] | None = None,
        calls: RunCalls | None = None,
    ) -> BudgetMeter:
        """Make a meter for the calls of one turn, title or memory turn.

        `on_notice` is told when an answer has to be short, and when most of a limit is used. Without it, people
        would not read that, so it is left to a later call. With `calls`, the caller stores what they say when the
        work ends; without, each free call stores its tokens by itself.
        """
        self._longest_timeout = max(self._longest_timeout, self._get_rules().timeout)
        return BudgetMeter(self, work, purpose, on_notice, calls)

    def get_window_starts(self, now: datetime) -> Mapping[BudgetPeriod, int]:
        """Return when the current day and month began."""
        timezone = self.rules.timezone
        known_timezone, (begins_at, ends_at), starts = self._day
        if timezone != known_timezone or not begins_at <= now < ends_at:
            bounds = {period: get_window_bounds(period, now, timezone) for period in BudgetPeriod}
            starts = {period: to_micros(start) for period, (start, _) in bounds.items()}
            self._day = timezone, bounds[BudgetPeriod.DAY], starts
        return starts

    def find_windows(
        self, tx: Transaction, work: MeteredWork, now: datetime, *, lock: str = ""
    ) -> tuple[WindowId, ...]:
        """Return the day and the month of everybody, the person, the job and the profile; in the order of locks."""
        job_run_id = work.facts.get(JOB_RUN_KEY)
        subjects = budget_windows.load_call_subjects(tx, work.session_no, work.person_id, job_run_id, lock=lock)
        by_scope = {
            BudgetScope.ALL: "",
            BudgetScope.PERSON: subjects.person_id,
            BudgetScope.JOB: subjects.job_id,
            BudgetScope.PROFILE: work.facts.get(PROFILE_KEY) if work.session_no == NO_SESSION_NO else subjects.profile,
        }
        starts = self.get_window_starts(now)
        windows = [
            WindowId(scope.value, subject, period.value, start)
            for scope, subject in by_scope.items()
            if subject is not None
            for period, start in starts.items()
        ]
        return tuple(sorted(windows))

    def count_free_tokens(self, tx: Transaction, work: MeteredWork, tokens: int, now: datetime) -> None:
        """Count calls for which nothing was held. Last in a transaction: other work waits for the window of all."""
        if tokens:
            budget_windows.add_used_tokens(tx, self.find_windows(tx, work, now), tokens)

    async def recover_calls(self) -> int:
        """Settle and record the calls of dead processes; return how many there were."""
        now = self.clock.now()
        # A turn that runs keeps the longest time that it may have begun with.
        self._longest_timeout = max(self._longest_timeout, self._get_rules().timeout)
        created_before = to_micros(now - self._longest_timeout - ORPHAN_MARGIN)
        recovered = await self.engine.arun(
            Write(
                lambda tx: model_calls.recover_calls(tx, created_before, to_micros(now)),
                read_first=lambda tx: None if model_calls.list_orphan_call_ids(tx, created_before) else 0,
            )
        )
        if recovered:
            log.info("model_calls_recovered", extra={"count": recovered})
        return recovered

    async def stop(self) -> None:
        """Wait until it is stored how the last calls ended."""
        if self._endings:
            await asyncio.wait(self._endings, timeout=END_TIMEOUT_SECONDS)

    async def finish_ending(self, ending: asyncio.Task[None]) -> None:
        """Wait for a call's end to be stored. If the caller is canceled or it takes too long, it goes on by itself."""
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        await asyncio.wait([ending], timeout=END_TIMEOUT_SECONDS)


@dataclass(slots=True)
class BudgetMeter:
    """Holds and settles the calls of one turn, title or memory turn."""

    budgets: Budgets
    work: MeteredWork
    purpose: CallPurpose
    on_notice: Callable[[Notice], None] | None
    calls: RunCalls | None
    call_ids: list[str] = field(default_factory=list)  # of the calls that were held
    _has_notified: bool = False

    async def hold(self, call: ModelCall) -> HeldCall:
        crash_point("call.before_hold")
        now = self.budgets.clock.now()
        if call.price is not None and call.price.is_free:
            has_limit = Read(lambda tx: self._has_token_limit(tx, now), is_quick=True)
            if not await self.budgets.engine.arun(has_limit):
                return FreeCall(self, call.max_tokens)
        if self.calls is not None:
            self.calls.may_be_held = True
        holding = asyncio.create_task(self._hold_call(call, now), name="palaver-call-hold")
        try:
            return await asyncio.shield(holding)
        except asyncio.CancelledError:  # it may be held by now, and will not be made
            await self.budgets.finish_ending(asyncio.create_task(_release_unused(holding)))
            raise

    async def _hold_call(self, call: ModelCall, now: datetime) -> MeteredCall:
        call_id = new_model_call_id()
        try:
            result = await self.budgets.engine.arun(Write(lambda tx: self._hold(tx, call, call_id, now)))
        except BudgetExceeded as error:
            self.budgets.refused_calls[BudgetScope(str(error.facts["scope"]))] += 1
            raise
        self.call_ids.append(call_id)
        crash_point("call.held")
        if result.is_shortened and not self._has_notified and self.on_notice is not None:
            self._has_notified = True
            self.on_notice(LIMITED_NOTICE)
        return MeteredCall(self, call_id, call, result)

    def _has_token_limit(self, tx: Transaction, now: datetime) -> bool:
        """Return whether a limit on tokens applies to a call, so that something is held for it although it is free."""
        rules, owner_limits = self.budgets.rules, budget_limits.list_all(tx)
        if all(limit.unit is not BudgetUnit.TOKENS for limit in (*owner_limits, *rules.limits)):
            return False
        windows = self.budgets.find_windows(tx, self.work, now)
        return any(rules.find_limit(window.key, BudgetUnit.TOKENS, owner_limits) is not None for window in windows)

    def _hold(self, tx: Transaction, call: ModelCall, call_id: str, now: datetime) -> Hold:
        # Locked, so that a link of two accounts moves either all or nothing of this call.
        windows = self.budgets.find_windows(tx, self.work, now, lock=tx.for_key_share)
        states = self._lock_states(tx, windows)
        hold = plan_hold(call.input_tokens, call.max_tokens, call.price, states)
        if isinstance(hold, HoldRefused):
            raise self._make_error(tx, hold, call.model, now)
        held = WindowTotals(held_nanos=hold.nanos or 0, held_tokens=hold.tokens)
        budget_windows.change_windows(tx, dict.fromkeys(windows, held))
        model_calls.insert(tx, self._make_row(call, call_id, hold, windows, to_micros(now)))
        return hold

    def _lock_states(self, tx: Transaction, windows: Sequence[WindowId]) -> list[WindowState]:
        totals = budget_windows.lock_windows(tx, windows)
        owner_limits = budget_limits.list_for_keys(tx, [window.key for window in windows])
        rules = self.budgets.rules
        return [
            WindowState(
                key=window.key,
                **totals[window]._asdict(),
                limit_nanos=rules.find_limit(window.key, BudgetUnit.USD, owner_limits),
                limit_tokens=rules.find_limit(window.key, BudgetUnit.TOKENS, owner_limits),
            )
            for window in windows
        ]

    def _make_error(self, tx: Transaction, refusal: HoldRefused, model: str, now: datetime) -> BudgetExceeded:
        reader = load_reader(tx, self.work.session_no, self.work.person_id)
        rules = self.budgets.rules
        return make_refusal(
            refusal,
            model,
            overview.load_status(tx, refusal.key, rules, now).subject_name,
            now=now,
            timezone=rules.timezone,
            can_see_amounts=reader.can_see_amounts(refusal.key.scope),
        )

    def _make_row(self, call: ModelCall, call_id: str, hold: Hold, windows: tuple[WindowId, ...], now: int) -> CallRow:
        work = self.work
        return model_calls.CallRow(
            id=call_id,
            owner=work.owner,
            purpose=self.purpose,
            turn_id=work.turn_id,
            attempt=work.attempt,
            session_no=work.session_no,
            platform=work.platform,
            audience_no=work.audience_no,
            model=call.model,
            provider=call.provider,
            windows=windows,
            held_nanos=hold.nanos,
            held_tokens=hold.tokens,
            input_tokens=hold.input_tokens,
            usage=None,
            created_at=now,
        )


async def _release_unused(holding: asyncio.Task[MeteredCall]) -> None:
    """Release what is being held for a call whose caller was canceled meanwhile."""
    try:
        held = await holding
    except PalaverError:  # nothing is held
        return
    await held.release()


# ---- allowed calls ----------------------------------------------------------------------------------------------


class FreeCall:
    """A call that costs nothing and that no limit concerns: only its tokens are counted, when it has ended."""

    is_recorded = False

    def __init__(self, meter: BudgetMeter, max_tokens: int | None) -> None:
        self.max_tokens = max_tokens
        self._meter = meter

    async def settle(self, usage: TurnUsage | None, *, streamed_tokens: int = 0) -> None:
        """Count the tokens of the call, as far as they are known."""
        tokens = streamed_tokens if usage is None else usage.input_tokens + usage.output_tokens
        if self._meter.calls is not None:
            self._meter.calls.free_tokens += tokens
        elif tokens:
            ending = asyncio.create_task(self._store(tokens), name="palaver-call-end")
            await self._meter.budgets.finish_ending(ending)

    async def _store(self, tokens: int) -> None:
        budgets, work = self._meter.budgets, self._meter.work
        now = budgets.clock.now()
        try:
            await budgets.engine.arun(Write(lambda tx: budgets.count_free_tokens(tx, work, tokens, now)))
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
        used = self._estimate_usage(streamed_tokens) if usage is None else _add_cost(usage, self._call.price)
        await self._end(lambda tx, now: self._settle(tx, used, now))

    async def release(self) -> None:
        await self._end(self._release)

    def _estimate_usage(self, streamed_tokens: int) -> TurnUsage:
        call, hold = self._call, self._hold
        output_tokens = streamed_tokens or hold.output_tokens
        nanos = None if call.price is None else call.price.compute_nanos(hold.input_tokens, output_tokens)
        return model_calls.make_estimated_usage(call.model, call.provider, hold.input_tokens, output_tokens, nanos)

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
        settlement = model_calls.make_settlement(row, used)
        budget_windows.change_windows(tx, dict.fromkeys(row.windows, settlement))
        return self._issue_warnings(tx, row, now) if self._hold.has_limits and self._meter.on_notice else []

    def _release(self, tx: Transaction, now: datetime) -> list[Notice]:
        row = model_calls.delete_unused(tx, self._id)
        if row is not None:
            change = WindowTotals(held_nanos=-(row.held_nanos or 0), held_tokens=-row.held_tokens)
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
            if status.key in current
            and find_nearly_used(status)
            and budget_windows.mark_warned(tx, current[status.key])
        ]
        reader = load_reader(tx, work.session_no, work.person_id) if nearly_used else None
        notices = [
            issue_warning(tx, budgets.store.config, status, reader, now, is_attended=JOB_RUN_KEY not in work.facts)
            for status in nearly_used
            if reader is not None
        ]
        return [notice for notice in notices if notice is not None]


def _add_cost(usage: TurnUsage, price: TokenPrice | None) -> TurnUsage:
    """Return the usage with its cost at list price, if the provider's name of the model is not in the price list."""
    if usage.cost is not None or price is None:
        return usage
    nanos = price.compute_nanos(usage.input_tokens, usage.output_tokens)
    estimate = model_calls.make_estimated_usage(
        usage.model or "", usage.provider, usage.input_tokens, usage.output_tokens, nanos
    )
    return replace(usage, cost=estimate.cost, cost_status=estimate.cost_status, cost_source=estimate.cost_source)
