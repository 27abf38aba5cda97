"""Agents with one model and without tools: what they have in common, and the one for when no other can be made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.agent.base import AgentEvent, AgentRequest, TextDelta, Tool
from palaver.config.budget_rules import FREE, TokenPrice
from palaver.core.errors import AgentRejected, InvalidInput
from palaver.sessions.usage import CostStatus, TurnUsage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence


class SingleModelAgent:
    """A base for agents on this machine: they cost nothing, and have no tool servers and no connections."""

    can_write_titles = False  # their titles would be worse than the first words
    context_tokens: int | None = None

    def __init__(self, model: str, description: str) -> None:
        self.model = model
        self.description = description

    def list_models(self) -> Sequence[str]:
        return (self.model,)

    def check_model(self, name: str) -> None:
        if name != self.model:
            raise InvalidInput(f"The model {name!r} is not available, only {self.model!r}. {self.explain_model()}")

    def explain_model(self) -> str:
        """Return sentences about how to get another model."""
        return self.description

    async def get_context_window(self, name: str) -> int | None:
        return self.context_tokens if name == self.model else None

    async def get_price(self, name: str) -> TokenPrice | None:
        return FREE if name == self.model else None

    def list_tool_servers(self) -> Sequence[str]:
        return ()

    async def load_tools(self) -> Sequence[Tool]:
        return ()

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass


def make_free_usage(
    model: str, provider: str, input_tokens: int, output_tokens: int, *, cached_tokens: int = 0
) -> TurnUsage:
    """Make the usage of an answer that was made on this machine."""
    return TurnUsage(
        model=model,
        provider=provider,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cached_tokens,
        cost=0,
        cost_status=CostStatus.ACTUAL,
        cost_source=provider,
        last_prompt_tokens=input_tokens,
    )


class UnavailableAgent(SingleModelAgent):
    """The agent when none can be made with the settings: it answers every message with the reason.

    So a key that can't be decrypted, or a model that was removed, stops nothing but the answers.
    """

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(model, f"No model can answer. {reason}")
        self._reason = reason

    def check_model(self, name: str) -> None:
        if name != self.model:
            raise InvalidInput(self._reason, model=name)

    async def get_price(self, name: str) -> TokenPrice | None:
        return None

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        for _ in range(1):
            raise AgentRejected(self.description, model=self.model)
        yield TextDelta("")  # never reached: it makes this an asynchronous generator
