"""Which models answer."""

from __future__ import annotations

from fastapi import APIRouter

from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.state import State
from palaver.web.wire import ModelsOut

router = APIRouter(tags=["models"], responses=answers(401))


@router.get("/models")
async def list_models(state: State, _signed: SignedIn) -> ModelsOut:
    """The models that a conversation may choose, and the one that is used where none was chosen."""
    agent = state.gateway.agent
    return ModelsOut(models=list(agent.models()), default=agent.model, description=agent.description)
