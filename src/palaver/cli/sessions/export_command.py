"""`palaver sessions export`: a whole conversation as JSON or Markdown."""

from __future__ import annotations

from pathlib import Path

import click

from palaver.cli import lookup, output
from palaver.cli.options import mine_option, open_view, session_argument


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
    type=click.Choice(["json", "markdown"]),
    help="json exports the complete log, markdown the visible messages. [default: markdown for FILE.md, else json]",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@mine_option
@click.pass_context
def export(
    ctx: click.Context, session: str, path: Path | None, file_format: str | None, force: bool, mine: bool
) -> None:
    """Export a whole conversation.

    Prints it, or writes a FILE that only you can read.
    """
    from palaver.services.atomic_file import write_file_atomically

    to_stdout = path is None or str(path) == "-"
    if file_format is None:
        file_format = "markdown" if path is not None and path.suffix.lower() in {".md", ".markdown"} else "json"
    with open_view(ctx, mine=mine) as view:
        found = lookup.find_session(view, session)
        if file_format == "json":
            text = output.format_json(view.export(found.id), ascii_only=to_stdout and not output.can_print_unicode())
        else:
            text = output.clean_text(view.export_markdown(found.id))
    if path is None or to_stdout:
        click.echo(text)
    else:
        write_file_atomically(path, f"{text}\n", overwrite=force)
        output.print_hint(f"Exported {lookup.describe_session(found)} to {path}.")
