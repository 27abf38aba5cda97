"""Toolsets: groups of tools that the agent can use in a conversation."""

from __future__ import annotations

from pydantic import Field

from palaver.web.api_route import make_router
from palaver.web.auth import Caller, CallerView
from palaver.web.errors import error_responses
from palaver.web.routes.sessions import SessionId
from palaver.web.state import ResponseModel, State, to_utf8_text

router = make_router("sessions", "/api/sessions", responses=error_responses(401))


class ToolOut(ResponseModel):
    """A tool."""

    name: str
    description: str
    problem: str | None = Field(description="Why the agent can't use it; null if it can.")


class ToolsetOut(ResponseModel):
    """A group of tools."""

    name: str = Field(description="`history`, `memory`, or `mcp:` with the name of a server.", examples=["memory"])
    description: str
    enabled: bool = Field(description="False if the toolset is turned off in this conversation.")
    tools: list[ToolOut] = Field(description="Empty while the toolset's server cannot be reached.")


class ToolsetsOut(ResponseModel):
    """The toolsets of a conversation."""

    toolsets: list[ToolsetOut]


@router.get("/{session_id}/toolsets", responses=error_responses(404))
async def list_toolsets(state: State, caller: Caller, view: CallerView, session_id: SessionId) -> ToolsetsOut:
    """List the toolsets that the operator allows for you in a conversation, including those that are turned off."""
    disabled = (await view.summaries.get(session_id)).disabled_toolsets
    toolsets = [
        ToolsetOut(
            name=each.name,
            description=each.description,
            enabled=each.name not in disabled,
            tools=[
                ToolOut(name=to_utf8_text(tool.name), description=to_utf8_text(tool.description), problem=tool.problem)
                for tool in each.tools
            ],
        )
        for each in await state.gateway.list_toolsets(caller.principal, session_id)
    ]
    return ToolsetsOut(toolsets=toolsets)
