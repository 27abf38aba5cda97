"""`palaver projects`: folders for conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from palaver.cli import options as lookup, output
from palaver.cli.options import confirm_or_exit, json_option, open_view, yes_option
from palaver.cli.output import Column
from palaver.core.invocation import format_command
from palaver.core.wire import build_json
from palaver.sessions.view_wire import ProjectJson

if TYPE_CHECKING:
    from palaver.sessions.model import Project

_COLUMNS = (
    Column("ID", style="dim"),
    Column("CONVERSATIONS", align="right"),
    Column("COLOR"),
    Column("NAME", fills_width=True),
)

project_argument = click.argument("project")


@click.group()
def projects() -> None:
    """Organize conversations in projects.

    PROJECT is the name or id of a project.
    """


@projects.command("list")
@json_option
@click.pass_context
def list_projects(ctx: click.Context, as_json: bool) -> None:
    """List your projects by name."""
    with open_view(ctx) as view:
        found = view.projects.list()
    if as_json:
        output.print_json({"projects": [build_json(ProjectJson, project) for project in found]})
    elif found:
        rows = [
            (project.id, str(project.session_count), project.color or "", output.clean_line(project.name))
            for project in found
        ]
        output.print_table(_COLUMNS, rows)
    else:
        click.echo(f"No projects yet. Create one with `{format_command('projects create NAME')}`.")


@projects.command()
@click.argument("name")
@click.option("--color", metavar="#RRGGBB", help="The color of the project on the web page, such as '#3b82f6'.")
@json_option
@click.pass_context
def create(ctx: click.Context, name: str, color: str | None, as_json: bool) -> None:
    """Create a project."""
    with open_view(ctx) as view:
        project = view.projects.create(name, color)
    _print_result(project, f"Created project {lookup.quote(project.name)} ({project.id}).", as_json=as_json)


@projects.command()
@project_argument
@click.argument("name")
@json_option
@click.pass_context
def rename(ctx: click.Context, project: str, name: str, as_json: bool) -> None:
    """Rename a project."""
    with open_view(ctx) as view:
        before = lookup.find_project(view, project)
        after = view.projects.update(before.id, name=name)
    text = f"Renamed project {lookup.quote(before.name)} to {lookup.quote(after.name)}."
    _print_result(after, text, as_json=as_json)


@projects.command()
@project_argument
@click.argument("color", metavar="#RRGGBB")
@json_option
@click.pass_context
def color(ctx: click.Context, project: str, color: str, as_json: bool) -> None:
    """Change the color of a project.

    Put the color in quotes, as in '#3b82f6': otherwise the shell takes everything after the # for a comment.
    """
    with open_view(ctx) as view:
        before = lookup.find_project(view, project)
        after = view.projects.update(before.id, color=color)
    text = f"Changed the color of project {lookup.quote(after.name)} to {after.color}."
    _print_result(after, text, as_json=as_json)


@projects.command()
@project_argument
@yes_option
@json_option
@click.pass_context
def delete(ctx: click.Context, project: str, yes: bool, as_json: bool) -> None:
    """Delete a project, but not its conversations.

    Asks for confirmation first.
    """
    with open_view(ctx) as view:
        before = lookup.find_project(view, project)
        count = output.format_count(before.session_count, "conversation")
        effect = f"Its {count} won't be deleted." if before.session_count else "It has no conversations."
        confirm_or_exit(f"Delete project {lookup.quote(before.name)}? {effect}", skip=yes)
        deleted = view.projects.delete_completely(before.id)
    if as_json:
        output.print_json({"deleted": build_json(ProjectJson, deleted)})
    else:
        click.echo(f"Deleted project {lookup.quote(deleted.name)}.")


def _print_result(project: Project, text: str, *, as_json: bool) -> None:
    if as_json:
        output.print_json({"project": build_json(ProjectJson, project)})
    else:
        click.echo(text)
