"""Full-text search in messages."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field

from palaver.sessions.search_text import MAX_QUERY_CHARS, ArchivedFilter, SearchFilter
from palaver.web.api_route import make_router
from palaver.web.auth import CallerView, IncludeAll
from palaver.web.errors import error_responses
from palaver.web.state import Moment, ResponseModel, State, Time

router = make_router("search", "/api", responses=error_responses(401, 404))


class SearchHitOut(ResponseModel):
    """A message that matches."""

    session_id: str
    title: str | None
    archived: bool = Field(description="Whether the conversation is archived.")
    owner_name: str | None = Field(
        description="The name of the person whose conversation it is; only in requests with `all`."
    )
    seq: int
    at: Time
    role: str
    snippet: str
    highlights: list[tuple[int, int]] = Field(
        description="The parts of the snippet to highlight: start and end (exclusive) of each."
    )


class SearchResultsOut(ResponseModel):
    """A page of matching messages, newest first."""

    hits: list[SearchHitOut]
    is_indexing: bool = Field(
        description="Whether some messages, for example of an import, are not indexed yet and may be missing."
        " Search again in a moment."
    )
    next_cursor: str | None = Field(description="Pass this as `cursor` to get the next page; null on the last page.")


@router.get("/search")
async def search_messages(
    state: State,
    view: CallerView,
    include_all: IncludeAll,
    query: Annotated[
        str, Query(max_length=MAX_QUERY_CHARS, description='Words, "exact phrases", beginnings* and -exclusions.')
    ],
    typing: Annotated[
        bool, Query(description="The last word is still being typed: also find words that begin with it.")
    ] = False,
    session_id: Annotated[str | None, Query(description="The id of a conversation to search in.")] = None,
    without: Annotated[
        str | None, Query(max_length=MAX_QUERY_CHARS, description='Words and "exact phrases" that must not occur.')
    ] = None,
    platform: Annotated[
        str | None, Query(description="The platform that the conversation comes from.", examples=["telegram"])
    ] = None,
    role: Annotated[Literal["user", "assistant", "tool"] | None, Query(description="Who wrote the message.")] = None,
    after: Annotated[Moment | None, Query(description="Only messages from this time or later.")] = None,
    before: Annotated[Moment | None, Query(description="Only messages from before this time.")] = None,
    project: Annotated[str | None, Query(description="One of your projects, by id or name.")] = None,
    person: Annotated[
        str | None,
        Query(max_length=200, description="Who wrote the message: a person in your conversations, by id or name."),
    ] = None,
    archived: Annotated[
        Literal["only", "without", "both"], Query(description="Whether to search in archived conversations.")
    ] = "both",
    cursor: Annotated[str | None, Query(description="The cursor of an earlier page.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> SearchResultsOut:
    """Search for messages, newest first. To read a match in context, list the messages `around` its `seq`."""
    search_filter = SearchFilter(
        platform=platform,
        role=role,
        after=after,
        before=before,
        project=project,
        without=without,
        person=person,
        archived=ArchivedFilter(archived),
    )
    hits = await view.search(
        query, limit=limit, cursor=cursor, within=session_id, search_filter=search_filter, is_typing=typing
    )
    if hits.is_indexing:
        state.gateway.store.indexer.notify()
    next_cursor = hits[-1].cursor if len(hits) == limit else None
    found = [
        SearchHitOut.model_validate({**hit.to_dict(), "owner_name": hit.owner_name if include_all else None})
        for hit in hits
    ]
    return SearchResultsOut(hits=found, is_indexing=hits.is_indexing, next_cursor=next_cursor)


class SearchPersonOut(ResponseModel):
    """A person whose messages can be searched."""

    id: str
    name: str


class SearchPeopleOut(ResponseModel):
    """People in your conversations, by name."""

    people: list[SearchPersonOut]


@router.get("/search/people")
async def list_search_people(view: CallerView) -> SearchPeopleOut:
    """List the people who take part in your conversations, you included, to search for what they wrote."""
    people = await view.list_people()
    return SearchPeopleOut(people=[SearchPersonOut(id=person.id, name=person.name) for person in people])
