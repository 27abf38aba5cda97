"""Finding messages by their words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from palaver.domain.search_text import parse_query, snippet
from palaver.web.auth import SeenBy
from palaver.web.errors import answers
from palaver.web.schemas import MOST_SEQ, Out, Time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.search_text import Query as Words
    from palaver.domain.session import SearchHit

_BEGIN, _END = "\ue000", "\ue001"  # around a match, for a moment; private characters that no text needs
_MARKS = re.compile(f"[{_BEGIN}{_END}]")

router = APIRouter(tags=["search"], responses=answers(401, 404))


class HitOut(Out):
    """A message that was found."""

    session_id: str
    title: str | None
    seq: int
    at: Time
    role: str
    snippet: str
    marks: list[tuple[int, int]] = Field(description="Where the words stand in the snippet: from, to (exclusive).")
    position: int = Field(description="Orders hits in the whole store.")


class HitsOut(Out):
    """What was found, newest first."""

    hits: list[HitOut]
    cursor: int | None = Field(description="Continues the search as `before`; null at its end.")


@router.get("/search")
async def search(
    seen: SeenBy,
    text: Annotated[str, Query(max_length=1000, description='Words; "two words" together; begin*; -not.')],
    within: Annotated[str | None, Query(description="Only in one conversation.")] = None,
    before: Annotated[int | None, Query(ge=0, le=MOST_SEQ, description="Where an earlier search ended.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> HitsOut:
    """The newest messages with these words. `around` of the messages route shows a hit in its place."""
    hits = await seen.search(text, limit=limit, before=before, within=within)
    query = parse_query(text)
    shown = [hit_out(hit, *_highlighted(hit.message.text, query)) for hit in hits]
    return HitsOut(hits=shown, cursor=hits[-1].position if len(hits) == limit else None)


def _highlighted(text: str, query: Words) -> tuple[list[tuple[int, int]], str]:
    """Where the words stand in an excerpt of a text, and the excerpt."""
    excerpt = snippet(_MARKS.sub("", text), query, marks=(_BEGIN, _END))
    marks, begin = [], 0
    for passed, found in enumerate(_MARKS.finditer(excerpt)):
        place = found.start() - passed
        if found[0] == _BEGIN:
            begin = place
        else:
            marks.append((begin, place))
    return marks, _MARKS.sub("", excerpt)


def hit_out(hit: SearchHit, marked: Sequence[tuple[int, int]], snippet: str) -> HitOut:
    """A message that was found, as it goes out."""
    return HitOut(
        session_id=hit.session_id,
        title=hit.title,
        seq=hit.seq,
        at=hit.at,
        role=hit.message.role,
        snippet=snippet,
        marks=list(marked),
        position=hit.position,
    )
