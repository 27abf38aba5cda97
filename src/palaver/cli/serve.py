"""`palaver serve`: the gateway and the web page in one process."""

from __future__ import annotations

import click

from palaver.cli.options import load_cli_settings


@click.command()
@click.option("--host", metavar="ADDRESS", help="The address to listen on. [default: web.host, or 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="The port to listen on; 0 picks a free one. [default: web.port, or 8765, or the next free one]",
)
@click.option(
    "--open/--no-open",
    "open_browser",
    default=None,
    help="Open the page in a browser. [default: only at a terminal]",
)
@click.option(
    "--link",
    "print_link",
    is_flag=True,
    help="Print a sign-in link for the owner, even with a password set. If a server is already running, print a link to"
    " it and exit.",
)
def serve(host: str | None, port: int | None, open_browser: bool | None, print_link: bool) -> None:
    """Run the gateway with the web page and the API.

    Stop it with Ctrl-C or SIGTERM. Running answers get 20 seconds to finish; the next Palaver process continues
    the rest. If a server already runs on the same data, prints its address; with --port, starts a second one.
    """
    settings = load_cli_settings()
    from palaver.cli.server_runner import ServeOptions, serve_until_stopped

    options = ServeOptions(host=host, port=port, open_browser=open_browser, print_link=print_link)
    click.get_current_context().exit(serve_until_stopped(settings, options))
