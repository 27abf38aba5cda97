"""The services that every route can use, and where the page is served from. `palaver.app` builds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

if TYPE_CHECKING:
    from palaver.services.accounts.accounts import Accounts
    from palaver.services.attachments import Attachments
    from palaver.services.completions import Completions
    from palaver.services.conversations import Conversations
    from palaver.services.erasure import Erasures
    from palaver.services.gateway import Gateway
    from palaver.services.health_check import HealthCheck
    from palaver.services.live.clients import LiveClients
    from palaver.services.metrics import MetricsReader
    from palaver.services.policies import Policies
    from palaver.services.push.notifier import PushNotifier
    from palaver.services.retention import Retention
    from palaver.services.settings.live_settings import LiveSettings
    from palaver.services.settings.model_catalog import ModelCatalog
    from palaver.services.shares import Shares
    from palaver.services.transfer.documents import Documents
    from palaver.services.transfer.person_exports import PersonExports
    from palaver.services.transfer.personal_imports import PersonalImports


@dataclass(frozen=True, slots=True, kw_only=True)
class WebState:
    """The services of one server."""

    gateway: Gateway
    accounts: Accounts
    attachments: Attachments
    completions: Completions
    conversations: Conversations
    documents: Documents
    erasures: Erasures
    health: HealthCheck
    imports: PersonalImports
    live: LiveClients
    metrics: MetricsReader
    model_catalog: ModelCatalog
    person_exports: PersonExports
    policies: Policies
    push: PushNotifier
    retention: Retention
    settings: LiveSettings
    shares: Shares
    base_path: str = ""  # the path below which a reverse proxy serves us, without a slash at the end
    public_host: str | None = None
    public_url: str | None = None  # the configured one, without a slash at the end
    network_url: str | None = None  # for other machines in the network, if the server listens beyond this machine
    trusted_proxies: tuple[str, ...] = ()

    async def close_streams(self) -> None:
        """End the streams that would keep connections open when the server stops."""
        await self.live.stop()
        await self.gateway.temporary_chats.stop()
        await self.imports.stop()


async def _get_state(request: Request) -> WebState:
    state: WebState = request.app.state.palaver
    return state


State = Annotated[WebState, Depends(_get_state)]
