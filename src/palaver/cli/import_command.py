"""`palaver import`: brings in conversations from other programs and from other installations of Palaver."""

from __future__ import annotations

import shlex
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palaver.cli import output
from palaver.cli.options import is_interactive, json_option, load_cli_settings, open_store
from palaver.cli.people import find_person

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from click.shell_completion import CompletionItem

    from palaver.cli.import_settings import SettingsOffer
    from palaver.config import Settings
    from palaver.core.source import SessionSource
    from palaver.people.model import Person
    from palaver.sessions.store import SessionStore
    from palaver.transfer.imported import ImportReader, ReaderManifest
    from palaver.transfer.report import ImportReport

OWN_FORMAT = "palaver"
_MAX_CHOICES = 30  # of chat accounts, those with the most conversations


class _FormatChoice(click.ParamType[str]):
    """One of the formats that have an installed reader, which are looked for only when this command runs."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return click.Choice(list(_get_readers())).convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return click.Choice(list(_get_readers())).shell_complete(ctx, param, incomplete)


class _ImportCommand(click.Command):
    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        *names, last = _get_readers()
        self.help = (self.help or "").replace("{formats}", f"{', '.join(names)} or {last}")
        super().format_help_text(ctx, formatter)


def _get_readers() -> Mapping[str, ReaderManifest]:
    from palaver.transfer.readers import get_manifests

    return get_manifests()


@click.command("import", cls=_ImportCommand)
@click.argument("import_format", metavar="FORMAT", type=_FormatChoice())
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--dry-run", is_flag=True, help="Read everything and say what would come in; change nothing.")
@click.option(
    "--person", metavar="NAME", help="Whose the conversations are that name no person. [default: you, the owner]"
)
@click.option("--account", metavar="ACCOUNT", help="Which account of Open WebUI, if its files have several.")
@click.option(
    "--me",
    "own_accounts",
    metavar="PLATFORM:USER",
    multiple=True,
    help="A chat account that is yours, such as telegram:42: its conversations are yours, too. May be repeated.",
)
@click.option(
    "--settings/--no-settings",
    "applies_settings",
    default=None,
    help="Apply the settings of Hermes that decide where conversations continue, or leave them. [default: ask]",
)
@click.option("--yes", is_flag=True, help="Don't ask which chat accounts are yours, nor about settings.")
@json_option
def import_command(
    import_format: str,
    path: Path | None,
    dry_run: bool,
    person: str | None,
    account: str | None,
    own_accounts: tuple[str, ...],
    applies_settings: bool | None,
    yes: bool,
) -> None:
    """Import conversations from another program.

    FORMAT is {formats}; PATH is the exported file or the program's folder. Importing twice changes nothing; an import
    that was interrupted continues when you run it again.
    """
    reader = _get_readers()[import_format]
    default_path = None if reader.default_path is None else Path(reader.default_path)
    path = path or default_path
    if path is None:
        raise click.UsageError(f"PATH is missing: the file or folder of {reader.name}.")
    files = path.expanduser()
    if import_format == OWN_FORMAT and person is not None:
        raise click.UsageError("--person: an export of Palaver says whose everything is.")
    if account is not None and not reader.has_accounts:
        labels = " and ".join(each.label for each in _get_readers().values() if each.has_accounts)
        raise click.UsageError(f"--account: only the files of {labels} have accounts.")

    if own_accounts and (import_format == OWN_FORMAT or person is not None):
        raise click.UsageError(
            "--me: names accounts of the owner. It can't be used with an export of Palaver or --person."
        )

    settings = load_cli_settings()
    offer: SettingsOffer | None = None
    with open_store(settings) as store:
        if import_format == OWN_FORMAT:
            report = _import_own(store, settings, files, dry_run=dry_run)
        else:
            with closing(_open_reader(import_format, files, account)) as opened:
                owner = find_person(store, person)
                can_ask = person is None and not yes
                own = _choose_accounts(store, opened, owner, own_accounts, can_ask=can_ask)
                # Before anything comes in: settings decide in which conversations people are.
                offer = _offer_settings(store, settings, opened, applies_settings, dry_run=dry_run, can_ask=not yes)
                report = _import_foreign(store, settings, opened, owner, own, dry_run=dry_run)
    if output.wants_json():
        output.print_json(report.to_dict() | ({} if offer is None else {"settings": offer.to_dict()}))
        return
    lines = [*report.format_lines()]
    if offer is not None:
        lines = [*([] if offer.was_shown else offer.format_lines()), *lines]
        command = f"import {import_format}" + (f" {shlex.quote(str(path))}" if path != default_path else "")
        lines += offer.format_outcome(command, choice=applies_settings, dry_run=dry_run)
    for line in lines:
        click.echo(output.clean_text(line))


def _import_own(store: SessionStore, settings: Settings, path: Path, *, dry_run: bool) -> ImportReport:
    from palaver.app import make_attachments
    from palaver.transfer.restore import restore_export

    with _show_progress("Importing", unit="bytes") as advance:
        attachments = make_attachments(store, settings)
        return restore_export(store, attachments, path, dry_run=dry_run, on_progress=advance)


def _open_reader(import_format: str, path: Path, account: str | None) -> ImportReader:
    from palaver.transfer.readers import open_reader

    return open_reader(import_format, path, account)


def _offer_settings(
    store: SessionStore,
    settings: Settings,
    reader: ImportReader,
    choice: bool | None,
    *,
    dry_run: bool,
    can_ask: bool,
) -> SettingsOffer | None:
    """Apply the settings of another program if the operator wants that; None if its files have none."""
    from palaver.app import make_editor, use_accounts
    from palaver.cli.import_settings import SettingsOffer
    from palaver.transfer.imported import ReaderOfSettings

    if not isinstance(reader, ReaderOfSettings):
        if choice:
            raise click.UsageError(f"--settings: files of {reader.format} have no settings that can be applied here.")
        return None
    offer = SettingsOffer(make_editor(store, settings), store.get_owner().principal, reader.read_settings())
    changed = offer.decide(choice, dry_run=dry_run, can_ask=can_ask)
    if changed is not None:
        use_accounts(store, changed.settings, ())
    return offer


def _import_foreign(
    store: SessionStore,
    settings: Settings,
    reader: ImportReader,
    person: Person,
    own_accounts: tuple[SessionSource, ...],
    *,
    dry_run: bool,
) -> ImportReport:
    from palaver.app import load_stored_settings, make_attachments, make_importer

    total = reader.count_conversations()
    profile = load_stored_settings(store, settings).settings.agent
    importer = make_importer(store, make_attachments(store, settings), profile)
    with _show_progress("Importing", unit="conversations") as advance:
        return importer.import_files(
            reader,
            person,
            own_accounts=own_accounts,
            dry_run=dry_run,
            on_progress=lambda count: advance(count, total),
        )


def _choose_accounts(
    store: SessionStore, reader: ImportReader, person: Person, names: tuple[str, ...], *, can_ask: bool
) -> tuple[SessionSource, ...]:
    """Return the chat accounts that belong to the owner: those that were named, else ask at a terminal."""
    from palaver.transfer.chat_accounts import find_accounts, list_chat_accounts, list_unlinked_accounts

    if not names and not (can_ask and is_interactive() and not output.wants_json()):
        return ()
    accounts = list_chat_accounts(reader)
    if names:
        return find_accounts(accounts, names)
    every = list_unlinked_accounts(store, accounts, person.id)
    if not every:
        return ()
    choices = every[:_MAX_CHOICES]
    click.echo("Which of these chat accounts are yours? Their conversations become yours, too.", err=True)
    for number, choice in enumerate(choices, 1):
        click.echo(f"{number:>4}  {output.clean_line(str(choice))}", err=True)
    if len(every) > len(choices):
        click.echo(f"      … and {len(every) - len(choices):,} more; name those with --me.", err=True)
    chosen = click.prompt(
        "Numbers, separated by commas, or Enter for none",
        default="",
        show_default=False,
        value_proc=lambda text: _parse_numbers(text, len(choices)),
        err=True,
    )
    return tuple(choices[number - 1].source for number in chosen or ())


def _parse_numbers(text: str, count: int) -> list[int]:
    numbers = text.replace(",", " ").split()
    if not all(each.isascii() and each.isdigit() and 1 <= int(each[:9]) <= count for each in numbers):
        raise click.BadParameter(f"Use numbers from 1 to {count}.")
    return sorted({int(each) for each in numbers})


@contextmanager
def _show_progress(title: str, *, unit: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar on a terminal; elsewhere nothing."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [TextColumn("{task.description}"), BarColumn()]
    columns += [MofNCompleteColumn()] if unit != "bytes" else [TextColumn("{task.percentage:>3.0f} %")]
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
