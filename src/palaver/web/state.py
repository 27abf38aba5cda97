"""What every route is given: the gateway, the accounts, the files, and where the page is served from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

if TYPE_CHECKING:
    from palaver.services.accounts.accounts import Accounts
    from palaver.services.attachments import Attachments
    from palaver.services.gateway import Gateway
    from palaver.services.live.clients import Live


@dataclass(frozen=True, slots=True, kw_only=True)
class WebState:
    """One server's parts."""

    gateway: Gateway
    accounts: Accounts
    live: Live
    files: Attachments
    base_path: str = ""  # where a reverse proxy mounts us, without a slash at the end
    public_host: str | None = None
    trusted_proxies: tuple[str, ...] = ()


async def _state(request: Request) -> WebState:
    state: WebState = request.app.state.palaver
    return state


State = Annotated[WebState, Depends(_state)]
