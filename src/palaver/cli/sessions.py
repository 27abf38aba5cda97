"""`palaver sessions`: list, read, search, export and change conversations."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from palaver.cli import options as lookup, output, transcript
from palaver.cli.options import (
    NounGroup,
    after_option,
    before_option,
    confirm_or_exit,
    load_cli_settings,
    load_current_settings,
    mine_option,
    open_store,
    open_view,
    platform_option,
    session_argument,
    wants_mine,
    yes_option,
)
from palaver.cli.output import Column
from palaver.core.errors import InvalidInput
from palaver.core.invocation import format_command
from palaver.core.source import Platform
from palaver.sessions.model import NO_PROJECT
from palaver.sessions.search_text import ArchivedFilter, SearchFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from palaver.operation.retention import PruneReport
    from palaver.sessions.events import Event
    from palaver.sessions.model import SearchHits, Session, UndoResult
    from palaver.sessions.view import SessionView

DEFAULT_LIMIT = 20  # of messages
MAX_LIMIT = 1_000_000  # more messages, events or turns than any conversation has
LOG_BATCH_SIZE = 1000
MAX_INDEXING_SECONDS = 10.0  # that a search in the terminal waits for messages that are not indexed yet
_FORMAT_BY_SUFFIX = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".jsonl": "jsonl"}
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


@click.group(cls=NounGroup)
def sessions() -> None:
    """List, read, search and organize conversations.

    SESSION is an id, the beginning of an id (at least 4 characters), or a title. The title of a numbered series
    ("Trip", "Trip #2", "Trip #3") means the newest conversation of the series.

    As the owner you see everybody's conversations. --mine limits a command to those you take part in.
    """


# ---- listing and reading -----------------------------------------------------------------------------------


@sessions.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many to list.")
@click.option("--cursor", metavar="CURSOR", help="Continue an earlier list, with the cursor that it printed.")
@click.option("--archived", is_flag=True, help="List archived conversations instead.")
@click.option("--pinned", is_flag=True, help="List only pinned conversations, archived or not.")
@click.option(
    "--expired", is_flag=True, help="List only conversations that the reset policy has ended, archived or not."
)
@click.option(
    "--project", metavar="PROJECT", help='List only conversations in this project (name or id); "none": in no project.'
)
@click.option("--profile", metavar="NAME", help='List only conversations with this profile; "default": with none.')
@platform_option
@click.option(
    "--without-platform", metavar="PLATFORM", multiple=True, help="Leave out a platform; cron are the runs of jobs."
)
@after_option
@before_option
@click.option(
    "--query", metavar="WORDS", help="Only with these words in the title or last message; -word excludes one."
)
@mine_option
def list_sessions(
    limit: int,
    cursor: str | None,
    archived: bool,
    pinned: bool,
    expired: bool,
    project: str | None,
    profile: str | None,
    platform: str | None,
    without_platform: tuple[str, ...],
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
        has_project = project is not None and project != NO_PROJECT
        project_id = lookup.find_project(view, project).id if project is not None and has_project else project
        page = view.list(
            state=state,
            limit=limit,
            cursor=cursor,
            project=project_id,
            platform=platform,
            without_platforms=without_platform,
            profile=profile,
            after=after,
            before=before,
            text=query,
        )
        only_archived = not page and state == "active" and bool(view.list(state="archived", limit=1))
    if output.wants_json():
        output.print_json({"sessions": [session.to_dict() for session in page], "next_cursor": page.cursor})
    elif page or page.cursor is not None:
        output.print_table((*_COLUMNS[:2], _END_COLUMN, *_COLUMNS[2:]) if expired else _COLUMNS, page)
        _print_cursor_hint(page.cursor)
    elif any((platform, without_platform, profile, after, before, query, project == NO_PROJECT)):
        click.echo("No conversations match." if cursor is None else "No more conversations.")
    else:
        click.echo(_explain_empty_list(state, project, cursor, only_archived=only_archived))


def _print_cursor_hint(cursor: str | None) -> None:
    if cursor is not None:
        output.print_hint(f"For more, run the same command with --cursor {cursor}")


def _explain_empty_list(state: str, project: str | None, cursor: str | None, *, only_archived: bool) -> str:
    if cursor is not None:
        return "No more conversations."
    adjective = "" if state == "active" else f"{state} "
    if project is not None:
        return f"No {adjective}conversations in project {lookup.quote(project)}."
    if only_archived:
        return "All conversations are archived. List them with --archived."
    return f"No {adjective}conversations." if adjective else "No conversations yet."


@sessions.command(context_settings={"ignore_unknown_options": True})
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
        found = {} if output.wants_json() else {each: view.get(each) for each in {hit.session_id for hit in hits}}
    next_cursor = hits[-1].cursor if len(hits) == limit else None
    if output.wants_json():
        documents = [hit.to_dict() for hit in hits]
        output.print_json({"hits": documents, "is_indexing": hits.is_indexing, "next_cursor": next_cursor})
    elif hits:
        now = datetime.now(UTC)
        blocks = [transcript.format_search_hit(hit, found[hit.session_id], now) for hit in hits]
        click.echo("\n\n".join("\n".join(block) for block in blocks))
        _print_cursor_hint(next_cursor)
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


@sessions.command()
@session_argument
@click.option(
    "--limit", type=click.IntRange(1, MAX_LIMIT), help=f"How many messages to show. [default: {DEFAULT_LIMIT}]"
)
@click.option("--all", "show_all", is_flag=True, help="Show every message, and long tool results in full.")
@click.option("--log", is_flag=True, help="Show the complete log, including undone messages and other events.")
@mine_option
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
        output.print_json({"session": found.to_dict(), key: [event.to_dict(names) for event in events]})
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


# ---- changing ----------------------------------------------------------------------------------------------


@sessions.command()
@session_argument
@click.argument("title", nargs=-1)
@click.option("--clear", is_flag=True, help="Remove the title instead.")
@mine_option
def rename(session: str, title: tuple[str, ...], clear: bool) -> None:
    """Change the title of a conversation.

    A title has at most 100 characters, and a person can use each title only once.
    """
    if clear == bool(title):
        raise click.UsageError("Give either a TITLE or --clear.")
    with open_view() as view:
        before = lookup.find_session(view, session)
        after = view.rename(before.id, None if clear else " ".join(title))
    name = lookup.describe_session(before)
    text = f"Removed the title of {name}." if clear else f"Renamed {name} to {lookup.quote(after.title or '')}."
    _print_change(before, after, text)


def _add_mark_command(name: str, done: str, help_text: str, mark: Callable[[SessionView, str], Session]) -> None:
    """Add a command that marks a conversation and has no other arguments."""

    def run(session: str) -> None:
        with open_view() as view:
            before = lookup.find_session(view, session)
            after = mark(view, before.id)
        _print_change(before, after, f"{done} {lookup.describe_session(before)}.")

    sessions.command(name, help=help_text)(session_argument(mine_option(run)))


_add_mark_command("pin", "Pinned", "Pin a conversation.", lambda view, found: view.pin(found, True))
_add_mark_command("unpin", "Unpinned", "Unpin a conversation.", lambda view, found: view.pin(found, False))
_add_mark_command(
    "archive",
    "Archived",
    """Archive a conversation.

    An archived conversation keeps all its messages and is still searched. `list --archived` lists it.
    """,
    lambda view, found: view.archive(found, True),
)
_add_mark_command(
    "unarchive", "Unarchived", "Unarchive a conversation.", lambda view, found: view.archive(found, False)
)


@sessions.command()
@session_argument
@click.argument("project", required=False)
@click.option("--no-project", is_flag=True, help="Remove the conversation from its project instead.")
@mine_option
def move(session: str, project: str | None, no_project: bool) -> None:
    """Move a conversation to one of your projects."""
    if no_project == (project is not None):
        raise click.UsageError("Give either a PROJECT or --no-project.")
    with open_view() as view:
        before = lookup.find_session(view, session)
        target = None if project is None else lookup.find_project(view, project)
        after = view.move(before.id, target.id if target else None)
    name = lookup.describe_session(before)
    text = f"Moved {name} to project {lookup.quote(target.name)}." if target else f"Removed {name} from its project."
    _print_change(before, after, text)


def _print_change(before: Session, after: Session, text: str) -> None:
    output.print_result(
        {"session": after.to_dict(), "changed": before != after}, text if before != after else "Nothing to change."
    )


@sessions.command()
@session_argument
@yes_option
@mine_option
def delete(session: str, yes: bool) -> None:
    """Permanently delete a conversation and its log.

    Asks for confirmation first.
    """
    with open_view() as view:
        found = lookup.find_session(view, session)
        count = output.format_count(found.message_count, "message")
        description = f"{lookup.describe_session(found)} ({transcript.format_place(found)}, {count})"
        confirm_or_exit(f"Permanently delete {description}?", skip=yes)
        view.delete_completely(found.id)
    output.print_result({"deleted": found.to_dict()}, f"Deleted {description}.")


@sessions.command()
@session_argument
@click.argument("turns", type=click.IntRange(1, MAX_LIMIT), default=1)
@mine_option
def undo(session: str, turns: int) -> None:
    """Undo the last turn, or the last TURNS turns.

    A turn is a message from a person and everything that follows it. `redo` shows it again.
    """
    with open_view() as view:
        found = lookup.find_session(view, session)
        result = view.undo(found.id, turns)
    _print_undo("Undone", found, result, " (all of them)" if result.turns < turns else "")
    if not output.wants_json():
        command = format_command(f"sessions redo {found.id}")
        output.print_hint(f"To redo, run `{command}` before the next message is sent.")


@sessions.command()
@session_argument
@mine_option
def redo(session: str) -> None:
    """Redo what the last undo hid."""
    with open_view() as view:
        found = lookup.find_session(view, session)
        result = view.redo(found.id)
    _print_undo("Redone", found, result)


def _print_undo(verb: str, session: Session, result: UndoResult, every_turn: str = "") -> None:
    from palaver.core.wire import build_json
    from palaver.sessions.view_wire import UndoJson

    count = (
        f"{output.format_count(result.turns, 'turn')}{every_turn}, {output.format_count(result.messages, 'message')}"
    )
    text = f"{verb} in {lookup.describe_session(session)}: {count}, starting with {lookup.quote(result.prompt)}."
    output.print_result(build_json(UndoJson, result, session_id=session.id), text)


@sessions.command(cls=click.Command)
@session_argument
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Write to this file instead of stdout.",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["json", "jsonl", "markdown", "html"]),
    help="json and jsonl export the complete log, markdown and html the visible messages."
    " [default: by the name of FILE, else json]",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@mine_option
def export(session: str, path: Path | None, file_format: str | None, force: bool) -> None:
    """Export a whole conversation.

    Prints it, or writes a FILE that only you can read.
    """
    from palaver.app import make_attachments
    from palaver.core.files import write_pieces_atomically
    from palaver.sessions.export import DocumentFormat
    from palaver.transfer.documents import Documents

    if path is not None and str(path) == "-":
        path = None
    if file_format is None:
        file_format = _FORMAT_BY_SUFFIX.get("" if path is None else path.suffix.lower(), "json")
    settings = load_cli_settings()
    with open_store(settings) as store:
        principal = store.get_owner().principal
        found = lookup.find_session(store.seen_by(principal, everything=not wants_mine()), session)
        documents = Documents(store, make_attachments(store, settings))
        pieces = documents.iterate(principal, found.id, DocumentFormat(file_format), everything=not wants_mine())
        if file_format == "json":
            ascii_only = path is None and not output.can_print_unicode()
            pieces = (output.escape_json(piece, ascii_only=ascii_only) for piece in pieces)
        elif file_format == "markdown":
            pieces = map(output.clean_text, pieces)
        if path is None:
            for piece in pieces:
                click.echo(piece, nl=False)
            return
        write_pieces_atomically(path, pieces, overwrite=force)
    output.print_hint(f"Exported {lookup.describe_session(found)} to {path}.")


def _parse_age(_ctx: click.Context, _option: click.Parameter, text: str) -> timedelta:
    from palaver.operation.retention import parse_age

    try:
        return parse_age(text)
    except InvalidInput as error:
        raise click.BadParameter(str(error)) from None


@sessions.command()
@click.option(
    "--older-than",
    "age",
    required=True,
    metavar="AGE",
    callback=_parse_age,
    help="How long a conversation was not used: 90d, 12w, 6m or 1y.",
)
@platform_option
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@yes_option
def prune(age: timedelta, platform: str | None, dry_run: bool, yes: bool) -> None:
    """Delete everybody's conversations that were not used for long.

    What counts is the last activity, not when a conversation began. Pinned conversations stay, and so do those in
    which something runs, waits or is on its way. This can't be undone.
    """
    import asyncio

    from palaver.operation.retention import Retention

    settings = load_current_settings()
    name = None if platform is None else str(Platform(platform))
    with open_store(settings) as store:
        retention = Retention(store, lambda: settings.turns.retention)
        owner = store.get_owner().principal
        report = asyncio.run(retention.prune(owner, age, platform=name, dry_run=True))
        if not dry_run and report.sessions:
            if not yes:
                output.print_hint(_describe_report(report, "would be deleted"))
            confirm_or_exit(f"Delete {output.format_count(report.sessions, 'conversation')}?", skip=yes)
            report = asyncio.run(retention.prune(owner, age, platform=name, dry_run=False))
    text = "No conversation is that old, or those that are can't be deleted because they are pinned or in use."
    if report.sessions:
        text = _describe_report(report, "would be deleted" if dry_run else "deleted")
    output.print_result(report.to_dict() | {"is_dry_run": dry_run}, text)


def _describe_report(report: PruneReport, verb: str) -> str:
    count = output.format_count(report.sessions, "conversation")
    messages = output.format_count(report.messages, "message")
    size = f"{report.bytes / 1_000_000:,.1f} MB"
    times = [output.format_timestamp(moment) for moment in (report.oldest, report.newest) if moment is not None]
    return f"{count} {verb}: {messages}, about {size}, last used between {' and '.join(times)}."
