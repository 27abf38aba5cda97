"""What is Signal's own: a stand-in for signal-cli, and adapters that start it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import Platform
from palaver.platforms.signal.adapter import SignalAdapter, SignalTiming
from palaver.platforms.signal.manifest import SignalSettings
from palaver.sessions.delivery import Address
from support.platform_adapters import PlatformParts, make_place, render_message

from .signal_server import ADA, SignalServer

if TYPE_CHECKING:
    from support.platform_adapters import AdapterMaker

    MakeAdapter = AdapterMaker[SignalAdapter]

ADDRESS = Address(Platform.SIGNAL, ADA)
QUICK_POLLS = SignalTiming(connect_poll=0.005, busy_poll=0.005, idle_poll=0.005)
make_outgoing = partial(render_message, ADDRESS)


def make_adapter_for(
    server: SignalServer, *, account: str = "", timing: SignalTiming = QUICK_POLLS, **settings: Any
) -> SignalAdapter:
    """Return an adapter for the account of the server."""
    fields = {"program": str(server.program), "config_folder": str(server.config_folder), "chats": "all", **settings}
    place = make_place(account, folder=server.folder / f"account{account}", webhook_url=None)
    return SignalAdapter(SignalSettings(**fields), place, timing=timing)


@pytest.fixture
def parts() -> PlatformParts:
    return PlatformParts(SignalServer, make_adapter_for, ADDRESS)
