"""`palaver sessions search`: find messages by their words."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from palaver.cli import lookup, output, transcript
from palaver.cli.options import after_option, before_option, json_option, mine_option, open_view, platform_option
from palaver.sessions.json import hit_to_json
from palaver.sessions.search_filter import ArchivedFilter, SearchFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.core.ids import SessionId
    from palaver.sessions.model import SearchHit, SearchHits, Session

MAX_INDEXING_SECONDS = 10.0  # that a search in the terminal waits for messages that are not indexed yet


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="How many to show.")
@click.option(
    "--cursor",
    metavar="CURSOR",
    help="Continue an earlier search, with the cursor that it printed.",
)
@click.option("--in", "within", metavar="SESSION", help="Search only this conversation.")
@platform_option
@click.option("--role", type=click.Choice(["user", "assistant", "tool"]), help="Only messages written by this role.")
@after_option
@before_option
@click.option("--project", metavar="PROJECT", help="Only in this project (name or id).")
@click.option("--person", metavar="PERSON", help="Only messages written by this person (name or id).")
@click.option(
    "--archived",
    type=click.Choice(["only", "without", "both"]),
    default="both",
    show_default=True,
    help="Whether to search in archived conversations.",
)
@click.option("--without", metavar="WORDS", multiple=True, help="Only messages without these words.")
@mine_option
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    words: tuple[str, ...],
    limit: int,
    cursor: str | None,
    within: str | None,
    platform: str | None,
    role: str | None,
    after: datetime | None,
    before: datetime | None,
    project: str | None,
    person: str | None,
    archived: str,
    without: tuple[str, ...],
    mine: bool,
    as_json: bool,
) -> None:
    """Find messages by their words, newest first.

    A message must contain all WORDS. Use '"two words"' for a phrase (with two pairs of quotes, because the shell
    removes one), begin* for the beginning of a word, and -word to exclude a word.
    """
    query = _build_query(ctx, words)
    with open_view(ctx, mine=mine) as view:
        session_id = None if within is None else lookup.find_session(view, within).id
        search_filter = SearchFilter(
            platform=platform,
            role=role,
            after=after,
            before=before,
            project=None if project is None else lookup.find_project(view, project).id,
            without=" ".join(without) or None,
            person=person,
            archived=ArchivedFilter(archived),
        )
        hits = _search_while_indexing(
            lambda: view.search(query, limit=limit, cursor=cursor, within=session_id, search_filter=search_filter)
        )
        sessions = {} if as_json else {found: view.get(found) for found in {hit.session_id for hit in hits}}
    next_cursor = hits[-1].cursor if len(hits) == limit else None
    if as_json:
        found = [hit_to_json(hit) for hit in hits]
        output.print_json({"hits": found, "is_indexing": hits.is_indexing, "next_cursor": next_cursor})
    elif hits:
        _print_hits(hits, sessions, next_cursor)
    else:
        click.echo(f"No messages match {lookup.quote(query)}.")
    if hits.is_indexing:
        output.print_hint("Some messages are still being indexed and may be missing. Search again in a moment.")


def _search_while_indexing(search: Callable[[], SearchHits]) -> SearchHits:
    """Search again for a while if not everything is indexed yet: each search indexes more."""
    ends_at = time.monotonic() + MAX_INDEXING_SECONDS
    while (hits := search()).is_indexing and time.monotonic() < ends_at:
        pass
    return hits


def _build_query(ctx: click.Context, words: tuple[str, ...]) -> str:
    """Join the words to a query; a word with two dashes is a mistyped option, with one dash an excluded word."""
    from palaver.sessions.search_text import parse_query

    for word in words:
        if word.startswith("--"):
            options = [name for option in ctx.command.params for name in option.opts]
            raise click.NoSuchOption(word.partition("=")[0], possibilities=options, ctx=ctx)
    query = " ".join(words)
    if parse_query(query).is_empty:
        raise click.BadArgumentUsage(f"{lookup.quote(query)} contains no word to search for.", ctx=ctx)
    return query


def _print_hits(hits: Sequence[SearchHit], sessions: Mapping[SessionId, Session], next_cursor: str | None) -> None:
    now = datetime.now(UTC)
    blocks = [transcript.format_search_hit(hit, sessions[hit.session_id], now) for hit in hits]
    click.echo("\n\n".join("\n".join(block) for block in blocks))
    if next_cursor is not None:
        output.print_hint(f"For more, run the same command with --cursor {next_cursor}")
