"""Memories: what you have asked the agent to remember, and what is remembered where you take part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from palaver.agent.tools.memory import TOOLSET
from palaver.domain.memory import LONGEST
from palaver.services.memories import LONGEST_PAGE
from palaver.services.view import AsyncSessionView
from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.schemas import In, Out, Time
from palaver.web.state import State

if TYPE_CHECKING:
    from palaver.domain.account import Signed
    from palaver.domain.memory import Known
    from palaver.web.state import WebState

router = APIRouter(prefix="/memories", tags=["memories"], responses=answers(401))

Text = Annotated[str, Field(max_length=LONGEST, examples=["My cat is called Ada."])]


class MemoryOut(Out):
    """Something that is remembered."""

    id: str
    text: str
    asked_by: str | None = Field(description="The name of whoever asked for it as it reads now, if that is known.")
    asked_by_me: bool
    created_at: Time = Field(description="When they did.")
    shared: bool = Field(description="It belongs to a place that several people share, and changes for all of them.")
    others: list[str] = Field(description="The names of others who know it too: at most ten of them.")
    other_count: int = Field(description="How many others know it.")


class AgentMemoryOut(Out):
    """Whether the agent remembers and recalls for you."""

    enabled: bool = Field(description="Whether the agent has a memory at all.")
    allowed: bool = Field(description="Whether it may use it for somebody with your role.")
    platforms: list[str] | None = Field(description="Where it may use it; null is everywhere.")


class MemoriesOut(Out):
    """A page of what you may know, newest first."""

    memories: list[MemoryOut]
    cursor: str | None = Field(description="Continues the list; null at its end.")
    agent: AgentMemoryOut


class MemoryIn(In):
    """What to remember, in a few words."""

    text: Text


async def _own(state: State, signed: SignedIn) -> AsyncSessionView:
    return state.gateway.store.aio.seen_by(signed.principal)


Own = Annotated[AsyncSessionView, Depends(_own)]
MemoryId = Annotated[str, Path(description="The id of a memory.", examples=["m_1a2b3c4d"])]


@router.get("")
async def list_memories(
    own: Own,
    state: State,
    signed: SignedIn,
    query: Annotated[str, Query(max_length=1000, description="Words, or how they begin.")] = "",
    cursor: Annotated[str, Query(max_length=100)] | None = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 50,
) -> MemoriesOut:
    """What you may know, newest first; with a query, what has all of its words."""
    page = await own.memories(query, limit=limit, cursor=cursor)
    return MemoriesOut(
        memories=[_memory(each, signed) for each in page], cursor=page.cursor, agent=_agent(state, signed)
    )


@router.post("", status_code=201)
async def remember(own: Own, signed: SignedIn, memory: MemoryIn) -> MemoryOut:
    """Remember something for yourself alone; what you know already is given as it is."""
    return _memory(await own.remember(memory.text), signed)


@router.patch("/{memory_id}", responses=answers(404))
async def change_memory(own: Own, signed: SignedIn, memory_id: MemoryId, memory: MemoryIn) -> MemoryOut:
    """Let something read otherwise, for all who know it."""
    return _memory(await own.change_memory(memory_id, memory.text), signed)


@router.delete("/{memory_id}", status_code=204, responses=answers(404))
async def forget_memory(own: Own, memory_id: MemoryId) -> None:
    """Forget something, for all who know it."""
    await own.forget_memory(memory_id)


def _memory(known: Known, signed: Signed) -> MemoryOut:
    memory = known.memory
    return MemoryOut(
        id=memory.id,
        text=memory.text,
        asked_by=known.asked_by,
        asked_by_me=memory.person_id == signed.person.id,
        created_at=memory.created_at,
        shared=known.shared,
        others=list(known.others),
        other_count=known.other_count,
    )


def _agent(state: WebState, signed: Signed) -> AgentMemoryOut:
    rule = state.gateway.rules.toolsets.get(TOOLSET)
    return AgentMemoryOut(
        enabled=rule is not None,
        allowed=rule is not None and signed.person.role in rule.roles,
        platforms=None if rule is None or rule.platforms is None else sorted(rule.platforms),
    )
