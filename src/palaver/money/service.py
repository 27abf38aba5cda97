"""Shows people the budgets that they may see, and changes limits for owners.

Always true: a person sees the amounts of their own budget and of their own jobs only. Of the budgets that they share
with others (`all`, and those of profiles) they learn that one is used up and until when, never an amount, because that
would tell what others have spent. Owners see everything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from palaver.config.budget_rules import (
    BudgetKey,
    BudgetLimit,
    BudgetPeriod,
    BudgetRules,
    BudgetScope,
    BudgetStatus,
    BudgetUnit,
    get_window_bounds,
)
from palaver.core.clock import Clock, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, NotFound, OwnerRequired
from palaver.core.operation import Operations, Page, R, read_operation, write_operation
from palaver.core.texts import say
from palaver.money import table as budget_limits, windows_table as budget_windows
from palaver.money.table import BudgetSubject, WindowTotals
from palaver.people.model import Principal, Role
from palaver.sessions import settings_table as session_settings, table as sessions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from palaver.core.engines.base import Transaction


MAX_PAGE_SUBJECTS = 100
MAX_OWN_JOBS = 100
_ALL = (BudgetScope.ALL, "")
_CURSOR = re.compile(r"(all|person|job|profile):(.{0,200})", re.DOTALL)
_COMMON_NAMES = {
    BudgetScope.ALL: "Everybody",
    BudgetScope.PERSON: say("budget.each_person", "Each person"),
    BudgetScope.JOB: say("budget.each_job", "Each job"),
    BudgetScope.PROFILE: say("budget.each_profile", "Each profile"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBudgets:
    """The budgets that apply to one person."""

    statuses: Sequence[BudgetStatus]  # with amounts that the person may know
    used_up: Sequence[BudgetStatus]  # shared with others and used up; their amounts are not for this person


class BudgetOverview(Operations[R]):
    """Lists budgets and changes limits, on behalf of a principal."""

    def __init__(self, runner: R, rules: BudgetRules, clock: Clock, profiles: Collection[str]) -> None:
        super().__init__(runner)
        self._rules = rules
        self._clock = clock
        self._profiles = profiles

    @read_operation
    def list_own(
        self, tx: Transaction, principal: Principal, session_id: str | None = None, *, profile: str | None = None
    ) -> OwnBudgets:
        """List the budgets that apply to a person; with a conversation, or a profile, also that of the profile."""
        rules, now, of_profile = self._rules, self._clock.now(), profile
        if session_id is not None:
            row = sessions.get_visible(tx, session_id, principal.person_id)
            of_profile = session_settings.load(tx, row.no).profile
        since = to_micros(get_window_bounds(BudgetPeriod.MONTH, now, rules.timezone)[0])
        own: list[BudgetSubject] = [(BudgetScope.PERSON, principal.person_id)]
        own += budget_limits.list_job_subjects(tx, principal.person_id, since, MAX_OWN_JOBS)
        shared = [_ALL] if of_profile is None else [_ALL, (BudgetScope.PROFILE, of_profile)]
        if principal.role is Role.OWNER:
            return OwnBudgets(statuses=load_statuses(tx, [*own, *shared], rules, now), used_up=())
        used_up = [status for status in load_statuses(tx, shared, rules, now) if status.is_used_up]
        return OwnBudgets(statuses=load_statuses(tx, own, rules, now), used_up=used_up)

    @read_operation
    def list_everything(
        self, tx: Transaction, principal: Principal, *, limit: int = MAX_PAGE_SUBJECTS, cursor: str | None = None
    ) -> Page[BudgetStatus]:
        """List everybody's budgets that have a limit or were used this month; `limit` counts subjects."""
        _check_owner(principal)
        after = _parse_cursor(cursor)
        now = self._clock.now()
        month_start = to_micros(get_window_bounds(BudgetPeriod.MONTH, now, self._rules.timezone)[0])
        found = budget_limits.list_subjects(tx, month_start, after, limit + 1)
        has_more, found = len(found) > limit, found[:limit]
        configured = {_ALL, *((each.key.scope, each.key.subject) for each in self._rules.limits)}
        first = [] if after else sorted(configured)
        subjects = [*first, *(subject for subject in found if subject not in configured)]
        next_cursor = f"{found[-1][0].value}:{found[-1][1]}" if has_more else None
        return Page(load_statuses(tx, subjects, self._rules, now), next_cursor)

    @write_operation
    def set_limits(
        self, tx: Transaction, principal: Principal, key: BudgetKey, amounts: Mapping[BudgetUnit, int | None]
    ) -> BudgetStatus:
        """Set limits of one window; None means no limit, whatever config.yaml says. Other units stay as they are."""
        _check_owner(principal)
        now = self._clock.now()
        _check_subject(tx, key, self._profiles)
        for unit, amount in amounts.items():
            limit = BudgetLimit(key=key, unit=unit, amount=amount)
            budget_limits.set_limit(tx, limit, principal.person_id, to_micros(now))
        self._let_warn_again(tx, key)
        return load_status(tx, key, self._rules, now)

    @write_operation
    def clear_limits(self, tx: Transaction, principal: Principal, key: BudgetKey) -> bool:
        """Remove what owners have set for one window, so that the server settings apply; False if there was nothing."""
        _check_owner(principal)
        has_changed = budget_limits.clear_limits(tx, key) > 0
        self._let_warn_again(tx, key)
        return has_changed

    @read_operation
    def get_status(self, tx: Transaction, principal: Principal, key: BudgetKey) -> BudgetStatus:
        _check_owner(principal)
        return load_status(tx, key, self._rules, self._clock.now())

    @read_operation
    def find_subject(self, tx: Transaction, principal: Principal, scope: BudgetScope, name: str) -> str:
        """Return the subject that an owner means by a name or an id; raises `NotFound` with what there is."""
        _check_owner(principal)
        if scope is BudgetScope.ALL or not name:
            return ""
        if scope is BudgetScope.PROFILE:
            if not budget_limits.has_limit(tx, scope, name):  # the limit of a profile that was removed can be cleared
                _check_subject(tx, BudgetKey(scope, name, BudgetPeriod.DAY), self._profiles)
            return name
        is_job, short_name = scope is BudgetScope.JOB, name[:60]
        matches = (budget_limits.find_jobs if is_job else budget_limits.find_people)(tx, name)
        if len(matches) == 1:
            return matches[0][0]
        if not matches:
            text = say("budget.no_subject", "There is no {scope} “{name}”.", scope=scope.value, name=short_name)
            raise NotFound(text, name=short_name)
        listed = ", ".join(f"{subject} ({label})" if is_job else subject for subject, label in matches)
        message = say(
            "budget.several_match", "Several match “{name}”. Use an id instead: {list}.", name=short_name, list=listed
        )
        raise InvalidInput(message, matches=[subject for subject, _ in matches])

    def _let_warn_again(self, tx: Transaction, key: BudgetKey) -> None:
        starts_at, _ = get_window_bounds(key.period, self._clock.now(), self._rules.timezone)
        budget_windows.clear_warnings(tx, key, to_micros(starts_at))


# ---- inside a transaction ----------------------------------------------------------------------------------


def load_statuses(
    tx: Transaction, subjects: Iterable[BudgetSubject], rules: BudgetRules, now: datetime
) -> list[BudgetStatus]:
    """Return the current day and month of each subject. The caller has checked who may see them."""
    subjects = list(subjects)
    bounds = {period: get_window_bounds(period, now, rules.timezone) for period in BudgetPeriod}
    totals = budget_limits.load_totals(tx, subjects, {period: to_micros(each[0]) for period, each in bounds.items()})
    names = budget_limits.load_names(tx, subjects)
    keys = [BudgetKey(scope, subject, period) for scope, subject in subjects for period in BudgetPeriod]
    owner_limits = budget_limits.list_for_keys(tx, keys)
    return [
        BudgetStatus(
            key=key,
            subject_name=names.get((key.scope, key.subject)) or key.subject or _COMMON_NAMES[key.scope],
            **totals.get(key, WindowTotals())._asdict(),
            limit_nanos=rules.find_limit(key, BudgetUnit.USD, owner_limits),
            limit_tokens=rules.find_limit(key, BudgetUnit.TOKENS, owner_limits),
            resets_at=bounds[key.period][1],
            timezone=rules.timezone,
            owner_units=frozenset(limit.unit for limit in owner_limits if limit.key == key),
        )
        for key in keys
    ]


def load_status(tx: Transaction, key: BudgetKey, rules: BudgetRules, now: datetime) -> BudgetStatus:
    """Return how one window stands. The caller has checked who may see it."""
    statuses = load_statuses(tx, [(key.scope, key.subject)], rules, now)
    return next(status for status in statuses if status.key == key)


def _check_subject(tx: Transaction, key: BudgetKey, profiles: Collection[str]) -> None:
    """Raise `NotFound` unless the subject of a limit exists; without one, it is about all or each of them."""
    subject = key.subject
    if not subject:
        return
    if key.scope is BudgetScope.ALL:
        raise InvalidInput.say("budget.all_has_none", "The budget of everybody together has no subject.")
    if key.scope is BudgetScope.PROFILE:
        if subject not in profiles:
            known = ", ".join(profiles) or "none is configured"
            raise NotFound(
                say("budget.no_profile", "There is no profile “{name}” ({known}).", name=subject[:60], known=known),
                profile=subject[:60],
            )
    elif (key.scope, subject) not in budget_limits.load_names(tx, [(key.scope, subject)]):
        raise NotFound(
            say("budget.unknown", "There is no {scope} {name}.", scope=key.scope.value, name=subject[:60]),
            subject=subject[:60],
        )


def _check_owner(principal: Principal) -> None:
    if principal.role is not Role.OWNER or principal.job_id is not None:
        raise OwnerRequired.say("budget.owners_only", "Only an owner can see or change the budgets of others.")


def _parse_cursor(cursor: str | None) -> BudgetSubject | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.")
    return BudgetScope(match[1]), match[2]
