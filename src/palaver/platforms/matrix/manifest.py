"""Matrix, as the registry sees it."""

from __future__ import annotations

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.matrix.capabilities import CAPABILITIES
from palaver.platforms.matrix.settings import MatrixSettings

MANIFEST = PlatformManifest(
    platform=Platform.MATRIX,
    settings=MatrixSettings,
    create="palaver.platforms.matrix.adapter:create_adapter",
    capabilities=CAPABILITIES,
    extra="matrix",
    modules=("httpx2", "markdown_it", "nh3"),
    environment={
        "MATRIX_HOMESERVER": "homeserver",
        "MATRIX_USER_ID": "user_id",
        "MATRIX_ACCESS_TOKEN": "access_token",
        "MATRIX_PASSWORD": "password",
    },
    addresses=("homeserver",),
    summary="An account on a Matrix homeserver: rooms, direct chats, threads, files, encrypted rooms.",
)
