"""Which models answer."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.state import State
from palaver.web.wire import Out

router = APIRouter(tags=["models"], responses=answers(401))


class ModelsOut(Out):
    """Which models a conversation may choose."""

    models: list[str]
    default: str
    description: str = Field(description="Which agent answers, and why.")


@router.get("/models")
async def list_models(state: State, _signed: SignedIn) -> ModelsOut:
    """The models that a conversation may choose, and the one that is used where none was chosen."""
    agent = state.gateway.agent
    return ModelsOut(models=list(agent.models()), default=agent.model, description=agent.description)
