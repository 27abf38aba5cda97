"""`palaver profiles`: the profiles that conversations can choose, and their pictures."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final

import click

from palaver.cli import output
from palaver.cli.config import open_config
from palaver.cli.options import NounGroup, load_current_settings
from palaver.cli.output import Column
from palaver.core.invocation import format_command

_TYPES: Final = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif"}  # by the file's ending


@click.group(cls=NounGroup)
def profiles() -> None:
    """Show the profiles that conversations can choose, and set their pictures.

    Everything else of a profile is a setting: palaver config set profiles.NAME.instructions.
    """


@profiles.command("list")
def list_profiles() -> None:
    """List the profiles, with their model and when their conversations restart."""
    from palaver.agent.wire import profile_to_json
    from palaver.commands.reply_text import format_reset_policy

    settings = load_current_settings()
    found, policies = settings.agent.profiles, settings.gateway.reset_by_profile
    document = {"profiles": [profile_to_json(name, each, policies.get(name)) for name, each in found.items()]}
    columns: list[Column[str]] = [
        Column("NAME", lambda name: name),
        Column("TITLE", lambda name: found[name].title),
        Column("MODEL", lambda name: found[name].model),
        Column("RESTARTS", lambda name: format_reset_policy(policies[name]) if name in policies else None),
        Column("DESCRIPTION", lambda name: found[name].description, fills_width=True),
    ]
    command = format_command("config set profiles.NAME.instructions")
    output.print_list(
        document, columns, list(found), f"No profiles yet. Add one on the settings page, or with `{command}`."
    )


@profiles.command()
@click.argument("name")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--remove", is_flag=True, help="Remove the picture.")
def picture(name: str, file: Path | None, remove: bool) -> None:
    """Set the picture that people see beside the name of a profile.

    FILE is a PNG, JPEG, WebP or GIF picture of at most 48 KB; a square of 96 pixels is enough.
    """
    from palaver.core.errors import NotFound
    from palaver.settings.editor import SettingsEdit

    if (file is None) is not remove:
        raise click.UsageError("Give a FILE, or --remove.")
    key = f"profiles.{name}.picture"
    with open_config() as (editor, principal):
        known = editor.reader.load().settings.agent.profiles
        if name not in known:
            listed = ", ".join(known) or "none"
            raise NotFound(
                f"There is no profile {output.clean_line(name)[:60]!r} (known: {listed}).", profile=name[:200]
            )
        values = {} if file is None else {key: _read_picture(file)}
        unset = [key] if file is None else []
        editor.change(principal, SettingsEdit(values=values, unset=unset, origin="terminal"))
    output.print_result(
        {"profile": name, "has_picture": file is not None},
        f"The picture of {name} was {'removed' if file is None else 'set'}.",
    )


def _read_picture(file: Path) -> str:
    """Return a file as a data URL. Whether it is a picture of this type, the rules of the setting say."""
    from palaver.config.validators import MAX_PICTURE_CHARS

    kind = _TYPES.get(file.suffix.lower())
    if kind is None:
        raise click.UsageError(f"{file.name} is not a PNG, JPEG, WebP or GIF picture, by its ending.")
    start = f"data:image/{kind};base64,"
    max_bytes = (MAX_PICTURE_CHARS - len(start)) // 4 * 3
    size = file.stat().st_size
    if size > max_bytes:
        raise click.UsageError(f"{file.name} has {size:,} bytes. A picture may have {max_bytes:,}: make it smaller.")
    return start + base64.b64encode(file.read_bytes()).decode()
