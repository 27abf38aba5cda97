"""What Palaver knows of Signal before its adapter is loaded."""

from __future__ import annotations

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.signal.capabilities import CAPABILITIES
from palaver.platforms.signal.settings import SignalSettings

MANIFEST = PlatformManifest(
    platform=Platform.SIGNAL,
    settings=SignalSettings,
    create="palaver.platforms.signal.adapter:create_adapter",
    capabilities=CAPABILITIES,
    extra="signal",
    modules=("markdown_it",),
    environment={"SIGNAL_CLI_PROGRAM": "program", "SIGNAL_ACCOUNT": "account"},
    addresses=(),
    summary="Signal through signal-cli: private chats, groups and notes to self",
)
