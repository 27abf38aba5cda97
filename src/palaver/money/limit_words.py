"""The words with which owners change limits, in chats and in the terminal: `all month $50`, `job news day 20k`."""

from __future__ import annotations

import re

from palaver.config.budget_amounts import AMOUNT_EXAMPLES, parse_amount
from palaver.config.budget_rules import BudgetPeriod, BudgetScope, BudgetUnit
from palaver.core.errors import InvalidInput

MAX_WORDS_CHARS = 300
_WORDS = re.compile(r"(\S.*)\s(day|month)(?:\s+(\S.*))?", re.IGNORECASE)
_COMMON_SUBJECTS = {
    "all": BudgetScope.ALL,
    "everyone": BudgetScope.PERSON,
    "jobs": BudgetScope.JOB,
    "profiles": BudgetScope.PROFILE,
}
_NAMED_SCOPES = {"job": BudgetScope.JOB, "profile": BudgetScope.PROFILE, "person": BudgetScope.PERSON}


def parse_set(text: str) -> tuple[str, BudgetPeriod, dict[BudgetUnit, int | None]]:
    """Read whose limit to set, for which period, and the amounts by unit; `none` is no limit in any unit."""
    who, period, amount = _split(text)
    if amount is None:
        raise InvalidInput(f"How much? Use {AMOUNT_EXAMPLES}. Example: `set all month $50`.")
    unit, number = parse_amount(amount)
    return who, period, dict.fromkeys(BudgetUnit) if unit is None else {unit: number}


def parse_clear(text: str) -> tuple[str, BudgetPeriod]:
    """Read whose limit to clear, and for which period."""
    who, period, amount = _split(text)
    if amount is not None:
        raise InvalidInput("`clear` removes a limit and takes no amount. Example: `clear Ada day`.")
    return who, period


def parse_subject(who: str) -> tuple[BudgetScope, str]:
    """Read whose budget is meant; an empty name means all of them together (`all`), or each of them."""
    first, _, rest = who.strip().partition(" ")
    if not rest.strip() and first.lower() in _COMMON_SUBJECTS:
        return _COMMON_SUBJECTS[first.lower()], ""
    if rest.strip() and first.lower() in _NAMED_SCOPES:
        return _NAMED_SCOPES[first.lower()], rest.strip()
    return BudgetScope.PERSON, who.strip()


def is_person(who: str) -> bool:
    """Whether these words alone mean the person of this name."""
    return parse_subject(who) == (BudgetScope.PERSON, who)


def _split(text: str) -> tuple[str, BudgetPeriod, str | None]:
    match = _WORDS.fullmatch(text.strip()) if len(text) <= MAX_WORDS_CHARS else None
    if match is None:
        raise InvalidInput(
            "Whose limit, and for a day or a month? Examples: `set all month $50`, `set Ada day 200k tokens`,"
            " `clear job news day`."
        )
    return match[1].strip(), BudgetPeriod(match[2].lower()), match[3]
