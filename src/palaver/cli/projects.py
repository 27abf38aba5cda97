"""`palaver projects`: folders for conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from palaver.cli import options as lookup, output
from palaver.cli.options import NounGroup, confirm_or_exit, open_view, yes_option
from palaver.cli.output import Column
from palaver.core.invocation import format_command
from palaver.core.wire import build_json
from palaver.sessions.view_wire import ProjectJson

if TYPE_CHECKING:
    from palaver.sessions.model import Project

_COLUMNS: tuple[Column[Project], ...] = (
    Column("ID", lambda each: each.id, style="dim"),
    Column("CONVERSATIONS", lambda each: each.session_count, align="right"),
    Column("COLOR", lambda each: each.color),
    Column("NAME", lambda each: each.name, fills_width=True),
)

project_argument = click.argument("project")


@click.group(cls=NounGroup)
def projects() -> None:
    """Organize conversations in projects.

    PROJECT is the name or id of a project.
    """


@projects.command("list")
def list_projects() -> None:
    """List your projects by name."""
    with open_view() as view:
        found = view.projects.list()
    document = {"projects": [build_json(ProjectJson, project) for project in found]}
    empty = f"No projects yet. Create one with `{format_command('projects create NAME')}`."
    output.print_list(document, _COLUMNS, found, empty)


@projects.command()
@click.argument("name")
@click.option("--color", metavar="#RRGGBB", help="The color of the project on the web page, such as '#3b82f6'.")
def create(name: str, color: str | None) -> None:
    """Create a project."""
    with open_view() as view:
        project = view.projects.create(name, color)
    _print_project(project, f"Created project {lookup.quote(project.name)} ({project.id}).")


@projects.command()
@project_argument
@click.argument("name")
def rename(project: str, name: str) -> None:
    """Rename a project."""
    with open_view() as view:
        before = lookup.find_project(view, project)
        after = view.projects.update(before.id, name=name)
    _print_project(after, f"Renamed project {lookup.quote(before.name)} to {lookup.quote(after.name)}.")


@projects.command()
@project_argument
@click.argument("color", metavar="#RRGGBB")
def color(project: str, color: str) -> None:
    """Change the color of a project.

    Put the color in quotes, as in '#3b82f6': otherwise the shell takes everything after the # for a comment.
    """
    with open_view() as view:
        after = view.projects.update(lookup.find_project(view, project).id, color=color)
    _print_project(after, f"Changed the color of project {lookup.quote(after.name)} to {after.color}.")


@projects.command()
@project_argument
@yes_option
def delete(project: str, yes: bool) -> None:
    """Delete a project, but not its conversations.

    Asks for confirmation first.
    """
    with open_view() as view:
        before = lookup.find_project(view, project)
        count = output.format_count(before.session_count, "conversation")
        effect = f"Its {count} won't be deleted." if before.session_count else "It has no conversations."
        confirm_or_exit(f"Delete project {lookup.quote(before.name)}? {effect}", skip=yes)
        deleted = view.projects.delete_completely(before.id)
    _print_project(deleted, f"Deleted project {lookup.quote(deleted.name)}.", key="deleted")


def _print_project(project: Project, text: str, *, key: str = "project") -> None:
    output.print_result({key: build_json(ProjectJson, project)}, text)
