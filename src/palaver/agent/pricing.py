"""What a request cost and how much a model takes, by the price list of `genai-prices`.

What is not in the list is unknown, never zero. The list is part of the package: nothing is fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import AbstractUsage

SOURCE = "genai-prices"


def price(usage: AbstractUsage, model: str, provider: str, base_url: str | None = None) -> Decimal | None:
    """US dollars by the provider's list prices, or None when the list does not know this provider or model."""
    from genai_prices import calc_price  # 0.4 s

    try:
        return calc_price(usage, model, provider_id=provider).total_price
    except LookupError:
        if base_url is None:
            return None
    try:  # the operator may have given the provider a name of their own
        return calc_price(usage, model, provider_api_url=base_url).total_price
    except LookupError:
        return None


def window(model: str, provider: str, base_url: str | None = None) -> int | None:
    """How many tokens a model takes, or None when the list does not know this provider or model."""
    from genai_prices.data_snapshot import get_snapshot  # 0.4 s

    known = get_snapshot()
    try:
        return known.find_provider_model(model, None, provider, None)[1].context_window
    except LookupError:
        if base_url is None:
            return None
    try:
        return known.find_provider_model(model, None, None, base_url)[1].context_window
    except LookupError:
        return None
