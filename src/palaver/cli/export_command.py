"""`palaver export`: conversations, a person's or everything, as a file to import again or documents to read."""

from __future__ import annotations

from pathlib import Path

import click

from palaver.cli import options as lookup, output
from palaver.cli.options import load_cli_settings, open_store
from palaver.cli.people import find_person

FORMATS = ("jsonl", "markdown", "html", "zip")


@click.command("export")
@click.argument("sessions", metavar="SESSION", nargs=-1)
@click.option("--person", metavar="NAME", help="Everything of this person.")
@click.option("--all", "everything", is_flag=True, help="Everything of everybody.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(FORMATS),
    help="jsonl is complete and can be imported again; markdown and html are to read; zip is an archive of everything"
    " about one person. [default: by the ending of FILE, else jsonl]",
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The file to write; a folder for several conversations as markdown or html.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def export_command(
    sessions: tuple[str, ...], person: str | None, everything: bool, file_format: str | None, path: Path, force: bool
) -> None:
    """Export conversations, a person or everything.

    SESSION is an id, the beginning of one, or a title. Only you can read the file. It contains no passwords, tokens or
    keys.
    """
    if sum((bool(sessions), person is not None, everything)) != 1:
        raise click.UsageError("Name conversations, or a person with --person, or use --all.")
    from palaver.app import make_attachments
    from palaver.transfer.archive import EXPORT_FORMATS, FORMAT_BY_SUFFIX, ExportRequest

    chosen = file_format or FORMAT_BY_SUFFIX.get(path.suffix.lower(), "jsonl")
    settings = load_cli_settings()
    with open_store(settings) as store:
        owner = store.get_owner()
        view = store.seen_by(owner.principal, everything=True)
        request = ExportRequest(
            store=store,
            attachments=make_attachments(store, settings),
            owner=owner,
            target=path,
            session_ids=tuple(lookup.find_session(view, each).id for each in sessions),
            person=None if person is None else find_person(store, person),
            overwrite=force,
        )
        result = EXPORT_FORMATS[chosen](request)
    files = "" if result.file_count == 1 else f"{output.format_count(result.file_count, 'file')}, "
    output.print_hint(f"Exported to {result.path} ({files}{_format_size(result.size)}).")


def _format_size(size: int) -> str:
    for unit, divisor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= divisor:
            return f"{size / divisor:.1f} {unit}"
    return output.format_count(size, "byte")
