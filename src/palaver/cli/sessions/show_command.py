"""`palaver sessions show`: the last messages of a conversation, or its log."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from palaver.cli import lookup, output, transcript
from palaver.cli.options import json_option, mine_option, open_view, session_argument
from palaver.sessions.json import event_to_json, session_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.sessions.events import Event
    from palaver.sessions.model import Session
    from palaver.sessions.view import SessionView

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
@click.pass_context
def show(
    ctx: click.Context,
    session: str,
    limit: int | None,
    show_all: bool,
    log: bool,
    mine: bool,
    as_json: bool,
) -> None:
    """Show the last messages of a conversation."""
    if show_all and limit is not None:
        raise click.UsageError("Use either --all or --limit, not both.")
    max_events = None if show_all else limit or DEFAULT_LIMIT
    with open_view(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        events = _load_log(view, found, max_events) if log else view.load_messages(found.id, limit=max_events)
        project = _find_project_name(view, found)
        names = view.transcripts.load_person_names(found.id, events) if as_json else {}
    if as_json:
        key = "events" if log else "messages"
        output.print_json(
            {
                "session": session_to_json(found),
                key: [event_to_json(event, names) for event in events],
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
