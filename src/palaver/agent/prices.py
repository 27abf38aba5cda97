"""Prices of models, loaded before a transaction, in which nothing can be awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from palaver.config.budget_rules import TokenPrice

MAX_LOADED_MODELS: Final = 500


class PriceSource(Protocol):
    """An agent, as far as it knows prices."""

    async def get_price(self, name: str) -> TokenPrice | None:
        """Return what a model costs, at most; None if that is unknown."""
        ...


class ModelPrices:
    """What models cost, as far as it was loaded."""

    def __init__(self, agent: PriceSource) -> None:
        self._agent = agent
        self._prices: dict[str, TokenPrice | None] = {}

    async def load(self, models: Iterable[str]) -> None:
        """Load the prices of models that are not loaded yet."""
        for model in models:
            if model not in self._prices and len(self._prices) < MAX_LOADED_MODELS:
                self._prices[model] = await self._agent.get_price(model)

    def is_loaded(self, model: str) -> bool:
        return model in self._prices

    def find(self, model: str) -> TokenPrice | None:
        """Return the price of a model; None if it is unknown or was not loaded."""
        return self._prices.get(model)
