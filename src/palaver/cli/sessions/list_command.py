"""`palaver sessions list`: the table of conversations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from palaver.cli import lookup, output, transcript
from palaver.cli.options import after_option, before_option, json_option, mine_option, open_view, platform_option
from palaver.cli.output import Column
from palaver.sessions.json import session_to_json

if TYPE_CHECKING:
    from palaver.core.page import Page
    from palaver.sessions.model import Session

_COLUMNS = (
    Column("ID", style="dim"),
    Column("ACTIVE", min_terminal_width=52),
    Column("CHAT", width_divisor=5, min_terminal_width=66),
    Column("MESSAGES", align="right", min_terminal_width=100),
    Column("TITLE", fills_width=True),
)

_EXPIRED_COLUMNS = (*_COLUMNS[:2], Column("ENDED"), *_COLUMNS[2:])


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
@click.pass_context
def list_sessions(
    ctx: click.Context,
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
    mine: bool,
    as_json: bool,
) -> None:
    """List conversations, newest first.

    Conversations without messages are left out. A star marks pinned conversations. --after and --before are about
    when a conversation was last active.
    """
    states = [name for name, is_set in (("archived", archived), ("pinned", pinned), ("expired", expired)) if is_set]
    if len(states) > 1:
        raise click.UsageError(f"Use only one of {' and '.join(f'--{name}' for name in states)}.")
    state = states[0] if states else "active"
    with open_view(ctx, mine=mine) as view:
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
    if as_json:
        output.print_json({"sessions": [session_to_json(session) for session in page], "next_cursor": page.cursor})
    elif page or page.cursor is not None:
        _print_page(page, with_end=expired)
    elif any((platform, after, before, query)):
        click.echo("No conversations match." if cursor is None else "No more conversations.")
    else:
        click.echo(_explain_empty_list(state, project, cursor, only_archived=only_archived))


def _print_page(page: Page[Session], *, with_end: bool) -> None:
    now = datetime.now(UTC)
    output.print_table(
        _EXPIRED_COLUMNS if with_end else _COLUMNS,
        [
            (
                session.id,
                output.format_relative_time(session.active_at, now),
                *([f"{output.format_relative_time(session.ended_at, now)}, {session.end_reason}"] if with_end else []),
                transcript.format_place(session),
                str(session.message_count),
                f"★ {transcript.format_heading(session)}" if session.pinned else transcript.format_heading(session),
            )
            for session in page
        ],
    )
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
