from __future__ import annotations

from decimal import Decimal

import pytest
from genai_prices import Usage

from palaver.config.budget_rules import TokenPrice
from palaver.drivers.providers import KNOWN_PROVIDERS, calculate_cost, find_context_window, find_list_price

USAGE = Usage(input_tokens=1_000, output_tokens=100)


@pytest.mark.parametrize("provider", [name for name, known in KNOWN_PROVIDERS.items() if known.default_model])
def test_every_default_model_has_a_price(provider: str) -> None:
    cost = calculate_cost(USAGE, KNOWN_PROVIDERS[provider].default_model or "", provider)
    assert isinstance(cost, Decimal)
    assert cost > 0


def test_twice_the_tokens_cost_twice_as_much() -> None:
    doubled = Usage(input_tokens=2_000, output_tokens=200)
    assert (calculate_cost(doubled, "gpt-4o", "openai") or 0) == 2 * (calculate_cost(USAGE, "gpt-4o", "openai") or 1)


@pytest.mark.parametrize(("model", "provider"), [("no-such-model", "openai"), ("llama3", "ollama"), ("gpt-4o", "mine")])
def test_a_model_outside_the_list_has_no_price(model: str, provider: str) -> None:
    assert calculate_cost(USAGE, model, provider) is None
    assert calculate_cost(USAGE, model, provider, "http://127.0.0.1:9/v1") is None


def test_a_provider_is_also_found_by_its_address() -> None:
    assert calculate_cost(USAGE, "gpt-4o", "mine", "https://api.openai.com/v1") == calculate_cost(
        USAGE, "gpt-4o", "openai"
    )


@pytest.mark.parametrize("provider", [name for name, known in KNOWN_PROVIDERS.items() if known.default_model])
def test_every_default_model_has_a_context_window(provider: str) -> None:
    assert (find_context_window(KNOWN_PROVIDERS[provider].default_model or "", provider) or 0) >= 100_000


@pytest.mark.parametrize(("model", "provider"), [("no-such-model", "openai"), ("llama3", "ollama"), ("gpt-4o", "mine")])
def test_a_model_outside_the_list_has_no_context_window(model: str, provider: str) -> None:
    assert find_context_window(model, provider) is None
    assert find_context_window(model, provider, "http://127.0.0.1:9/v1") is None


def test_a_context_window_is_also_found_by_the_address_of_the_provider() -> None:
    assert find_context_window("gpt-4o", "mine", "https://api.openai.com/v1") == find_context_window("gpt-4o", "openai")


def test_the_price_of_a_model_is_that_of_its_highest_tier_and_of_cached_input() -> None:
    assert find_list_price("gpt-4o", "openai") == TokenPrice(input_usd=Decimal("2.5"), output_usd=Decimal(10))
    tiered = find_list_price("claude-sonnet-4-5", "anthropic")
    assert tiered == TokenPrice(input_usd=Decimal("7.5"), output_usd=Decimal("22.5"))  # long, and written to a cache
    assert find_list_price("no-such-model", "openai") is None
