"""Full-text search in messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from palaver.domain.session_json import hit_to_json
from palaver.web.auth import CallerView
from palaver.web.errors import error_responses
from palaver.web.schemas import MAX_SEQ, ResponseModel, Time, replace_surrogates

router = APIRouter(tags=["search"], responses=error_responses(401, 404))


class SearchHitOut(ResponseModel):
    """A message that matches."""

    session_id: str
    title: str | None
    seq: int
    at: Time
    role: str
    snippet: str
    highlights: list[tuple[int, int]] = Field(
        description="The parts of the snippet to highlight: start and end (exclusive) of each."
    )
    position: int = Field(description="The position of the message in the order of the results.")


class SearchResultsOut(ResponseModel):
    """A page of matching messages, newest first."""

    hits: list[SearchHitOut]
    next_cursor: int | None = Field(description="Pass this as `cursor` to get the next page; null on the last page.")


@router.get("/search")
async def search_messages(
    view: CallerView,
    query: Annotated[str, Query(max_length=1000, description='Words, "exact phrases", beginnings* and -exclusions.')],
    session_id: Annotated[str | None, Query(description="The id of a conversation to search in.")] = None,
    cursor: Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="The cursor of an earlier page.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> SearchResultsOut:
    """Search for messages, newest first. To read a match in context, list the messages `around` its `seq`."""
    hits = await view.search(query, limit=limit, before=cursor, within=session_id)
    cursor = hits[-1].position if len(hits) == limit else None
    found = [SearchHitOut.model_validate(replace_surrogates(hit_to_json(hit))) for hit in hits]
    return SearchResultsOut(hits=found, next_cursor=cursor)
