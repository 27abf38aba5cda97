"""The models that the connected providers offer, as they say themselves: for people who choose one.

A list is kept for ten minutes, and asked for once however many people wait for it. Only the provider decides what
exists: a model that is in no list can still be chosen by its name.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.errors import AgentError, InvalidInput
from palaver.drivers.providers import OLLAMA, add_environment_keys
from palaver.settings.model_providers import PRESETS, ProviderAccess, list_models

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from palaver.config.agent_rules import AgentProfile


KEEP_SECONDS: Final = 600.0
KEEP_ERROR_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedModels:
    """The models of one provider, or why they are not known."""

    provider: str
    title: str
    models: tuple[str, ...] = ()  # with the provider: `openai:gpt-5`
    error: str | None = None


class _Question:
    """A question to a provider; its answer is kept for a while."""

    def __init__(self, access: ProviderAccess) -> None:
        self.task = asyncio.create_task(_list_models(access), name=f"palaver-models-{access.name}")
        self._asked_at = time.monotonic()

    @property
    def is_fresh(self) -> bool:
        if not self.task.done():
            return True
        if self.task.cancelled() or self.task.exception() is not None:  # asked again, instead of failing forever
            return False
        keep_seconds = KEEP_SECONDS if self.task.result().error is None else KEEP_ERROR_SECONDS
        return time.monotonic() - self._asked_at < keep_seconds


class ModelCatalog:
    """Asks the providers of the settings, each at most every ten minutes."""

    def __init__(self) -> None:
        self._questions: dict[ProviderAccess, _Question] = {}

    async def list_offered(self, connected: Iterable[ProviderAccess]) -> list[OfferedModels]:
        """List what each of these providers offers. It takes at most 15 seconds."""
        questions = {
            access: question if (question := self._questions.get(access)) and question.is_fresh else _Question(access)
            for access in connected
        }
        self._questions = questions  # without providers that are no longer connected
        return list(await asyncio.gather(*(asyncio.shield(each.task) for each in questions.values())))


def list_connected(profile: AgentProfile, environ: Mapping[str, str], default_model: str) -> list[ProviderAccess]:
    """List the providers that are set up, that have a key in the environment, or whose model is the default."""
    uses_ollama = default_model.startswith(f"{OLLAMA}:")
    return [
        ProviderAccess(name, provider)
        for name, provider in add_environment_keys(profile.providers, environ).items()
        if provider.api_key or name in profile.providers or (name == OLLAMA and uses_ollama)
    ]


async def _list_models(access: ProviderAccess) -> OfferedModels:
    title = next((preset.title for preset in PRESETS if preset.name == access.name), access.name)
    try:
        names = await list_models(access)
    except (AgentError, InvalidInput) as error:
        return OfferedModels(provider=access.name, title=title, error=error.text)
    return OfferedModels(provider=access.name, title=title, models=tuple(f"{access.name}:{name}" for name in names))
