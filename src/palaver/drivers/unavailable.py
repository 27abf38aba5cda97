"""The agent when none can be made with the settings: it answers every message with the reason.

So a key that can't be decrypted, or a model that was removed, stops nothing but the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.agent.base import TextDelta
from palaver.core.errors import AgentRejected, InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from palaver.agent.base import AgentEvent, AgentRequest, Tool
    from palaver.config.budget_rules import TokenPrice


class UnavailableAgent:
    """Rejects every request, and says what to do."""

    can_write_titles = False

    def __init__(self, model: str, reason: str) -> None:
        self._model = model
        self._reason = reason

    @property
    def model(self) -> str:
        """Return the model that the settings name."""
        return self._model

    @property
    def description(self) -> str:
        """Say why nothing can answer."""
        return f"No model can answer. {self._reason}"

    def list_models(self) -> Sequence[str]:
        """List the model that the settings name."""
        return (self._model,)

    def check_model(self, name: str) -> None:
        """Refuse every other model."""
        if name != self._model:
            raise InvalidInput(self._reason, model=name)

    async def get_context_window(self, name: str) -> int | None:
        return None

    async def get_price(self, name: str) -> TokenPrice | None:
        return None

    def list_tool_servers(self) -> Sequence[str]:
        return ()

    async def load_tools(self) -> Sequence[Tool]:
        return ()

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Raise AgentRejected with the reason."""
        for _ in range(1):
            raise AgentRejected(self.description, model=self._model)
        yield TextDelta("")  # never reached: it makes this an asynchronous generator

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass
