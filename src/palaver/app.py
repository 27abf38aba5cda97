"""The composition root: the one place that knows which concrete classes are in use.

Entry points load it when a command needs the store, not before; edges are handed what is made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.services.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.config import Settings
    from palaver.domain.redact import Redactor
    from palaver.services.attachments import Attachments
    from palaver.services.gateway import Gateway
    from palaver.services.ports import Adapter
    from palaver.web.state import WebState


def open_store(settings: Settings) -> SessionStore:
    """The store that the settings name, opened; made when it is not there yet."""
    return SessionStore.open(settings.database_url, config=settings.gateway)


def make_gateway(
    store: SessionStore, settings: Settings, environ: Mapping[str, str], adapters: Sequence[Adapter] = ()
) -> Gateway:
    """The gateway at work on a store: the agent that the settings name, and the platforms given."""
    from palaver.agent.selection import choose_agent
    from palaver.services.gateway import Gateway

    return Gateway(
        store,
        choose_agent(settings.agent, environ),
        profile=settings.agent,
        rules=settings.turns,
        adapters=adapters,
        redactor=_redactor(settings),
        files=_files(store, settings),
    )


def make_web(gateway: Gateway, settings: Settings) -> WebState:
    """What the web is given of a gateway; whoever serves it starts and stops what lives."""
    from urllib.parse import urlsplit

    from palaver.services.accounts.accounts import Accounts
    from palaver.services.live.clients import Live
    from palaver.web.state import WebState

    public = urlsplit(settings.web.public_url or "")
    return WebState(
        gateway=gateway,
        accounts=Accounts(gateway.store),
        live=Live(gateway.store, gateway.feed),
        files=_files(gateway.store, settings),
        base_path=public.path.rstrip("/"),
        public_host=public.netloc or None,
        trusted_proxies=settings.web.trusted_proxies,
    )


def _files(store: SessionStore, settings: Settings) -> Attachments:
    """What people attach to their messages."""
    from palaver.services.attachments import Attachments

    return Attachments(store, settings.home / "attachments")


def _redactor(settings: Settings) -> Redactor | None:
    """What hides ids from the agent, where the operator wants that."""
    if not settings.gateway.redact_pii:
        return None
    from palaver.config import install_secret
    from palaver.domain.redact import Redactor

    return Redactor(install_secret(settings.home))
