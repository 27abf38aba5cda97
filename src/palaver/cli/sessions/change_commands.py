"""The commands of `palaver sessions` that change a conversation: title, pin, archive, project, undo, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from palaver.cli import json_output, lookup, output, transcript
from palaver.cli.options import confirm_or_exit, json_option, mine_option, open_view, session_argument, yes_option
from palaver.core.invocation import format_command
from palaver.sessions.json import session_to_json

if TYPE_CHECKING:
    from palaver.sessions.model import Session

MAX_TURNS = 1_000_000  # more turns than any conversation has


@click.command()
@session_argument
@click.argument("title", nargs=-1)
@click.option("--clear", is_flag=True, help="Remove the title instead.")
@mine_option
@json_option
@click.pass_context
def rename(ctx: click.Context, session: str, title: tuple[str, ...], clear: bool, mine: bool, as_json: bool) -> None:
    """Change the title of a conversation.

    A title has at most 100 characters, and a person can use each title only once.
    """
    if clear == bool(title):
        raise click.UsageError("Give either a TITLE or --clear.")
    with open_view(ctx, mine=mine) as view:
        before = lookup.find_session(view, session)
        after = view.rename(before.id, None if clear else " ".join(title))
    name = lookup.describe_session(before)
    text = f"Removed the title of {name}." if clear else f"Renamed {name} to {lookup.quote(after.title or '')}."
    _print_change(before, after, text, as_json=as_json)


@click.command()
@session_argument
@mine_option
@json_option
@click.pass_context
def pin(ctx: click.Context, session: str, mine: bool, as_json: bool) -> None:
    """Pin a conversation."""
    with open_view(ctx, mine=mine) as view:
        before = lookup.find_session(view, session)
        after = view.pin(before.id, True)
    _print_change(before, after, f"Pinned {lookup.describe_session(before)}.", as_json=as_json)


@click.command()
@session_argument
@mine_option
@json_option
@click.pass_context
def unpin(ctx: click.Context, session: str, mine: bool, as_json: bool) -> None:
    """Unpin a conversation."""
    with open_view(ctx, mine=mine) as view:
        before = lookup.find_session(view, session)
        after = view.pin(before.id, False)
    _print_change(before, after, f"Unpinned {lookup.describe_session(before)}.", as_json=as_json)


@click.command()
@session_argument
@mine_option
@json_option
@click.pass_context
def archive(ctx: click.Context, session: str, mine: bool, as_json: bool) -> None:
    """Archive a conversation.

    An archived conversation keeps all its messages and is still searched. `list --archived` lists it.
    """
    with open_view(ctx, mine=mine) as view:
        before = lookup.find_session(view, session)
        after = view.archive(before.id, True)
    _print_change(before, after, f"Archived {lookup.describe_session(before)}.", as_json=as_json)


@click.command()
@session_argument
@mine_option
@json_option
@click.pass_context
def unarchive(ctx: click.Context, session: str, mine: bool, as_json: bool) -> None:
    """Unarchive a conversation."""
    with open_view(ctx, mine=mine) as view:
        before = lookup.find_session(view, session)
        after = view.archive(before.id, False)
    _print_change(before, after, f"Unarchived {lookup.describe_session(before)}.", as_json=as_json)


@click.command()
@session_argument
@click.argument("project", required=False)
@click.option("--no-project", is_flag=True, help="Remove the conversation from its project instead.")
@mine_option
@json_option
@click.pass_context
def move(ctx: click.Context, session: str, project: str | None, no_project: bool, mine: bool, as_json: bool) -> None:
    """Move a conversation to one of your projects."""
    if no_project == (project is not None):
        raise click.UsageError("Give either a PROJECT or --no-project.")
    with open_view(ctx, mine=mine) as view:
        before = lookup.find_session(view, session)
        target = None if project is None else lookup.find_project(view, project)
        after = view.move(before.id, target.id if target else None)
    name = lookup.describe_session(before)
    text = f"Moved {name} to project {lookup.quote(target.name)}." if target else f"Removed {name} from its project."
    _print_change(before, after, text, as_json=as_json)


def _print_change(before: Session, after: Session, text: str, *, as_json: bool) -> None:
    if as_json:
        output.print_json({"session": session_to_json(after), "changed": before != after})
    else:
        click.echo(text if before != after else "Nothing to change.")


@click.command()
@session_argument
@yes_option
@mine_option
@json_option
@click.pass_context
def delete(ctx: click.Context, session: str, yes: bool, mine: bool, as_json: bool) -> None:
    """Permanently delete a conversation and its log.

    Asks for confirmation first.
    """
    with open_view(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        count = output.format_count(found.message_count, "message")
        description = f"{lookup.describe_session(found)} ({transcript.format_place(found)}, {count})"
        confirm_or_exit(f"Permanently delete {description}?", skip=yes)
        view.delete_completely(found.id)
    if as_json:
        output.print_json({"deleted": session_to_json(found)})
    else:
        click.echo(f"Deleted {description}.")


@click.command()
@session_argument
@click.argument("turns", type=click.IntRange(1, MAX_TURNS), default=1)
@mine_option
@json_option
@click.pass_context
def undo(ctx: click.Context, session: str, turns: int, mine: bool, as_json: bool) -> None:
    """Undo the last turn, or the last TURNS turns.

    A turn is a message from a person and everything that follows it. `redo` shows it again.
    """
    with open_view(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        result = view.undo(found.id, turns)
    if as_json:
        output.print_json(json_output.undo_to_json(found, result))
        return
    every_turn = " (all of them)" if result.turns < turns else ""
    count = (
        f"{output.format_count(result.turns, 'turn')}{every_turn}, {output.format_count(result.messages, 'message')}"
    )
    click.echo(f"Undone in {lookup.describe_session(found)}: {count}, starting with {lookup.quote(result.prompt)}.")
    command = format_command(f"sessions redo {found.id}")
    output.print_hint(f"To redo, run `{command}` before the next message is sent.")


@click.command()
@session_argument
@mine_option
@json_option
@click.pass_context
def redo(ctx: click.Context, session: str, mine: bool, as_json: bool) -> None:
    """Redo what the last undo hid."""
    with open_view(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        result = view.redo(found.id)
    if as_json:
        output.print_json(json_output.undo_to_json(found, result))
        return
    count = f"{output.format_count(result.turns, 'turn')}, {output.format_count(result.messages, 'message')}"
    click.echo(f"Redone in {lookup.describe_session(found)}: {count}, starting with {lookup.quote(result.prompt)}.")
