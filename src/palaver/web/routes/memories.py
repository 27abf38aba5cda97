"""Memories: what the agent remembers about you and about the chats you take part in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Path, Query
from pydantic import Field

from palaver.agent.toolsets import find_memory_rule
from palaver.memory.model import MAX_MEMORY_CHARS, MemoryOrigin
from palaver.memory.service import MAX_PAGE_MEMORIES, MemoryOperations
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, OwnView
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, ResponseModel, State, Time

if TYPE_CHECKING:
    from palaver.memory.model import MemoryEntry
    from palaver.people.model import SignedInPerson
    from palaver.web.state import WebState

router = make_router("memories", "/api/memories", responses=error_responses(401))

MemoryText = Annotated[str, Field(max_length=MAX_MEMORY_CHARS, examples=["My cat is called Ada."])]


class MemoryOut(ResponseModel):
    """A memory: one fact that the agent remembers."""

    id: str
    text: str
    author_name: str | None = Field(description="The name of the person who saved it in its current form, if known.")
    is_author: bool
    created_at: Time = Field(description="When it was saved in its current form.")
    shared: bool = Field(
        description="It belongs to a chat with several people; changing it changes it for all of them."
    )
    other_names: list[str] = Field(description="Names of other people who can see it; at most ten.")
    other_count: int = Field(description="How many other people can see it.")
    origin: MemoryOrigin = Field(
        description="`person`: a person wrote or edited it; `agent`: the agent saved it during a conversation;"
        " `learned`: the agent learned it from a conversation that had ended or was compacted."
    )
    session_id: str | None = Field(description="The conversation that it is from, if you can see that one.")


class AgentMemoryOut(ResponseModel):
    """Whether the agent can use its memory for you."""

    enabled: bool = Field(description="Whether the agent's memory is turned on.")
    allowed: bool = Field(description="Whether the agent may use it for people with your role.")
    platforms: list[str] | None = Field(description="The platforms on which the agent may use it; null for all.")
    learn: bool = Field(description="Whether the agent learns facts by itself when a conversation ends.")


class MemoriesOut(ResponseModel):
    """A page of memories, newest first."""

    memories: list[MemoryOut]
    next_cursor: str | None = Field(description="Pass this to get the next page; null on the last page.")
    agent: AgentMemoryOut


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
) -> MemoriesOut:
    """List the memories that you can see, newest first. With a query, list those that contain all its words."""
    page = await view.part(MemoryOperations).list(query, origin=origin, limit=limit, cursor=cursor)
    return MemoriesOut(
        memories=[_to_memory_out(each, caller) for each in page],
        next_cursor=page.cursor,
        agent=_to_agent_memory_out(state, caller),
    )


@router.post("", status_code=201)
async def create_memory(view: OwnView, caller: Caller, body: MemoryIn) -> MemoryOut:
    """Save a private memory. If the same one already exists, it is returned unchanged."""
    return _to_memory_out(await view.part(MemoryOperations).remember(body.text), caller)


@router.patch("/{memory_id}", responses=error_responses(404))
async def update_memory(view: OwnView, caller: Caller, memory_id: MemoryId, body: MemoryIn) -> MemoryOut:
    """Change a memory, for everyone who can see it."""
    return _to_memory_out(await view.part(MemoryOperations).update(memory_id, body.text), caller)


@router.delete("/{memory_id}", status_code=204, responses=error_responses(404))
async def delete_memory(view: OwnView, memory_id: MemoryId) -> None:
    """Delete a memory, for everyone who can see it."""
    await view.part(MemoryOperations).forget(memory_id)


def _to_memory_out(entry: MemoryEntry, caller: SignedInPerson) -> MemoryOut:
    memory = entry.memory
    return MemoryOut(
        id=memory.id,
        text=memory.text,
        author_name=entry.author_name,
        is_author=memory.person_id == caller.person.id,
        created_at=memory.created_at,
        shared=entry.shared,
        other_names=list(entry.other_names),
        other_count=entry.other_count,
        origin=memory.origin,
        session_id=entry.session_id,
    )


def _to_agent_memory_out(state: WebState, caller: SignedInPerson) -> AgentMemoryOut:
    rule = find_memory_rule(state.gateway.rules)
    return AgentMemoryOut(
        enabled=rule is not None,
        allowed=rule is not None and caller.person.role in rule.roles,
        platforms=None if rule is None or rule.platforms is None else sorted(rule.platforms),
        learn=state.gateway.rules.memory.learn,
    )
