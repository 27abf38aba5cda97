"""Which sets of tools the agent has in a conversation, and which of them are switched off in it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from palaver.web.auth import SeenBy, SignedIn
from palaver.web.errors import answers
from palaver.web.schemas import Out, shown
from palaver.web.state import State

router = APIRouter(prefix="/sessions", tags=["sessions"], responses=answers(401))


class ToolOut(Out):
    """One tool."""

    name: str
    description: str


class ToolsetOut(Out):
    """A set of tools."""

    name: str = Field(description="`history`, `memory`, or `mcp:` and the name of a server.", examples=["memory"])
    description: str
    on: bool = Field(description="False: it is switched off in this conversation.")
    tools: list[ToolOut] = Field(description="Empty while its server cannot be reached.")


class ToolsetsOut(Out):
    """The toolsets that the operator's rules give you in a conversation."""

    toolsets: list[ToolsetOut]


@router.get("/{session_id}/toolsets", responses=answers(404))
async def list_toolsets(
    state: State, signed: SignedIn, seen: SeenBy, session_id: Annotated[str, Path(description="Of a conversation.")]
) -> ToolsetsOut:
    """The toolsets that the agent has for you in a conversation, also those that are switched off in it."""
    off = (await seen.overview(session_id)).toolsets_off
    found = [
        ToolsetOut(
            name=each.name,
            description=each.description,
            on=each.name not in off,
            tools=[ToolOut(name=shown(tool.name), description=shown(tool.description)) for tool in each.tools],
        )
        for each in await state.gateway.toolsets(signed.principal, session_id)
    ]
    return ToolsetsOut(toolsets=found)
