"""`palaver upgrade`: brings the database of an older version up to date."""

from __future__ import annotations

import click

from palaver.cli.options import confirm_upgrade, load_cli_settings, yes_option


@click.command()
@yes_option
@click.pass_context
def upgrade(ctx: click.Context, yes: bool) -> None:
    """Upgrade the database of an older version of Palaver.

    Stop every older server first, and make a backup. `palaver serve` upgrades the database, too; other commands ask
    before they do.
    """
    from palaver.app import open_store
    from palaver.core.engine_upgrade import Upgrade
    from palaver.core.errors import UpgradeRequired

    settings = load_cli_settings(ctx)
    try:
        open_store(settings).close()
    except UpgradeRequired as error:
        confirm_upgrade(error, skip=yes)
        open_store(settings, upgrade=Upgrade.ALONE).close()
        click.echo("The database was upgraded.")
    else:
        click.echo("The database is up to date.")
