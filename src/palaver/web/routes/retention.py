"""Retention: how long conversations are kept; the owner deletes those that were not used for long."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from palaver.core.source import Platform
from palaver.core.wire import Doc, Time, TypedDict, build_json
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, State

PRUNE_TIME_LIMIT = timedelta(seconds=5)  # of one request

router = make_router("retention", "/api/retention", responses=error_responses(401))


class RetentionJson(TypedDict):
    """The policy that the operator has set."""

    max_age_days: Annotated[int | None, Doc("Conversations are deleted so long after the last activity.")]
    max_database_mb: Annotated[int | None, Doc("Above this size, those unused for longest are deleted (SQLite).")]
    text: Annotated[str, Doc("The policy as a sentence.")]


class PruneIn(RequestModel):
    """The conversations to delete."""

    older_than_days: Annotated[int, Field(ge=1, le=36500)]
    platform: Annotated[str, Field(max_length=32)] | None = None
    dry_run: bool = Field(True, description="Only count. Send false to delete.")


class PruneJson(TypedDict):
    """A count of what was deleted, or would be."""

    sessions: int
    messages: int
    bytes: Annotated[int, Doc("Of the logs, about.")]
    oldest: Annotated[Time | None, Doc("The last activity of the conversation unused for longest.")]
    newest: Time | None
    is_dry_run: bool
    is_complete: Annotated[bool, Doc("False: the time of one request was up. Send it again to go on.")]


@router.get("")
async def get_retention(_caller: Caller, state: State) -> RetentionJson:
    """Return how long conversations are kept."""
    rules = state.retention.rules
    return build_json(RetentionJson, rules, text=rules.describe())


@router.post("/prune", responses=error_responses(403))
async def prune_sessions(body: PruneIn, caller: OwnerCaller, state: State) -> PruneJson:
    """Delete everybody's conversations that were not used for so long, except pinned ones and those in use.

    One request works for about five seconds. If there may be more, `is_complete` is false: a preview then counts at
    least so many, and another deletion goes on.
    """
    report = await state.retention.prune(
        caller.principal,
        timedelta(days=body.older_than_days),
        platform=None if body.platform is None else str(Platform(body.platform)),
        dry_run=body.dry_run,
        time_limit=PRUNE_TIME_LIMIT,
    )
    return build_json(PruneJson, report)


class RewrittenFileJson(TypedDict):
    """The space that rewriting the database file has saved."""

    saved_bytes: Annotated[int | None, Doc("How many bytes smaller the file is. Null: PostgreSQL.")]


@router.post("/rewrite-file", responses=error_responses(403))
async def rewrite_database_file(caller: OwnerCaller, state: State) -> RewrittenFileJson:
    """Rewrite the file of a SQLite database, so that it has no bytes of what was deleted. Messages wait meanwhile.

    PostgreSQL needs `VACUUM FULL` in the database instead.
    """
    return RewrittenFileJson(saved_bytes=await state.retention.rewrite_file(caller.principal))
