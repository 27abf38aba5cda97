"""Budgets: limits on tokens and money per day and month, for everybody, a person, a job or a profile.

Before a model is called, the most that the call can cost is held in every window that it counts in. When it has ended,
what it really used replaces what was held. Always true: what is used and held together never passes a limit.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.texts import say, say_count
from palaver.sessions.usage import NANOS_PER_DOLLAR

if TYPE_CHECKING:
    from collections.abc import Iterable


WARNING_PERCENT = 80
INPUT_ESTIMATE_FACTOR = 1.2  # the estimate of a prompt's tokens may be too low
DEFAULT_MAX_TOKENS = 8000  # of an answer, when a limit applies
MIN_MAX_TOKENS = 1000  # an answer is shortened to this before a call is refused
_TOKENS_PER_PRICE = Decimal(1_000_000)  # prices are for this many tokens


class BudgetScope(StrEnum):
    ALL = "all"
    PERSON = "person"
    JOB = "job"
    PROFILE = "profile"


class BudgetPeriod(StrEnum):
    DAY = "day"
    MONTH = "month"


class BudgetUnit(StrEnum):
    USD = "usd"
    TOKENS = "tokens"


class CallPurpose(StrEnum):
    ANSWER = "answer"
    SUMMARY = "summary"
    TITLE = "title"
    MEMORY = "memory"
    SPEECH = "speech"


@dataclass(frozen=True, slots=True)
class BudgetKey:
    """The subject of a limit or a window, and its period; the subject is a person's id, a job's id or a profile's name.

    A limit without a subject is about all people together (`all`), or about each person, job or profile.
    """

    scope: BudgetScope
    subject: str
    period: BudgetPeriod


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimit:
    key: BudgetKey
    unit: BudgetUnit
    amount: int | None  # nano-dollars or tokens; None: no limit, whatever config.yaml says


class UnitAmounts(NamedTuple):
    unit: BudgetUnit
    used: int
    held: int
    limit: int | None

    @property
    def total(self) -> int:
        return self.used + self.held

    @property
    def percent(self) -> int | None:
        """The part of the limit that is used or held; None without a limit."""
        if self.limit is None:
            return None
        return 100 * self.total // self.limit if self.limit else 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowState:
    """A day or a month of a budget: what was used and is held in it, and its limits."""

    key: BudgetKey
    used_nanos: int = 0
    held_nanos: int = 0
    used_tokens: int = 0
    held_tokens: int = 0
    unpriced_calls: int = 0
    limit_nanos: int | None = None
    limit_tokens: int | None = None

    @property
    def amounts(self) -> tuple[UnitAmounts, ...]:
        return (
            UnitAmounts(BudgetUnit.USD, self.used_nanos, self.held_nanos, self.limit_nanos),
            UnitAmounts(BudgetUnit.TOKENS, self.used_tokens, self.held_tokens, self.limit_tokens),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatus(WindowState):
    subject_name: str  # for people to read
    resets_at: datetime
    timezone: str
    owner_units: frozenset[BudgetUnit] = frozenset()  # in which an owner has set a limit for exactly this subject

    @property
    def is_used_up(self) -> bool:
        return (self.percent or 0) >= 100

    @property
    def percent(self) -> int | None:
        """The part of the tighter limit that is used or held; None without a limit."""
        return max((each.percent for each in self.amounts if each.percent is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """Prices in US dollars for a million tokens, at the highest tier of the price list."""

    input_usd: Decimal
    output_usd: Decimal

    @property
    def is_free(self) -> bool:
        return not self.input_usd and not self.output_usd

    def compute_cost(self, input_tokens: int, output_tokens: int) -> Decimal:
        """Return the cost of this many tokens in US dollars."""
        return (self.input_usd * input_tokens + self.output_usd * output_tokens) / _TOKENS_PER_PRICE

    def compute_nanos(self, input_tokens: int, output_tokens: int) -> int:
        """Return the cost of this many tokens in nano-dollars, rounded up."""
        nanos = self.compute_cost(input_tokens, output_tokens) * NANOS_PER_DOLLAR
        return int(nanos.to_integral_value(ROUND_CEILING))


FREE = TokenPrice(input_usd=Decimal(0), output_usd=Decimal(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRules:
    """The limits of config.yaml, and the IANA time zone in which days and months begin."""

    timezone: str = "UTC"
    limits: tuple[BudgetLimit, ...] = ()

    def find_limit(self, key: BudgetKey, unit: BudgetUnit, owner_limits: Iterable[BudgetLimit]) -> int | None:
        """Return the limit that applies to a window, in nano-dollars or tokens; None if none does.

        What an owner has set wins over config.yaml; in both, a limit for one person, job or profile wins over the one
        for each of them.
        """
        common_key = BudgetKey(key.scope, "", key.period)
        for limits in (owner_limits, self.limits):
            by_key = {limit.key: limit for limit in limits if limit.unit is unit}
            found = by_key.get(key) or by_key.get(common_key)
            if found is not None:
                return found.amount
        return None


def get_window_bounds(period: BudgetPeriod, now: datetime, timezone: str) -> tuple[datetime, datetime]:
    """Return when the current day or month of a time zone began, and when the next one begins; both in UTC."""
    zone = ZoneInfo(timezone)
    today = now.astimezone(zone).date()
    if period is BudgetPeriod.DAY:
        first, following = today, today + timedelta(days=1)
    else:
        first = today.replace(day=1)
        following = (first + timedelta(days=31)).replace(day=1)
    start, end = (datetime.combine(day, time(), zone).astimezone(UTC) for day in (first, following))
    return start, end


# -- amounts as people write and read them: `$5`, `200k tokens`, `none` -------------------------------------

# Money is never a float: it is whole nano-dollars from the moment it is read.
AMOUNT_EXAMPLES: Final = say("budget.examples", "`$5`, `$0.25`, `200k tokens`, `1.5M tokens` or `none`")
MAX_DOLLAR_DECIMALS: Final = 6
MAX_DOLLARS: Final = 1_000_000
MAX_LIMIT_TOKENS: Final = 10**12
_DOLLARS = re.compile(
    r"(?:\$\s*([0-9][0-9,]{0,12}(?:\.[0-9]{1,9})?)|([0-9][0-9,]{0,12}(?:\.[0-9]{1,9})?)\s*(?:\$|usd|dollars?))"
)
_TOKENS = re.compile(r"([0-9][0-9,]{0,15}(?:\.[0-9]{1,6})?)\s*(k|m)?\s*(?:tokens?|tok)?")
_NO_LIMIT: Final = frozenset({"none", "unlimited", "no limit", "off"})
_SUFFIX_FACTORS: Final = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_amount(text: str) -> tuple[BudgetUnit | None, int | None]:
    """Read an amount: its unit, and nano-dollars or tokens. `none` has neither: it means no limit in any unit.

    A number without a unit is refused: 5 could be dollars or tokens.
    """
    words = " ".join(text[:100].split()).lower()
    if words in _NO_LIMIT:
        return None, None
    if match := _DOLLARS.fullmatch(words):
        return BudgetUnit.USD, parse_dollars((match[1] or match[2]).replace(",", ""))
    match = _TOKENS.fullmatch(words)
    if match is None or not (match[2] or words.endswith(("token", "tokens", "tok"))):
        message = say(
            "budget.not_amount",
            "“{amount}” is not an amount. Examples: {examples}.",
            amount=text[:40],
            examples=AMOUNT_EXAMPLES,
        )
        raise InvalidInput(message, amount=text[:40])
    tokens = Decimal(match[1].replace(",", "")) * _SUFFIX_FACTORS[match[2] or ""]
    if tokens != int(tokens):
        raise InvalidInput(
            say("budget.not_whole", "“{amount}” is not a whole number of tokens.", amount=text[:40]), amount=text[:40]
        )
    return BudgetUnit.TOKENS, check_tokens(int(tokens))


def parse_dollars(text: str) -> int:
    """Read an amount in dollars, such as `0.25`, as nano-dollars."""
    match = re.fullmatch(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?", text)
    decimals = (match[2] or "").rstrip("0") if match else ""
    if match is None or len(decimals) > MAX_DOLLAR_DECIMALS or int(match[1]) > MAX_DOLLARS:
        message = say(
            "budget.not_dollars",
            "“{amount}” is not allowed (dollars from 0 to {maximum}, with at most {decimals} decimals, such as 0.25)",
            amount=text[:40],
            maximum=MAX_DOLLARS,
            decimals=MAX_DOLLAR_DECIMALS,
        )
        raise InvalidInput(message, amount=text[:40])
    return int(match[1]) * NANOS_PER_DOLLAR + int(decimals.ljust(9, "0"))


def check_tokens(tokens: int) -> int:
    """Return a number of tokens; raises `InvalidInput` if it is too large for a limit."""
    if not 0 <= tokens <= MAX_LIMIT_TOKENS:
        message = say(
            "budget.not_tokens",
            "{tokens} is not allowed (0 to {maximum} tokens)",
            tokens=tokens,
            maximum=MAX_LIMIT_TOKENS,
        )
        raise InvalidInput(message, amount=str(tokens))
    return tokens


def nanos_to_text(nanos: int) -> str:
    """Return nano-dollars as decimal dollars for programs: `5`, `0.25`."""
    text = f"{nanos // NANOS_PER_DOLLAR}.{nanos % NANOS_PER_DOLLAR:09}"
    return text.rstrip("0").rstrip(".")


def format_dollars(nanos: int) -> str:
    """Return nano-dollars for people: `$5.00`, `$0.0004`; what is smaller than a hundredth of a cent is rounded up."""
    if nanos % 10_000_000 == 0:
        return f"${nanos // NANOS_PER_DOLLAR:,}.{nanos // 10_000_000 % 100:02}"
    parts = -(-nanos // 100_000)  # of ten thousand
    return f"${parts // 10_000:,}.{parts % 10_000:04}"


def format_amount(unit: BudgetUnit, amount: int) -> str:
    """Return an amount for people: `$5.00`, `200,000 tokens`."""
    if unit is BudgetUnit.USD:
        return format_dollars(amount)
    return say_count("budget.tokens", amount, "{count} token", "{count} tokens")
