"""The commands of `palaver sessions` that change a conversation: title, pin, archive, project, undo, delete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from palaver.cli import options as lookup, output, transcript
from palaver.cli.options import (
    confirm_or_exit,
    json_option,
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
from palaver.core.errors import InvalidInput
from palaver.core.invocation import format_command
from palaver.core.source import Platform
from palaver.core.wire import build_json
from palaver.sessions.view_wire import UndoJson

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from palaver.operation.retention import PruneReport
    from palaver.sessions.model import Session, UndoResult
    from palaver.sessions.view import SessionView


MAX_TURNS = 1_000_000  # more turns than any conversation has


@click.command()
@session_argument
@click.argument("title", nargs=-1)
@click.option("--clear", is_flag=True, help="Remove the title instead.")
@mine_option
@json_option
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


def _make_mark_command(
    name: str, done: str, help_text: str, mark: Callable[[SessionView, str], Session]
) -> click.Command:
    """Make a command that marks a conversation and has no other arguments."""

    def run(session: str) -> None:
        with open_view() as view:
            before = lookup.find_session(view, session)
            after = mark(view, before.id)
        _print_change(before, after, f"{done} {lookup.describe_session(before)}.")

    return click.command(name, help=help_text)(session_argument(mine_option(json_option(run))))


pin = _make_mark_command("pin", "Pinned", "Pin a conversation.", lambda view, found: view.pin(found, True))
unpin = _make_mark_command("unpin", "Unpinned", "Unpin a conversation.", lambda view, found: view.pin(found, False))
archive = _make_mark_command(
    "archive",
    "Archived",
    """Archive a conversation.

    An archived conversation keeps all its messages and is still searched. `list --archived` lists it.
    """,
    lambda view, found: view.archive(found, True),
)
unarchive = _make_mark_command(
    "unarchive", "Unarchived", "Unarchive a conversation.", lambda view, found: view.archive(found, False)
)


@click.command()
@session_argument
@click.argument("project", required=False)
@click.option("--no-project", is_flag=True, help="Remove the conversation from its project instead.")
@mine_option
@json_option
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


@click.command()
@session_argument
@yes_option
@mine_option
@json_option
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


@click.command()
@session_argument
@click.argument("turns", type=click.IntRange(1, MAX_TURNS), default=1)
@mine_option
@json_option
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


@click.command()
@session_argument
@mine_option
@json_option
def redo(session: str) -> None:
    """Redo what the last undo hid."""
    with open_view() as view:
        found = lookup.find_session(view, session)
        result = view.redo(found.id)
    _print_undo("Redone", found, result)


def _print_undo(verb: str, session: Session, result: UndoResult, every_turn: str = "") -> None:
    count = (
        f"{output.format_count(result.turns, 'turn')}{every_turn}, {output.format_count(result.messages, 'message')}"
    )
    text = f"{verb} in {lookup.describe_session(session)}: {count}, starting with {lookup.quote(result.prompt)}."
    output.print_result(build_json(UndoJson, result, session_id=session.id), text)


# `palaver sessions export`: a whole conversation as JSON, JSONL, Markdown or HTML.

_FORMAT_BY_SUFFIX = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".jsonl": "jsonl"}


@click.command()
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
    to_stdout = path is None or str(path) == "-"
    if file_format is None:
        file_format = _FORMAT_BY_SUFFIX.get("" if path is None else path.suffix.lower(), "json")
    _export_document(session, None if to_stdout else path, file_format, force=force)


def _export_document(session: str, path: Path | None, file_format: str, *, force: bool) -> None:
    """Write a document as it is made, piece by piece."""
    from palaver.app import make_attachments
    from palaver.core.files import write_pieces_atomically
    from palaver.sessions.export import DocumentFormat
    from palaver.transfer.documents import Documents

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


# `palaver sessions prune`: deletes conversations that were not used for long, after showing what would go.


def _parse_age(_ctx: click.Context, _option: click.Parameter, text: str) -> timedelta:
    from palaver.operation.retention import parse_age

    try:
        return parse_age(text)
    except InvalidInput as error:
        raise click.BadParameter(str(error)) from None


@click.command()
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
@json_option
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
                output.print_hint(_describe(report, "would be deleted"))
            confirm_or_exit(f"Delete {output.format_count(report.sessions, 'conversation')}?", skip=yes)
            report = asyncio.run(retention.prune(owner, age, platform=name, dry_run=False))
    text = "No conversation is that old, or those that are can't be deleted because they are pinned or in use."
    if report.sessions:
        text = _describe(report, "would be deleted" if dry_run else "deleted")
    output.print_result(report.to_dict() | {"is_dry_run": dry_run}, text)


def _describe(report: PruneReport, verb: str) -> str:
    count = output.format_count(report.sessions, "conversation")
    messages = output.format_count(report.messages, "message")
    size = f"{report.bytes / 1_000_000:,.1f} MB"
    times = [output.format_timestamp(moment) for moment in (report.oldest, report.newest) if moment is not None]
    return f"{count} {verb}: {messages}, about {size}, last used between {' and '.join(times)}."
