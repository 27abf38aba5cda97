"""`palaver sessions list`: the table of conversations."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from palaver.cli import options as lookup, output, transcript
from palaver.cli.options import (
    after_option,
    before_option,
    json_option,
    mine_option,
    open_view,
    platform_option,
    session_argument,
)
from palaver.cli.output import Column
from palaver.sessions.search_text import ArchivedFilter, SearchFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.core.ids import SessionId
    from palaver.core.operation import Page
    from palaver.sessions.events import Event
    from palaver.sessions.model import SearchHit, SearchHits, Session
    from palaver.sessions.view import SessionView


_COLUMNS: tuple[Column[Session], ...] = (
    Column("ID", lambda each: each.id, style="dim"),
    Column("ACTIVE", lambda each: each.active_at or "never", min_terminal_width=52),
    Column("CHAT", transcript.format_place, width_divisor=5, min_terminal_width=66),
    Column("MESSAGES", lambda each: each.message_count, align="right", min_terminal_width=100),
    Column("TITLE", lambda each: "★ " * each.pinned + transcript.format_heading(each), fills_width=True),
)
_END_COLUMN: Column[Session] = Column(
    "ENDED", lambda each: f"{output.format_relative_time(each.ended_at, datetime.now(UTC))}, {each.end_reason}"
)


@click.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many to list.")
@click.option("--cursor", metavar="CURSOR", help="Continue an earlier list, with the cursor that it printed.")
@click.option("--archived", is_flag=True, help="List archived conversations instead.")
@click.option("--pinned", is_flag=True, help="List only pinned conversations, archived or not.")
@click.option(
    "--expired", is_flag=True, help="List only conversations that the reset policy has ended, archived or not."
)
@click.option("--project", metavar="PROJECT", help="List only conversations in this project (name or id).")
@platform_option
@after_option
@before_option
@click.option(
    "--query", metavar="WORDS", help="Only with these words in the title or last message; -word excludes one."
)
@mine_option
@json_option
def list_sessions(
    limit: int,
    cursor: str | None,
    archived: bool,
    pinned: bool,
    expired: bool,
    project: str | None,
    platform: str | None,
    after: datetime | None,
    before: datetime | None,
    query: str | None,
) -> None:
    """List conversations, newest first.

    Conversations without messages are left out. A star marks pinned conversations. --after and --before are about
    when a conversation was last active.
    """
    states = [name for name, is_set in (("archived", archived), ("pinned", pinned), ("expired", expired)) if is_set]
    if len(states) > 1:
        raise click.UsageError(f"Use only one of {' and '.join(f'--{name}' for name in states)}.")
    state = states[0] if states else "active"
    with open_view() as view:
        project_id = lookup.find_project(view, project).id if project is not None else None
        page = view.list(
            state=state,
            limit=limit,
            cursor=cursor,
            project=project_id,
            platform=platform,
            after=after,
            before=before,
            text=query,
        )
        only_archived = not page and state == "active" and bool(view.list(state="archived", limit=1))
    if output.wants_json():
        output.print_json({"sessions": [session.to_dict() for session in page], "next_cursor": page.cursor})
    elif page or page.cursor is not None:
        _print_page(page, with_end=expired)
    elif any((platform, after, before, query)):
        click.echo("No conversations match." if cursor is None else "No more conversations.")
    else:
        click.echo(_explain_empty_list(state, project, cursor, only_archived=only_archived))


def _print_page(page: Page[Session], *, with_end: bool) -> None:
    output.print_table((*_COLUMNS[:2], _END_COLUMN, *_COLUMNS[2:]) if with_end else _COLUMNS, page)
    if page.cursor is not None:
        output.print_hint(f"For more, run the same command with --cursor {page.cursor}")


def _explain_empty_list(state: str, project: str | None, cursor: str | None, *, only_archived: bool) -> str:
    if cursor is not None:
        return "No more conversations."
    adjective = "" if state == "active" else f"{state} "
    if project is not None:
        return f"No {adjective}conversations in project {lookup.quote(project)}."
    if only_archived:
        return "All conversations are archived. List them with --archived."
    return f"No {adjective}conversations." if adjective else "No conversations yet."


# `palaver sessions search`: find messages by their words.

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
def search(
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
) -> None:
    """Find messages by their words, newest first.

    A message must contain all WORDS. Use '"two words"' for a phrase (with two pairs of quotes, because the shell
    removes one), begin* for the beginning of a word, and -word to exclude a word.
    """
    query = _build_query(words)
    with open_view() as view:
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
        sessions = {} if output.wants_json() else {found: view.get(found) for found in {hit.session_id for hit in hits}}
    next_cursor = hits[-1].cursor if len(hits) == limit else None
    if output.wants_json():
        found = [hit.to_dict() for hit in hits]
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


def _build_query(words: tuple[str, ...]) -> str:
    """Join the words to a query; a word with two dashes is a mistyped option, with one dash an excluded word."""
    from palaver.sessions.search_text import parse_query

    for word in words:
        if word.startswith("--"):
            options = [name for option in click.get_current_context().command.params for name in option.opts]
            raise click.NoSuchOption(word.partition("=")[0], possibilities=options)
    query = " ".join(words)
    if parse_query(query).is_empty:
        raise click.BadArgumentUsage(f"{lookup.quote(query)} contains no word to search for.")
    return query


def _print_hits(hits: Sequence[SearchHit], sessions: Mapping[SessionId, Session], next_cursor: str | None) -> None:
    now = datetime.now(UTC)
    blocks = [transcript.format_search_hit(hit, sessions[hit.session_id], now) for hit in hits]
    click.echo("\n\n".join("\n".join(block) for block in blocks))
    if next_cursor is not None:
        output.print_hint(f"For more, run the same command with --cursor {next_cursor}")


# `palaver sessions show`: the last messages of a conversation, or its log.

DEFAULT_LIMIT = 20
MAX_LIMIT = 1_000_000  # more events than any conversation has
LOG_BATCH_SIZE = 1000


@click.command()
@session_argument
@click.option(
    "--limit", type=click.IntRange(1, MAX_LIMIT), help=f"How many messages to show. [default: {DEFAULT_LIMIT}]"
)
@click.option("--all", "show_all", is_flag=True, help="Show every message, and long tool results in full.")
@click.option("--log", is_flag=True, help="Show the complete log, including undone messages and other events.")
@mine_option
@json_option
def show(session: str, limit: int | None, show_all: bool, log: bool) -> None:
    """Show the last messages of a conversation."""
    if show_all and limit is not None:
        raise click.UsageError("Use either --all or --limit, not both.")
    max_events = None if show_all else limit or DEFAULT_LIMIT
    with open_view() as view:
        found = lookup.find_session(view, session)
        events = _load_log(view, found, max_events) if log else view.load_messages(found.id, limit=max_events)
        project = _find_project_name(view, found)
        names = view.transcripts.load_person_names(found.id, events) if output.wants_json() else {}
    if output.wants_json():
        key = "events" if log else "messages"
        output.print_json(
            {
                "session": found.to_dict(),
                key: [event.to_dict(names) for event in events],
            }
        )
        return
    _print_conversation(found, project, events, log=log, in_full=show_all)


def _find_project_name(view: SessionView, session: Session) -> str | None:
    if session.project_id is None:
        return None
    names = (project.name for project in view.projects.list() if project.id == session.project_id)
    return next(names, session.project_id)


def _load_log(view: SessionView, session: Session, max_events: int | None) -> Sequence[Event]:
    """Load the last events of a log. Its numbers have no gaps, so the end is near the last message."""
    events: deque[Event] = deque(maxlen=max_events)
    last = view.load_messages(session.id, limit=1)
    after = max(0, last[0].seq - max_events) if last and max_events is not None else 0
    while batch := view.transcripts.load_events(session.id, after=after, limit=LOG_BATCH_SIZE):
        events.extend(batch)
        after = batch[-1].seq
    return list(events)


def _print_conversation(
    session: Session, project: str | None, events: Sequence[Event], *, log: bool, in_full: bool
) -> None:
    lines = transcript.format_header(session, datetime.now(UTC), project)
    earlier_count = (events[0].seq - 1 if events else 0) if log else session.message_count - len(events)
    if earlier_count > 0:
        noun = "earlier event" if log else "earlier message"
        lines += ["", f"… {output.format_count(earlier_count, noun)} (use --all to show everything)"]
    if not events:
        lines += ["", "No messages to show. Use --log to see the complete log."]
    lines += transcript.format_events(events, session, in_full=in_full)
    click.echo("\n".join(lines))
