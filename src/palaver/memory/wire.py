"""A memory as JSON, for the API and `palaver memories --json`."""

from __future__ import annotations

from typing import Annotated

from palaver.core.wire import Doc, Time, TypedDict, build_json
from palaver.memory.model import MemoryEntry, MemoryOrigin


class MemoryJson(TypedDict):
    """A memory: one fact that the agent remembers."""

    id: str
    text: str
    author_name: Annotated[str | None, Doc("The name of the person who saved it in its current form, if known.")]
    is_author: bool
    created_at: Annotated[Time, Doc("When it was saved in its current form.")]
    shared: Annotated[bool, Doc("It belongs to a chat with several people; changing it changes it for all of them.")]
    other_names: Annotated[list[str], Doc("Names of other people who can see it; at most ten.")]
    other_count: Annotated[int, Doc("How many other people can see it.")]
    origin: Annotated[
        MemoryOrigin,
        Doc(
            "`person`: a person wrote or edited it; `agent`: the agent saved it during a conversation; `learned`: the"
            " agent learned it from a conversation that had ended or was compacted."
        ),
    ]
    session_id: Annotated[str | None, Doc("The conversation that it is from, if you can see that one.")]


class AgentMemoryJson(TypedDict):
    """Whether the agent can use its memory for you."""

    enabled: Annotated[bool, Doc("Whether the agent's memory is turned on.")]
    allowed: Annotated[bool, Doc("Whether the agent may use it for people with your role.")]
    platforms: Annotated[list[str] | None, Doc("The platforms on which the agent may use it; null for all.")]
    learn: Annotated[bool, Doc("Whether the agent learns facts by itself when a conversation ends.")]


class MemoriesJson(TypedDict):
    """A page of memories, newest first."""

    memories: list[MemoryJson]
    next_cursor: Annotated[str | None, Doc("Pass this to get the next page; null on the last page.")]
    agent: AgentMemoryJson


def memory_to_json(entry: MemoryEntry) -> MemoryJson:
    memory = entry.memory
    return build_json(
        MemoryJson, entry, id=memory.id, text=memory.text, created_at=memory.created_at, origin=memory.origin
    )
