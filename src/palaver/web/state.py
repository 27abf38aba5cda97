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
    from palaver.services.gateway import Gateway
    from palaver.services.live.clients import LiveClients
    from palaver.services.metrics import MetricsReader
    from palaver.services.policies import Policies
    from palaver.services.shares import Shares


@dataclass(frozen=True, slots=True, kw_only=True)
class WebState:
    """The services of one server."""

    gateway: Gateway
    accounts: Accounts
    attachments: Attachments
    completions: Completions
    conversations: Conversations
    live: LiveClients
    metrics: MetricsReader
    policies: Policies
    shares: Shares
    base_path: str = ""  # the path below which a reverse proxy serves us, without a slash at the end
    public_host: str | None = None
    public_url: str | None = None  # the configured one, without a slash at the end
    network_url: str | None = None  # for other machines in the network, if the server listens beyond this machine
    trusted_proxies: tuple[str, ...] = ()


async def _get_state(request: Request) -> WebState:
    state: WebState = request.app.state.palaver
    return state


State = Annotated[WebState, Depends(_get_state)]
