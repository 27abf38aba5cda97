"""Models that conversations can use."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.schemas import ResponseModel
from palaver.web.state import State

router = APIRouter(tags=["models"], responses=error_responses(401))


class ModelOut(ResponseModel):
    """A model."""

    name: str
    context_window: int | None = Field(description="The context window in tokens; null if unknown.")


class ModelsOut(ResponseModel):
    """The models that conversations can use."""

    models: list[ModelOut]
    default: str
    description: str = Field(description="Describes the agent that answers, and why it was chosen.")


@router.get("/models")
async def list_models(
    state: State,
    _caller: Caller,
    include: Annotated[str | None, Query(max_length=200, description="The name of another model to include.")] = None,
) -> ModelsOut:
    """List the models that conversations can use, and the default."""
    agent = state.gateway.agent
    names = dict.fromkeys([*agent.list_models(), *([include] if include else [])])
    models = [ModelOut(name=name, context_window=await agent.get_context_window(name)) for name in names]
    return ModelsOut(models=models, default=agent.model, description=agent.description)
