"""Memories: what the agent remembers about you and about the chats you take part in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Path, Query
from pydantic import Field

from palaver.agent.toolsets import find_memory_rule
from palaver.memory.model import MAX_MEMORY_CHARS, MemoryOrigin
from palaver.memory.service import MAX_PAGE_MEMORIES, MemoryOperations
from palaver.memory.wire import AgentMemoryJson, MemoriesJson, MemoryJson, memory_to_json
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, OwnView
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, State, WebState

if TYPE_CHECKING:
    from palaver.people.model import SignedInPerson

router = make_router("memories", "/api/memories", responses=error_responses(401))

MemoryText = Annotated[str, Field(max_length=MAX_MEMORY_CHARS, examples=["My cat is called Ada."])]


class MemoryIn(RequestModel):
    """A fact to remember."""

    text: MemoryText


MemoryId = Annotated[str, Path(description="The id of a memory.", examples=["m_1a2b3c4d"])]


@router.get("")
async def list_memories(
    view: OwnView,
    state: State,
    caller: Caller,
    query: Annotated[str, Query(max_length=1000, description="Words or beginnings of words to search for.")] = "",
    origin: Annotated[MemoryOrigin | None, Query(description="Only memories of this origin.")] = None,
    cursor: Annotated[str, Query(max_length=100)] | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_MEMORIES)] = 50,
) -> MemoriesJson:
    """List the memories that you can see, newest first. With a query, list those that contain all its words."""
    page = await view.part(MemoryOperations).list(query, origin=origin, limit=limit, cursor=cursor)
    return {
        "memories": [memory_to_json(each) for each in page],
        "next_cursor": page.cursor,
        "agent": _agent_memory_to_json(state, caller),
    }


@router.post("", status_code=201)
async def create_memory(view: OwnView, body: MemoryIn) -> MemoryJson:
    """Save a private memory. If the same one already exists, it is returned unchanged."""
    return memory_to_json(await view.part(MemoryOperations).remember(body.text))


@router.patch("/{memory_id}", responses=error_responses(404))
async def update_memory(view: OwnView, memory_id: MemoryId, body: MemoryIn) -> MemoryJson:
    """Change a memory, for everyone who can see it."""
    return memory_to_json(await view.part(MemoryOperations).update(memory_id, body.text))


@router.delete("/{memory_id}", status_code=204, responses=error_responses(404))
async def delete_memory(view: OwnView, memory_id: MemoryId) -> None:
    """Delete a memory, for everyone who can see it."""
    await view.part(MemoryOperations).forget(memory_id)


def _agent_memory_to_json(state: WebState, caller: SignedInPerson) -> AgentMemoryJson:
    rule = find_memory_rule(state.gateway.rules)
    return {
        "enabled": rule is not None,
        "allowed": rule is not None and caller.person.role in rule.roles,
        "platforms": None if rule is None or rule.platforms is None else sorted(rule.platforms),
        "learn": state.gateway.rules.memory.learn,
    }
