"""What every shape of the API is made of. The shapes themselves stand with the routes that alone use them; those of
conversations and of what is said in them are in `session_wire.py` and `message_wire.py`.

Always true: names are in snake_case, times in ISO 8601 and UTC, ids are text, money is decimal text. A key that has
nothing to say is null, never missing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints

from palaver.domain.text import storable
from palaver.domain.usage import COUNTERS

if TYPE_CHECKING:
    from palaver.domain.usage import UsageTotals
    from palaver.domain.usage_report import Spent

MOST_SEQ = 2**53  # the largest number that every client can write

Time = Annotated[datetime, PlainSerializer(lambda moment: moment.astimezone(UTC), when_used="json")]
Key = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
Seq = Annotated[int, Field(ge=0, le=MOST_SEQ)]


class Out(BaseModel):
    """What goes out."""

    model_config = ConfigDict(frozen=True)


class Counted(Out):
    """Tokens, and what they cost in US dollars; null when nobody knows."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: str | None
    unpriced_turns: int


class In(BaseModel):
    """What comes in; a key that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def money(amount: Decimal | None) -> str | None:
    """An amount of US dollars as plain decimal text."""
    return None if amount is None else f"{amount:f}"


def counted(used: UsageTotals | Spent) -> dict[str, Any]:
    """What was used, as the fields of `Counted`."""
    tokens = {name: getattr(used, name) for name in COUNTERS}
    return {**tokens, "cost_usd": money(used.cost), "unpriced_turns": used.unpriced_turns}


def clean(value: Any) -> Any:
    """JSON-ready data as UTF-8 can carry it: halves of characters, which a log keeps exactly, are replaced."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list):
        return [clean(each) for each in value]
    if isinstance(value, dict):
        return {shown(str(key)): clean(each) for key, each in value.items()}
    return value


def shown(text: str) -> str:
    """Text as UTF-8 can carry it."""
    return text if text.isascii() else storable(text)
