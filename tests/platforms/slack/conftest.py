"""What is Slack's own: a local server, and adapters that talk to it through the real SDK."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import Platform
from palaver.sessions.delivery import Address
from support.platform_adapters import PlatformParts, make_place, render_message

from .slack_server import APP_TOKEN, DM, SIGNING_SECRET, TOKEN, SlackServer

if TYPE_CHECKING:
    from palaver.platforms.slack.adapter import SlackAdapter
    from support.platform_adapters import AdapterMaker

    MakeAdapter = AdapterMaker[SlackAdapter]

COMMANDS = ("new", "stop", "help", "status", "undo", "redo")
ADDRESS = Address(Platform.SLACK, DM)
make_outgoing = partial(render_message, ADDRESS)


def make_adapter_for(
    server: SlackServer, *, account: str = "", timing: dict[str, Any] | None = None, **settings: Any
) -> SlackAdapter:
    """Return an adapter for the app of the server."""
    from palaver.platforms.slack.adapter import SlackAdapter, SlackTiming
    from palaver.platforms.slack.manifest import SlackSettings

    values = {"bot_token": TOKEN, "app_token": APP_TOKEN, "signing_secret": SIGNING_SECRET, "api_url": server.api_url}
    quick: dict[str, Any] = {"ping": 0.05, "confirmation_delays": (0.05, 0.2), "preview_delays": (0.05,)}
    return SlackAdapter(
        SlackSettings(**{**values, **settings}),
        make_place(account),
        commands=COMMANDS,
        timing=SlackTiming(**{**quick, **(timing or {})}),
    )


@pytest.fixture
def parts() -> PlatformParts:
    return PlatformParts(SlackServer, make_adapter_for, ADDRESS)
