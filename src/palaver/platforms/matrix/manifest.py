"""Matrix, as the registry sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.matrix.capabilities import CAPABILITIES
from palaver.platforms.matrix.settings import MatrixSettings

if TYPE_CHECKING:
    from palaver.delivery.adapter import Adapter
    from palaver.platforms.manifest import AccountPlace


def _create(settings: MatrixSettings, place: AccountPlace) -> Adapter:
    from palaver.platforms.matrix.adapter import MatrixAdapter

    return MatrixAdapter(settings, place)


MANIFEST = PlatformManifest(
    platform=Platform.MATRIX,
    settings=MatrixSettings,
    create=_create,
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
