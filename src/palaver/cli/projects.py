"""`palaver projects`: folders for conversations, from the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from palaver.cli import json_output, lookup, output
from palaver.cli.options import as_json_option, ask_first, view_of, yes_option
from palaver.cli.output import Column

if TYPE_CHECKING:
    from palaver.domain.session import Project

_COLUMNS = (
    Column("ID", style="dim"),
    Column("CONVERSATIONS", align="right"),
    Column("COLOUR"),
    Column("NAME", rest=True),
)

project_argument = click.argument("project")
colour_help = "A colour like #3b82f6, for surfaces that show one."


@click.group()
def projects() -> None:
    """Projects: your folders for conversations.

    PROJECT is a name or an id.
    """


@projects.command("list")
@as_json_option
@click.pass_context
def list_projects(ctx: click.Context, as_json: bool) -> None:
    """List your projects by name."""
    with view_of(ctx) as view:
        found = view.projects()
    if as_json:
        output.say_json({"projects": [json_output.project_json(each) for each in found]})
    elif found:
        rows = [(each.id, str(each.session_count), each.colour or "", output.line(each.name)) for each in found]
        output.say_table(_COLUMNS, rows)
    else:
        click.echo("no projects yet; `palaver projects create NAME` makes one")


@projects.command()
@click.argument("name")
@click.option("--colour", metavar="#RRGGBB", help=colour_help)
@as_json_option
@click.pass_context
def create(ctx: click.Context, name: str, colour: str | None, as_json: bool) -> None:
    """Make a project."""
    with view_of(ctx) as view:
        made = view.create_project(name, colour)
    _say(made, f"created project {lookup.quoted(made.name)} ({made.id})", as_json=as_json)


@projects.command()
@project_argument
@click.argument("name")
@as_json_option
@click.pass_context
def rename(ctx: click.Context, project: str, name: str, as_json: bool) -> None:
    """Give a project another NAME."""
    with view_of(ctx) as view:
        found = lookup.find_project(view, project)
        changed = view.change_project(found.id, name=name)
    told = f"project {lookup.quoted(found.name)} is called {lookup.quoted(changed.name)} now"
    _say(changed, told, as_json=as_json)


@projects.command()
@project_argument
@click.argument("colour", metavar="#RRGGBB")
@as_json_option
@click.pass_context
def colour(ctx: click.Context, project: str, colour: str, as_json: bool) -> None:
    """Give a project a colour.

    Like '#3b82f6', in quotes: a shell takes a bare # for the beginning of a comment.
    """
    with view_of(ctx) as view:
        found = lookup.find_project(view, project)
        changed = view.change_project(found.id, colour=colour)
    _say(changed, f"project {lookup.quoted(changed.name)} has the colour {changed.colour} now", as_json=as_json)


@projects.command()
@project_argument
@yes_option
@as_json_option
@click.pass_context
def delete(ctx: click.Context, project: str, yes: bool, as_json: bool) -> None:
    """Delete a project; its conversations stay.

    You are asked first.
    """
    with view_of(ctx) as view:
        found = lookup.find_project(view, project)
        count = output.plural(found.session_count, "conversation")
        stays = (
            f"its {count} stay{'s' if found.session_count == 1 else ''}"
            if found.session_count
            else "no conversation was in it"
        )
        ask_first(f"Delete project {lookup.quoted(found.name)}? ({stays})", yes=yes)
        gone = view.delete_project(found.id)
    if as_json:
        output.say_json({"deleted": json_output.project_json(gone)})
    else:
        click.echo(f"deleted project {lookup.quoted(gone.name)} ({stays})")


def _say(project: Project, told: str, *, as_json: bool) -> None:
    if as_json:
        output.say_json({"project": json_output.project_json(project)})
    else:
        click.echo(told)
