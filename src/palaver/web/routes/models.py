"""Which models answer."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.schemas import Out
from palaver.web.state import State

router = APIRouter(tags=["models"], responses=answers(401))


class ModelOut(Out):
    """A model."""

    name: str
    context_window: int | None = Field(description="How many tokens it takes; null when nobody knows.")


class ModelsOut(Out):
    """Which models a conversation may choose."""

    models: list[ModelOut]
    default: str
    description: str = Field(description="Which agent answers, and why.")


@router.get("/models")
async def list_models(
    state: State,
    _signed: SignedIn,
    also: Annotated[str | None, Query(max_length=200, description="Another one to be told of, by its name.")] = None,
) -> ModelsOut:
    """The models that a conversation may choose, and the one that is used where none was chosen."""
    agent = state.gateway.agent
    names = dict.fromkeys([*agent.models(), *([also] if also else [])])
    models = [ModelOut(name=name, context_window=await agent.context_window(name)) for name in names]
    return ModelsOut(models=models, default=agent.model, description=agent.description)
