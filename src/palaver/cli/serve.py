"""`palaver serve`: the gateway and the web in one process, until somebody ends it."""

from __future__ import annotations

import click

from palaver.cli.options import settings_of


@click.command()
@click.option("--host", metavar="ADDRESS", help="Where to listen. [default: web.host, else 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="On which port; 0 is any free one. [default: web.port, else 8765]",
)
@click.option("--open/--no-open", "opens", default=None, help="Open the page in a browser. [default: at a terminal]")
@click.option("--link", is_flag=True, help="Print a link that signs the owner in, also when they have a password.")
@click.pass_context
def serve(ctx: click.Context, host: str | None, port: int | None, opens: bool | None, link: bool) -> None:
    """Run the gateway and serve the page and the API.

    Ctrl-C or SIGTERM ends it: answers under way are finished for a while, and what is not is taken up again by
    whoever runs next. A second server on the same data works beside the first; it only needs another port.
    """
    settings = settings_of(ctx)
    from palaver.cli.server_runner import Wanted, run

    ctx.exit(run(settings, Wanted(host=host, port=port, opens=opens, link=link)))
