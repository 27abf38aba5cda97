"""The services that every route can use, and where the page is served from. `palaver.app` builds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

if TYPE_CHECKING:
    from palaver.accounts.accounts import Accounts
    from palaver.gateway.completions import Completions
    from palaver.gateway.gateway import Gateway
    from palaver.live.clients import LiveClients
    from palaver.media.attachments import Attachments
    from palaver.operation.erasure import Erasures
    from palaver.operation.health_check import HealthCheck
    from palaver.operation.metrics import MetricsReader
    from palaver.operation.retention import Retention
    from palaver.push.notifier import PushNotifier
    from palaver.sessions.conversations import Conversations
    from palaver.sessions.shares import Shares
    from palaver.settings.live_settings import LiveSettings
    from palaver.settings.model_catalog import ModelCatalog
    from palaver.transfer.documents import Documents
    from palaver.transfer.person_exports import PersonExports
    from palaver.transfer.personal_imports import PersonalImports
    from palaver.turns.policies import Policies


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
