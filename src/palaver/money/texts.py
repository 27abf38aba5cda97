"""Texts about budgets: how one stands, that most of it is used, and that it is used up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from palaver.agent.base import Notice
from palaver.commands.reply_text import write_command
from palaver.config.budget_rules import (
    AMOUNT_EXAMPLES,
    WARNING_PERCENT,
    BudgetKey,
    BudgetPeriod,
    BudgetScope,
    BudgetStatus,
    BudgetUnit,
    UnitAmounts,
    format_amount,
    format_dollars,
    get_window_bounds,
    parse_amount,
)
from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.errors import BudgetExceeded, InvalidInput
from palaver.core.source import ChatType
from palaver.core.texts import Text, join_texts, say, say_count, tell_owner
from palaver.delivery.notices import notify_person
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.policy import count_days, count_hours, count_minutes
from palaver.sessions.turn import FailureCode, NoticeCode
from palaver.sessions.usage_table import NO_SESSION_NO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from palaver.core.engines.base import Row, Transaction
    from palaver.core.ids import PersonId
    from palaver.money.hold import HoldRefused
    from palaver.sessions.gateway_config import GatewayConfig


PERIOD_NAMES = {
    BudgetPeriod.DAY: say("budget.today", "Today"),
    BudgetPeriod.MONTH: say("budget.this_month", "This month"),
}
_STATUS_PERIODS = {
    BudgetPeriod.DAY: say("budget.of_today", "today"),
    BudgetPeriod.MONTH: say("budget.of_month", "this month"),
}
_LIMIT_PERIODS = {BudgetPeriod.DAY: say("budget.daily", "daily"), BudgetPeriod.MONTH: say("budget.monthly", "monthly")}
_NOUNS = {
    BudgetPeriod.DAY: say("budget.day_budget", "daily budget"),
    BudgetPeriod.MONTH: say("budget.month_budget", "monthly budget"),
}
_NO_LIMIT = say("budget.no_limit", "no limit")
ALL_SUBJECT = say("budget.all", "Everybody together")
SHARED_SCOPES = frozenset({BudgetScope.ALL, BudgetScope.PROFILE})  # of several people: their amounts are for owners


MAX_WORDS_CHARS = 300
_NANOS_PER_CENT = 10_000_000
_WORDS = re.compile(r"(\S.*)\s(day|month)(?:\s+(\S.*))?", re.IGNORECASE)
_COMMON_SUBJECTS = {
    "all": BudgetScope.ALL,
    "everyone": BudgetScope.PERSON,
    "jobs": BudgetScope.JOB,
    "profiles": BudgetScope.PROFILE,
}
_NAMED_SCOPES = {"job": BudgetScope.JOB, "profile": BudgetScope.PROFILE, "person": BudgetScope.PERSON}
MAX_NOTIFIED_OWNERS = 20


def describe_named_status(status: BudgetStatus, name: str) -> str:
    """`Ada, today: $1.20 of $5.00 (24%) …`; without a subject, nothing is used: `Each person, daily: $5.00`."""
    if status.key.scope is BudgetScope.ALL or status.key.subject:
        return name + ", " + _STATUS_PERIODS[status.key.period] + ": " + describe_status(status) + "."
    limits = [format_amount(each.unit, each.limit) for each in status.amounts if each.limit is not None]
    limit = join_texts(say("text.and", " and "), limits) or _NO_LIMIT
    return name + ", " + _LIMIT_PERIODS[status.key.period] + ": " + limit + "."


def describe_status(status: BudgetStatus) -> str:
    """`$1.20 of $5.00 (24%), 12,000 of 200,000 tokens (6%); resets 2026-11-17 00:00 (Europe/Vienna)`."""
    text = join_texts(", ", _describe_units(status))
    if status.limit_nanos is None and status.limit_tokens is None:
        text += "; " + _NO_LIMIT
    return text + say("budget.resets", "; resets {time}", time=format_reset_time(status.resets_at, status.timezone))


def _describe_units(status: BudgetStatus) -> Iterator[str]:
    for amounts in status.amounts:
        unit, used, held, limit = amounts
        text = format_amount(unit, used)
        if limit is not None:
            text = say(
                "budget.share",
                "{amount} of {limit} ({percent}%)",
                amount=format_dollars(used) if unit is BudgetUnit.USD else used,
                limit=format_amount(unit, limit),
                percent=str(amounts.percent),
            )
        if held:
            text += say("budget.held", " (plus {amount} held for running calls)", amount=format_amount(unit, held))
        yield text
    if status.unpriced_calls:
        yield say_count(
            "budget.unpriced",
            status.unpriced_calls,
            "plus {count} call whose price is unknown",
            "plus {count} calls whose price is unknown",
        )


def format_reset_time(moment: datetime, timezone: str) -> str:
    """`2026-11-17 00:00 (Europe/Vienna)`."""
    return f"{moment.astimezone(ZoneInfo(timezone)):%Y-%m-%d %H:%M} ({timezone})"


def name_budget(scope: BudgetScope, period: BudgetPeriod, subject_name: str) -> Text:
    """Name a budget at the start of a sentence: `Your daily budget`, `The monthly budget of the profile “research”`."""
    noun = _NOUNS[period]
    match scope:
        case BudgetScope.ALL:
            return say("budget.of_all", "The {budget} of everybody together", budget=noun)
        case BudgetScope.PERSON:
            return say("budget.yours", "Your {budget}", budget=noun)
        case BudgetScope.JOB:
            return say("budget.of_job", "The {budget} of the job “{name}”", budget=noun, name=subject_name)
        case BudgetScope.PROFILE:
            return say("budget.of_profile", "The {budget} of the profile “{name}”", budget=noun, name=subject_name)


# ---- changing limits --------------------------------------------------------------------------------------------


def parse_set(text: str) -> tuple[str, BudgetPeriod, dict[BudgetUnit, int | None]]:
    """Read whose limit to set, for which period, and the amounts by unit; `none` is no limit in any unit."""
    who, period, amount = _split(text)
    if amount is None:
        raise InvalidInput.say(
            "budget.how_much", "How much? Use {amounts}. Example: `set all month $50`.", amounts=AMOUNT_EXAMPLES
        )
    unit, number = parse_amount(amount)
    return who, period, dict.fromkeys(BudgetUnit) if unit is None else {unit: number}


def parse_clear(text: str) -> tuple[str, BudgetPeriod]:
    """Read whose limit to clear, and for which period."""
    who, period, amount = _split(text)
    if amount is not None:
        raise InvalidInput.say(
            "budget.clear_amount", "`clear` removes a limit and takes no amount. Example: `clear Ada day`."
        )
    return who, period


def parse_subject(who: str) -> tuple[BudgetScope, str]:
    """Read whose budget is meant; an empty name means all of them together (`all`), or each of them."""
    first, _, rest = who.strip().partition(" ")
    if not rest.strip() and first.lower() in _COMMON_SUBJECTS:
        return _COMMON_SUBJECTS[first.lower()], ""
    if rest.strip() and first.lower() in _NAMED_SCOPES:
        return _NAMED_SCOPES[first.lower()], rest.strip()
    return BudgetScope.PERSON, who.strip()


def _split(text: str) -> tuple[str, BudgetPeriod, str | None]:
    match = _WORDS.fullmatch(text.strip()) if len(text) <= MAX_WORDS_CHARS else None
    if match is None:
        raise InvalidInput.say(
            "budget.whose",
            "Whose limit, and for a day or a month? Examples: `set all month $50`, `set Ada day 200k tokens`,"
            " `clear job news day`.",
        )
    return match[1].strip(), BudgetPeriod(match[2].lower()), match[3]


# ---- refused calls ----------------------------------------------------------------------------------------------


def make_refusal(
    refusal: HoldRefused, model: str, subject_name: str, *, now: datetime, timezone: str, can_see_amounts: bool
) -> BudgetExceeded:
    """Make the error for a call that a limit does not allow: what, how much, until when, and how to raise it."""
    key, amounts = refusal.key, refusal.amounts
    resets_at = get_window_bounds(key.period, now, timezone)[1]
    facts = {"model": model, **_build_facts(key, subject_name, amounts.unit, resets_at, timezone)}
    budget = name_budget(key.scope, key.period, subject_name)
    if refusal.needed is None:
        text = say(
            "budget.price_unknown",
            "{budget} has a limit in dollars, and the price of {model} is unknown. An owner can set it in the server"
            " settings, in dollars per million tokens: {example}",
            budget=budget,
            model=model,
            example=f'`prices: {{"{model}": {{input: 0.5, output: 1.5}}}}`',
        )
        others = say(
            "budget.price_unknown_for_others",
            "{budget} can't be checked for this model. Choose another one with /model.",
            budget=budget,
        )
        return BudgetExceeded(tell_owner(text, others), code=FailureCode.PRICE_UNKNOWN, **facts)
    if can_see_amounts:
        facts |= {"used": amounts.total, "limit": amounts.limit}
    reason = _explain_limit(amounts, budget, refusal.needed, can_see_amounts=can_see_amounts)
    time = _format_reset(resets_at, now, timezone)
    command = _format_command(refusal, subject_name, can_see_amounts=can_see_amounts)
    text = tell_owner(
        say(
            "budget.refused",
            "{reason} It resets {time}. An owner can raise it: `{command}`.",
            reason=reason,
            time=time,
            command=command,
        ),
        say(
            "budget.refused_for_others",
            "{reason} It resets {time}. An owner can raise it.",
            reason=reason,
            time=time,
        ),
    )
    return BudgetExceeded(text, code=FailureCode.BUDGET_EXCEEDED, **facts)


def _format_reset(resets_at: datetime, now: datetime, timezone: str) -> str:
    """Say when a window ends: "at 2026-11-17 00:00 (Europe/Vienna), in 5 hours"."""
    minutes = max(round((resets_at - now).total_seconds() / 60), 1)
    if minutes < 60:
        wait = count_minutes(minutes)
    else:
        wait = count_hours(round(minutes / 60)) if minutes < 48 * 60 else count_days(round(minutes / (24 * 60)))
    return say("budget.reset_at", "at {time}, in {wait}", time=format_reset_time(resets_at, timezone), wait=wait)


def _build_facts(
    key: BudgetKey, subject_name: str, unit: BudgetUnit, resets_at: datetime, timezone: str
) -> dict[str, object]:
    return {
        "scope": key.scope.value,
        "subject": subject_name,
        "period": key.period.value,
        "unit": unit.value,
        "resets_at": resets_at.isoformat(),
        "timezone": timezone,
    }


def _explain_limit(amounts: UnitAmounts, budget: str, needed: int, *, can_see_amounts: bool) -> str:
    unit, used, limit = amounts.unit, amounts.total, amounts.limit or 0
    if not can_see_amounts:
        return say("budget.used_up", "{budget} is used up.", budget=budget)
    if used >= limit:
        return say(
            "budget.reached",
            "{budget} is used up: {used} of {limit}.",
            budget=budget,
            used=format_amount(unit, used),
            limit=format_amount(unit, limit),
        )
    return say(
        "budget.too_little",
        "{budget} has only {left} of {limit} left, and this answer may need {needed}.",
        budget=budget,
        left=format_amount(unit, limit - used),
        limit=format_amount(unit, limit),
        needed=format_amount(unit, needed),
    )


def _format_command(refusal: HoldRefused, subject_name: str, *, can_see_amounts: bool) -> Text:
    """Return the command that would let the call pass."""
    is_person = parse_subject(subject_name) == (BudgetScope.PERSON, subject_name)  # without a word before the name
    who = {
        BudgetScope.ALL: "all",
        BudgetScope.PERSON: subject_name if is_person else f"person {subject_name}",
        BudgetScope.JOB: f"job {subject_name}",
        BudgetScope.PROFILE: f"profile {subject_name}",
    }[refusal.key.scope]
    amount = _suggest_amount(refusal) if can_see_amounts else "…"
    return write_command(f"budget set {who} {refusal.key.period.value} {amount}")


def _suggest_amount(refusal: HoldRefused) -> str:
    """Return a limit that would let the call pass: about twice as much."""
    amounts = refusal.amounts
    amount = max(2 * (amounts.limit or 0), amounts.total + 2 * (refusal.needed or 0))
    if amounts.unit is BudgetUnit.TOKENS:
        return f"{-(-amount // 1000)}k tokens"
    cents = -(-amount // _NANOS_PER_CENT)
    return f"${cents // 100}.{cents % 100:02}"


# ---- warnings ---------------------------------------------------------------------------------------------------
# Warnings that most of a budget is used: who is told, where, and with which amounts.
#
# Always true: a window is marked as warned in the transaction that queues the messages about it, so people are told
# once. Amounts are told only where no other person reads them, and those of a budget of several people only to
# owners.


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
        sql = "SELECT id FROM person WHERE role = $1 AND merged_into IS NULL ORDER BY created_at, id LIMIT $2"
        owner_ids = tx.fetch_all(sql, Role.OWNER.value, MAX_NOTIFIED_OWNERS)
        for (owner_id,) in owner_ids:
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
    amounts = find_nearly_used(status) or status.amounts[0]
    unit, used, limit = amounts.unit, amounts.used, amounts.limit or 0
    percent = min(amounts.percent or 0, 100)
    facts = _build_facts(status.key, status.subject_name, unit, status.resets_at, status.timezone)
    facts["percent"] = percent
    told_amounts: str = ""
    if can_see_amounts:
        facts |= {"used": used, "limit": limit}
        told_amounts = say(
            "budget.amounts", " ({used} of {limit})", used=format_amount(unit, used), limit=format_amount(unit, limit)
        )
    name = name_budget(status.key.scope, status.key.period, status.subject_name)
    reset = format_reset_time(status.resets_at, status.timezone)
    text = say(
        "budget.nearly_used",
        "{budget} is {percent}% used{amounts}. It resets at {time}.",
        budget=name,
        percent=str(percent),
        amounts=told_amounts,
        time=reset,
    )
    return Notice(text, NoticeCode.BUDGET_NEARLY_USED, facts)


def find_nearly_used(status: BudgetStatus) -> UnitAmounts | None:
    """Return the unit whose limit is used the most, not counting what is held, if that is nearly all of it."""
    most = max((each._replace(held=0) for each in status.amounts), key=lambda each: each.percent or 0)
    return most if (most.percent or 0) >= WARNING_PERCENT else None
