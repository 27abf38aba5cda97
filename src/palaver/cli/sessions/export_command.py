"""`palaver sessions export`: a whole conversation as JSON, JSONL, Markdown or HTML."""

from __future__ import annotations

from pathlib import Path

import click

from palaver.cli import lookup, output
from palaver.cli.options import load_cli_settings, mine_option, open_store, session_argument

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
@click.pass_context
def export(
    ctx: click.Context, session: str, path: Path | None, file_format: str | None, force: bool, mine: bool
) -> None:
    """Export a whole conversation.

    Prints it, or writes a FILE that only you can read.
    """
    to_stdout = path is None or str(path) == "-"
    if file_format is None:
        file_format = _FORMAT_BY_SUFFIX.get("" if path is None else path.suffix.lower(), "json")
    _export_document(ctx, session, None if to_stdout else path, file_format, force=force, mine=mine)


def _export_document(
    ctx: click.Context, session: str, path: Path | None, file_format: str, *, force: bool, mine: bool
) -> None:
    """Write a document as it is made, piece by piece."""
    from palaver.core.files import write_pieces_atomically
    from palaver.media.attachments import Attachments
    from palaver.sessions.document_format import DocumentFormat
    from palaver.transfer.documents import Documents

    settings = load_cli_settings(ctx)
    with open_store(settings) as store:
        principal = store.get_owner().principal
        found = lookup.find_session(store.seen_by(principal, everything=not mine), session)
        documents = Documents(store, Attachments(store, settings.home / "attachments"))
        pieces = documents.iterate(principal, found.id, DocumentFormat(file_format), everything=not mine)
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
