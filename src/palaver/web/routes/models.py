"""Models that conversations can use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Query
from pydantic import Field

from palaver.agent.profiles import is_model_allowed, list_allowed_models
from palaver.people.model import Role
from palaver.settings.model_catalog import list_connected
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.state import ResponseModel, State

if TYPE_CHECKING:
    from palaver.settings.model_providers import ProviderAccess
    from palaver.web.state import WebState

router = make_router("models", "/api", responses=error_responses(401))


class ModelOut(ResponseModel):
    """A model."""

    name: str
    context_window: int | None = Field(description="The context window in tokens; null if unknown.")


class ModelsOut(ResponseModel):
    """The models that you can choose."""

    models: list[ModelOut]
    default: str
    compaction_percent: int | None = Field(
        description="How full a model's context may get before a summary of the conversation is made; null: never."
    )
    description: str = Field(description="Describes the agent that answers, and why it was chosen.")
    are_more_offered: bool = Field(description="`GET /api/models/offered` may list more models.")


class OfferedModelsOut(ResponseModel):
    """The models of a provider, as it says itself."""

    provider: str
    title: str
    models: list[str]
    error: str | None = Field(description="Why they are not known, in the words of the provider.")


class AllOfferedModelsOut(ResponseModel):
    """What all connected providers offer."""

    providers: list[OfferedModelsOut]


@router.get("/models")
async def list_models(
    state: State,
    caller: Caller,
    include: Annotated[str | None, Query(max_length=200, description="The name of another model to include.")] = None,
) -> ModelsOut:
    """List the models that you can choose for a conversation, and the default."""
    agent, rules, role = state.gateway.agent, state.gateway.rules, caller.person.role
    is_included = include is not None and is_model_allowed(agent, rules, role, include)
    names = dict.fromkeys([*list_allowed_models(agent, rules, role), *([include] if include and is_included else [])])
    models = [ModelOut(name=name, context_window=await agent.get_context_window(name)) for name in names]
    return ModelsOut(
        models=models,
        default=agent.model,
        compaction_percent=rules.compaction.at_percent if rules.compaction.enabled else None,
        description=agent.description,
        are_more_offered=bool(_list_connected(state)),
    )


@router.get("/models/offered")
async def list_offered_models(state: State, caller: Caller) -> AllOfferedModelsOut:
    """List the models of all connected providers that you may choose, as the providers say. It takes up to 15 seconds.

    The lists are up to ten minutes old.
    """
    agent, rules, role = state.gateway.agent, state.gateway.rules, caller.person.role
    offered = await state.model_catalog.list_offered(_list_connected(state))
    return AllOfferedModelsOut(
        providers=[
            OfferedModelsOut(
                provider=each.provider,
                title=each.title,
                models=[name for name in each.models if is_model_allowed(agent, rules, role, name)],
                error=each.error if role is Role.OWNER else None,
            )
            for each in offered
        ]
    )


def _list_connected(state: WebState) -> list[ProviderAccess]:
    settings = state.settings.current.settings
    return list_connected(settings.agent, settings.fixed_layers.environ, state.gateway.agent.model)
