"""The chat API of OpenAI-compatible servers, with what they say that a request has cost."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai.types.chat import ChatCompletionChunk

REPORTED_COST_KEY: Final = "reported_cost"  # in the details of an answer
MAX_REPORTED_DOLLARS: Final = 1000  # of one request; more is a mistake, and would use up every budget
_TICKS_PER_DOLLAR: Final = 10_000_000_000


class CostReportingModel(OpenAIChatModel):
    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _CostReportingStream


class _CostReportingStream(OpenAIStreamedResponse):
    def _map_chunk_provider_details(self, chunk: ChatCompletionChunk) -> dict[str, Any] | None:
        details = super()._map_chunk_provider_details(chunk)
        cost = None if chunk.usage is None else find_reported_cost(chunk.usage.model_extra or {})
        return details if cost is None else {**(details or {}), REPORTED_COST_KEY: cost}


def find_reported_cost(usage: Mapping[str, Any]) -> Decimal | None:
    """Return the cost in US dollars that the usage of an answer names; None if there is none that can be true.

    OpenRouter and others have `cost`, and with a key of one's own at the provider behind it, what that provider charges
    beside it. Perplexity has `cost.total_cost`, xAI has `cost_in_usd_ticks`.
    """
    cost = usage.get("cost")
    if isinstance(cost, dict):
        cost = cost.get("total_cost")
    dollars = _parse_dollars(cost)
    if dollars is None:
        ticks = usage.get("cost_in_usd_ticks")
        return _parse_dollars(ticks, divisor=_TICKS_PER_DOLLAR)
    details = usage.get("cost_details")
    if usage.get("is_byok") is True:
        upstream = _parse_dollars(details.get("upstream_inference_cost")) if isinstance(details, dict) else None
        return None if upstream is None else dollars + upstream
    return dollars


def _parse_dollars(value: object, *, divisor: int = 1) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        dollars = Decimal(str(value)) / divisor
    except (InvalidOperation, ValueError):  # not a number, or one with thousands of digits
        return None
    return dollars if dollars.is_finite() and 0 <= dollars <= MAX_REPORTED_DOLLARS else None
