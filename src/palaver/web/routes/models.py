"""Models that conversations can use."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import Field

from palaver.services.models import is_model_allowed, list_allowed_models
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.schemas import ResponseModel
from palaver.web.state import State

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
    )
