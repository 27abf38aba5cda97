"""Amounts of budgets as people write and read them: `$5`, `$0.25`, `200k tokens`, `1.5M tokens`, `none`.

Money is never a float: it is whole nano-dollars from the moment it is read.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from palaver.config.budget_rules import BudgetUnit
from palaver.core.errors import InvalidInput

AMOUNT_EXAMPLES: Final = "`$5`, `$0.25`, `200k tokens`, `1.5M tokens` or `none`"
MAX_DOLLAR_DECIMALS: Final = 6
MAX_DOLLARS: Final = 1_000_000
MAX_LIMIT_TOKENS: Final = 10**12
NANOS_PER_DOLLAR: Final = 1_000_000_000
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
        raise InvalidInput(f"“{text[:40]}” is not an amount. Examples: {AMOUNT_EXAMPLES}.", amount=text[:40])
    tokens = Decimal(match[1].replace(",", "")) * _SUFFIX_FACTORS[match[2] or ""]
    if tokens != int(tokens):
        raise InvalidInput(f"“{text[:40]}” is not a whole number of tokens.", amount=text[:40])
    return BudgetUnit.TOKENS, check_tokens(int(tokens))


def parse_dollars(text: str) -> int:
    """Read an amount in dollars, such as `0.25`, as nano-dollars."""
    match = re.fullmatch(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?", text)
    decimals = (match[2] or "").rstrip("0") if match else ""
    if match is None or len(decimals) > MAX_DOLLAR_DECIMALS or int(match[1]) > MAX_DOLLARS:
        raise InvalidInput(
            f"“{text[:40]}” is not allowed (dollars from 0 to {MAX_DOLLARS:,}, with at most {MAX_DOLLAR_DECIMALS}"
            " decimals, such as 0.25)",
            amount=text[:40],
        )
    return int(match[1]) * NANOS_PER_DOLLAR + int(decimals.ljust(9, "0"))


def check_tokens(tokens: int) -> int:
    """Return a number of tokens; raises `InvalidInput` if it is too large for a limit."""
    if not 0 <= tokens <= MAX_LIMIT_TOKENS:
        raise InvalidInput(f"{tokens} is not allowed (0 to {MAX_LIMIT_TOKENS:,} tokens)", amount=str(tokens))
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
    return f"{amount:,} token{'' if amount == 1 else 's'}"
