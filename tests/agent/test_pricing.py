from __future__ import annotations

from decimal import Decimal

import pytest
from genai_prices import Usage

from palaver.agent.pricing import price, window
from palaver.agent.providers import KNOWN

SOME = Usage(input_tokens=1_000, output_tokens=100)


@pytest.mark.parametrize("provider", [name for name, known in KNOWN.items() if known.default_model])
def test_every_default_model_has_a_price(provider: str) -> None:
    found = price(SOME, KNOWN[provider].default_model or "", provider)
    assert isinstance(found, Decimal)
    assert found > 0


def test_more_costs_more() -> None:
    more = Usage(input_tokens=2_000, output_tokens=200)
    assert (price(more, "gpt-4o", "openai") or 0) == 2 * (price(SOME, "gpt-4o", "openai") or 1)


@pytest.mark.parametrize(("model", "provider"), [("no-such-model", "openai"), ("llama3", "ollama"), ("gpt-4o", "mine")])
def test_what_is_not_in_the_list_has_no_price(model: str, provider: str) -> None:
    assert price(SOME, model, provider) is None
    assert price(SOME, model, provider, "http://127.0.0.1:9/v1") is None


def test_a_provider_is_known_by_its_address_too() -> None:
    assert price(SOME, "gpt-4o", "mine", "https://api.openai.com/v1") == price(SOME, "gpt-4o", "openai")


@pytest.mark.parametrize("provider", [name for name, known in KNOWN.items() if known.default_model])
def test_it_is_known_how_much_every_default_model_takes(provider: str) -> None:
    assert (window(KNOWN[provider].default_model or "", provider) or 0) >= 100_000


@pytest.mark.parametrize(("model", "provider"), [("no-such-model", "openai"), ("llama3", "ollama"), ("gpt-4o", "mine")])
def test_how_much_a_model_takes_that_is_not_in_the_list_is_not_known(model: str, provider: str) -> None:
    assert window(model, provider) is None
    assert window(model, provider, "http://127.0.0.1:9/v1") is None


def test_how_much_a_model_takes_is_known_by_its_address_too() -> None:
    assert window("gpt-4o", "mine", "https://api.openai.com/v1") == window("gpt-4o", "openai")
