"""`palaver config`: settings that are stored in the database, with where each value comes from."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from palaver.cli import output
from palaver.cli.options import NounGroup, is_interactive, load_cli_settings, open_store
from palaver.cli.output import Column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.config.setting_templates import SettingPath
    from palaver.people.model import Principal
    from palaver.settings.editor import EditResult, SettingsEditor
    from palaver.settings.encryption import ChangeItem, SettingsChange
    from palaver.settings.overview import PlatformCatalog, SettingsOverview, SettingValue
    from palaver.settings.reader import LoadedSettings

_COLUMNS: tuple[Column[SettingValue], ...] = (
    Column("KEY", lambda each: each.key),
    Column("VALUE", lambda each: _format_value(each)[:_MAX_SHOWN_CHARS], fills_width=True),
    Column("SOURCE", lambda each: str(each.source) + " (can't be used)" * (each.problem is not None), style="dim"),
)


class _HistoryRow(NamedTuple):
    """One setting of a change; the change itself is in its first row only."""

    item: ChangeItem
    change: SettingsChange | None


_HISTORY_COLUMNS: tuple[Column[_HistoryRow], ...] = (
    Column("NO", lambda row: None if row.change is None else row.change.number, align="right"),
    Column("WHEN", lambda row: None if row.change is None else row.change.changed_at),
    Column("WHO", lambda row: None if row.change is None else _describe_author(row.change)),
    Column("KEY", lambda row: row.item.key),
    Column("BEFORE", lambda row: format_plain(row.item.before)[:_MAX_SHOWN_CHARS], width_divisor=5),
    Column("AFTER", lambda row: format_plain(row.item.after)[:_MAX_SHOWN_CHARS], fills_width=True),
)
_READ_INPUT = "-"  # in place of a value: read it from the terminal or from standard input
_MAX_INPUT_CHARS = 200_000
_MAX_SHOWN_CHARS = 200


@click.group(cls=NounGroup)
def config() -> None:
    """Show and change settings.

    Environment variables and config.yaml pin a value; otherwise it is stored in the database, and changed here or on
    the settings page; otherwise the default applies. A change applies to running servers within a second.
    """


@config.command("list")
@click.argument("prefix", required=False)
@click.option("--all", "include_defaults", is_flag=True, help="Include settings that have their default.")
def list_settings(prefix: str | None, include_defaults: bool) -> None:
    """List settings with their values and where these come from.

    With PREFIX, only settings below that key, such as turns or providers.openai.
    """
    from palaver.config.setting_templates import parse_key
    from palaver.settings.overview import setting_to_json

    start = parse_key(prefix) if prefix else ()
    with open_config() as (editor, _):
        overview = _load_overview(editor)
        values = [
            value
            for value in overview.list_values()
            if value.path[: len(start)] == start and (include_defaults or prefix or value.is_set)
        ]
    empty = "No settings are changed. Use --all to see the defaults." if not prefix else "No such settings."
    output.print_list({"settings": [setting_to_json(value) for value in values]}, _COLUMNS, values, empty)


@config.command("get")
@click.argument("key")
def get_setting(key: str) -> None:
    """Show one setting. A secret is never shown, only whether it is set."""
    from palaver.config.setting_templates import parse_key
    from palaver.core.errors import NotFound
    from palaver.settings.overview import setting_to_json

    path = parse_key(key)
    with open_config() as (editor, _):
        value = _load_overview(editor).find_value(path)
    if value is None:
        raise NotFound(f"There is no setting {output.clean_line(key)[:60]!r}.", key=key[:200])
    if output.wants_json():
        output.print_json(setting_to_json(value))
        return
    click.echo(output.clean_text(_format_value(value)))
    output.print_hint(f"Source: {value.source}")
    if value.problem is not None:
        output.print_hint(f"The stored value can't be used: {output.clean_line(value.problem)}")


@config.command("set")
@click.argument("words", nargs=-1, required=True, metavar="KEY [VALUE] [KEY VALUE]...")
def set_settings(words: tuple[str, ...]) -> None:
    """Set one or several settings: all of them, or none if one is not valid.

    Without VALUE, or with - as VALUE, it is read from standard input, or asked for. The value of a secret is always
    read this way, because other users of this machine can see command lines. Lists are written as [a, b] or a,b.
    """
    from palaver.config.setting_templates import parse_key
    from palaver.settings.editor import SettingsEdit
    from palaver.settings.overview import is_secret_setting

    if len(words) > 1 and len(words) % 2:
        raise click.UsageError("Give a VALUE for every KEY; use - to be asked for it.")
    pairs = [(words[0], _READ_INPUT)] if len(words) == 1 else list(zip(words[::2], words[1::2], strict=True))
    with open_config() as (editor, principal):
        values: dict[str, object] = {}
        for key, text in pairs:
            path = parse_key(key)
            is_secret = is_secret_setting(editor.catalog, path)
            if is_secret and text != _READ_INPUT:
                raise click.UsageError(
                    f"{key} is a secret, and other users of this machine can see command lines. Leave out the VALUE to"
                    " be asked for it, or pipe it in."
                )
            entered = _read_value(key, is_secret=is_secret) if text == _READ_INPUT else text
            values[key] = _parse_value(editor.catalog, path, entered)
        _print_result(editor, editor.change(principal, SettingsEdit(values=values, origin="terminal")))


@config.command("unset")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
def unset_settings(keys: tuple[str, ...]) -> None:
    """Remove settings from the database, so that their defaults apply.

    KEY is a setting, or a section whose settings are all removed.
    """
    from palaver.settings.editor import SettingsEdit

    with open_config() as (editor, principal):
        _print_result(editor, editor.change(principal, SettingsEdit(unset=keys, origin="terminal")))


@config.command("history")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="How many changes.")
def show_history(limit: int) -> None:
    """List changes of settings, newest first: when, by whom, and what."""
    from palaver.core.wire import build_json
    from palaver.settings.wire import SettingsChangeJson

    with open_config() as (editor, principal):
        changes = editor.list_history(principal, limit=limit)
    document = {"changes": [build_json(SettingsChangeJson, change) for change in changes]}
    rows = [
        _HistoryRow(item, None if number else change) for change in changes for number, item in enumerate(change.items)
    ]
    output.print_list(document, _HISTORY_COLUMNS, rows, "No settings were changed yet.")


@config.command("undo")
@click.argument("number", type=click.IntRange(min=1))
def undo_change(number: int) -> None:
    """Put back the values from before a change.

    NUMBER is the one that `palaver config history` shows. Undoing is a change itself, and can be undone.
    """
    with open_config() as (editor, principal):
        _print_result(editor, editor.undo(principal, number, origin="terminal"))


@config.command("rotate-key")
def rotate_key() -> None:
    """Encrypt all secrets with a new key.

    The key is in settings.key in the home folder. If PALAVER_SECRET_KEY is used instead, set it to the new key, a comma
    and the old key first, and start all servers again.
    """
    from palaver.settings.editor import rotate_key as encrypt_with_new_key

    with open_config() as (editor, _):
        result = encrypt_with_new_key(editor.reader)
    text = f"Encrypted {output.format_count(result.secret_count, 'secret')} with a new key."
    if result.dropped_count:
        lost = output.format_count(result.dropped_count, "earlier value")
        text += f"\n{lost} in the history could not be decrypted and can't be restored."
    output.print_result({"secrets": result.secret_count, "dropped": result.dropped_count}, text)


@contextmanager
def open_config() -> Iterator[tuple[SettingsEditor, Principal]]:
    """Open the store, and yield its settings and the owner, who changes them at the terminal."""
    from palaver.app import make_editor

    settings = load_cli_settings()
    with open_store(settings) as store:
        yield make_editor(store, settings), store.get_owner().principal


def _load_overview(editor: SettingsEditor, loaded: LoadedSettings | None = None) -> SettingsOverview:
    from palaver.settings.overview import SettingsOverview

    return SettingsOverview(loaded or editor.reader.load(), editor.catalog)


# ---- values ------------------------------------------------------------------------------------------------


def _read_value(key: str, *, is_secret: bool) -> str:
    if not is_interactive():
        return sys.stdin.read(_MAX_INPUT_CHARS).rstrip("\n")
    value: str = click.prompt(output.clean_line(key), hide_input=is_secret, err=True)
    return value


def _parse_value(catalog: PlatformCatalog, path: SettingPath, text: str) -> object:
    """Return a value as config.yaml would give it; the rules say whether it is valid."""
    from palaver.config.setting_templates import find_template

    template = find_template(path)
    kind, is_list, is_optional = "text", False, False
    if template is not None and template.is_adapter_setting:
        fields = (field for form in catalog.list_forms() if form["platform"] == path[1] for field in form["fields"])
        field = next((each for each in fields if each["name"] == path[-1]), None)
        if field is not None:
            kind, is_list, is_optional = field["kind"], field["is_list"], not field["is_required"]
    elif template is not None:
        kind, is_list, is_optional = template.kind, template.is_list, template.is_optional
    if is_optional and text == "null":
        return None
    if is_list and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    if not is_list and kind not in ("integer", "number", "boolean"):
        return text
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text


# ---- output ------------------------------------------------------------------------------------------------


def _format_value(value: SettingValue) -> str:
    if value.is_secret:
        return "not set" if not value.is_set else f"set (…{value.hint})" if value.hint else "set"
    return format_plain(value.value)


def format_plain(value: object) -> str:
    import json

    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _describe_author(change: SettingsChange) -> str:
    name = change.person_name or "unknown"
    return f"{name} (undoes {change.undoes})" if change.undoes else name


def _print_result(editor: SettingsEditor, result: EditResult) -> None:
    from palaver.settings.overview import setting_to_json

    overview = _load_overview(editor, result.loaded)
    values = [value for path in result.changed if (value := overview.find_value(path)) is not None]
    if output.wants_json():
        document = {
            "version": result.loaded.state.version,
            "change": result.change_no,
            "settings": [setting_to_json(value) for value in values],
        }
        output.print_json(document)
        return
    if result.change_no is None:
        click.echo("Nothing to change.")
        return
    for value in values:
        shown = output.clean_line(_format_value(value))[:_MAX_SHOWN_CHARS]
        click.echo(f"{output.clean_line(value.key)} = {shown} ({value.source})")
    keys = [value.key for value in values if value.template.needs_restart]
    if keys:
        output.print_hint(f"Start the server again to apply {', '.join(keys)}.")
