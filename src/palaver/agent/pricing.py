"""Costs of requests and context windows of models, from the price list of `genai-prices`.

The cost of a model that is not in the list is unknown, never zero. The list is part of the package: nothing is
fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import AbstractUsage

COST_SOURCE = "genai-prices"


def calculate_cost(usage: AbstractUsage, model: str, provider: str, base_url: str | None = None) -> Decimal | None:
    """Calculate the cost in US dollars from list prices, or None if the list does not have this model."""
    from genai_prices import calc_price  # 0.4 s

    try:
        return calc_price(usage, model, provider_id=provider).total_price
    except LookupError:
        if base_url is None:
            return None
    try:  # the operator may have chosen their own name for the provider
        return calc_price(usage, model, provider_api_url=base_url).total_price
    except LookupError:
        return None


def find_context_window(model: str, provider: str, base_url: str | None = None) -> int | None:
    """Return a model's context window in tokens, or None if the list does not have this model."""
    from genai_prices.data_snapshot import get_snapshot  # 0.4 s

    price_list = get_snapshot()
    try:
        return price_list.find_provider_model(model, None, provider, None)[1].context_window
    except LookupError:
        if base_url is None:
            return None
    try:
        return price_list.find_provider_model(model, None, None, base_url)[1].context_window
    except LookupError:
        return None
