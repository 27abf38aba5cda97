"""What Palaver knows of Signal before its adapter is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.signal.capabilities import CAPABILITIES
from palaver.platforms.signal.settings import SignalSettings

if TYPE_CHECKING:
    from palaver.delivery.adapter import Adapter
    from palaver.platforms.manifest import AccountPlace


def _create(settings: SignalSettings, place: AccountPlace) -> Adapter:
    from palaver.platforms.signal.adapter import SignalAdapter

    return SignalAdapter(settings, place)


MANIFEST = PlatformManifest(
    platform=Platform.SIGNAL,
    settings=SignalSettings,
    create=_create,
    capabilities=CAPABILITIES,
    extra="signal",
    modules=("markdown_it",),
    environment={"SIGNAL_CLI_PROGRAM": "program", "SIGNAL_ACCOUNT": "account"},
    addresses=(),
    summary="Signal through signal-cli: private chats, groups and notes to self",
)
