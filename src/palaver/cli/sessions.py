"""`palaver sessions`: looking at conversations and changing them, from the terminal."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from palaver.cli import json_output, lookup, output, transcript
from palaver.cli.options import (
    as_json_option,
    ask_first,
    mine_option,
    session_argument,
    view_of,
    yes_option,
)
from palaver.cli.output import Column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.domain.events import Event
    from palaver.domain.ids import SessionId
    from palaver.domain.session import Page, SearchHit, Session
    from palaver.services.view import SessionView

SHOWN = 20  # messages of a conversation, unless told otherwise
MANY = 1_000_000  # more than any conversation has
LAST = 10**18  # beyond every position
BATCH = 1000  # lines of a log read at once

_COLUMNS = (
    Column("ID", style="dim"),
    Column("ACTIVE", from_width=52),
    Column("WHERE", share=5, from_width=66),
    Column("MSGS", align="right", from_width=100),
    Column("TITLE", rest=True),
)


@click.group()
def sessions() -> None:
    """Conversations: read, find, arrange, export.

    SESSION is an id, the beginning of one (4 characters or more), or a title; a title that is the first of a
    numbered line means the newest of that line. You own this gateway, so you see everybody's conversations;
    --mine leaves only those you take part in.
    """


# ---- looking -----------------------------------------------------------------------------------------------


@sessions.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@click.option("--cursor", metavar="CURSOR", help="Go on where an earlier list ended.")
@click.option("--archived", is_flag=True, help="The archived ones instead.")
@click.option("--pinned", is_flag=True, help="Only the pinned ones, archived or not.")
@click.option("--project", metavar="NAME", help="Only those in one of your projects (its name or id).")
@mine_option
@as_json_option
@click.pass_context
def list_sessions(
    ctx: click.Context,
    limit: int,
    cursor: str | None,
    archived: bool,
    pinned: bool,
    project: str | None,
    mine: bool,
    as_json: bool,
) -> None:
    """List conversations, newest first.

    Those in which something was said; a star marks the pinned ones.
    """
    if archived and pinned:
        raise click.UsageError("--archived and --pinned are two different lists; choose one")
    shelf = "archived" if archived else "pinned" if pinned else "current"
    with view_of(ctx, mine=mine) as view:
        within = lookup.find_project(view, project).id if project is not None else None
        page = view.list(shelf=shelf, limit=limit, cursor=cursor, project=within)
        archive = not page and shelf == "current" and bool(view.list(shelf="archived", limit=1))
    if as_json:
        output.say_json({"sessions": [json_output.session_json(each) for each in page], "cursor": page.cursor})
    elif page:
        _say_list(page)
    else:
        click.echo(_nothing(shelf, project, cursor, archive=archive))


def _say_list(page: Page[Session]) -> None:
    now = datetime.now(UTC)
    output.say_table(
        _COLUMNS,
        [
            (
                session.id,
                output.ago(session.active_at, now),
                transcript.place(session),
                str(session.message_count),
                f"★ {transcript.headline(session)}" if session.pinned else transcript.headline(session),
            )
            for session in page
        ],
    )
    if page.cursor is not None:
        output.hint(f"more: the same with --cursor {page.cursor}")


def _nothing(shelf: str, project: str | None, cursor: str | None, *, archive: bool) -> str:
    if cursor is not None:
        return "no more conversations"
    kind = "" if shelf == "current" else f"{shelf} "
    if project is not None:
        return f"no {kind}conversations in project {lookup.quoted(project)}"
    if archive:
        return "no conversations but archived ones; --archived shows them"
    return f"no {kind}conversations" if kind else "no conversations yet"


@sessions.command()
@session_argument
@click.option("--limit", type=click.IntRange(1, MANY), help=f"The last so many messages. [default: {SHOWN}]")
@click.option("--all", "whole", is_flag=True, help="Every message, and long tool results in full.")
@click.option("--log", is_flag=True, help="The log itself: undone messages too, and everything else that happened.")
@mine_option
@as_json_option
@click.pass_context
def show(
    ctx: click.Context,
    session: str,
    limit: int | None,
    whole: bool,
    log: bool,
    mine: bool,
    as_json: bool,
) -> None:
    """Read the end of a conversation."""
    if whole and limit is not None:
        raise click.UsageError("--all and --limit contradict each other; choose one")
    most = None if whole else limit or SHOWN
    with view_of(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        events = _log(view, found, most) if log else view.load(found.id, limit=most)
        project = _project_name(view, found)
    if as_json:
        key = "events" if log else "messages"
        output.say_json(
            {"session": json_output.session_json(found), key: [json_output.event_json(each) for each in events]}
        )
        return
    _say_conversation(found, project, events, log=log, whole=whole)


def _project_name(view: SessionView, session: Session) -> str | None:
    if session.project_id is None:
        return None
    return next((each.name for each in view.projects() if each.id == session.project_id), session.project_id)


def _log(view: SessionView, session: Session, most: int | None) -> Sequence[Event]:
    """The last lines of a log. Its numbers have no gaps, so the end is near the last message."""
    kept: deque[Event] = deque(maxlen=most)
    last = view.load(session.id, limit=1)
    after = max(0, last[0].seq - most) if last and most is not None else 0
    while batch := view.events(session.id, after=after, limit=BATCH):
        kept.extend(batch)
        after = batch[-1].seq
    return list(kept)


def _say_conversation(
    session: Session, project: str | None, events: Sequence[Event], *, log: bool, whole: bool
) -> None:
    lines = transcript.head_lines(session, datetime.now(UTC), project)
    earlier = (events[0].seq - 1 if events else 0) if log else session.message_count - len(events)
    if earlier > 0:
        noun = "earlier line" if log else "earlier message"
        lines += ["", f"… {output.plural(earlier, noun)}; --all shows everything"]
    if not events:
        lines += ["", "no messages to show; --log shows all that ever happened here"]
    lines += transcript.log_lines(events, session, whole=whole)
    click.echo("\n".join(lines))


@sessions.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="At most so many.")
@click.option("--before", type=click.IntRange(1, LAST), metavar="POSITION", help="Go on where an earlier search ended.")
@click.option("--in", "within", metavar="SESSION", help="Only in one conversation.")
@mine_option
@as_json_option
@click.pass_context
def search(
    ctx: click.Context,
    words: tuple[str, ...],
    limit: int,
    before: int | None,
    within: str | None,
    mine: bool,
    as_json: bool,
) -> None:
    """Find messages by their words, newest first.

    Each of the WORDS must be in the message. "Two words" in quotes (quoted once more for the shell) stand
    together, begin* is the beginning of a word, and -word must not be there.
    """
    text = _query(ctx, words)
    with view_of(ctx, mine=mine) as view:
        where = None if within is None else lookup.find_session(view, within).id
        hits = view.search(text, limit=limit, before=before, within=where)
        places = {} if as_json else {each: view.get(each) for each in {hit.session_id for hit in hits}}
    onward = hits[-1].position if len(hits) == limit else None
    if as_json:
        output.say_json({"hits": [json_output.hit_json(hit) for hit in hits], "before": onward})
    elif hits:
        _say_hits(hits, places, onward)
    else:
        click.echo(f"nothing found for {lookup.quoted(text)}")


def _query(ctx: click.Context, words: tuple[str, ...]) -> str:
    """What to look for; a word that excludes begins with one dash, so two are a slip in an option."""
    from palaver.domain.search_text import parse_query

    for word in words:
        if word.startswith("--"):
            known = [name for option in ctx.command.params for name in option.opts]
            raise click.NoSuchOption(word.partition("=")[0], possibilities=known, ctx=ctx)
    text = " ".join(words)
    if parse_query(text).is_empty:
        raise click.BadArgumentUsage(f"there is no word to look for in {lookup.quoted(text)}", ctx=ctx)
    return text


def _say_hits(hits: Sequence[SearchHit], places: Mapping[SessionId, Session], onward: int | None) -> None:
    now = datetime.now(UTC)
    blocks = [transcript.hit_lines(hit, places[hit.session_id], now) for hit in hits]
    click.echo("\n\n".join("\n".join(block) for block in blocks))
    if onward is not None:
        output.hint(f"more: the same with --before {onward}")


@sessions.command()
@session_argument
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Write to a file, whole or not at all, instead of to the terminal.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    help="json holds everything, markdown what can be read. [default: json; markdown for a FILE.md]",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@mine_option
@click.pass_context
def export(ctx: click.Context, session: str, path: Path | None, form: str | None, force: bool, mine: bool) -> None:
    """Write out a whole conversation.

    To the terminal, or to a FILE that is yours alone to read.
    """
    from palaver.cli.files import write_whole

    to_stdout = path is None or str(path) == "-"
    if form is None:
        form = "markdown" if path is not None and path.suffix.lower() in {".md", ".markdown"} else "json"
    with view_of(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        if form == "json":
            text = output.json_text(view.export(found.id), ascii_only=to_stdout and not output.speaks_utf())
        else:
            text = transcript.markdown(found, view.load(found.id, limit=None))
    if path is None or to_stdout:
        click.echo(text)
    else:
        write_whole(path, f"{text}\n", force=force)
        output.hint(f"exported {lookup.called(found)} to {path}")


# ---- changing ----------------------------------------------------------------------------------------------


@sessions.command()
@session_argument
@click.argument("title", nargs=-1)
@click.option("--clear", is_flag=True, help="Take the title away instead.")
@mine_option
@as_json_option
@click.pass_context
def rename(ctx: click.Context, session: str, title: tuple[str, ...], clear: bool, mine: bool, as_json: bool) -> None:
    """Give a conversation a title.

    At most 100 characters; each person has each title once.
    """
    if clear == bool(title):
        raise click.UsageError("give either a TITLE or --clear")
    with view_of(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        changed = view.rename(found.id, None if clear else " ".join(title))
    now_called = "has no title now" if changed.title is None else f"is called {lookup.quoted(changed.title)} now"
    _say_changed(found, changed, now_called, as_json=as_json)


@sessions.command()
@session_argument
@click.option("--off", is_flag=True, help="Unpin it.")
@mine_option
@as_json_option
@click.pass_context
def pin(ctx: click.Context, session: str, off: bool, mine: bool, as_json: bool) -> None:
    """Pin a conversation."""
    with view_of(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        changed = view.pin(found.id, not off)
    _say_changed(found, changed, "is not pinned any more" if off else "is pinned", as_json=as_json)


@sessions.command()
@session_argument
@click.option("--off", is_flag=True, help="Put it back.")
@mine_option
@as_json_option
@click.pass_context
def archive(ctx: click.Context, session: str, off: bool, mine: bool, as_json: bool) -> None:
    """Take a conversation out of the list.

    Nothing in it is lost: `list --archived` shows it, and it is searched as before.
    """
    with view_of(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        changed = view.archive(found.id, not off)
    _say_changed(found, changed, "is back in the list" if off else "is archived", as_json=as_json)


@sessions.command()
@session_argument
@click.argument("project", required=False)
@click.option("--out", is_flag=True, help="Out of any project instead.")
@mine_option
@as_json_option
@click.pass_context
def move(ctx: click.Context, session: str, project: str | None, out: bool, mine: bool, as_json: bool) -> None:
    """Put a conversation into one of your projects."""
    if out == (project is not None):
        raise click.UsageError("give either a PROJECT or --out")
    with view_of(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        into = None if project is None else lookup.find_project(view, project)
        changed = view.move(found.id, into.id if into else None)
    where = f"is in project {lookup.quoted(into.name)}" if into else "is in no project"
    _say_changed(found, changed, where, as_json=as_json)


def _say_changed(before: Session, after: Session, what: str, *, as_json: bool) -> None:
    if as_json:
        output.say_json({"session": json_output.session_json(after), "changed": before != after})
    else:
        already = " (it was so before)" if before == after else ""
        click.echo(f"{lookup.called(before)} {what}{already}")


@sessions.command()
@session_argument
@yes_option
@mine_option
@as_json_option
@click.pass_context
def delete(ctx: click.Context, session: str, yes: bool, mine: bool, as_json: bool) -> None:
    """Delete a conversation for good.

    Its whole log goes with it. You are asked first.
    """
    with view_of(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        what = f"{lookup.called(found)} ({transcript.place(found)}, {output.plural(found.message_count, 'message')})"
        ask_first(f"Delete {what} for good?", yes=yes)
        view.delete(found.id)
    if as_json:
        output.say_json({"deleted": json_output.session_json(found)})
    else:
        click.echo(f"deleted {what}")


@sessions.command()
@session_argument
@click.argument("turns", type=click.IntRange(1, MANY), default=1)
@mine_option
@as_json_option
@click.pass_context
def undo(ctx: click.Context, session: str, turns: int, mine: bool, as_json: bool) -> None:
    """Hide the last turn, or the last TURNS.

    `redo` shows them again. A turn is what a person said and everything that followed.
    """
    with view_of(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        undone = view.undo(found.id, turns)
    if as_json:
        output.say_json(json_output.undone_json(found, undone))
        return
    only = ", all there were" if undone.turns < turns else ""
    count = f"{output.plural(undone.turns, 'turn')}{only} ({output.plural(undone.messages, 'message')})"
    click.echo(f"undone: {count} in {lookup.called(found)}, from {lookup.quoted(undone.prompt)} on")
    output.hint(f"`palaver sessions redo {found.id}` shows them again, until something new is said")


@sessions.command()
@session_argument
@mine_option
@as_json_option
@click.pass_context
def redo(ctx: click.Context, session: str, mine: bool, as_json: bool) -> None:
    """Show again what the last undo hid."""
    with view_of(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        redone = view.redo(found.id)
    if as_json:
        output.say_json(json_output.undone_json(found, redone))
        return
    count = f"{output.plural(redone.turns, 'turn')} ({output.plural(redone.messages, 'message')})"
    click.echo(f"back again: {count} in {lookup.called(found)}, from {lookup.quoted(redone.prompt)} on")
