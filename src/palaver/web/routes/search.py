"""Full-text search in messages."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from fastapi import Query

from palaver.core.wire import Doc, Time, TypedDict, build_json
from palaver.sessions.search_text import MAX_QUERY_CHARS, ArchivedFilter, SearchFilter
from palaver.sessions.view_wire import NamedPersonJson
from palaver.web.api_route import make_router
from palaver.web.auth import CallerView, IncludeAll
from palaver.web.errors import error_responses
from palaver.web.state import Cursor, Moment, State
from palaver.web.wire import NextCursor

router = make_router("search", "/api", responses=error_responses(401, 404))


class SearchHitJson(TypedDict):
    """A message that matches."""

    session_id: str
    title: str | None
    archived: Annotated[bool, Doc("Whether the conversation is archived.")]
    owner_name: Annotated[
        str | None, Doc("The name of the person whose conversation it is; only in requests with `all`.")
    ]
    seq: int
    at: Time
    role: str
    snippet: str
    highlights: Annotated[
        list[tuple[int, int]], Doc("The parts of the snippet to highlight: start and end (exclusive) of each.")
    ]


class SearchResultsJson(TypedDict):
    """A page of matching messages, newest first."""

    hits: list[SearchHitJson]
    is_indexing: Annotated[
        bool,
        Doc(
            "Whether some messages, for example of an import, are not indexed yet and may be missing. Search again in a"
            " moment."
        ),
    ]
    next_cursor: NextCursor


class SearchPeopleJson(TypedDict):
    """People in your conversations, by name."""

    people: list[NamedPersonJson]


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
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> SearchResultsJson:
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
    found = [{**hit.to_dict(), "owner_name": hit.owner_name if include_all else None} for hit in hits]
    return {"hits": cast("list[SearchHitJson]", found), "is_indexing": hits.is_indexing, "next_cursor": next_cursor}


@router.get("/search/people")
async def list_search_people(view: CallerView) -> SearchPeopleJson:
    """List the people who take part in your conversations, you included, to search for what they wrote."""
    return {"people": [build_json(NamedPersonJson, person) for person in await view.list_people()]}
